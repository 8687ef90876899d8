"""Annotations of alerts as sent. The function that inserts without them stays for processes that run meanwhile."""

from django.db import migrations

COLUMN = "ALTER TABLE alert ADD COLUMN annotations text;"
INSERT = """
CREATE FUNCTION alert_insert(
    id_ uuid[], integration_ text[], door_ text[], key_ text[], status_ text[], expired_ boolean[],
    settled_until_ timestamptz[], severity_ text[], title_ text[], group_name_ text[], component_ text[],
    description_ text[], labels_ text[], links_ text[], images_ text[], notes_ text[], starts_at_ timestamptz[],
    expires_at_ timestamptz[], fired_ text[], changed_at_ timestamptz[], last_seen_ timestamptz[],
    repeats_ integer[], receipt_ uuid[], version_ integer[], hash_ bytea[], annotations_ text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO alert (
        id, integration, door, key, status, expired, settled_until, severity, title, group_name, component,
        description, labels, links, images, notes, starts_at, expires_at, fired, changed_at, last_seen,
        repeats, receipt, version, hash, annotations
    )
    SELECT * FROM unnest(
        id_, integration_, door_, key_, status_, expired_, settled_until_, severity_, title_, group_name_,
        component_, description_, labels_, links_, images_, notes_, starts_at_, expires_at_, fired_,
        changed_at_, last_seen_, repeats_, receipt_, version_, hash_, annotations_
    ) AS new (
        new_id, new_integration, new_door, new_key, new_status, new_expired, new_settled_until, new_severity,
        new_title, new_group_name, new_component, new_description, new_labels, new_links, new_images,
        new_notes, new_starts_at, new_expires_at, new_fired, new_changed_at, new_last_seen, new_repeats,
        new_receipt, new_version, new_hash, new_annotations
    ) ORDER BY new_id;
END
$$;
"""
FORGET = """
DROP FUNCTION alert_insert(
    uuid[], text[], text[], text[], text[], boolean[], timestamptz[], text[], text[], text[], text[], text[],
    text[], text[], text[], text[], timestamptz[], timestamptz[], text[], timestamptz[], timestamptz[], integer[],
    uuid[], integer[], bytea[], text[]
);
"""


class Migration(migrations.Migration):
    dependencies = [("alerts", "0007_functions")]
    operations = [
        migrations.RunSQL(COLUMN, "ALTER TABLE alert DROP COLUMN annotations;"),
        migrations.RunSQL(INSERT, FORGET),
    ]
