"""Rows of components: attempts (`path_outcome`, `job_attempt`), results of `benchmark`, and paths of `probe`.

The rows of the component come one by one, because a sequential test looks at each; the others are summed by hour in
Postgres.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection

from ingest.telemetry.cold.source import table_source
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import one_snapshot, table
from ingest.telemetry.windows.sql import region_number

MOST_ROWS: Final = 20_000
"""Rows of a component that are read, the oldest first."""
MOST_RESULTS: Final = 50_000
"""Benchmark results that are read, of the component and of the others each, the newest first."""
MOST_PATHS: Final = 5_000
"""Paths of probes that are read."""
TIMEOUT: Final = 20
"""Seconds that one statement may take."""
_RECORDED = "receipt NOT IN (SELECT number FROM telemetry_unfinished)"

AttemptRow = tuple[datetime, int, int]
"""Time, attempts, failures."""


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """The mean of the values that one benchmark measured for one metric on a node; `own` of the component itself."""

    at: datetime
    own: bool
    node: str
    benchmark: str
    metric: str
    sku: str
    value: float


def part_attempts(
    kind: str, region: str, names: Collection[str], start: datetime, end: datetime
) -> Sequence[AttemptRow]:
    """Rows of `path_outcome` or `job_attempt` in [start, end) that name one of the components, by time."""
    with one_snapshot(), connection.cursor() as cursor:
        _limit_time()
        cursor.execute(
            f'SELECT "time", {_COUNTS[kind]} {_from(kind, region, start, end)} AND {_SETS[kind]}'
            ' ORDER BY "time" LIMIT %(most)s',
            _parameters(region, names, start, end),
        )
        return [(at, int(attempts), int(failures)) for at, attempts, failures in cursor.fetchall()]


def other_attempts(
    kind: str, region: str, names: Collection[str], start: datetime, end: datetime
) -> Sequence[AttemptRow]:
    """The sums of all other rows in [start, end), by the start of the hour."""
    attempts, failures = _COUNTS[kind].split(", ")
    with one_snapshot(), connection.cursor() as cursor:
        _limit_time()
        cursor.execute(
            f"SELECT date_trunc('hour', \"time\", 'UTC'), sum({attempts}), sum({failures})"
            f" {_from(kind, region, start, end)}"
            f" AND NOT {_SETS[kind]} GROUP BY 1 ORDER BY 1",
            _parameters(region, names, start, end),
        )
        return [(at, int(n), int(failed)) for at, n, failed in cursor.fetchall()]


_COUNTS = {"path_outcome": "attempts, failures", "job_attempt": "1, (outcome.name = 'failed')::integer"}
_WINDOW = 'region = %(region)s AND "time" >= %(start)s AND "time" < %(end)s AND ' + _RECORDED
_FROM = {
    "path_outcome": f"FROM telemetry_path_outcome WHERE {_WINDOW}",
    "job_attempt": "FROM telemetry_job_attempt JOIN telemetry_name outcome ON outcome.id = outcome"
    f" WHERE {_WINDOW} AND outcome.name IN ('completed', 'failed')",
}


def _from(kind: str, region: str, start: datetime, end: datetime) -> str:
    """The rows of `_FROM`, those in files included."""
    return _with_files(_FROM[kind], kind, region, start, end)


def _with_files(sql: str, kind: str, region: str, start: datetime, end: datetime) -> str:
    source = table_source(KINDS[kind], region_number(region), start, end)
    return sql.replace(f"FROM {table(KINDS[kind])}", f"FROM {source}")


_NAMING = (
    "(SELECT s.id FROM telemetry_set s WHERE s.members && ARRAY(SELECT n.id FROM telemetry_name n"
    " WHERE n.name = ANY(%(names)s)))"
)
_SETS = {"path_outcome": f"components IN {_NAMING}", "job_attempt": f"nodes IN {_NAMING}"}


def benchmark_results(
    region: str, names: Collection[str], start: datetime, end: datetime
) -> Sequence[BenchmarkResult]:
    """Results in [start, end) of the components, and of all others for the same benchmarks, by time."""
    sql = f"""
        SELECT r."time", own.name = ANY(%(names)s), own.name, b.name, m.name, s.name,
            (SELECT avg(v) FROM unnest(r."values") AS v)
        FROM (SELECT * FROM telemetry_benchmark WHERE {_WINDOW}) AS r
        JOIN telemetry_name own ON own.id = r.node JOIN telemetry_name b ON b.id = r.benchmark
        JOIN telemetry_name m ON m.id = r.metric JOIN telemetry_name s ON s.id = r.sku
        WHERE own.name = ANY(%(names)s) = %(own)s AND r.benchmark = ANY(ARRAY(
            SELECT DISTINCT benchmark FROM telemetry_benchmark JOIN telemetry_name n ON n.id = node
            WHERE {_WINDOW} AND n.name = ANY(%(names)s)))
        ORDER BY r."time" DESC LIMIT %(most_results)s
    """
    found = []
    with one_snapshot(), connection.cursor() as cursor:
        _limit_time()
        sql = _with_files(sql, "benchmark", region, start, end)
        for own in (True, False):
            cursor.execute(sql, {**_parameters(region, names, start, end), "own": own})
            found += [BenchmarkResult(*row) for row in cursor.fetchall() if row[-1] is not None]
    return sorted(found, key=lambda one: (one.at, one.node, one.benchmark, one.metric))


@dataclass(frozen=True, slots=True)
class ProbedPath:
    """A path that probes took: `hops` sorted, the probes sent and lost over it, and the last of them."""

    src: str
    dst: str
    hops: tuple[str, ...]
    sent: int
    lost: int
    last: datetime


def probed_paths(region: str, names: Collection[str], start: datetime, end: datetime) -> Sequence[ProbedPath]:
    """The paths of `probe` rows in [start, end) that pass one of the components or begin or end at one, at most
    `MOST_PATHS`."""
    return _probed(
        f"(r.hops IN {_NAMING} OR src.name = ANY(%(names)s) OR dst.name = ANY(%(names)s))",
        region,
        start,
        end,
        names=sorted(names),
    )


def probes_between(region: str, src: str, dst: str, start: datetime, end: datetime) -> Sequence[ProbedPath]:
    """The paths of `probe` rows in [start, end) from one component to another."""
    return _probed("src.name = %(src)s AND dst.name = %(dst)s", region, start, end, src=src, dst=dst)


def _probed(
    where: str, region: str, start: datetime, end: datetime, **named: str | list[str]
) -> Sequence[ProbedPath]:
    sql = f"""
        SELECT src.name, dst.name, ARRAY(SELECT n.name FROM telemetry_set s
            JOIN telemetry_name n ON n.id = ANY(s.members) WHERE s.id = summed.hops), sent, lost, last
        FROM (SELECT r.src, r.dst, r.hops, sum(r.sent) AS sent, sum(r.lost) AS lost, max(r."time") AS last
            FROM (SELECT * FROM telemetry_probe WHERE {_WINDOW}) AS r
            JOIN telemetry_name src ON src.id = r.src JOIN telemetry_name dst ON dst.id = r.dst
            WHERE {where} GROUP BY r.src, r.dst, r.hops LIMIT %(most_paths)s) AS summed
        JOIN telemetry_name src ON src.id = summed.src JOIN telemetry_name dst ON dst.id = summed.dst
    """
    values: dict[str, int | datetime | str | list[str]] = {
        "region": region_number(region),
        "start": start,
        "end": end,
        "most_paths": MOST_PATHS,
        **named,
    }
    with one_snapshot(), connection.cursor() as cursor:
        _limit_time()
        cursor.execute(_with_files(sql, "probe", region, start, end), values)
        rows = cursor.fetchall()
    found = [
        ProbedPath(src, dst, tuple(sorted(hops)), int(sent), int(lost), last)
        for src, dst, hops, sent, lost, last in rows
    ]
    return sorted(found, key=lambda one: (one.src, one.dst, one.hops))


def _limit_time() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (f"{TIMEOUT}s",))


def _parameters(
    region: str, names: Collection[str], start: datetime, end: datetime
) -> dict[str, int | datetime | list[str]]:
    return {
        "region": region_number(region),
        "names": sorted(names),
        "start": start,
        "end": end,
        "most": MOST_ROWS,
        "most_results": MOST_RESULTS,
    }
