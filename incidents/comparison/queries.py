"""Differences between two moments: of an incident, of the grid, of the configuration. Nothing here writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from incidents import queries
from incidents.audit.models import Change
from incidents.audit.queries import Difference, differences
from incidents.components.grid import Grid, grid_of
from incidents.domain.comparison import (
    CellChange,
    Share,
    cell_changes,
    check_order,
    compared_fields,
    only_in,
)
from incidents.domain.components.grid_query import GridQuery
from incidents.domain.values import InvalidValueError, parse_rfc3339, rfc3339
from incidents.incident.view import failure_shown
from ingest.queries import Alert, Position, moment_of, position_at

MOST_ALERTS: Final = 500
"""Alerts of an incident that are compared at each moment, those that fire first."""
MOST_EVENTS: Final = 200
MOST_CELLS: Final = 50
MOST_CHANGES: Final = 10_000
"""Changes of the configuration that are read at once."""


@dataclass(frozen=True, slots=True)
class Span:
    """Two moments, the first before the second."""

    start: datetime
    end: datetime
    first: Position | None = None
    second: Position | None = None
    """In the log, where a moment was given by its position: an event is recorded after it happened."""


def span_from(start: str, end: str) -> Span:
    """Of the parameters `from` and `to` (empty: now). Raises InvalidValueError, which names the parameter."""
    now = timezone.now()
    if not start:
        raise InvalidValueError("from", "must be given: the first of the two times")
    first, second = _position(start), _position(end)
    found = Span(
        _time("from", start) if first is None else moment_of(first) or now,
        (_time("to", end) if second is None else moment_of(second) or now) if end else now,
        first,
        second,
    )
    check_order(found.start, found.end, now)
    return found


def _position(text: str) -> Position | None:
    try:
        return Position.parse(text)
    except ValueError:
        return None


def _time(name: str, text: str) -> datetime:
    try:
        # An offset's plus that was not percent-encoded arrives as a space.
        return parse_rfc3339(text.replace(" ", "+"))
    except (ValueError, OverflowError):
        reason = "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z, or a log position"
        raise InvalidValueError(name, reason) from None


# Incident
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class IncidentComparison:
    """`opened`: it was opened between the moments and has nothing before. `events` is the timeline between them, newest
    first; `fired` and `resolved` are alerts that fire only later, or only before, of the first MOST_ALERTS.
    """

    span: Span
    number: int
    title: str
    opened: bool
    fields: Sequence[Difference]
    events: Sequence[queries.Entry]
    more_events: int
    fired: Sequence[Alert]
    resolved: Sequence[Alert]


def compare_incident(reference: str, span: Span) -> IncidentComparison:
    """Raises IncidentNotFoundError, and InvalidValueError where the incident was opened after the second moment."""
    first, second = span.first or position_at(span.start), span.second or position_at(span.end)
    now = queries.get(reference).incident
    try:
        after = queries.get(reference, second)
    except queries.IncidentNotFoundError:
        raise InvalidValueError(
            "to", f"must be after {rfc3339(now.opened_at)}, when #{now.number} was opened"
        ) from None
    try:
        before = queries.get(reference, first)
    except queries.IncidentNotFoundError:
        before = None
    old = None if before is None else compared_fields(before.as_json(failure_shown(before, first)))
    new = compared_fields(after.as_json(failure_shown(after, second)))
    events = [
        one
        for one in reversed(queries.timeline(reference, second))
        if before is None or one.position > str(first)
    ]
    then = {} if before is None else _firing(reference, first)
    later = _firing(reference, second)
    return IncidentComparison(
        span,
        now.number,
        after.incident.title,
        before is None,
        _in_order(differences(old, new if old is not None else _telling(new)), new),
        events[:MOST_EVENTS],
        max(0, len(events) - MOST_EVENTS),
        [one for id_, one in later.items() if id_ not in then],
        [one for id_, one in then.items() if id_ not in later],
    )


def _telling(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of an incident that had nothing before: without what counts nothing yet."""
    return {name: value for name, value in fields.items() if value != 0}


def _firing(reference: str, at: Any) -> Mapping[str, Alert]:
    found, _ = queries.members(reference, MOST_ALERTS, as_of=at)
    return {one.id: one for one in found if one.status != "resolved"}


def _in_order(found: Sequence[Difference], fields: Mapping[str, Any]) -> list[Difference]:
    """In the order of the fields; a difference of nothing to nothing is none."""
    place = {name: at for at, name in enumerate(fields)}
    shown = [one for one in found if one.before is not None or one.after is not None]
    return sorted(shown, key=lambda one: place.get(one.field, len(place)))


