"""The grid of two kinds of component: asked, read, crossed, marked; and as compact JSON."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from django.db.models import Q
from django.db.models.functions import Coalesce, Least
from numpy.typing import NDArray

from analyzers.queries import runs
from incidents.domain.components.grid_query import GridQuery
from incidents.domain.values import InvalidValueError, rfc3339
from incidents.incident.models import IncidentRow
from ingest.queries import (
    Crossing,
    KindOnPaths,
    PathSource,
    PathSteps,
    PathSums,
    cross,
    default_axes,
    finer,
    path_clock,
    path_source,
    path_sums,
    regions,
)

MOST = 5_000
"""Incidents or runs that one grid looks at, the latest."""


@dataclass(frozen=True, slots=True)
class Mark:
    """`by` is an incident (its `number` set) or an analyzer; `score` is how sure it was, 0 to 1."""

    component: str
    by: Literal["incident", "run"]
    title: str
    number: int | None
    run: str | None
    score: float | None


Span = tuple[datetime, datetime]


def marks(region: str, components: Collection[str], spans: Sequence[Span]) -> list[list[Mark]]:
    """Of each span `(start, end]` what blames these components: incidents that were not resolved in it, from when their
    cause began to fail, and runs whose windows ended in it. Incidents first, then the surest."""
    wanted = frozenset(components)
    if not wanted or not spans:
        return [[] for _ in spans]
    found: list[list[Mark]] = [[] for _ in spans]
    first, last = spans[0][0], spans[-1][1]
    for (since, until), mark in [
        *_incidents(region, wanted, first, last),
        *_runs(region, wanted, first, last),
    ]:
        for place, (start, end) in enumerate(spans):
            # What begins as a step ends belongs to the next one; a run appears at the end of its window.
            begun = since < end or until == end
            if begun and until > start and not any(_same(mark, one) for one in found[place]):
                found[place].append(mark)
    return [
        sorted(one, key=lambda mark: (mark.by != "incident", -(mark.score or 0.0), mark.component))
        for one in found
    ]


def _same(one: Mark, other: Mark) -> bool:
    """The latest window per analyzer and component; windows of one analyzer overlap."""
    return (one.component, one.by, one.title, one.number) == (
        other.component,
        other.by,
        other.title,
        other.number,
    )


def _incidents(
    region: str, wanted: frozenset[str], first: datetime, last: datetime
) -> list[tuple[Span, Mark]]:
    rows = IncidentRow.objects.annotate(since=Least(Coalesce("failing_since", "opened_at"), "opened_at"))
    rows = rows.filter(
        Q(region=region) | Q(region=None),
        Q(resolved_at=None) | Q(resolved_at__gt=first),
        since__lte=last,
        merged_into=None,
        cause__overlap=sorted(wanted),
    )
    found = []
    for row in rows.order_by("-number")[:MOST]:
        # Of an ambiguous group the suspect alone is marked: the incident says what else it could be.
        named = {row.component} if row.component in wanted else wanted.intersection(row.cause)
        until = row.resolved_at or datetime.max.replace(tzinfo=last.tzinfo)
        for name in sorted(named):
            mark = Mark(name, "incident", row.title, row.number, None, row.confidence)
            found.append(((row.since, until), mark))
    return found


def _runs(region: str, wanted: frozenset[str], first: datetime, last: datetime) -> list[tuple[Span, Mark]]:
    named = runs().filter(
        region=region, repeats=None, status="named", window_end__gt=first, window_end__lte=last
    )
    found = []
    for run in named.order_by("-window_end", "-created_at")[:MOST]:
        for one in run.blamed:
            if one["component"] in wanted:
                mark = Mark(one["component"], "run", run.analyzer, None, str(run.pk), one["score"])
                found.append(((run.window_end, run.window_end), mark))
    return found


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The grid of a page. `crossing` is None where there is nothing to cross; `finer_rows` and `finer_columns` are
    the next kinds down, None where there are none."""

    region: str
    regions: Sequence[str]
    source: PathSource | None
    kinds: Sequence[KindOnPaths] = ()
    within: tuple[str, ...] = ()
    steps: Sequence[tuple[datetime, datetime]] = ()
    crossing: Crossing | None = None
    unplaced: Sequence[int] = ()
    marks: Sequence[Sequence[Mark]] = ()
    finer_rows: str | None = None
    finer_columns: str | None = None
    at: int = 0
    """The step that is asked for: the last one, unless `at` of the address says another."""
    window: timedelta = field(default=timedelta(hours=1))


