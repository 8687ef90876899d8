"""Windows out of the database, and out of files of old rows: reductions in SQL. Nothing here writes.

Postgres groups by interned numbers and sends fixed-width rows; names come after, for what is left. Rows of
uploads that are not finished are passed over, and with `upto` those of receipts that the log holds after that
position, so that a window read again at the position of its run is the same whatever arrived since.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from ingest.log.read import watermark
from ingest.log.types import Position
from ingest.telemetry.decode.builder import as_texts
from ingest.telemetry.decode.columns import MICROSECOND, Names, Sets, microseconds
from ingest.telemetry.kinds import KINDS, Kind
from ingest.telemetry.store import sharding
from ingest.telemetry.store.tables import (
    SHOWN,
    SQL_TYPES,
    cold_files,
    column,
    is_sharded,
    one_snapshot,
    summarize,
    table,
)
from ingest.telemetry.store.write import copy_out
from ingest.telemetry.windows.reductions import Input, Plan, Sums, plan
from ingest.telemetry.windows.sums import Partials, Values, as_key, finish

NOTHING = {
    "integer": "0",
    "bigint": "0",
    "double precision": "0",
    "boolean": "false",
    "timestamptz": "'epoch'",
    "uuid": "'00000000-0000-0000-0000-000000000000'",
}
NOTHING_IN_FILES = NOTHING | {"timestamptz": "0", "uuid": "repeat('\\x00', 16)::BLOB"}
"""There times are microseconds since 1970, and ids their bytes."""


@dataclass(frozen=True, slots=True)
class DataClock:
    """The newest `time` seen and when it arrived; both None where nothing was seen."""

    latest: datetime | None
    arrived_at: datetime | None


Parameter = str | int | datetime


@dataclass(slots=True)
class _Sql:
    """A statement in the making: text and parameters in step."""

    text: str
    parameters: list[Parameter]

    def __add__(self, other: _Sql) -> _Sql:
        return _Sql(f"{self.text} {other.text}", [*self.parameters, *other.parameters])


def read_window(
    input: Input, region: str, start: datetime, end: datetime, upto: Position | None = None
) -> dict[str, Sums]:
    """The sums of the window [start, end) of a region, by reduction. Raises ValueError for a reduction that
    does not fit its kinds."""
    plans = [plan(reduction) for reduction in input.reductions]
    if not connection.in_atomic_block:
        for name in {one.kind.name for one in plans if one.kind.is_event}:
            summarize(KINDS[name], start, end)
    if is_sharded():
        _wait_for_nodes(plans, region, start, end, upto or watermark())
    with one_snapshot():
        region_id = region_number(region)
        return {one.reduction.name: _read(one, region_id, start, end, upto) for one in plans}


def _wait_for_nodes(
    plans: Sequence[Plan], region: str, start: datetime, end: datetime, upto: Position
) -> None:
    """Before the snapshot: what a node shows once it shows for ever."""
    number = region_number(region)
    events = {one.kind.name for one in plans if one.kind.is_event}
    states = {one.kind.name for one in plans} | {one.state.name for one in plans if one.state is not None}
    ever = datetime.min.replace(tzinfo=UTC)
    for kind in sorted(states):
        since = start if kind in events else ever
        sharding.wait_until(partial(sharding.shows_all, kind, number, since, end, upto))


def region_number(region: str) -> int:
    """The number of a region's name, 0 (which no name has) for an unknown one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM telemetry_name WHERE name = %s", (region,))
        row = cursor.fetchone()
    return row[0] if row else 0  # numbers begin at 1


def _read(chosen: Plan, region: int, start: datetime, end: datetime, upto: Position | None) -> Sums:
    if files := cold_files(chosen.kind, start, end):
        found = _found_in_files(chosen, files, region, start, end, upto)
    else:
        columns = _columns(chosen)
        query = _query(chosen, columns, _joined_rows(chosen, region, start, end, upto), start)
        found = copy_out(query.text, query.parameters, _layout(columns))
    matched = found.pop("matched").astype(bool)
    counts = found["n"].astype(np.int64)
    later = int(found["later"].sum()) if "later" in found else 0
    joined = {name: values[matched] for name, values in found.items()}
    return finish(chosen, _partials(chosen, joined, microseconds(start), int(counts[~matched].sum()), later))


