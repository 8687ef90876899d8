"""Alerts as they stand, what was delivered, heartbeats that are waited for, and reported changes."""

from django.db import migrations

from ingest.db.periodic import periodic_tasks

# An alert's id is made of its integration and key, so its row needs no other unique index. What a repeat writes has no
# index: Postgres then updates in place (HOT), which `fillfactor` leaves room for.
ALERTS = """
CREATE TABLE alert (
    id uuid PRIMARY KEY,
    integration text NOT NULL,
    endpoint text NOT NULL,
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
    hash bytea NOT NULL,
    -- As sent; null where the sender has none.
    annotations text
) WITH (fillfactor = 70);
CREATE INDEX alert_open ON alert (changed_at) WHERE status <> 'resolved';

CREATE TABLE alert_delivery (
    receipt uuid NOT NULL,
    received_at timestamptz NOT NULL,
    integration text NOT NULL,
    endpoint text NOT NULL,
    content_type text NOT NULL,
    sha256 bytea NOT NULL,
    payload bytea NOT NULL,
    alerts uuid[] NOT NULL,
    versions integer[] NOT NULL,
    outcomes text[] NOT NULL,
    whys text[] NOT NULL,
    refused text NOT NULL,
    trace text,
    -- What was left out on purpose, with the reason.
    left_out text NOT NULL DEFAULT '[]'
) PARTITION BY RANGE (received_at);
CREATE TABLE alert_delivery_rest PARTITION OF alert_delivery DEFAULT;
CREATE INDEX alert_delivery_receipt ON alert_delivery (receipt);
"""

HEARTBEATS = """
CREATE TABLE alert_heartbeat (
    integration text NOT NULL,
    name text NOT NULL,
    every interval NOT NULL,
    grace interval NOT NULL,
    severity text NOT NULL,
    component text,
    received_at timestamptz NOT NULL,
    missed boolean NOT NULL,
    PRIMARY KEY (integration, name)
);
"""

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
    receipt uuid NOT NULL,
    validation text,
    validated_at timestamptz
);
CREATE INDEX reported_change_at ON reported_change (at);
CREATE INDEX reported_change_names ON reported_change USING gin (names);
"""

# Repeats are counted and new alerts inserted by functions, whose plans the server keeps. An alert is counted only where
# it stands as the sender's process last knew it: the hash of the newest event of its stream says so. `ids` are sorted and
# looked up one by one, so that two who count the same alerts never wait for each other in a circle; a hash has 32 bytes.
COUNT = """
CREATE FUNCTION alert_count(at timestamptz, ids uuid[], hashes bytea, more integer[], until timestamptz[])
RETURNS void LANGUAGE plpgsql VOLATILE SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
    counted integer;
BEGIN
    UPDATE alert SET last_seen = at, repeats = repeats + new_repeats, expires_at = new_expires_at
    FROM unnest(ids, more, until) WITH ORDINALITY AS new (new_id, new_repeats, new_expires_at, place)
    WHERE id = new_id AND hash = substr(hashes, 32 * place::integer - 31, 32);
    GET DIAGNOSTICS counted = ROW_COUNT;
    IF counted <> cardinality(ids) THEN
        RAISE EXCEPTION '% of % alerts changed meanwhile', cardinality(ids) - counted, cardinality(ids)
            USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;
"""

INSERT = """
CREATE FUNCTION alert_insert(
    id_ uuid[], integration_ text[], endpoint_ text[], key_ text[], status_ text[], expired_ boolean[],
    settled_until_ timestamptz[], severity_ text[], title_ text[], group_name_ text[], component_ text[],
    description_ text[], labels_ text[], links_ text[], images_ text[], notes_ text[], starts_at_ timestamptz[],
    expires_at_ timestamptz[], fired_ text[], changed_at_ timestamptz[], last_seen_ timestamptz[],
    repeats_ integer[], receipt_ uuid[], version_ integer[], hash_ bytea[], annotations_ text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO alert (
        id, integration, endpoint, key, status, expired, settled_until, severity, title, group_name, component,
        description, labels, links, images, notes, starts_at, expires_at, fired, changed_at, last_seen,
        repeats, receipt, version, hash, annotations
    )
    SELECT * FROM unnest(
        id_, integration_, endpoint_, key_, status_, expired_, settled_until_, severity_, title_, group_name_,
        component_, description_, labels_, links_, images_, notes_, starts_at_, expires_at_, fired_,
        changed_at_, last_seen_, repeats_, receipt_, version_, hash_, annotations_
    ) AS new (
        new_id, new_integration, new_endpoint, new_key, new_status, new_expired, new_settled_until, new_severity,
        new_title, new_group_name, new_component, new_description, new_labels, new_links, new_images,
        new_notes, new_starts_at, new_expires_at, new_fired, new_changed_at, new_last_seen, new_repeats,
        new_receipt, new_version, new_hash, new_annotations
    ) ORDER BY new_id;
END
$$;
"""


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = [
        ("log", "0001_initial"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [
        migrations.RunSQL(ALERTS),
        migrations.RunSQL(HEARTBEATS),
        migrations.RunSQL(CHANGES),
        migrations.RunSQL(COUNT),
        migrations.RunSQL(INSERT),
        periodic_tasks({"alerts.maintain": 3600}),
    ]