def grid_of(query: GridQuery) -> Grid:
    """Reads it. Raises InvalidValueError for kinds that are not on the paths, PathSumsTooSlow."""
    there = regions()
    region = query.region or _first_with_paths(there)
    source = query.source or path_source(region)
    latest = path_clock(region, source) if source else None
    if source is None or latest is None:
        return Grid(region, there, None)
    end = query.end or _end_of(latest, query.window)
    steps = PathSteps(end - query.steps * query.window, query.window, query.steps)
    sums = path_sums(region, source, steps)
    kinds = sums.sets.seen
    spans = [(start, start + query.window) for start in steps.starts]
    axes = _axes(query, kinds)
    if axes is None:
        return Grid(region, there, source, kinds, steps=spans, at=len(spans) - 1, window=query.window)
    return _crossed(query, Grid(region, there, source, kinds, steps=spans, window=query.window), sums, axes)


def _crossed(query: GridQuery, empty: Grid, sums: PathSums, axes: tuple[str, str]) -> Grid:
    crossing = cross(sums, *axes, query.within)
    spans = empty.steps
    at = len(spans) - 1
    if query.at is not None:
        at = next((place for place, (_, end) in enumerate(spans) if end >= query.at), at)
    names = (*crossing.rows.names, *crossing.columns.names)
    return Grid(
        empty.region,
        empty.regions,
        empty.source,
        empty.kinds,
        query.within,
        spans,
        crossing,
        sums.unplaced.tolist(),
        marks(empty.region, names, spans),
        finer(sums.sets, axes[0], axes),
        finer(sums.sets, axes[1], axes),
        at,
        query.window,
    )


def _first_with_paths(there: Sequence[str]) -> str:
    """The region to begin with: the first that has paths, else the first."""
    return next((one for one in there if path_source(one)), there[0] if there else "default")


def _end_of(latest: datetime, window: timedelta) -> datetime:
    """The end of the minute that telemetry has come into, or of its five minutes where windows are long."""
    grain = 300 if window >= timedelta(hours=6) else 60
    second = int(latest.timestamp())
    return datetime.fromtimestamp(second - second % grain + grain, UTC)


def _axes(query: GridQuery, kinds: Sequence[KindOnPaths]) -> tuple[str, str] | None:
    there = [one.kind for one in kinds]
    usual = default_axes(kinds)
    if usual is None or not there:
        return None
    for name, kind in (("rows", query.rows), ("columns", query.columns)):
        if kind and kind not in there:
            raise InvalidValueError(
                name, f"must be one of {', '.join(there)}, the kinds on the paths of that time"
            )
    rows = query.rows or next(kind for kind in (*usual, *there) if kind != query.columns)
    columns = query.columns or next(kind for kind in (usual[1], usual[0], *there) if kind != rows)
    if rows == columns:
        raise InvalidValueError("columns", "must be another kind than `rows`")
    return rows, columns


def as_json(grid: Grid) -> dict[str, Any]:
    """Compact: cells are numbered row by row; changes from step to step are cells and numbers."""
    crossing = grid.crossing
    return {
        "region": grid.region,
        "telemetry": grid.source,
        "kinds": [{"kind": one.kind, "components": one.components} for one in grid.kinds],
        "within": list(grid.within),
        "window_seconds": int(grid.window.total_seconds()),
        "steps": [{"start": rfc3339(start), "end": rfc3339(end)} for start, end in grid.steps],
        "at": grid.at,
        "rows": None if crossing is None else _axis(crossing.rows, grid.finer_rows),
        "columns": None if crossing is None else _axis(crossing.columns, grid.finer_columns),
        "carried": [] if crossing is None else _carried(crossing.carried),
        "failed": [] if crossing is None else [_sparse(one) for one in _flat(crossing.failed)],
        "unplaced": list(grid.unplaced),
        "marks": [[_mark(one) for one in step] for step in grid.marks],
    }


def _axis(axis: Any, below: str | None) -> dict[str, Any]:
    return {"kind": axis.kind, "names": list(axis.names), "hidden": axis.hidden, "finer": below}


def _flat(cells: Ints) -> Ints:
    return cells.reshape(cells.shape[0], -1)


def _carried(cells: Ints) -> list[Any]:
    """The first step whole, of each later one the cells that differ from the step before."""
    flat = _flat(cells)
    rows: list[Any] = [flat[0].tolist()]
    for before, now in itertools.pairwise(flat):
        changed = np.flatnonzero(now != before)
        rows.append({"cells": changed.tolist(), "values": now[changed].tolist()})
    return rows


def _sparse(cells: Ints) -> dict[str, list[int]]:
    at = np.flatnonzero(cells)
    return {"cells": at.tolist(), "values": cells[at].tolist()}


def _mark(mark: Mark) -> Mapping[str, Any]:
    return {
        "component": mark.component,
        "by": mark.by,
        "title": mark.title,
        "number": mark.number,
        "run": mark.run,
        "score": mark.score,
    }
