"""`telemetry_record` with the arguments that `log_begin` takes now."""

from django.db import migrations

RECORD = """
DROP FUNCTION telemetry_record(timestamptz, text[], integer[], text[], text[], text[], text[], integer[], text[],
    timestamptz[], bytea[], bigint[], uuid[], text[], integer[], integer[], timestamptz[], timestamptz[]);
CREATE FUNCTION telemetry_record(
    recorded_at_ timestamptz, streams text[], versions integer[], actors text[], causes text[], traces text[],
    types text[], schemas integer[], bodies text, times timestamptz[], hashes bytea,
    numbers bigint[], receipts uuid[], kinds text[], regions integer[], counts integer[],
    firsts timestamptz[], lasts timestamptz[]
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    placed bigint[];
BEGIN
    placed := log_begin(recorded_at_, streams, versions, actors, causes, traces, types, schemas, bodies, times, hashes);
    INSERT INTO telemetry_receipt
        (number, receipt, kind, region, rows, first, last, received_at, epoch, txid, seq)
    SELECT new_number, new_receipt, new_kind, new_region, new_count, new_first, new_last, recorded_at_,
        placed[1], placed[2]::text::xid8, placed[2 + place]
    FROM unnest(numbers, receipts, kinds, regions, counts, firsts, lasts)
        WITH ORDINALITY AS new (new_number, new_receipt, new_kind, new_region, new_count, new_first, new_last, place);
    RETURN placed;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0005_metric"), ("log", "0004_bodies_as_lines")]
    operations = [migrations.RunSQL(RECORD)]