# Grid
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class GridComparison:
    """The grid of the window that ends at each moment. `rows`, `columns` and `cells` are those whose shares differ;
    `more` are cells that are left out. `appeared` and `vanished` are suspects."""

    span: Span
    before: Grid
    after: Grid
    totals: tuple[Share, Share]
    rows: Sequence[CellChange]
    columns: Sequence[CellChange]
    cells: Sequence[CellChange]
    more: int
    appeared: Sequence[str]
    vanished: Sequence[str]

    @property
    def known(self) -> bool:
        """Whether there is telemetry at both moments."""
        return bool(self.totals[0].carried and self.totals[1].carried)


def compare_grid(requested: GridQuery, span: Span) -> GridComparison:
    """Raises InvalidValueError for kinds that are not on the paths, PathSumsTooSlow."""
    after = grid_of(replace(requested, steps=1, end=span.end, at=None))
    if after.crossing is not None:  # the same axes, whatever would cross best at the other moment
        rows, columns = after.crossing.rows.kind, after.crossing.columns.kind
        requested = replace(requested, region=after.region, rows=rows, columns=columns)
    before = _grid_before(requested, span.start)
    sides = [_shares(one) for one in (before, after)]
    cells, count = cell_changes(sides[0][0], sides[1][0], MOST_CELLS)
    vanished, appeared = only_in(
        *({mark.component for step in one.marks for mark in step} for one in (before, after))
    )
    return GridComparison(
        span,
        before,
        after,
        (_total(sides[0][1]), _total(sides[1][1])),
        cell_changes(sides[0][1], sides[1][1], MOST_CELLS)[0],
        cell_changes(sides[0][2], sides[1][2], MOST_CELLS)[0],
        cells,
        count - len(cells),
        appeared,
        vanished,
    )


def _grid_before(requested: GridQuery, end: datetime) -> Grid:
    """Empty where the paths of that time did not have these kinds."""
    try:
        return grid_of(replace(requested, steps=1, end=end, at=None))
    except InvalidValueError as error:
        if error.field not in ("rows", "columns"):
            raise
        return grid_of(replace(requested, steps=1, end=end, at=None, rows="", columns="", within=()))


Shares = dict[tuple[str, str], Share]


def _shares(grid: Grid) -> tuple[Shares, Shares, Shares]:
    """Of the cells, of whole rows and of whole columns."""
    crossing = grid.crossing
    if crossing is None:
        return {}, {}, {}
    carried, failed = crossing.carried[-1], crossing.failed[-1]
    rows, columns = crossing.rows.names, crossing.columns.names
    cells = {
        (row, column): Share(int(carried[i, j]), int(failed[i, j]))
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
        if carried[i, j]
    }
    across, down = (carried.sum(1), failed.sum(1)), (carried.sum(0), failed.sum(0))
    return (
        cells,
        {(row, ""): Share(int(across[0][i]), int(across[1][i])) for i, row in enumerate(rows)},
        {("", column): Share(int(down[0][j]), int(down[1][j])) for j, column in enumerate(columns)},
    )


def _total(rows: Shares) -> Share:
    return Share(sum(one.carried for one in rows.values()), sum(one.failed for one in rows.values()))


# Configuration
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ObjectChange:
    """An object that is configured otherwise at the second moment: `what` is created, removed or changed."""

    kind: str
    key: str
    what: str
    fields: Sequence[Difference]
    changes: int
    actors: Sequence[str]
    at: datetime


@dataclass(frozen=True, slots=True)
class ConfigurationComparison:
    """`reverted` counts objects that were changed between the moments and are as they were."""

    span: Span
    objects: Sequence[ObjectChange]
    reverted: int


def compare_configuration(span: Span) -> ConfigurationComparison:
    """Raises InvalidValueError where more was changed than is read at once."""
    rows = list(
        Change.objects.filter(at__gt=span.start, at__lte=span.end).order_by("position")[: MOST_CHANGES + 1]
    )
    if len(rows) > MOST_CHANGES:
        raise InvalidValueError(
            "from", f"must be closer to `to`: more than {MOST_CHANGES:,} changes were made between them"
        )
    by_object: dict[tuple[str, str], list[Change]] = {}
    for row in rows:
        by_object.setdefault((row.kind, row.key), []).append(row)
    found = [
        ObjectChange(
            kind,
            key,
            "created" if made[0].before is None else "removed" if made[-1].after is None else "changed",
            differences(made[0].before, made[-1].after),
            len(made),
            list(dict.fromkeys(one.actor for one in made)),
            made[-1].at,
        )
        for (kind, key), made in sorted(by_object.items())
        if made[0].before != made[-1].after
    ]
    return ConfigurationComparison(span, found, len(by_object) - len(found))
