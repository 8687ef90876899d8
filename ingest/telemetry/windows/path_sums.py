"""Attempts and failures of paths, in consecutive steps of time: the sums that a grid is made of.

A path is the set of components that a unit (by `placement`) or an attempt (by `path_outcome`) depends on. Postgres
sums by the numbers of sets, all steps in one statement; names come later, and only of what is shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime
from hashlib import blake2b
from typing import Generic, Literal, TypeVar

import numpy as np
from django.db import OperationalError, connection
from numpy.typing import NDArray
from psycopg2.errors import QueryCanceled

from ingest.db.storage import ColdStorageError
from ingest.telemetry.cold.source import table_source
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import one_snapshot
from ingest.telemetry.store.write import copy_out
from ingest.telemetry.windows.pair_grid import Ints, Membership, PathSums, Steps, rates_of
from ingest.telemetry.windows.sql import data_clock, region_number, sets_of

Source = Literal["placement", "path_outcome"]
SOURCES: dict[Source, tuple[str, ...]] = {
    "placement": ("placement", "unit_failure"),
    "path_outcome": ("path_outcome",),
}
"""The telemetry kinds behind each source, what is carried first."""
TIMEOUT = 10
"""Seconds that one statement may take."""
CACHED = 8
"""Sums that a process keeps; those of 400,000 units on 90,000 paths take about 3 MB."""
T = TypeVar("T")


class PathSumsTimeoutError(Exception):
    """The sums took longer than TIMEOUT."""

    def __init__(self) -> None:
        super().__init__(
            f"took longer than {TIMEOUT} s in the database; take a shorter window or fewer steps"
        )


def path_sums(region: str, source: Source, steps: Steps) -> PathSums:
    """The sums of a region. Raises PathSumsTimeoutError. The same sums are read once, until something is received for
    them."""
    try:
        with one_snapshot():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = %s", (f"{round(TIMEOUT * 1000)}ms",))
            number = region_number(region)
            progress = _progress_text(number, source, steps)
            key = f"{connection.settings_dict['NAME']} {number} {source} {steps} {progress}"
            if (stored := _sums.get(key)) is not None:
                return stored
            found = _read(number, source, steps)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise PathSumsTimeoutError from error
        raise
    except ColdStorageError as error:
        raise PathSumsTimeoutError from error
    _sums.put(key, found)
    return found


def path_source(region: str) -> Source | None:
    """Source of a region's paths: placements where there are any, else outcomes; None without either."""
    for source in SOURCES:
        if data_clock(region, [source]).latest is not None:
            return source
    return None


def path_clock(region: str, source: Source) -> datetime | None:
    """Position of the telemetry of paths."""
    return data_clock(region, SOURCES[source]).latest


def path_rates(region: str, source: Source, steps: Steps, component: str) -> tuple[Ints, Ints, Ints, Ints]:
    """Attempts and losses of a component's paths in each step, then those of all paths; each of shape (steps,).
    Raises PathSumsTimeoutError."""
    sums = path_sums(region, source, steps)
    return (*rates_of(sums, component), *rates_of(sums, None))


