"""Add to many streams with one statement."""

from django.db import migrations

# `log_begin` for streams of which some exist already: those come with the version and the hash that the new events are
# chained to, which are checked as `log_append` does. Answers with null, and records nothing, when one of them stands
# elsewhere.
EXTEND = """
CREATE FUNCTION log_extend(
    old_streams text[], old_versions integer[], old_hashes bytea[],
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text[], times timestamptz[], hashes bytea[]
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
    dependencies = [("log", "0002_begin_streams")]
    operations = [
        migrations.RunSQL(
            EXTEND,
            "DROP FUNCTION log_extend(text[], integer[], bytea[], timestamptz, text[], integer[], text[], text[],"
            " text[], text[], integer[], text[], timestamptz[], bytea[])",
        )
    ]
