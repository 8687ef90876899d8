"""Rows of a window that arrived after it had been read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from ingest.log.types import Position
from ingest.telemetry.decode.columns import moment
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.store.tables import cold_files, one_snapshot, table
from ingest.telemetry.windows.sql import region_number


@dataclass(frozen=True, slots=True)
class LateRows:
    """Late rows of a window, by receipt."""

    kind: str
    receipt: str
    rows: int
    first: datetime
    last: datetime
    received_at: datetime


def late_rows(
    kinds: Collection[str], region: str, start: datetime, end: datetime, after: Position
) -> list[LateRows]:
    """Rows for the window [start, end) after a position, by receipt.

    Rows of the window; states that began by its start; intervals that overlap it, or did in an
    earlier report.
    """
    with one_snapshot():
        number = region_number(region)
        return [late for kind in sorted(kinds) for late in _late(KINDS[kind], number, start, end, after)]


def _late(kind: Kind, region: int, start: datetime, end: datetime, after: Position) -> Iterator[LateRows]:
    if files := cold_files(kind, start, end):
        yield from _late_in_files(kind, files, region, start, end, after)
        return
    inside, bounds = _inside(kind, start, end)
    query = f"""
        SELECT late.receipt::text, count(*), min(t."time"), max(t."time"), late.received_at
        FROM telemetry_receipt AS late JOIN {table(kind)} AS t ON t.receipt = late.number
        WHERE late.region = %s AND late.kind = %s AND (late.epoch, late.txid, late.seq) > (%s, %s::xid8, %s)
            AND t.region = %s AND {inside}
        GROUP BY late.number, late.receipt, late.received_at ORDER BY late.received_at, late.number
    """
    place = (after.epoch, str(after.txid), after.seq)
    with connection.cursor() as cursor:
        cursor.execute(query, [region, kind.name, *place, region, *bounds])
        for row in cursor.fetchall():
            yield LateRows(kind.name, *row)


def _late_in_files(
    kind: Kind, files: Sequence[str], region: int, start: datetime, end: datetime, after: Position
) -> Iterator[LateRows]:
    """As `_late`, with some of the rows in files; only events are moved there."""
    import pyarrow as pa  # takes long to load, and few processes read files

    from ingest.telemetry.cold.read import query_files

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT number, receipt::text, received_at FROM telemetry_receipt WHERE region = %s AND kind = %s"
            " AND (epoch, txid, seq) > (%s, %s::xid8, %s) AND first < %s AND last >= %s ORDER BY received_at, number",
            (region, kind.name, after.epoch, str(after.txid), after.seq, end, start),
        )
        came = {number: (receipt, at) for number, receipt, at in cursor.fetchall()}
    hot = 'WHERE region = %s AND "time" >= %s AND "time" < %s AND receipt = ANY(%s)'
    found = query_files(
        kind, files, region, (start, end), (hot, (region, start, end, list(came))), (),
        {"came": pa.table({"number": pa.array(came, pa.int64())})},
        'SELECT receipt, count(*) AS n, min("time") AS first, max("time") AS last FROM rows'
        " WHERE receipt IN (SELECT number FROM came) GROUP BY receipt", (),
    )  # fmt: skip
    listed = zip(*(found[name].tolist() for name in ("receipt", "n", "first", "last")), strict=True)
    rows = {number: rest for number, *rest in listed}
    for number, (receipt, at) in came.items():
        if number in rows:
            count, first, last = rows[number]
            yield LateRows(kind.name, receipt, count, moment(first), moment(last), at)


def _inside(kind: Kind, start: datetime, end: datetime) -> tuple[str, list[datetime]]:
    """Condition of the rows that concern the window, as SQL over the table `t`."""
    if kind.is_state:
        return 't."time" <= %s', [start]
    if not kind.is_interval:
        return 't."time" >= %s AND t."time" < %s', [start, end]
    # An earlier report of the interval still overlaps the window; the new one ends before it.
    before = f"""SELECT 1 FROM {table(kind)} AS earlier WHERE earlier.region = t.region AND earlier."time" = t."time"
        AND earlier."{kind.key}" = t."{kind.key}" AND earlier.id < t.id AND earlier."{kind.end}" > %s"""
    return f't."time" < %s AND (t."{kind.end}" > %s OR EXISTS ({before}))', [end, start, start]