def _progress_text(region: int, source: Source, steps: Steps) -> str:
    """Key of the state of what was received for these steps."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), COALESCE(sum(number), 0) FROM telemetry_receipt WHERE region = %s AND kind = ANY(%s)"
            " AND first < %s AND (last >= %s OR kind = 'placement')",
            (region, list(SOURCES[source]), steps.end, steps.start),
        )
        count, total = cursor.fetchone()
    return f"{count} {total}"


def _read(region: int, source: Source, steps: Steps) -> PathSums:
    if source == "placement":
        carried, failed = _placed(region, steps), _failed(region, steps)
    else:
        carried, failed = _attempts(region, steps)
    used = np.unique(np.concatenate((carried["components"], failed["components"])))
    used = used[used > 0]
    lost = failed["components"] == 0
    unplaced = np.bincount(failed["step"][lost], failed["n"][lost], steps.count).astype(np.int64)
    return PathSums(
        steps.count,
        _members(used),
        np.searchsorted(used, carried["components"]),
        carried["first"].astype(np.int64),
        carried["last"].astype(np.int64),
        carried["n"].astype(np.int64),
        np.searchsorted(used, failed["components"][~lost]),
        failed["step"][~lost].astype(np.int64),
        failed["n"][~lost].astype(np.int64),
        unplaced,
    )


_RECORDED = "receipt NOT IN (SELECT number FROM telemetry_unfinished)"
_CARRIED = (("components", "integer"), ("first", "integer"), ("last", "integer"), ("n", "bigint"))
_FAILED = (("step", "integer"), ("components", "integer"), ("n", "bigint"))
Columns = dict[str, NDArray[np.generic]]


def _placed(region: int, steps: Steps) -> Columns:
    """Units on each set, with the first and the last step at whose start they were there.

    Each row is in force until the next of its unit: one walk along the index serves all steps. Of two rows of one
    time that received last comes first, so that the other is in force for no time at all.
    """
    sql = f"""
        SELECT components, first, last, count(*) FROM (
            SELECT components,
                width_bucket(since - interval '1 microsecond', %s::timestamptz[]) AS first,
                CASE WHEN until IS NULL THEN %s
                     ELSE width_bucket(until - interval '1 microsecond', %s::timestamptz[]) - 1 END AS last
            FROM (
                SELECT components, active, "time" AS since,
                    lag("time") OVER (PARTITION BY unit ORDER BY "time" DESC, id DESC) AS until
                FROM telemetry_placement WHERE region = %s AND "time" <= %s AND {_RECORDED}
            ) AS spans WHERE active
        ) AS placed WHERE first <= last GROUP BY 1, 2, 3
    """
    starts = steps.starts
    return copy_out(sql, (starts, steps.count - 1, starts, region, starts[-1]), _CARRIED)


def _failed(region: int, steps: Steps) -> Columns:
    """Distinct units that failed in each step, by where they were placed at its start; set 0: nowhere."""
    lost = table_source(KINDS["unit_failure"], region, steps.start, steps.end)
    sql = f"""
        SELECT step, COALESCE(held.components, 0), count(*) FROM (
            SELECT DISTINCT width_bucket("time", %s::timestamptz[]) - 1 AS step, unit
            FROM {lost} WHERE region = %s AND "time" >= %s AND "time" < %s AND {_RECORDED}
        ) AS lost LEFT JOIN LATERAL (
            SELECT CASE WHEN active THEN components END AS components FROM telemetry_placement AS p
            WHERE p.region = %s AND p.unit = lost.unit AND p."time" <= (%s::timestamptz[])[step + 1] AND {_RECORDED}
            ORDER BY p."time" DESC, p.id DESC LIMIT 1
        ) AS held ON true GROUP BY 1, 2
    """
    starts = steps.starts
    return copy_out(sql, (starts, region, steps.start, steps.end, region, starts), _FAILED)


def _attempts(region: int, steps: Steps) -> tuple[Columns, Columns]:
    outcomes = table_source(KINDS["path_outcome"], region, steps.start, steps.end)
    sql = f"""
        SELECT width_bucket("time", %s::timestamptz[]) - 1, components, sum(attempts)::bigint, sum(failures)::bigint
        FROM {outcomes} WHERE region = %s AND "time" >= %s AND "time" < %s AND {_RECORDED}
        GROUP BY 1, 2
    """
    layout = (("step", "integer"), ("components", "integer"), ("carried", "bigint"), ("n", "bigint"))
    found = copy_out(sql, (steps.starts, region, steps.start, steps.end), layout)
    bad = found["n"].astype(np.int64) > 0
    carried = {"first": found["step"], "last": found["step"], "n": found["carried"]}
    failed = {name: found[name][bad] for name in ("step", "components", "n")}
    return {**carried, "components": found["components"]}, failed


def _members(used: NDArray[np.generic]) -> Membership:
    """Sets never change, so their members are read once for as long as the same ones are asked for."""
    name = str(connection.settings_dict["NAME"])
    key = blake2b(used.astype(np.int64).tobytes() + name.encode(), digest_size=16).hexdigest()
    if (stored := _sets.get(key)) is not None:
        return stored
    found = Membership(sets_of(used))
    _sets.put(key, found)
    return found


class _RecentResults(Generic[T]):
    """Recent results, so many of them; threads share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: str, value: T) -> None:
        with self._lock:
            self._held[key] = value
            while len(self._held) > self._most:
                self._held.popitem(last=False)


_sums = _RecentResults[PathSums](CACHED)
_sets = _RecentResults[Membership](2)