def _found_in_files(
    chosen: Plan, files: Sequence[str], region: int, start: datetime, end: datetime, upto: Position | None
) -> dict[str, NDArray[np.generic]]:
    """The partials of rows of which some lie in files: the same statement, read by DuckDB. Rows that are still in
    Postgres, states and names are given along."""
    import pyarrow as pa  # takes long to load, and few processes read files

    from ingest.telemetry.cold.read import query_files

    given: dict[str, pa.Table] = {}
    source = _Sql("rows AS r", [])
    if (state := chosen.state) is not None:
        assert state.key is not None
        names = dict.fromkeys(
            (state.key, *(name for name, owner in chosen.owners.items() if owner == "state"))
        )
        layout = [(column(state, name), SQL_TYPES[state.field(name).type]) for name in names]
        held = in_force(state, region, start, upto)
        listed = ", ".join(f'"{name}"' for name, _ in layout)
        given["held"] = pa.table(copy_out(f"SELECT {listed} FROM {held.text} AS s", held.parameters, layout))
        source += _Sql(f'LEFT JOIN held AS s ON s."{state.key}" = r."{state.key}"', [])
    with connection.cursor() as cursor:
        if (only := chosen.reduction.only) is not None:
            cursor.execute("SELECT id, name FROM telemetry_name WHERE name = ANY(%s)", (list(only[1]),))
            ids, texts = zip(*cursor.fetchall(), strict=True) if cursor.rowcount else ((), ())
            given["telemetry_name"] = pa.table(
                {"id": pa.array(ids, pa.int32()), "name": pa.array(texts, pa.string())}
            )
        late: list[int] = []
        if upto is not None:
            recorded = _later(chosen.kind, region, upto, before=end, since=start)
            cursor.execute(recorded.text, recorded.parameters)
            late = [number for (number,) in cursor.fetchall()]
    hot = _Sql('WHERE region = %s AND "time" >= %s AND "time" < %s', [region, start, end])
    hot += _recorded(chosen.kind, region, upto, before=end, since=start)
    query = _query(chosen, _columns(chosen, in_files=True), source, microseconds(start))
    return query_files(
        chosen.kind, files, region, (start, end), (hot.text, hot.parameters), late, given, query.text,
        query.parameters,
    )  # fmt: skip


def _layout(columns: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, type_) for name, (type_, _) in columns.items()]


def _columns(chosen: Plan, *, in_files: bool = False) -> dict[str, tuple[str, str]]:
    """The partials' columns: name, SQL type, expression. Those up to `n` are grouped by."""

    def grouped(name: str) -> tuple[str, str]:
        type_ = SQL_TYPES[chosen.field(name).type]
        nothing = (NOTHING_IN_FILES if in_files else NOTHING)[type_]
        return type_, f"COALESCE({_reference(chosen, name)}, {nothing})"

    columns: dict[str, tuple[str, str]] = {}
    columns |= {f"k_{name}": grouped(name) for name in (*chosen.named, *chosen.numbered)}
    if chosen.set_field is not None:
        columns["set"] = grouped(chosen.set_field)
    if chosen.reduction.slice is not None:
        length = _length(chosen)
        begun = f"date_bin('{length} microseconds', r.\"time\", {{start}}::timestamptz)"
        if in_files:
            begun = f'r."time" - mod(r."time" - {{start}}, {length})'
        columns["slice"] = "timestamptz", begun
    if (each := chosen.reduction.each) is not None:
        edges = ", ".join(repr(float(edge)) for edge in each.edges)
        bucket = f"width_bucket(one.number, ARRAY[{edges}]::double precision[])"
        bins = "integer", _bucket(each.edges, 0) if in_files else bucket
        columns["each"] = bins if each.edges else ("double precision", "one.number")
    columns |= {f"d_{name}": grouped(name) for name in chosen.distinct}
    columns["matched"] = "boolean", f'(s."{chosen.state.key}" IS NOT NULL)' if chosen.state else "true"
    columns["n"] = "bigint", "count(*)"
    if chosen.reduction.or_within:
        columns["later"] = "bigint", 'count(*) FILTER (WHERE r."time" > {start}::timestamptz)'
    columns |= {
        f"w_{name}": ("boolean", f"COALESCE(bool_or({_reference(chosen, name)} > 0), false)")
        for name in chosen.flags
    }
    for name in chosen.sums:
        of = _reference(chosen, name)
        # In ascending order: floats add up to other bits in another order.
        total = f"sum({of} ORDER BY {of})" if chosen.field(name).type == "amount" else f"sum({of})::bigint"
        type_ = "double precision" if chosen.field(name).type == "amount" else "bigint"
        columns[f"s_{name}"] = type_, f"COALESCE({total}, 0)"
    return columns


