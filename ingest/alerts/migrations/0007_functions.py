"""Repeats are counted and new alerts inserted by functions, whose plans the server keeps."""

from django.db import migrations

# An alert is counted only where it stands as the sender's process last knew it: the hash of the newest event of its
# stream says so. `ids` are sorted and looked up one by one, so that two who count the same alerts never wait for each
# other in a circle; a hash has 32 bytes.
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
DROP FUNCTION alert_expect(bigint, bigint);
"""
EXPECT = """
CREATE FUNCTION alert_expect(counted bigint, wanted bigint) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF counted <> wanted THEN
        RAISE EXCEPTION '% of % alerts changed meanwhile', wanted - counted, wanted USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;
DROP FUNCTION alert_count(timestamptz, uuid[], bytea, integer[], timestamptz[]);
"""
INSERT = """
CREATE FUNCTION alert_insert(
    id_ uuid[], integration_ text[], door_ text[], key_ text[], status_ text[], expired_ boolean[],
    settled_until_ timestamptz[], severity_ text[], title_ text[], group_name_ text[], component_ text[],
    description_ text[], labels_ text[], links_ text[], images_ text[], notes_ text[], starts_at_ timestamptz[],
    expires_at_ timestamptz[], fired_ text[], changed_at_ timestamptz[], last_seen_ timestamptz[],
    repeats_ integer[], receipt_ uuid[], version_ integer[], hash_ bytea[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO alert (
        id, integration, door, key, status, expired, settled_until, severity, title, group_name, component,
        description, labels, links, images, notes, starts_at, expires_at, fired, changed_at, last_seen,
        repeats, receipt, version, hash
    )
    SELECT * FROM unnest(
        id_, integration_, door_, key_, status_, expired_, settled_until_, severity_, title_, group_name_,
        component_, description_, labels_, links_, images_, notes_, starts_at_, expires_at_, fired_,
        changed_at_, last_seen_, repeats_, receipt_, version_, hash_
    ) AS new (
        new_id, new_integration, new_door, new_key, new_status, new_expired, new_settled_until, new_severity,
        new_title, new_group_name, new_component, new_description, new_labels, new_links, new_images,
        new_notes, new_starts_at, new_expires_at, new_fired, new_changed_at, new_last_seen, new_repeats,
        new_receipt, new_version, new_hash
    ) ORDER BY new_id;
END
$$;
"""
FORGET = """
DROP FUNCTION alert_insert(
    uuid[], text[], text[], text[], text[], boolean[], timestamptz[], text[], text[], text[], text[], text[],
    text[], text[], text[], text[], timestamptz[], timestamptz[], text[], timestamptz[], timestamptz[], integer[],
    uuid[], integer[], bytea[]
);
"""


class Migration(migrations.Migration):
    dependencies = [("alerts", "0006_no_tick")]
    operations = [migrations.RunSQL(COUNT, EXPECT), migrations.RunSQL(INSERT, FORGET)]
