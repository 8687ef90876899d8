"""Counts of log records: the table as `schema.create_sql` writes it."""

from django.db import migrations

KINDS = """
CREATE TABLE telemetry_log_count (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "component" integer NOT NULL,
    "template" integer NOT NULL,
    "severity" integer NOT NULL,
    "count" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_log_count_time ON telemetry_log_count USING brin ("time");
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0006_record_lines")]
    operations = [migrations.RunSQL(KINDS, "DROP TABLE telemetry_log_count")]
