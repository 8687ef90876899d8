"""Lists of incidents: pages of them, and where one stands among the others. Nothing here writes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet

from incidents.domain.incident.evolve import fold
from incidents.domain.incident.state import Incident, is_quiet
from incidents.domain.values import SEVERITIES, InvalidValueError
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import stream_of
from incidents.incident.view import View
from incidents.search.filters import ORDERS, Filter
from ingest.queries import Position, read_streams, watermark

PAGE_LIMIT = 200
AT_ONCE = 500
"""Incidents whose events are read with one query."""
_TYPES = {"position": str, "quiet": bool}
"""Types of the columns in a cursor, where they are not numbers."""
Columns = Sequence[tuple[str, bool]]
"""What orders a list, and whether each descends."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list; `next` and `previous` are cursors or None."""

    items: list[View]
    next: str | None
    previous: str | None


def list_incidents(
    filters: Sequence[Filter] = (),
    order: str = "newest",
    cursor: str | None = None,
    limit: int = 50,
    as_of: Position | None = None,
) -> Page:
    """A page of at most `limit` (1 to 200) incidents. Raises InvalidValueError for an order or cursor that is none."""
    if order not in ORDERS:
        raise InvalidValueError("order", f"must be one of {', '.join(ORDERS)}")
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidValueError("limit", f"must be 1 to {PAGE_LIMIT}")
    back, edge = (False, None) if cursor is None else read_cursor(cursor, order)
    columns = [(name, descends != back) for name, descends in ORDERS[order]]
    if as_of is None:
        views = page_of(IncidentRow.objects.all(), filters, columns, edge, limit + 1)
    else:
        views = _past(AsOfListing(as_of), filters, columns, edge, limit + 1)
    more, views = len(views) > limit, views[:limit]
    if back:
        views.reverse()
    follows, precedes = (edge is not None, more) if back else (more, edge is not None)
    return Page(
        views,
        write_cursor(order, False, views[-1]) if views and follows else None,
        write_cursor(order, True, views[0]) if views and precedes else None,
    )


def first(filters: Sequence[Filter], order: str, limit: int) -> list[str]:
    """The ids that a list begins with."""
    rows = in_order(filtered(filters), ORDERS[order])
    return [str(id_) for id_ in rows.values_list("pk", flat=True)[:limit]]


def view_of(row: IncidentRow) -> View:
    return View(state_of(row), row.version, row.position)


def filtered(filters: Sequence[Filter], rows: QuerySet[IncidentRow] | None = None) -> QuerySet[IncidentRow]:
    rows = IncidentRow.objects.all() if rows is None else rows
    for filter_ in filters:
        rows = rows.filter(filter_.q())
    return rows


def in_order(rows: QuerySet[IncidentRow], columns: Columns) -> QuerySet[IncidentRow]:
    return rows.order_by(*(f"-{name}" if descends else name for name, descends in columns))


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
        rows = rows.filter(reduce(or_, stretches_beyond(columns, edge)))
    return [view_of(row) for row in rows[:limit]]


def stretches_beyond(columns: Columns, edge: Sequence[Any]) -> list[Q]:
    """What comes after an edge, as conditions of which never two hold at once: each is one stretch of an index."""
    stretches, equal = [], Q()
    for (name, descends), value in zip(columns, edge, strict=True):
        stretches.append(equal & Q(**{f"{name}__{'lt' if descends else 'gt'}": value}))
        equal &= Q(**{name: value})
    return stretches


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
    """What filters and orders look at, named as the columns are."""
    return {
        **{name: getattr(view.incident, name) for name in Incident.__dataclass_fields__},
        "severity_rank": SEVERITIES.index(view.incident.severity),
        "quiet": is_quiet(view.incident),
        "position": view.position,
        "handed_from": view.incident.handed_from,
    }


def write_cursor(order: str, back: bool, view: View) -> str:
    edge = [fields_of(view)[name] for name, _ in ORDERS[order]]
    return base64.urlsafe_b64encode(json.dumps([order, back, edge]).encode()).decode().rstrip("=")


def read_cursor(cursor: str, order: str) -> tuple[bool, list[Any]]:
    try:
        written = json.loads(base64.urlsafe_b64decode(cursor[:500] + "=" * (-len(cursor[:500]) % 4)))
        of_order, back, edge = written
        types = [_TYPES.get(name, int) for name, _ in ORDERS[order]]
        fits = [type(value) for value in edge] == types
        if of_order == order and isinstance(back, bool) and fits and "\0" not in str(edge):
            return back, edge
    except (ValueError, TypeError, binascii.Error, RecursionError):
        pass
    raise InvalidValueError(
        "cursor", "is not a cursor of this list; follow `next` and `previous` as they are given"
    )