def _bucket(edges: Sequence[float], below: int) -> str:
    """Last edge that a number reaches, counted from 1, found by halving; `below` of them are known."""
    if not edges:
        return str(below)
    half = len(edges) // 2
    lower, upper = _bucket(edges[:half], below), _bucket(edges[half + 1 :], below + half + 1)
    return f"CASE WHEN one.number < {edges[half]!r}::DOUBLE THEN {lower} ELSE {upper} END"


def _reference(chosen: Plan, name: str) -> str:
    if chosen.owners[name] == "row":
        return f'r."{column(chosen.kind, name)}"'
    assert chosen.state is not None
    return f's."{column(chosen.state, name)}"'


def _joined_rows(chosen: Plan, region: int, start: datetime, end: datetime, upto: Position | None) -> _Sql:
    """The rows as `r`, with the states that they are joined to as `s`."""
    query = _rows(chosen, region, start, end, upto)
    if chosen.state is not None:
        query += _Sql("LEFT JOIN", []) + in_force(chosen.state, region, start, upto)
        query += _Sql(f'AS s ON s."{chosen.state.key}" = r."{chosen.state.key}"', [])
    return query


def _query(chosen: Plan, columns: dict[str, tuple[str, str]], rows: _Sql, start: datetime | int) -> _Sql:
    selected: list[str] = []
    parameters: list[Parameter] = []
    for expression in (expression for _, expression in columns.values()):
        parameters += [start] * expression.count("{start}")
        selected.append(expression.replace("{start}", "%s"))
    names = list(columns)
    listed = ", ".join(f'{one} AS "{name}"' for name, one in zip(names, selected, strict=True))
    query = _Sql(f"SELECT {listed} FROM", parameters) + rows
    if (each := chosen.reduction.each) is not None:
        query += _Sql(f'CROSS JOIN LATERAL unnest(r."{each.field}") AS one (number)', [])
    query += _Sql("WHERE true", [])
    if (where := chosen.reduction.where) is not None:
        above = f"{_reference(chosen, where)} > 0"
        # A row without a state is not judged by it: it is counted as unmatched.
        query += _Sql("AND " + (above if chosen.owners[where] == "row" else f"COALESCE({above}, true)"), [])
    if (only := chosen.reduction.only) is not None:
        name, values = only
        places = ", ".join(["%s"] * len(values))
        query += _Sql(
            f'AND r."{name}" IN (SELECT id FROM telemetry_name WHERE name IN ({places}))', list(values)
        )
    return query + _Sql("GROUP BY " + ", ".join(str(i) for i in range(1, names.index("n") + 1)), [])


def _rows(chosen: Plan, region: int, start: datetime, end: datetime, upto: Position | None) -> _Sql:
    if chosen.kind.is_state and not chosen.reduction.changes:
        held = in_force(chosen.kind, region, start, upto)
        if chosen.reduction.or_within:
            held = _or_within(held, chosen.kind, region, start, end, upto)
        return held + _Sql("AS r", [])
    if chosen.kind.is_interval:
        return _overlapping(chosen.kind, region, start, end, upto) + _Sql("AS r", [])
    found = _Sql(
        f'(SELECT * FROM {table(chosen.kind)} WHERE region = %s AND "time" >= %s AND "time" < %s',
        [region, start, end],
    )
    return found + _recorded(chosen.kind, region, upto, before=end, since=start) + _Sql(") AS r", [])


def in_force(kind: Kind, region: int, at: datetime, upto: Position | None) -> _Sql:
    """The rows of a state kind in force at a time: the last of each key, unless it says that it ends."""
    query = _Sql(
        f'(SELECT DISTINCT ON ("{kind.key}") * FROM {table(kind)} WHERE region = %s AND "time" <= %s',
        [region, at],
    )
    query += _recorded(kind, region, upto, before=at)
    query += _Sql(f'ORDER BY "{kind.key}", "time" DESC, id DESC)', [])
    if not kind.has("active"):
        return query
    return _Sql("(SELECT * FROM", []) + query + _Sql("AS newest WHERE active)", [])


