"""Changes and their outcomes as rows, as `schema.create_sql` writes them."""

from django.db import migrations

CHANGES = """
CREATE TABLE telemetry_change (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "change" integer NOT NULL,
    "kind" integer NOT NULL,
    "targets" integer NOT NULL,
    "author" integer NOT NULL,
    "team" integer NOT NULL,
    "settings" integer NOT NULL,
    "measures" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_change_time ON telemetry_change USING brin ("time");

CREATE TABLE telemetry_change_outcome (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "change" integer NOT NULL,
    "outcome" integer NOT NULL,
    "incident" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_change_outcome_time ON telemetry_change_outcome USING brin ("time");
"""


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = [("telemetry", "0001_initial")]
    operations = [migrations.RunSQL(CHANGES)]
