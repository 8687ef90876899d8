"""Queries about incidents, for the API and the console alike. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from django.db.models import Count, QuerySet
from django.utils import timezone

from analyzers.queries import EvidenceSubject
from analyzers.queries import evidence_file as signed_file
from incidents.domain.incident.evolve import fold
from incidents.domain.incident.ownership import accounted
from incidents.domain.incident.state import Incident, Opinion
from incidents.domain.routing.rules import Subject, team_of
from incidents.domain.similarity.team_odds import Learned, TeamView, claims_about, team_views
from incidents.domain.values import STATES, InvalidValueError, State, parse_rfc3339, rfc3339
from incidents.incident.models import EvidenceItem, FindingPlacement, IncidentRow, TimelineEntry
from incidents.incident.projection import Entry, Evidence, entry_of, evidence_in, timeline_of, worth_a_screen
from incidents.incident.rebuild import unfinished_rebuild
from incidents.incident.repository import IncidentNotFoundError, stream_of
from incidents.incident.view import (
    Shared,
    View,
    alert_titles,
    incident_numbers,
    incidents_of,
    members_at,
    members_of,
    pending_resolutions,
    shared_by,
    suppressed,
    view_of,
    why_joined,
)
from incidents.search.filters import GROUPINGS, ORDERS, PARAMETERS, Filter, parse_filters
from incidents.search.groups import MOST_GROUPS, GroupedIncidents, grouped
from incidents.search.neighbours import ListPosition, Neighbour, list_position, mark
from incidents.search.open_stats import labels_in_use, storm, values_in_use, with_title
from incidents.search.pagination import (
    PAGE_LIMIT,
    AsOfListing,
    filtered,
    first,
    list_incidents,
)
from incidents.teams.models import Team, routing_table
from ingest.queries import (
    Alert,
    Event,
    Position,
    ReportedChange,
    changes,
    moment_of,
    names_of_changed,
    position_at,
    read_stream,
)

# Queries
# ----------------------------------------------------------------------------------------------------------
# Queries
# ----------------------------------------------------------------------------------------------------------
__all__ = [
    "GROUPINGS",
    "MOST_GROUPS",
    "ORDERS",
    "PAGE_LIMIT",
    "PARAMETERS",
    "AsOfListing",
    "Entry",
    "Evidence",
    "Filter",
    "GroupedIncidents",
    "Incident",
    "IncidentNotFoundError",
    "ListPosition",
    "Neighbour",
    "Opinion",
    "Placed",
    "View",
    "accounted",
    "alert_titles",
    "alerts_pending_resolution",
    "counts",
    "evidence",
    "evidence_file",
    "first",
    "get",
    "grouped",
    "incident_events",
    "incident_numbers",
    "incidents_of",
    "labels_in_use",
    "list_incidents",
    "list_position",
    "mark",
    "members",
    "parse_filters",
    "parse_moment",
    "placed_findings",
    "shared_labels",
    "storm",
    "suppressed",
    "team_slugs",
    "teams",
    "timeline",
    "unanswered",
    "unfinished_rebuild",
    "unresolved_by_team",
    "values_in_use",
    "view_of",
    "with_title",
]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Placed:
    """Placement of a finding: it `opened`, `joined` or was `recorded` on this incident."""

    component: str
    outcome: str
    incident_id: str
    number: int


def parse_moment(text: str) -> Position:
    """The log position that an `as_of` means: a position, or an RFC 3339 time. Raises InvalidValueError."""
    try:
        return Position.parse(text)
    except ValueError:
        pass
    try:
        # An offset's plus that was not percent-encoded arrives as a space.
        return position_at(parse_rfc3339(text.replace(" ", "+")))
    except (ValueError, OverflowError):
        reason = "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z, or a log position"
        raise InvalidValueError("as_of", reason) from None


def get(reference: str, as_of: Position | None = None) -> View:
    """An incident by id or number, now or as it stood then. Raises IncidentNotFoundError."""
    if as_of is None:
        return view_of(_found(reference, _rows(reference)))
    events = _history(_id(reference), as_of)
    state = fold(events)
    if state is None:
        raise IncidentNotFoundError(f"incident {reference} was not open yet at that time")
    return View(state, events[-1].version, str(events[-1].position))


def _rows(reference: str) -> QuerySet[IncidentRow]:
    """The row of an id or a number, or none."""
    if reference.isascii() and reference.isdigit() and len(reference) < 16:
        return IncidentRow.objects.filter(number=int(reference))
    try:
        return IncidentRow.objects.filter(pk=UUID(reference))
    except ValueError:
        return IncidentRow.objects.none()


def _found(reference: str, rows: QuerySet[IncidentRow, T]) -> T:
    found = rows.first()
    if found is None:
        raise IncidentNotFoundError(f"there is no incident {reference[:100]}")
    return found


def _id(reference: str) -> UUID:
    return _found(reference, _rows(reference).values_list("pk", flat=True))


def _history(id_: UUID, as_of: Position) -> list[Event]:
    return read_stream(stream_of(str(id_)), upto=as_of)


def incident_events(reference: str, as_of: Position | None = None) -> list[Event]:
    """The events of an incident as the log has them, oldest first."""
    return read_stream(stream_of(str(_id(reference))), upto=as_of)


def timeline(reference: str, as_of: Position | None = None) -> list[Entry]:
    """The timeline, oldest first; findings in a row are one entry."""
    id_ = _id(reference)
    if as_of is not None:
        return timeline_of(_history(id_, as_of))
    return [entry_of(entry) for entry in TimelineEntry.objects.filter(incident=id_).order_by("version")]


def evidence(reference: str, as_of: Position | None = None, *, everything: bool = False) -> list[Evidence]:
    """The evidence, oldest first: what people attached, and of each analyzer the first and the latest.

    `everything` adds what came between.
    """
    id_ = _id(reference)
    if as_of is not None:
        pieces = [piece for event in _history(id_, as_of) for piece in evidence_in(event)]
        shown = worth_a_screen((piece.version, piece.analyzer) for piece in pieces)
        return [piece for piece in pieces if everything or piece.version in shown]
    items = EvidenceItem.objects.filter(incident=id_).order_by("version", "place")
    if not everything:
        attached = items.order_by().values_list("version", "analyzer").distinct()
        items = items.filter(version__in=worth_a_screen(attached))
    return [_piece(item) for item in items]


def _piece(item: EvidenceItem) -> Evidence:
    return Evidence(**{name: getattr(item, name) for name in Evidence.__dataclass_fields__})


def evidence_file(reference: str, now: datetime) -> bytes:
    """The evidence of an incident as one signed file, for those who have no access to this installation: the runs whose
    evidence the incident shows, of each analyzer the first and the latest.

    Raises IncidentNotFoundError, and EvidenceExportError where no verdict of an analyzer is attached.
    """
    found = get(reference).incident
    runs = [UUID(piece.finding["run"]) for piece in evidence(found.id) if piece.finding is not None]
    subject = EvidenceSubject(found.number, found.id, found.title, rfc3339(found.opened_at), found.component)
    return signed_file(subject, runs, now)


def members(
    reference: str, limit: int = 100, offset: int = 0, as_of: Position | None = None
) -> tuple[list[Alert], int]:
    """The alerts of an incident, those that fire first and then the latest, and how many there are in all.

    With `as_of` those that it had then, as they stood: `last_seen` is then the time of the last change and `repeats`
    0, because neither is in the log.
    """
    id_ = _id(reference)
    if as_of is None:
        return members_of(id_, limit, offset)
    return members_at(_history(id_, as_of), as_of, limit, offset)


def shared_labels(reference: str) -> Shared:
    """Labels that the alerts of an incident share."""
    return shared_by(_id(reference))


def alerts_pending_resolution(reference: str) -> int:
    """Number of alerts of a resolved incident that still count as firing, until the next few have their turn."""
    return pending_resolutions(_id(reference))


def why_members(reference: str, ids: Sequence[str]) -> dict[str, str]:
    """By alert of an incident why it joined, where its event says so."""
    return why_joined(_id(reference), ids)


def counts(
    filters: Sequence[Filter] = (), most: int | None = None, *, resolved: bool = True
) -> dict[State, int]:
    """Number of incidents in each state, among those that the filters let through. Of the resolved ones, which only
    ever become more, at most `most` are counted, or none where they are not asked for.
    """
    found = filtered(filters)
    by_state = dict(found.exclude(state="resolved").values_list("state").annotate(n=Count("pk")).order_by())
    if resolved:
        over = found.filter(state="resolved")
        by_state["resolved"] = (over if most is None else over.order_by()[:most]).count()
    return {state: by_state.get(state, 0) for state in STATES if resolved or state != "resolved"}


def unanswered() -> dict[str, int]:
    """Number of hand-overs of each team that wait to be accepted or rejected."""
    waiting = IncidentRow.objects.filter(handed_from__isnull=False).values_list("handed_from")
    return {str(team): count for team, count in waiting.annotate(n=Count("pk")).order_by()}


def placed_findings(run: str) -> list[Placed]:
    """Placements of the findings of a run. One that waits for another window has none."""
    rows = FindingPlacement.objects.filter(run=run).select_related("incident").order_by("component")
    return [Placed(r.component, r.outcome, str(r.incident_id), r.incident.number) for r in rows]


def teams() -> list[Team]:
    return list(Team.objects.all())


def team_slugs() -> list[str]:
    return list(Team.objects.values_list("slug", flat=True))


def unresolved_by_team() -> dict[str, int]:
    """Number of unresolved incidents of each team."""
    found = IncidentRow.objects.exclude(state="resolved").values_list("team")
    return {str(team): count for team, count in found.annotate(n=Count("pk")).order_by()}


# Changes
# ----------------------------------------------------------------------------------------------------------
BEFORE = timedelta(hours=24)
MOST = 20
"""Changes shown on an incident."""
MOST_ALERTS = 50
"""Alerts of an incident whose labels say what it is about."""


def changes_before(it: Incident, as_of: Position | None = None) -> list[ReportedChange]:
    """The latest changes about an incident's component, or about what its alerts name, from a day before it began until
    it was resolved; with `as_of`, at which it was as given, those that were known then.
    """
    names = names_about(it, as_of)
    if not names:
        return []
    known_by = None if as_of is None else moment_of(as_of)
    return changes(first_moment(it) - BEFORE, last_moment(it, as_of), names, MOST, known_by)


def first_moment(it: Incident) -> datetime:
    """Since when it is known to fail."""
    return min([it.opened_at, *([it.failing_since] if it.failing_since else [])])


def last_moment(it: Incident, as_of: Position | None = None) -> datetime:
    """Its resolution, else now, and not after `as_of`."""
    until = it.resolved_at or timezone.now()
    known_by = None if as_of is None else moment_of(as_of)
    return until if known_by is None else min(until, known_by)


def names_about(it: Incident, as_of: Position | None = None) -> list[str]:
    """Names that changes about an incident may use: its component, and those of its alerts, in lower case."""
    alerts, _ = members(it.id, MOST_ALERTS, as_of=as_of)
    labels = [("component", name) for name in it.cause]
    labels += [("component", one.alert.component or "") for one in alerts]
    labels += [label for one in alerts for label in one.alert.labels.items()]
    labels += it.labels.items()
    return names_of_changed(labels)


# Team odds
# ----------------------------------------------------------------------------------------------------------
def views_of_teams(incident: Incident, learned: Learned | None = None) -> list[TeamView]:
    """Every team, the likeliest first. What was learned from past incidents the caller brings: it takes time
    to load.
    """
    claims = claims_about(incident)
    table = routing_table()
    named = {name for claim in claims for name in claim.components}
    owners = {name: team_of(Subject(name), table).slug for name in sorted(named)}
    slugs = Team.objects.order_by("name").values_list("slug", flat=True)
    return team_views(claims, owners, slugs, learned)
