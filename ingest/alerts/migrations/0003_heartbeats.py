"""Heartbeats that are waited for."""

from django.db import migrations

HEARTBEATS = """
CREATE TABLE alert_heartbeat (
    integration text NOT NULL,
    name text NOT NULL,
    every interval NOT NULL,
    grace interval NOT NULL,
    severity text NOT NULL,
    component text,
    heard_at timestamptz NOT NULL,
    missed boolean NOT NULL,
    PRIMARY KEY (integration, name)
);
"""


class Migration(migrations.Migration):
    dependencies = [("alerts", "0002_ticks")]
    operations = [migrations.RunSQL(HEARTBEATS, "DROP TABLE alert_heartbeat")]
