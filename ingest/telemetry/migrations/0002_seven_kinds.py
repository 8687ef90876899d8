"""Seven kinds more: each table as `schema.create_sql` writes it."""

from django.db import migrations

KINDS = """
CREATE TABLE telemetry_benchmark (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "node" integer NOT NULL,
    "benchmark" integer NOT NULL,
    "metric" integer NOT NULL,
    "sku" integer NOT NULL,
    "values" double precision[] NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_benchmark_time ON telemetry_benchmark USING brin ("time");

CREATE TABLE telemetry_node_incident (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "node" integer NOT NULL,
    "kind" integer NOT NULL,
    "covariates" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_node_incident_time ON telemetry_node_incident USING brin ("time");

CREATE TABLE telemetry_observation (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "observer" integer NOT NULL,
    "subject" integer NOT NULL,
    "context" integer NOT NULL,
    "status" integer NOT NULL,
    "score" double precision NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_observation_time ON telemetry_observation USING brin ("time");

CREATE TABLE telemetry_outage (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "device" integer NOT NULL,
    "end" timestamptz NOT NULL,
    "cause" integer NOT NULL,
    "planned" boolean NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX telemetry_outage_since ON telemetry_outage (region, "time", "device", id DESC);

CREATE TABLE telemetry_probe (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "src" integer NOT NULL,
    "dst" integer NOT NULL,
    "sent" integer NOT NULL,
    "lost" integer NOT NULL,
    "hops" integer NOT NULL,
    "layer" integer NOT NULL,
    "rtt_us" double precision[] NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_probe_time ON telemetry_probe USING brin ("time");

CREATE TABLE telemetry_span (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "trace" uuid NOT NULL,
    "span" uuid NOT NULL,
    "parent" uuid NOT NULL,
    "service" integer NOT NULL,
    "instance" integer NOT NULL,
    "operation" integer NOT NULL,
    "duration_us" double precision NOT NULL,
    "error" boolean NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_span_time ON telemetry_span USING brin ("time");

CREATE TABLE telemetry_uptime (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "unit" integer NOT NULL,
    "end" timestamptz NOT NULL,
    "state" integer NOT NULL,
    "cause" integer NOT NULL,
    "hops_class" integer NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX telemetry_uptime_since ON telemetry_uptime (region, "time", "unit", id DESC);
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0001_tables")]
    operations = [
        migrations.RunSQL(
            KINDS,
            "DROP TABLE telemetry_benchmark, telemetry_node_incident, telemetry_observation, telemetry_outage, telemetry_probe, telemetry_span, telemetry_uptime",
        )
    ]