def _or_within(
    held: _Sql, kind: Kind, region: int, start: datetime, end: datetime, upto: Position | None
) -> _Sql:
    """Rows of `held` at the start, and of keys without one the first that came into force before the end."""
    query = _Sql(
        f'(SELECT DISTINCT ON ("{kind.key}", "time") * FROM {table(kind)}'
        ' WHERE region = %s AND "time" > %s AND "time" < %s',
        [region, start, end],
    )
    query += _recorded(kind, region, upto, before=end)
    query += _Sql(f'ORDER BY "{kind.key}", "time", id DESC) AS told', [])
    active = "active AND" if kind.has("active") else ""
    first = _Sql(f'SELECT DISTINCT ON ("{kind.key}") * FROM', []) + query
    first += _Sql(f"WHERE {active} NOT EXISTS (SELECT 1 FROM", []) + held
    first += _Sql(f'AS held WHERE held."{kind.key}" = told."{kind.key}") ORDER BY "{kind.key}", "time"', [])
    return _Sql("(SELECT * FROM", []) + held + _Sql("AS held UNION ALL (", []) + first + _Sql("))", [])


def _overlapping(kind: Kind, region: int, start: datetime, end: datetime, upto: Position | None) -> _Sql:
    """The intervals that overlap [start, end), each as it was last told of."""
    # Not DISTINCT ON: that would read all that is kept, and most of it was over long before the window.
    # OFFSET 0 keeps the question a look-up by index for each row. As a join it is planned by statistics, to which what
    # has just come from a new region is one row: twenty thousand were compared each with each.
    query = _Sql(
        f'(SELECT * FROM {table(kind)} AS told WHERE region = %s AND "{kind.end}" > %s AND "time" < %s',
        [region, start, end],
    )
    query += _recorded(kind, region, upto, before=end)
    query += _Sql(
        f"AND NOT EXISTS (SELECT 1 FROM {table(kind)} AS newer WHERE newer.region = %s"
        f' AND newer."time" = told."time" AND newer."{kind.key}" = told."{kind.key}" AND newer.id > told.id',
        [region],
    )
    return query + _recorded(kind, region, upto, before=end) + _Sql("OFFSET 0))", [])


def _recorded(
    kind: Kind, region: int, upto: Position | None, *, before: datetime, since: datetime | None = None
) -> _Sql:
    """Only rows of finished uploads, and of those that the log holds up to a position.

    The rows have times up to `before`, and from `since` on: other receipts are not looked at.
    """
    if is_sharded():
        shown = _Sql(
            f"AND (receipt IN (SELECT number FROM {SHOWN} WHERE region = %s AND kind = %s AND first <= %s",
            [region, kind.name, before],
        )
        if since is not None:
            shown += _Sql("AND last >= %s", [since])
        if upto is not None:
            shown += _Sql(
                "AND (epoch, txid, seq) <= (%s, %s::xid8, %s)", [upto.epoch, str(upto.txid), upto.seq]
            )
        # A look-up in a hash, as NOT IN is below. As a join it is planned by statistics, which know nothing of what has
        # just come: each row was compared with each receipt.
        return shown + _Sql(")) IS TRUE", [])
    condition = _Sql("AND receipt NOT IN (SELECT number FROM telemetry_unfinished)", [])
    if upto is None:
        return condition
    later = _later(kind, region, upto, before=before, since=since)
    return condition + _Sql(f"AND receipt NOT IN ({later.text})", later.parameters)


def _later(
    kind: Kind, region: int, upto: Position, *, before: datetime, since: datetime | None = None
) -> _Sql:
    """The numbers of receipts after a position, of rows with such times."""
    query = _Sql(
        "SELECT number FROM telemetry_receipt"
        " WHERE region = %s AND kind = %s AND (epoch, txid, seq) > (%s, %s::xid8, %s) AND first <= %s",
        [region, kind.name, upto.epoch, str(upto.txid), upto.seq, before],
    )
    return query if since is None else query + _Sql("AND last >= %s", [since])


