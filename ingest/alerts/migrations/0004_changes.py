"""Changes that senders told of; and of each delivery what was left out of it on purpose."""

from django.db import migrations

CHANGES = """
CREATE TABLE reported_change (
    id uuid PRIMARY KEY,
    integration text NOT NULL,
    summary text NOT NULL,
    source text NOT NULL,
    component text,
    names text[] NOT NULL,
    details text NOT NULL,
    links text NOT NULL,
    notes text NOT NULL,
    at timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    receipt uuid NOT NULL
);
CREATE INDEX reported_change_at ON reported_change (at);
CREATE INDEX reported_change_names ON reported_change USING gin (names);
ALTER TABLE alert_delivery ADD COLUMN left_out text NOT NULL DEFAULT '[]';
"""


class Migration(migrations.Migration):
    dependencies = [("alerts", "0003_heartbeats")]
    operations = [
        migrations.RunSQL(
            CHANGES, "DROP TABLE reported_change; ALTER TABLE alert_delivery DROP COLUMN left_out"
        )
    ]
