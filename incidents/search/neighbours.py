"""Place of an incident in a list, and its neighbours: for people who go through a list one by one.

A place is a mark: the group of the list and the edge of its order, as in a cursor. It stays what it is when
the incident moves on, so that whoever has dealt with one goes on where they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from incidents.domain.values import InvalidValueError
from incidents.incident.models import IncidentRow
from incidents.incident.view import View, view_of
from incidents.search.filters import ORDERS, Filter
from incidents.search.pagination import (
    AsOfListing,
    fields_of,
    filtered,
    ordered,
    read_edge,
    write_cursor,
)
from ingest.api.pagination import Columns, in_order, stretches_beyond
from ingest.queries import Position

Edge = list[Any] | None
Stretch = tuple[int, Sequence[Filter], Edge]
"""A group of the list, from an edge on or the whole of it."""
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An incident beside another one in a list, and the mark of its place there."""

    view: View
    mark: str


@dataclass(frozen=True, slots=True)
class ListPosition:
    """Place of an incident in a list, counted from 1, and the length of the list.

    `place` and `total` are None where there are more than were counted. `listed` is False for one that the list no
    longer has: the place is then that where it was.
    """

    place: int | None
    total: int | None
    listed: bool
    previous: Neighbour | None
    next: Neighbour | None


def mark(group: int, order: str, view: View) -> str:
    """The place of an incident in the group of a list."""
    return f"{group}:{write_cursor(order, view)}"


def list_position(
    groups: Sequence[Sequence[Filter]],
    order: str,
    view: View,
    at: str | None = None,
    as_of: Position | None = None,
) -> ListPosition | None:
    """Place of an incident in a list of groups, one after the other: at the mark `at`, where somebody found it, else
    where it is now; None where it is not in the list. Raises InvalidValueError for a mark of another list.
    """
    now = next((n for n, filters in enumerate(groups) if _fits(filters, view)), None)
    if at is None and now is None:
        return None
    place, edge = _read_mark(at or mark(now or 0, order, view), order, len(groups))
    columns = ORDERS[order]
    back = [(name, not descends) for name, descends in columns]
    before: list[Stretch] = [(place, groups[place], edge)]
    before += [(n, groups[n], None) for n in range(place - 1, -1, -1)]
    after: list[Stretch] = [(place, groups[place], edge)]
    after += [(n, groups[n], None) for n in range(place + 1, len(groups))]
    source = _Now(view) if as_of is None else _Then(view, AsOfListing(as_of))
    ahead = sum(source.count(filters, back, bound) for _, filters, bound in before)
    behind = sum(source.count(filters, columns, bound) for _, filters, bound in after)
    return ListPosition(
        ahead + 1 if ahead < MOST_COUNTED else None,
        ahead + behind + 1 if max(ahead, behind) < MOST_COUNTED else None,
        now is not None,
        _first(source, before, back, order),
        _first(source, after, columns, order),
    )


def _fits(filters: Iterable[Filter], view: View) -> bool:
    fields = fields_of(view)
    return all(filter_.matches(fields) for filter_ in filters)


def _read_mark(text: str, order: str, groups: int) -> tuple[int, list[Any]]:
    group, _, cursor = text.partition(":")
    if not (group.isascii() and group.isdecimal() and int(group[:9]) < groups):
        raise InvalidValueError("place", "must be a place of this list")
    return int(group), read_edge(cursor, order)


def _first(source: _Source, stretches: Sequence[Stretch], columns: Columns, order: str) -> Neighbour | None:
    for group, filters, edge in stretches:
        if (found := source.first(filters, columns, edge)) is not None:
            return Neighbour(found, mark(group, order, found))
    return None


class _Now:
    """The list as it is, without the incident itself: from the table, or from those `rows` of it."""

    def __init__(self, itself: View, rows: QuerySet[IncidentRow] | None = None) -> None:
        self._rows = (IncidentRow.objects.all() if rows is None else rows).exclude(pk=itself.incident.id)

    def count(self, filters: Sequence[Filter], columns: Columns, edge: Edge) -> int:
        rows = filtered(filters, self._rows)
        stretches = [rows] if edge is None else [rows.filter(one) for one in stretches_beyond(columns, edge)]
        return sum(one.order_by()[:MOST_COUNTED].count() for one in stretches)

    def first(self, filters: Sequence[Filter], columns: Columns, edge: Edge) -> View | None:
        rows = in_order(filtered(filters, self._rows), columns)
        # The last stretch is that of the row's own rank, where its neighbour most often is.
        stretches = (
            [rows] if edge is None else [rows.filter(q) for q in stretches_beyond(columns, edge)[::-1]]
        )
        found = (one.first() for one in stretches)
        return next((view_of(row) for row in found if row is not None), None)


class _Then:
    """The list as it was: those to which nothing has happened since from the table, the others in memory."""

    def __init__(self, itself: View, past: AsOfListing) -> None:
        self._unmoved = _Now(itself, past.unmoved)
        self._moved = [view for view in past.moved() if view.incident.id != itself.incident.id]

    def count(self, filters: Sequence[Filter], columns: Columns, edge: Edge) -> int:
        moved = ordered(self._moved, filters, columns, edge)
        return self._unmoved.count(filters, columns, edge) + len(moved)

    def first(self, filters: Sequence[Filter], columns: Columns, edge: Edge) -> View | None:
        found = [self._unmoved.first(filters, columns, edge)]
        found += [one.view for one in ordered(self._moved, filters, columns, edge)[:1]]
        best = ordered([view for view in found if view is not None], (), columns)
        return best[0].view if best else None


_Source = _Now | _Then