def _length(chosen: Plan) -> int:
    """Microseconds in a slice."""
    assert chosen.reduction.slice is not None
    return max(1, chosen.reduction.slice // MICROSECOND)


def _partials(
    chosen: Plan, found: dict[str, NDArray[np.generic]], start: int, unmatched: int, later: int
) -> Partials:
    return Partials(
        counts=found["n"].astype(np.int64),
        named={name: _names(found[f"k_{name}"]) for name in chosen.named},
        numbered=_numbered(chosen, found),
        slices=(found["slice"].astype(np.int64) - start) // _length(chosen) if "slice" in found else None,
        sets=sets_of(found["set"]) if "set" in found else None,
        distinct={name: found[f"d_{name}"] for name in chosen.distinct},
        flags={name: found[f"w_{name}"].astype(bool) for name in chosen.flags},
        sums={name: found[f"s_{name}"] for name in chosen.sums},  # type: ignore[misc]
        unmatched=unmatched,
        later=later,
    )


def _numbered(chosen: Plan, found: dict[str, NDArray[np.generic]]) -> dict[str, Values]:
    keys = {name: found[f"k_{name}"] for name in chosen.numbered}
    if chosen.reduction.each is not None:
        keys[chosen.reduction.each.key] = found["each"]
    return {name: as_key(key) for name, key in keys.items()}


def _names(ids: NDArray[np.generic]) -> Names:
    used, codes = np.unique(ids, return_inverse=True)
    if used.dtype.kind == "V":
        return Names(codes.astype(np.int32), as_texts(used))
    return Names(codes.astype(np.int32), names_of(used))


def names_of(ids: NDArray[np.generic]) -> tuple[str, ...]:
    """The names of ascending distinct numbers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM telemetry_name WHERE id = ANY(%s)", (ids.tolist(),))
        names = dict(cursor.fetchall())
    return tuple(names[number] for number in ids.tolist())


def sets_of(ids: NDArray[np.generic]) -> Sets:
    """A column of numbers of component sets as the sets themselves; those used ascend by their numbers."""
    used, codes = np.unique(ids, return_inverse=True)
    query = "SELECT id, unnest(members) FROM telemetry_set WHERE id = ANY(%s)"
    found = copy_out(query, (used.tolist(),), (("set", "integer"), ("member", "integer")))
    order = np.lexsort((found["member"], found["set"]))
    members, indices = np.unique(found["member"][order], return_inverse=True)
    sizes = np.bincount(np.searchsorted(used, found["set"]), minlength=len(used))
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return Sets(codes.astype(np.int32), indptr, indices.astype(np.int32), names_of(members))


def data_clock(region: str, kinds: Collection[str]) -> DataClock:
    """Position of a region's telemetry. One look at an index a kind; of a kind whose rows may lie ahead, of which
    there are few, what lies ahead counts as of its arrival."""
    newest: tuple[datetime, datetime] | None = None
    with connection.cursor() as cursor:
        for kind in kinds:
            last = "least(last, received_at)" if KINDS[kind].ahead else "last"
            cursor.execute(
                f"SELECT {last} AS newest, received_at FROM telemetry_receipt WHERE kind = %s"
                " AND region = (SELECT id FROM telemetry_name WHERE name = %s)"
                " ORDER BY newest DESC, received_at LIMIT 1",
                (kind, region),
            )
            row = cursor.fetchone()
            if row is not None and (newest is None or row[0] > newest[0]):
                newest = row
    return DataClock(*newest) if newest else DataClock(None, None)


def regions() -> list[str]:
    """The regions that telemetry was received of, by name."""
    skip = """
        WITH RECURSIVE seen AS (
            (SELECT region FROM telemetry_receipt ORDER BY region LIMIT 1)
            UNION ALL
            SELECT (SELECT region FROM telemetry_receipt WHERE region > seen.region ORDER BY region LIMIT 1)
            FROM seen WHERE seen.region IS NOT NULL
        )
        SELECT name FROM seen JOIN telemetry_name ON telemetry_name.id = seen.region ORDER BY name
    """  # one look at the index a region, however many receipts there are
    with connection.cursor() as cursor:
        cursor.execute(skip)
        return [name for (name,) in cursor.fetchall()]
