"""Begin many streams with one statement."""

from django.db import migrations

# As `log_append` of the first migration, for events of many new streams, each with who caused it. A new stream has no
# predecessor to compare with; that none of them exists is what the primary key holds. Answers with epoch, transaction
# id and then the number of each event.
BEGIN = """
CREATE FUNCTION log_begin(
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text[], times timestamptz[], hashes bytea[]
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
            new_time, recorded_at_, new_hash
        FROM unnest(streams, versions, types, schemas, bodies, actors, causes, traces, times, hashes)
            WITH ORDINALITY AS new (new_stream, new_version, new_type, new_schema, new_body, new_actor, new_cause,
                new_trace, new_time, new_hash, place)
        ORDER BY place
        RETURNING seq
    )
    SELECT ARRAY[epoch_, txid_::text::bigint] || array_agg(seq ORDER BY seq) INTO placed FROM added;
    RETURN placed;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("log", "0001_event_log")]
    operations = [
        migrations.RunSQL(
            BEGIN,
            "DROP FUNCTION log_begin(timestamptz, text[], integer[], text[], text[], text[], text[], integer[],"
            " text[], timestamptz[], bytea[])",
        )
    ]
