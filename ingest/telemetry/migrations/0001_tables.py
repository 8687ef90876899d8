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
CREATE INDEX telemetry_path_outcome_time ON telemetry_path_outcome USING brin ("time");
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
CREATE INDEX telemetry_unit_failure_time ON telemetry_unit_failure USING brin ("time");
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = [("log", "0001_event_log")]
    operations = [
        migrations.RunSQL(
            SHARED,
            """
            DROP TABLE telemetry_idempotency, telemetry_unfinished, telemetry_receipt, telemetry_set, telemetry_name;
            DROP SEQUENCE telemetry_receipt_number;
            """,
        ),
        migrations.RunSQL(PATH_OUTCOME, "DROP TABLE telemetry_path_outcome"),
        migrations.RunSQL(PLACEMENT, "DROP TABLE telemetry_placement"),
        migrations.RunSQL(TOPOLOGY, "DROP TABLE telemetry_topology"),
        migrations.RunSQL(UNIT_FAILURE, "DROP TABLE telemetry_unit_failure"),
    ]
