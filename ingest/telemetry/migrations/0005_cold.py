"""Files of old telemetry and how far each has come."""

from django.db import migrations

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


class Migration(migrations.Migration):
    dependencies: list[tuple[str, str]] = [("telemetry", "0004_receipt_order")]
    operations = [migrations.RunSQL(COLD)]
