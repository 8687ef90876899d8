"""Take the bodies of events as lines of one text and their hashes as one string of bytes: as arrays of quoted texts they
were the dearest part of reading the call."""

from django.db import migrations

# As in the migrations before, but for `bodies` (a line each: canonical JSON has no line breaks) and `hashes` (32 bytes
# each). A line too many or too few gives a row with a null in it, which the table refuses.
APPEND = """
DROP FUNCTION log_append(text, integer, bytea, text, text, text, timestamptz, text[], integer[], text[], timestamptz[],
    bytea[]);
CREATE FUNCTION log_append(
    stream_ text, after_version integer, after_hash bytea, actor_ text, cause_ text, trace_ text,
    recorded_at_ timestamptz, types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    epoch_ integer;
    txid_ xid8;
    placed bigint[];
BEGIN
    SELECT CASE WHEN system_identifier::text = current_setting('dossier.cluster', true) THEN epoch END
        INTO epoch_ FROM log_epoch ORDER BY epoch DESC LIMIT 1;
    IF epoch_ IS NULL THEN
        epoch_ := log_enter_epoch();
    END IF;
    txid_ := pg_current_xact_id();
    IF after_version > 0 AND NOT EXISTS (
        SELECT 1 FROM log_event
        WHERE stream = stream_ AND version = after_version AND hash = after_hash AND (epoch, txid) <= (epoch_, txid_)
    ) THEN
        RETURN NULL;
    END IF;
    IF cardinality(types) = 1 THEN  -- by far the most common case, at three quarters of the cost
        INSERT INTO log_event
            (epoch, txid, stream, version, type, schema, body, actor, cause, trace, occurred_at, recorded_at, hash)
        VALUES (epoch_, txid_, stream_, after_version + 1, types[1], schemas[1], bodies, actor_, cause_, trace_,
            times[1], recorded_at_, hashes)
        RETURNING ARRAY[epoch_, txid_::text::bigint, seq] INTO placed;
        RETURN placed;
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
DROP FUNCTION log_begin(timestamptz, text[], integer[], text[], text[], text[], text[], integer[], text[],
    timestamptz[], bytea[]);
CREATE FUNCTION log_begin(
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    epoch_ integer;
    txid_ xid8;
    placed bigint[];
BEGIN
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

EXTEND = """
DROP FUNCTION log_extend(text[], integer[], bytea[], timestamptz, text[], integer[], text[], text[], text[], text[],
    integer[], text[], timestamptz[], bytea[]);
CREATE FUNCTION log_extend(
    old_streams text[], old_versions integer[], old_hashes bytea[],
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    epoch_ integer := log_enter_epoch();
    txid_ xid8 := pg_current_xact_id();
BEGIN
    IF EXISTS (
        SELECT 1 FROM unnest(old_streams, old_versions, old_hashes) AS old (old_stream, old_version, old_hash)
        WHERE NOT EXISTS (
            SELECT 1 FROM log_event
            WHERE stream = old_stream AND version = old_version AND hash = old_hash
                AND (epoch, txid) <= (epoch_, txid_)
        )
    ) THEN
        RETURN NULL;
    END IF;
    RETURN log_begin(recorded_at_, streams, versions, actors, causes, traces, types, schemas, bodies, times, hashes);
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("log", "0003_extend_streams")]
    operations = [migrations.RunSQL(APPEND), migrations.RunSQL(BEGIN), migrations.RunSQL(EXTEND)]
