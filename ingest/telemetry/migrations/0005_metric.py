"""Samples of time series: the table as `schema.create_sql` writes it."""

from django.db import migrations

KINDS = """
CREATE TABLE telemetry_metric (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "name" integer NOT NULL,
    "labels" integer NOT NULL,
    "value" double precision NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_metric_time ON telemetry_metric USING brin ("time");
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0004_ends_of_intervals")]
    operations = [migrations.RunSQL(KINDS, "DROP TABLE telemetry_metric")]
