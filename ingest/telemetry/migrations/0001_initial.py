"""Telemetry: what all kinds share, and a table for each kind as `schema.create_sql` writes it."""

from django.db import migrations

SHARED = """
CREATE TABLE telemetry_name (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- A set of components: the ids of its members, ascending; found by a digest, because a set may be longer than a key.
CREATE TABLE telemetry_set (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    members integer[] NOT NULL
);

-- One row for each region that an accepted body held rows of; (epoch, txid, seq) is the place of its event in the log.
CREATE SEQUENCE telemetry_receipt_number;
CREATE TABLE telemetry_receipt (
    number bigint PRIMARY KEY,
    receipt uuid NOT NULL,
    kind text COLLATE "C" NOT NULL,
    region integer NOT NULL,
    rows integer NOT NULL,
    first timestamptz NOT NULL,
    last timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    epoch integer NOT NULL,
    txid xid8 NOT NULL,
    seq bigint NOT NULL
);
CREATE INDEX telemetry_receipt_clock ON telemetry_receipt (region, kind, last DESC, received_at);
CREATE INDEX telemetry_receipt_order ON telemetry_receipt (region, kind, epoch, txid, seq)
    INCLUDE (number, first, last);

-- Receipts whose rows are being copied in several transactions: readers leave those rows out.
CREATE TABLE telemetry_unfinished (
    number bigint PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    first timestamptz NOT NULL,
    last timestamptz NOT NULL,
    begun_at timestamptz NOT NULL
);

CREATE TABLE telemetry_idempotency (
    key_name text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL,
    receipt uuid NOT NULL,
    accepted integer NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (key_name, idempotency_key)
);
"""

