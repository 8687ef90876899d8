"""Telemetry on the nodes of Citus: the rows of a region lie on one of them, the log, receipts and incidents on the
coordinator. Prepared by `manage.py shard_telemetry`; without it nothing here has an effect.

Citus commits on the coordinator first and on the nodes afterwards, so that for a moment the log tells of rows that no
window can see. Therefore `telemetry_shard_receipt` lies beside the rows and is written by a trigger in the transaction
of their receipt: what a node shows of one it shows of the other. A reader at a position waits until the node has
all receipts that the coordinator holds up to there, and takes only rows of receipts that the node shows up to there."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import OperationalError, connection, transaction

from ingest.log.types import Position
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import SHOWN, forget, is_sharded, table

COLUMN = "region"
"""Distribution column: every key of a sharded table holds it, every statement of a window binds it."""
REFERENCES = ("telemetry_name", "telemetry_set")
"""Tables that every node has whole."""
PATIENCE = 10.0
"""Seconds that a reader waits for a node; the run is taken up again later."""
PAUSE = 0.002

PREPARE = f"""
CREATE TABLE {SHOWN} (
    region integer NOT NULL,
    number bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    first timestamptz NOT NULL,
    last timestamptz NOT NULL,
    epoch integer NOT NULL,
    txid xid8 NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (region, number)
);
CREATE INDEX {SHOWN}_order ON {SHOWN} (region, kind, epoch, txid, seq) INCLUDE (number, first, last);
CREATE INDEX {SHOWN}_clock ON {SHOWN} (region, kind, last);

-- Arrays, because Citus takes no transition table in a statement on its own tables.
CREATE FUNCTION telemetry_show_receipts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    regions integer[]; numbers bigint[]; kinds text[]; firsts timestamptz[]; lasts timestamptz[];
    epochs integer[]; txids text[]; seqs bigint[];
BEGIN
    SELECT array_agg(region), array_agg(number), array_agg(kind), array_agg(first), array_agg(last),
        array_agg(epoch), array_agg(txid::text), array_agg(seq)
    INTO regions, numbers, kinds, firsts, lasts, epochs, txids, seqs FROM new_receipts;
    INSERT INTO {SHOWN} (region, number, kind, first, last, epoch, txid, seq)
    SELECT a, b, c, d, e, f, g::xid8, h
    FROM unnest(regions, numbers, kinds, firsts, lasts, epochs, txids, seqs) AS new (a, b, c, d, e, f, g, h);
    RETURN NULL;
END
$$;
CREATE TRIGGER telemetry_receipt_shown AFTER INSERT ON telemetry_receipt
    REFERENCING NEW TABLE AS new_receipts FOR EACH STATEMENT EXECUTE FUNCTION telemetry_show_receipts();

CREATE FUNCTION telemetry_hide_receipts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    regions integer[]; numbers bigint[];
BEGIN
    SELECT array_agg(DISTINCT region), array_agg(number) INTO regions, numbers FROM old_receipts;
    DELETE FROM {SHOWN} WHERE region = ANY(regions) AND number = ANY(numbers);
    RETURN NULL;
END
$$;
CREATE TRIGGER telemetry_receipt_hidden AFTER DELETE ON telemetry_receipt
    REFERENCING OLD TABLE AS old_receipts FOR EACH STATEMENT EXECUTE FUNCTION telemetry_hide_receipts();

INSERT INTO {SHOWN} (region, number, kind, first, last, epoch, txid, seq)
SELECT region, number, kind, first, last, epoch, txid, seq FROM telemetry_receipt;
"""


class TelemetryNotVisibleError(OperationalError):
    """A node does not show rows yet that the log tells of. The same may be asked for later."""


def prepare() -> None:
    """Make what readers and writers of sharded telemetry need. Works on any Postgres."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE telemetry_receipt IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(PREPARE)
    forget()


def has_citus() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')")
        return bool(cursor.fetchone()[0])


def distribute(tables: list[str]) -> None:
    """Spread tables over the nodes by region, with their rows; what is distributed already stays. Needs Citus."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT logicalrelid::regclass::text FROM pg_dist_partition")
        done = {name for (name,) in cursor.fetchall()}
        for name in REFERENCES:
            if name not in done:
                cursor.execute("SELECT create_reference_table(%s)", (name,))
        for name in (SHOWN, *tables):
            if name not in done:
                beside = "default" if name == SHOWN else SHOWN
                cursor.execute(
                    "SELECT create_distributed_table(%s, %s, colocate_with => %s)", (name, COLUMN, beside)
                )


def problems() -> list[str]:
    """Settings under which telemetry on several nodes fails or is slow; none where it lies on one."""
    if not is_sharded():
        return []
    if not has_citus():
        return ["this database is prepared for Citus and has none"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT logicalrelid::regclass::text FROM pg_dist_partition")
        wanted = {*REFERENCES, SHOWN, *(table(kind) for kind in KINDS.values())}
        left = sorted(wanted - {name for (name,) in cursor.fetchall()})
        cursor.execute(
            "SELECT current_setting('max_prepared_transactions')::int, current_setting('max_connections')::int"
        )
        prepared, connections = cursor.fetchone()
    found = [f"tables are on the coordinator only: {', '.join(left)}"] if left else []
    if prepared < connections:
        found.append(f"max_prepared_transactions is {prepared}, below max_connections ({connections})")
    if timedelta(days=1) > settings.TELEMETRY_PARTITION_INTERVAL:
        found.append("DOSSIER_TELEMETRY_PARTITION_INTERVAL is below a day, and each partition has 32 shards")
    return found


_EXPECTED = """
SELECT count(*) FROM {table} WHERE region = %s AND kind = %s AND (epoch, txid, seq) <= (%s, %s::xid8, %s)
    AND first <= %s AND last >= %s
"""


def shows_all(kind: str, region: int, first: datetime, last: datetime, upto: Position) -> bool:
    """Whether the region's node shows all receipts of a kind that the coordinator holds up to a position.

    `upto` is not above the watermark. What a node shows up to there the coordinator holds, so that their
    numbers say it.
    """
    values = (region, kind, upto.epoch, str(upto.txid), upto.seq, last, first)
    with connection.cursor() as cursor:
        cursor.execute(_EXPECTED.format(table="telemetry_receipt"), values)
        (expected,) = cursor.fetchone()
        cursor.execute(_EXPECTED.format(table=SHOWN), values)
        return bool(cursor.fetchone()[0] >= expected)


def wait_until(shown: Callable[[], bool]) -> None:
    """Waits for a node. Raises TelemetryNotVisibleError."""
    deadline = time.monotonic() + PATIENCE
    while not shown():
        if time.monotonic() > deadline:
            raise TelemetryNotVisibleError(
                f"a node of Citus has not shown for {PATIENCE:.0f} s the rows that the log tells of"
            )
        time.sleep(PAUSE)
