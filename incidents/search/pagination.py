"""Lists of incidents: pages of them, and where one stands among the others. Nothing here writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, partial
from typing import Any

from django.db.models import QuerySet

from incidents.domain.incident.evolve import fold
from incidents.domain.incident.state import Incident, is_quiet
from incidents.domain.values import SEVERITIES, InvalidValueError
from incidents.incident.models import IncidentRow
from incidents.incident.repository import stream_of
from incidents.incident.view import View, view_of
from incidents.search.filters import ORDERS, Filter
from ingest.api import pagination
from ingest.api.pagination import MOST, Columns, Page, PageError, beyond, in_order
from ingest.queries import Position, read_streams, watermark

PAGE_LIMIT = MOST
AT_ONCE = 500
"""Incidents whose events are read with one query."""


def list_incidents(
    filters: Sequence[Filter] = (),
    order: str = "newest",
    cursor: str | None = None,
    limit: int = 50,
    as_of: Position | None = None,
) -> Page[View]:
    """A page of at most `limit` (1 to 200) incidents. Raises InvalidValueError for an order or cursor that is none."""
    if order not in ORDERS:
        raise InvalidValueError("order", f"must be one of {', '.join(ORDERS)}")
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidValueError("limit", f"must be 1 to {PAGE_LIMIT}")

    def fetch(columns: Columns, edge: Sequence[Any] | None, limit: int) -> list[View]:
        if as_of is None:
            return page_of(IncidentRow.objects.all(), filters, columns, edge, limit)
        return _past(AsOfListing(as_of), filters, columns, edge, limit)

    try:
        return pagination.page_of(fetch, partial(edge_of, order), ORDERS[order], IncidentRow, cursor, limit)
    except PageError as error:
        raise InvalidValueError(error.field, error.reason) from error


def first(filters: Sequence[Filter], order: str, limit: int) -> list[str]:
    """The ids that a list begins with."""
    rows = in_order(filtered(filters), ORDERS[order])
    return [str(id_) for id_ in rows.values_list("pk", flat=True)[:limit]]


def filtered(filters: Sequence[Filter], rows: QuerySet[IncidentRow] | None = None) -> QuerySet[IncidentRow]:
    rows = IncidentRow.objects.all() if rows is None else rows
    for filter_ in filters:
        rows = rows.filter(filter_.q())
    return rows


def page_of(
    rows: QuerySet[IncidentRow],
    filters: Sequence[Filter],
    columns: Columns,
    edge: Sequence[Any] | None,
    limit: int,
) -> list[View]:
    """The first that come after an edge."""
    rows = in_order(filtered(filters, rows), columns)
    if edge is not None:
        rows = rows.filter(beyond(columns, edge))
    return [view_of(row) for row in rows[:limit]]


class AsOfListing:
    """The incidents of a moment. Those to which nothing has happened since are rows as they are; the others are folded
    from their own events up to then, so that what it costs to look back is what changed since."""

    def __init__(self, as_of: Position) -> None:
        # Above the watermark something may still be committed that comes before.
        self._as_of = min(as_of, watermark())
        self.unmoved = IncidentRow.objects.filter(position__lte=str(self._as_of))

    def moved(self) -> Iterator[View]:
        """To be read after `unmoved`: one that moves meanwhile is then in both, and in neither the other way."""
        ids = IncidentRow.objects.filter(position__gt=str(self._as_of)).values_list("pk", flat=True)
        streams = [stream_of(str(pk)) for pk in ids]
        for start in range(0, len(streams), AT_ONCE):
            for events in read_streams(streams[start : start + AT_ONCE], self._as_of).values():
                state = fold(events)
                assert state is not None, "a stream that has events opens an incident"
                yield View(state, events[-1].version, str(events[-1].position))


def _past(
    past: AsOfListing, filters: Sequence[Filter], columns: Columns, edge: Sequence[Any] | None, limit: int
) -> list[View]:
    unmoved = page_of(past.unmoved, filters, columns, edge, limit)
    moved = (one.view for one in ordered(past.moved(), filters, columns, edge))
    views = {view.incident.id: view for view in (*unmoved, *moved)}
    return [one.view for one in ordered(views.values(), (), columns)[:limit]]


def ordered(
    views: Iterable[View], filters: Sequence[Filter], columns: Columns, edge: Sequence[Any] | None = None
) -> list[Keyed]:
    """Those that the filters let through, from an edge on."""
    fields = ((view, fields_of(view)) for view in views)
    keyed = [
        Keyed([found[name] for name, _ in columns], view)
        for view, found in fields
        if all(filter_.matches(found) for filter_ in filters)
    ]

    def compare(a: Keyed, b: Keyed) -> int:
        return compared(columns, a.key, b.key)

    found = (one for one in keyed if edge is None or compared(columns, one.key, edge) > 0)
    return sorted(found, key=cmp_to_key(compare))


def compared(columns: Columns, a: Sequence[Any], b: Sequence[Any]) -> int:
    """Below zero where the key `a` comes before `b`, above where after."""
    for (_, descends), x, y in zip(columns, a, b, strict=True):
        if x != y:
            return -1 if (x > y) == descends else 1
    return 0


@dataclass(frozen=True, slots=True)
class Keyed:
    key: list[Any]
    view: View


def fields_of(view: View) -> Mapping[str, Any]:
    """Fields for filters and orders, named as the columns are."""
    return {
        **{name: getattr(view.incident, name) for name in Incident.__dataclass_fields__},
        "severity_rank": SEVERITIES.index(view.incident.severity),
        "quiet": is_quiet(view.incident),
        "position": view.position,
        "handed_from": view.incident.handed_from,
    }


def edge_of(order: str, view: View) -> list[Any]:
    """The values of an order's columns."""
    fields = fields_of(view)
    return [fields[name] for name, _ in ORDERS[order]]


def write_cursor(order: str, view: View) -> str:
    return pagination.write_cursor(ORDERS[order], edge_of(order, view))


def read_edge(cursor: str, order: str) -> list[Any]:
    """The edge that a cursor of an order holds. Raises InvalidValueError."""
    try:
        return pagination.read_cursor(cursor, ORDERS[order], IncidentRow)[1]
    except PageError as error:
        raise InvalidValueError(error.field, error.reason) from error
