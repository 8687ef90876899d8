"""What stands elsewhere fails, so that statements of the same message that depend on it are not carried out."""

from django.db import migrations

EXTEND_OR_FAIL = """
CREATE FUNCTION log_extend_or_fail(
    old_streams text[], old_versions integer[], old_hashes bytea[],
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF log_extend(old_streams, old_versions, old_hashes, recorded_at_, streams, versions, actors, causes, traces,
                  types, schemas, bodies, times, hashes) IS NULL THEN
        RAISE EXCEPTION 'one of the streams stands elsewhere' USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;
"""
FORGET = """
DROP FUNCTION log_extend_or_fail(text[], integer[], bytea[], timestamptz, text[], integer[], text[], text[], text[],
    text[], integer[], text, timestamptz[], bytea);
"""


class Migration(migrations.Migration):
    dependencies = [("log", "0004_bodies_as_lines")]
    operations = [migrations.RunSQL(EXTEND_OR_FAIL, FORGET)]