PATH_OUTCOME = """
CREATE TABLE telemetry_path_outcome (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "components" integer NOT NULL,
    "attempts" integer NOT NULL,
    "failures" integer NOT NULL,
    "weight" double precision NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_path_outcome_place ON telemetry_path_outcome
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""

PLACEMENT = """
CREATE TABLE telemetry_placement (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "unit" integer NOT NULL,
    "components" integer NOT NULL,
    "active" boolean NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX telemetry_placement_in_force ON telemetry_placement (region, "unit", "time" DESC, id DESC);
"""

TOPOLOGY = """
CREATE TABLE telemetry_topology (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "component" integer NOT NULL,
    "parents" integer NOT NULL,
    "depends_on" integer NOT NULL,
    "labels" integer NOT NULL,
    "active" boolean NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX telemetry_topology_in_force ON telemetry_topology (region, "component", "time" DESC, id DESC);
"""

UNIT_FAILURE = """
CREATE TABLE telemetry_unit_failure (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "unit" integer NOT NULL,
    "symptom" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_unit_failure_place ON telemetry_unit_failure
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""

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
CREATE INDEX telemetry_benchmark_place ON telemetry_benchmark
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

CREATE TABLE telemetry_node_incident (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "node" integer NOT NULL,
    "kind" integer NOT NULL,
    "covariates" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_node_incident_place ON telemetry_node_incident
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

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
CREATE INDEX telemetry_observation_place ON telemetry_observation
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

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
CREATE INDEX telemetry_probe_place ON telemetry_probe
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

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
CREATE INDEX telemetry_span_place ON telemetry_span
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

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

METRIC = """
CREATE TABLE telemetry_metric (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "name" integer NOT NULL,
    "labels" integer NOT NULL,
    "value" double precision NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_metric_place ON telemetry_metric
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""

LOG_COUNT = """
CREATE TABLE telemetry_log_count (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "component" integer NOT NULL,
    "template" integer NOT NULL,
    "severity" integer NOT NULL,
    "count" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_log_count_place ON telemetry_log_count
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""

TRAINING = """
CREATE TABLE telemetry_collective (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "job" integer NOT NULL,
    "communicator" integer NOT NULL,
    "seq" integer NOT NULL,
    "op" integer NOT NULL,
    "rank" integer NOT NULL,
    "src" integer NOT NULL,
    "dst" integer NOT NULL,
    "bytes" double precision NOT NULL,
    "start_ns" double precision NOT NULL,
    "end_ns" double precision NOT NULL,
    "state" integer NOT NULL,
    "ranks" integer NOT NULL,
    "node" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_collective_place ON telemetry_collective
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

CREATE TABLE telemetry_endpoint (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "endpoint" integer NOT NULL,
    "job" integer NOT NULL,
    "host" integer NOT NULL,
    "nic" integer NOT NULL,
    "rail" integer NOT NULL,
    "container" integer NOT NULL,
    "tenant" integer NOT NULL,
    "active" boolean NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX telemetry_endpoint_in_force ON telemetry_endpoint (region, "endpoint", "time" DESC, id DESC);

CREATE TABLE telemetry_flow_rule (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "element" integer NOT NULL,
    "match" integer NOT NULL,
    "next" integer NOT NULL,
    "layer" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_flow_rule_place ON telemetry_flow_rule
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

CREATE TABLE telemetry_function_profile (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "job" integer NOT NULL,
    "worker" integer NOT NULL,
    "role" integer NOT NULL,
    "function" integer NOT NULL,
    "cls" integer NOT NULL,
    "beta" double precision NOT NULL,
    "mu" double precision NOT NULL,
    "sigma" double precision NOT NULL,
    "window_s" double precision NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_function_profile_place ON telemetry_function_profile
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

CREATE TABLE telemetry_job_attempt (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "job" integer NOT NULL,
    "nodes" integer NOT NULL,
    "start" timestamptz NOT NULL,
    "outcome" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_job_attempt_place ON telemetry_job_attempt
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

CREATE TABLE telemetry_nic_traffic (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "job" integer NOT NULL,
    "host" integer NOT NULL,
    "nic" integer NOT NULL,
    "rail" integer NOT NULL,
    "tx_bytes" double precision NOT NULL,
    "rx_bytes" double precision NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_nic_traffic_place ON telemetry_nic_traffic
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""

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
CREATE INDEX telemetry_change_place ON telemetry_change
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');

CREATE TABLE telemetry_change_outcome (
    "time" timestamptz NOT NULL,
    "receipt" bigint NOT NULL,
    "region" integer NOT NULL,
    "change" integer NOT NULL,
    "outcome" integer NOT NULL,
    "incident" integer NOT NULL
) PARTITION BY RANGE ("time");
CREATE INDEX telemetry_change_outcome_place ON telemetry_change_outcome
    USING brin (region int4_minmax_multi_ops, "time") WITH (pages_per_range='8', autosummarize='true');
"""

# By which a window finds the intervals that end after its start.
INDEXES = """
CREATE INDEX telemetry_outage_until ON telemetry_outage (region, "end");
CREATE INDEX telemetry_uptime_until ON telemetry_uptime (region, "end");
"""

# `heap`: the table of moved rows that is still to be dropped. `epoch` and `txid`: what the log held below them was seen
# when the file was written.
COLD = """
CREATE TABLE telemetry_cold (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    start timestamptz NOT NULL,
    until timestamptz NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('writing', 'checked', 'cold', 'removing')),
    file text NOT NULL UNIQUE,
    heap text COLLATE "C",
    rows bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    epoch integer,
    txid xid8,
    changed_at timestamptz NOT NULL
);
CREATE INDEX telemetry_cold_place ON telemetry_cold (kind, until);
"""

# Events and receipts with one statement: what `log_begin` does, whose arguments come first, and one receipt for each of
# its events.
RECORD = """CREATE FUNCTION telemetry_record(
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
    initial = True
    dependencies: list[tuple[str, str]] = [("log", "0001_initial")]
    operations = [
        migrations.RunSQL(SHARED),
        migrations.RunSQL(PATH_OUTCOME),
        migrations.RunSQL(PLACEMENT),
        migrations.RunSQL(TOPOLOGY),
        migrations.RunSQL(UNIT_FAILURE),
        migrations.RunSQL(KINDS),
        migrations.RunSQL(METRIC),
        migrations.RunSQL(LOG_COUNT),
        migrations.RunSQL(TRAINING),
        migrations.RunSQL(CHANGES),
        migrations.RunSQL(INDEXES),
        migrations.RunSQL(COLD),
        migrations.RunSQL(RECORD),
    ]
