"""Lists of tickets: pages of them, and where one stands among the others. Nothing here writes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, reduce
from itertools import islice
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet

from incidents.domain.evolve import EVENT_TYPES, evolve
from incidents.domain.incident import Incident
from incidents.domain.values import SEVERITIES, Invalid
from incidents.filters import ORDERS, Filter
from incidents.projections.models import IncidentRow
from incidents.projections.rows import state_of
from incidents.projections.view import View
from ingest.queries import Position, read_all

PAGE_LIMIT = 200
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
    """A page of at most `limit` (1 to 200) incidents. Raises Invalid for an order or cursor that is none."""
    if order not in ORDERS:
        raise Invalid("order", f"must be one of {', '.join(ORDERS)}")
    if not 1 <= limit <= PAGE_LIMIT:
        raise Invalid("limit", f"must be 1 to {PAGE_LIMIT}")
    back, edge = (False, None) if cursor is None else read_cursor(cursor, order)
    columns = [(name, descends != back) for name, descends in ORDERS[order]]
    if as_of is None:
        views = _live(filters, columns, edge, limit + 1)
    else:
        views = _past(filters, columns, edge, limit + 1, as_of)
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


def filtered(filters: Sequence[Filter]) -> QuerySet[IncidentRow]:
    rows = IncidentRow.objects.all()
    for filter_ in filters:
        rows = rows.filter(filter_.q())
    return rows


def in_order(rows: QuerySet[IncidentRow], columns: Columns) -> QuerySet[IncidentRow]:
    return rows.order_by(*(f"-{name}" if descends else name for name, descends in columns))


def _live(filters: Sequence[Filter], columns: Columns, edge: list[Any] | None, limit: int) -> list[View]:
    rows = in_order(filtered(filters), columns)
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


def _past(
    filters: Sequence[Filter], columns: Columns, edge: list[Any] | None, limit: int, as_of: Position
) -> list[View]:
    found = ordered(all_at(as_of), filters, columns)
    return list(islice((k.view for k in found if edge is None or compared(columns, k.key, edge) > 0), limit))


def ordered(views: Sequence[View], filters: Sequence[Filter], columns: Columns) -> list[Keyed]:
    fields = [(view, fields_of(view)) for view in views]
    keyed = [
        Keyed([found[name] for name, _ in columns], view)
        for view, found in fields
        if all(filter_.matches(found) for filter_ in filters)
    ]

    def compare(a: Keyed, b: Keyed) -> int:
        return compared(columns, a.key, b.key)

    return sorted(keyed, key=cmp_to_key(compare))


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
        "position": view.position,
        "handed_from": view.incident.handed_from,
    }


def all_at(as_of: Position) -> list[View]:
    """Every incident as it stood at a position, folded from the whole log up to there."""
    views: dict[str, View] = {}
    after = Position.START
    while events := read_all(after, 1000, EVENT_TYPES, upto=as_of):
        for event in events:
            known = views.get(event.stream)
            state = evolve(known.incident if known else None, event)
            views[event.stream] = View(state, event.version, str(event.position))
        after = events[-1].position
    return list(views.values())


def write_cursor(order: str, back: bool, view: View) -> str:
    edge = [fields_of(view)[name] for name, _ in ORDERS[order]]
    return base64.urlsafe_b64encode(json.dumps([order, back, edge]).encode()).decode().rstrip("=")


def read_cursor(cursor: str, order: str) -> tuple[bool, list[Any]]:
    try:
        written = json.loads(base64.urlsafe_b64decode(cursor[:500] + "=" * (-len(cursor[:500]) % 4)))
        of_order, back, edge = written
        types = [str if name == "position" else int for name, _ in ORDERS[order]]
        fits = [type(value) for value in edge] == types
        if of_order == order and isinstance(back, bool) and fits and "\0" not in str(edge):
            return back, edge
    except (ValueError, TypeError, binascii.Error, RecursionError):
        pass
    raise Invalid("cursor", "is not a cursor of this list; follow `next` and `previous` as they are given")
