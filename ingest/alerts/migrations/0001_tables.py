"""Alerts as they stand, and what was delivered."""

from django.db import migrations

# An alert's id is made of its integration and key, so its row needs no other unique index. What a repeat writes has no
# index: Postgres then updates in place (HOT), which `fillfactor` leaves room for.
ALERTS = """
CREATE TABLE alert (
    id uuid PRIMARY KEY,
    integration text NOT NULL,
    door text NOT NULL,
    key text NOT NULL,
    status text NOT NULL,
    expired boolean NOT NULL,
    settled_until timestamptz,
    severity text NOT NULL,
    title text NOT NULL,
    group_name text NOT NULL,
    component text,
    description text NOT NULL,
    labels text NOT NULL,
    links text NOT NULL,
    images text NOT NULL,
    notes text NOT NULL,
    starts_at timestamptz,
    expires_at timestamptz,
    fired text NOT NULL,
    changed_at timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    repeats integer NOT NULL,
    receipt uuid,
    version integer NOT NULL,
    hash bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX alert_open ON alert (changed_at) WHERE status <> 'resolved';

CREATE TABLE alert_delivery (
    receipt uuid NOT NULL,
    received_at timestamptz NOT NULL,
    integration text NOT NULL,
    door text NOT NULL,
    content_type text NOT NULL,
    sha256 bytea NOT NULL,
    payload bytea NOT NULL,
    alerts uuid[] NOT NULL,
    versions integer[] NOT NULL,
    outcomes text[] NOT NULL,
    whys text[] NOT NULL,
    refused text NOT NULL,
    trace text
) PARTITION BY RANGE (received_at);
CREATE TABLE alert_delivery_rest PARTITION OF alert_delivery DEFAULT;
CREATE INDEX alert_delivery_receipt ON alert_delivery (receipt);
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = [("log", "0003_extend_streams")]
    operations = [migrations.RunSQL(ALERTS, "DROP TABLE alert, alert_delivery")]
