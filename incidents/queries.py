"""What can be asked about incidents, by the API and the console alike. Nothing here writes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from incidents.catalog.models import Team
from incidents.domain.custody import accounted
from incidents.domain.evolve import EVENT_TYPES, evolve, fold
from incidents.domain.incident import Incident
from incidents.domain.opinion import Opinion
from incidents.domain.times import parse_rfc3339
from incidents.domain.values import SEVERITIES, STATES, Invalid, State
from incidents.filters import ORDERS, PARAMETERS, Filter, parse_filters
from incidents.projections.members import (
    alert_titles,
    members_at,
    members_of,
    suppressed,
    ticket_numbers,
    tickets_of,
    why_joined,
)
from incidents.projections.models import (
    EvidenceItem,
    FindingPlaced,
    IncidentRow,
    TimelineEntry,
)
from incidents.projections.project import entry_of
from incidents.projections.rows import state_of
from incidents.projections.store import NoSuchIncident, stream_of
from incidents.projections.timeline import Entry, Evidence, evidence_in, timeline_of, worth_a_screen
from incidents.projections.view import View
from incidents.projections.waiting import labels_in_use, storm, values_in_use, with_title
from ingest.queries import Alert, Event, Position, position_at, read_all, read_stream

__all__ = [
    "ORDERS",
    "PARAMETERS",
    "Entry",
    "Evidence",
    "Filter",
    "Incident",
    "NoSuchIncident",
    "Opinion",
    "Page",
    "Placed",
    "View",
    "accounted",
    "alert_titles",
    "counts",
    "evidence",
    "get",
    "incident_events",
    "labels_in_use",
    "list_incidents",
    "members",
    "parse_filters",
    "parse_moment",
    "placed_findings",
    "storm",
    "suppressed",
    "team_slugs",
    "teams",
    "ticket_numbers",
    "tickets_of",
    "timeline",
    "unanswered",
    "unresolved_by_team",
    "values_in_use",
    "with_title",
]

PAGE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list; `next` and `previous` are cursors or None."""

    items: list[View]
    next: str | None
    previous: str | None


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a finding: it `opened`, `joined` or was `recorded` on this incident."""

    component: str
    outcome: str
    incident_id: str
    number: int


def parse_moment(text: str) -> Position:
    """The log position that an `as_of` means: a position, or an RFC 3339 time. Raises Invalid."""
    try:
        return Position.parse(text)
    except ValueError:
        pass
    try:
        # An offset's plus that was not percent-encoded arrives as a space.
        return position_at(parse_rfc3339(text.replace(" ", "+")))
    except (ValueError, OverflowError):
        reason = "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z, or a log position"
        raise Invalid("as_of", reason) from None


def get(reference: str, as_of: Position | None = None) -> View:
    """An incident by id or number, now or as it stood then. Raises NoSuchIncident."""
    row = _row(reference)
    if as_of is None:
        return _view(row)
    events = _history(row, as_of)
    state = fold(events)
    if state is None:
        raise NoSuchIncident(f"incident {reference} was not open yet")
    return View(state, events[-1].version, str(events[-1].position))


def _row(reference: str) -> IncidentRow:
    if reference.isascii() and reference.isdigit() and len(reference) < 16:
        found = IncidentRow.objects.filter(number=int(reference)).first()
    else:
        try:
            found = IncidentRow.objects.filter(pk=UUID(reference)).first()
        except ValueError:
            found = None
    if found is None:
        raise NoSuchIncident(f"there is no incident {reference[:100]}")
    return found


def _view(row: IncidentRow) -> View:
    return View(state_of(row), row.version, row.position)


def _history(row: IncidentRow, as_of: Position) -> list[Event]:
    return read_stream(stream_of(str(row.pk)), upto=as_of)


def incident_events(reference: str, as_of: Position | None = None) -> list[Event]:
    """The events of an incident as the log has them, oldest first."""
    return read_stream(stream_of(str(_row(reference).pk)), upto=as_of)


def timeline(reference: str, as_of: Position | None = None) -> list[Entry]:
    """The timeline, oldest first; findings in a row are one entry."""
    row = _row(reference)
    if as_of is not None:
        return timeline_of(_history(row, as_of))
    return [entry_of(entry) for entry in TimelineEntry.objects.filter(incident=row).order_by("version")]


def evidence(reference: str, as_of: Position | None = None, *, everything: bool = False) -> list[Evidence]:
    """The evidence, oldest first: what people attached, and of each analyzer the first and the latest.

    `everything` adds what came between.
    """
    row = _row(reference)
    if as_of is not None:
        pieces = [piece for event in _history(row, as_of) for piece in evidence_in(event)]
        shown = worth_a_screen((piece.version, piece.analyzer) for piece in pieces)
        return [piece for piece in pieces if everything or piece.version in shown]
    items = EvidenceItem.objects.filter(incident=row).order_by("version", "place")
    if not everything:
        attached = items.order_by().values_list("version", "analyzer").distinct()
        items = items.filter(version__in=worth_a_screen(attached))
    return [_piece(item) for item in items]


def _piece(item: EvidenceItem) -> Evidence:
    return Evidence(**{name: getattr(item, name) for name in Evidence.__dataclass_fields__})


def members(
    reference: str, limit: int = 100, offset: int = 0, as_of: Position | None = None
) -> tuple[list[Alert], int]:
    """The alerts of a ticket, those that fire first and then the latest, and how many there are in all.

    With `as_of` those that it had then, as they stood: `last_seen` is then the time of the last change and `repeats`
    0, because neither is in the log.
    """
    row = _row(reference)
    if as_of is None:
        return members_of(row.pk, limit, offset)
    return members_at(_history(row, as_of), as_of, limit, offset)


def why_members(reference: str, ids: Sequence[str]) -> dict[str, str]:
    """By alert of a ticket why it joined, where its event says so."""
    return why_joined(_row(reference).pk, ids)


def counts(
    filters: Sequence[Filter] = (), most: int | None = None, *, resolved: bool = True
) -> dict[State, int]:
    """How many incidents are in each state, among those that the filters let through. Of the resolved ones, which only
    ever become more, at most `most` are counted, or none where they are not asked for.
    """
    found = _filtered(filters)
    by_state = dict(found.exclude(state="resolved").values_list("state").annotate(n=Count("pk")).order_by())
    if resolved:
        over = found.filter(state="resolved")
        by_state["resolved"] = (over if most is None else over.order_by()[:most]).count()
    return {state: by_state.get(state, 0) for state in STATES if resolved or state != "resolved"}


def unanswered() -> dict[str, int]:
    """How many hand-overs of each team wait to be accepted or bounced back."""
    waiting = IncidentRow.objects.filter(handed_from__isnull=False).values_list("handed_from")
    return {str(team): count for team, count in waiting.annotate(n=Count("pk")).order_by()}


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
    back, edge = (False, None) if cursor is None else _read_cursor(cursor, order)
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
        _write_cursor(order, False, views[-1]) if views and follows else None,
        _write_cursor(order, True, views[0]) if views and precedes else None,
    )


def first(filters: Sequence[Filter], order: str, limit: int) -> list[str]:
    """The ids that a list begins with."""
    columns = [f"-{name}" if descends else name for name, descends in ORDERS[order]]
    return [str(id_) for id_ in _filtered(filters).order_by(*columns).values_list("pk", flat=True)[:limit]]


def _filtered(filters: Sequence[Filter]) -> QuerySet[IncidentRow]:
    rows = IncidentRow.objects.all()
    for filter_ in filters:
        rows = rows.filter(filter_.q())
    return rows


def _live(
    filters: Sequence[Filter], columns: Sequence[tuple[str, bool]], edge: list[Any] | None, limit: int
) -> list[View]:
    rows = _filtered(filters).order_by(*(f"-{name}" if descends else name for name, descends in columns))
    if edge is not None:
        beyond, equal = Q(), Q()
        for (name, descends), value in zip(columns, edge, strict=True):
            beyond |= equal & Q(**{f"{name}__{'lt' if descends else 'gt'}": value})
            equal &= Q(**{name: value})
        rows = rows.filter(beyond)
    return [_view(row) for row in rows[:limit]]


def _past(
    filters: Sequence[Filter],
    columns: Sequence[tuple[str, bool]],
    edge: list[Any] | None,
    limit: int,
    as_of: Position,
) -> list[View]:
    def compare(a: Sequence[Any], b: Sequence[Any]) -> int:
        for (_, descends), x, y in zip(columns, a, b, strict=True):
            if x != y:
                return -1 if (x > y) == descends else 1
        return 0

    found = [(view, _fields(view)) for view in _all_at(as_of)]
    keyed = [
        _Keyed([fields[name] for name, _ in columns], view)
        for view, fields in found
        if all(filter_.matches(fields) for filter_ in filters)
    ]
    keyed.sort(key=cmp_to_key(lambda a, b: compare(a.key, b.key)))
    return list(islice((k.view for k in keyed if edge is None or compare(k.key, edge) > 0), limit))


@dataclass(frozen=True, slots=True)
class _Keyed:
    key: list[Any]
    view: View


def _fields(view: View) -> Mapping[str, Any]:
    """What filters and orders look at, named as the columns are."""
    return {
        **{name: getattr(view.incident, name) for name in Incident.__dataclass_fields__},
        "severity_rank": SEVERITIES.index(view.incident.severity),
        "position": view.position,
        "handed_from": view.incident.handed_from,
    }


def _all_at(as_of: Position) -> list[View]:
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


def _write_cursor(order: str, back: bool, view: View) -> str:
    edge = [_fields(view)[name] for name, _ in ORDERS[order]]
    return base64.urlsafe_b64encode(json.dumps([order, back, edge]).encode()).decode().rstrip("=")


def _read_cursor(cursor: str, order: str) -> tuple[bool, list[Any]]:
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


def placed_findings(run: str) -> list[Placed]:
    """What became of the findings of a run. One that waits for another window has none."""
    rows = FindingPlaced.objects.filter(run=run).select_related("incident").order_by("component")
    return [Placed(r.component, r.outcome, str(r.incident_id), r.incident.number) for r in rows]


def teams() -> list[Team]:
    return list(Team.objects.all())


def team_slugs() -> list[str]:
    return list(Team.objects.values_list("slug", flat=True))


def unresolved_by_team() -> dict[str, int]:
    """How many tickets of each team are not resolved."""
    found = IncidentRow.objects.exclude(state="resolved").values_list("team")
    return {str(team): count for team, count in found.annotate(n=Count("pk")).order_by()}
