"""Alerts are counted only where they stand as they were read."""

from django.db import migrations

EXPECT = """
CREATE FUNCTION alert_expect(counted bigint, wanted bigint) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF counted <> wanted THEN
        RAISE EXCEPTION '% of % alerts changed meanwhile', wanted - counted, wanted USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("alerts", "0004_changes")]
    operations = [migrations.RunSQL(EXPECT, "DROP FUNCTION alert_expect(bigint, bigint)")]
