"""Append a single event with one statement, and check in the functions what the table's constraints checked: for every
INSERT Postgres reads, plans and prepares the text of each constraint anew."""

from django.db import migrations

# All that is left to say of a row is said by its types, NOT NULL and the two unique indexes. Nothing but the functions
# below writes to the table.
DROP_CHECKS = """
ALTER TABLE log_event
    DROP CONSTRAINT log_event_stream_check, DROP CONSTRAINT log_event_version_check,
    DROP CONSTRAINT log_event_schema_check, DROP CONSTRAINT log_event_actor_check,
    DROP CONSTRAINT log_event_cause_check, DROP CONSTRAINT log_event_trace_check,
    DROP CONSTRAINT log_event_hash_check;
"""

# As before, but for the checks and the one statement: no row comes of it when the epoch is another or the predecessor
# is not there, and then the long way says which.
APPEND = """
CREATE OR REPLACE FUNCTION log_append(
    stream_ text, after_version integer, after_hash bytea, actor_ text, cause_ text, trace_ text,
    recorded_at_ timestamptz, types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    epoch_ integer;
    txid_ xid8;
    placed bigint[];
BEGIN
    IF stream_ = '' OR actor_ = '' OR cause_ = '' OR trace_ = '' OR after_version < 0 OR 0 >= ANY (schemas)
            OR length(hashes) <> 32 * cardinality(types) THEN
        RAISE EXCEPTION 'this is no event: a name is empty, a number is not above zero or a hash has not 32 bytes'
            USING ERRCODE = 'check_violation';
    END IF;
    IF cardinality(types) = 1 THEN  -- by far the most common case, at three quarters of the cost
        INSERT INTO log_event
            (epoch, txid, stream, version, type, schema, body, actor, cause, trace, occurred_at, recorded_at, hash)
        SELECT live.epoch, pg_current_xact_id(), stream_, after_version + 1, types[1], schemas[1], bodies, actor_,
            cause_, trace_, times[1], recorded_at_, hashes
        FROM (SELECT epoch, system_identifier FROM log_epoch ORDER BY epoch DESC LIMIT 1) AS live
        WHERE system_identifier::text = current_setting('dossier.cluster', true) AND (after_version = 0 OR EXISTS (
            SELECT 1 FROM log_event AS old
            WHERE old.stream = stream_ AND old.version = after_version AND old.hash = after_hash
                AND (old.epoch, old.txid) <= (live.epoch, pg_current_xact_id())
        ))
        RETURNING ARRAY[log_event.epoch, log_event.txid::text::bigint, log_event.seq] INTO placed;
        IF placed IS NOT NULL THEN
            RETURN placed;
        END IF;
    END IF;
    epoch_ := log_enter_epoch();
    txid_ := pg_current_xact_id();
    IF after_version > 0 AND NOT EXISTS (
        SELECT 1 FROM log_event
        WHERE stream = stream_ AND version = after_version AND hash = after_hash AND (epoch, txid) <= (epoch_, txid_)
    ) THEN
        RETURN NULL;
    END IF;
    WITH added AS (
        INSERT INTO log_event
            (epoch, txid, stream, version, type, schema, body, actor, cause, trace, occurred_at, recorded_at, hash)
        SELECT epoch_, txid_, stream_, after_version + place, new_type, new_schema, new_body, actor_, cause_, trace_,
            new_time, recorded_at_, substr(hashes, 32 * place::integer - 31, 32)
        FROM unnest(types, schemas, string_to_array(bodies, E'\\n'), times)
            WITH ORDINALITY AS new (new_type, new_schema, new_body, new_time, place)
        ORDER BY place
        RETURNING seq
    )
    SELECT ARRAY[epoch_, txid_::text::bigint] || array_agg(seq) INTO placed FROM added;
    RETURN placed;
END
$$;
"""

BEGIN = """
CREATE OR REPLACE FUNCTION log_begin(
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    epoch_ integer;
    txid_ xid8;
    placed bigint[];
BEGIN
    IF '' = ANY (streams) OR '' = ANY (actors) OR '' = ANY (causes) OR '' = ANY (traces) OR 0 >= ANY (versions)
            OR 0 >= ANY (schemas) OR length(hashes) <> 32 * cardinality(types) THEN
        RAISE EXCEPTION 'this is no event: a name is empty, a number is not above zero or a hash has not 32 bytes'
            USING ERRCODE = 'check_violation';
    END IF;
    SELECT CASE WHEN system_identifier::text = current_setting('dossier.cluster', true) THEN epoch END
        INTO epoch_ FROM log_epoch ORDER BY epoch DESC LIMIT 1;
    IF epoch_ IS NULL THEN
        epoch_ := log_enter_epoch();
    END IF;
    txid_ := pg_current_xact_id();
    WITH added AS (
        INSERT INTO log_event
            (epoch, txid, stream, version, type, schema, body, actor, cause, trace, occurred_at, recorded_at, hash)
        SELECT epoch_, txid_, new_stream, new_version, new_type, new_schema, new_body, new_actor, new_cause, new_trace,
            new_time, recorded_at_, substr(hashes, 32 * place::integer - 31, 32)
        FROM unnest(streams, versions, types, schemas, string_to_array(bodies, E'\\n'), actors, causes, traces, times)
            WITH ORDINALITY AS new (new_stream, new_version, new_type, new_schema, new_body, new_actor, new_cause,
                new_trace, new_time, place)
        ORDER BY place
        RETURNING seq
    )
    SELECT ARRAY[epoch_, txid_::text::bigint] || array_agg(seq ORDER BY seq) INTO placed FROM added;
    RETURN placed;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("log", "0005_extend_or_fail")]
    operations = [migrations.RunSQL(DROP_CHECKS), migrations.RunSQL(APPEND), migrations.RunSQL(BEGIN)]
