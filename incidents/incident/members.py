"""The alerts of incidents and the incidents of alerts, with few statements however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from incidents.domain.incident.split import why_there
from incidents.domain.incident.state import Incident
from incidents.domain.incident.symptoms import whys_of
from incidents.incident.models import (
    EndedSuppression,
    IncidentRow,
    MemberAlert,
    PendingAlertResolution,
    SuppressedAlert,
)
from incidents.incident.rows import state_of
from ingest.queries import Alert, Event, Position, alerts, alerts_at, labels_carried, read_versions

LOOKED_AT = 500
"""Alerts of an incident in which one looks for what they share: a storm has 30,000, and its first tell as much."""


def members_of(incident: UUID, limit: int, offset: int) -> tuple[list[Alert], int]:
    """A page of the alerts of an incident, those that fire first and then the latest, and how many there are in all."""
    joined = MemberAlert.objects.filter(incident__pk=incident)
    page = joined.order_by("resting", "-at", "-pk").values_list("alert", flat=True)[offset : offset + limit]
    return _in_order([str(id_) for id_ in page], alerts([str(id_) for id_ in page])), joined.count()


@dataclass(frozen=True, slots=True)
class Shared:
    """Labels that at least half of the alerts carry with the same value, and the share that does."""

    labels: list[tuple[str, str, float]]
    looked_at: int


def shared_by(incident: UUID) -> Shared:
    """What the alerts of an incident have in common, by the latest of those that fire."""
    joined = MemberAlert.objects.filter(incident__pk=incident).order_by("resting", "-at", "-pk")
    ids = [str(one) for one in joined.values_list("alert", flat=True)[:LOOKED_AT]]
    carried = labels_carried(ids, (len(ids) + 1) // 2)
    return Shared([(name, value, count / len(ids)) for name, value, count in carried], len(ids))


def pending_resolutions(incident: UUID) -> int:
    """How many alerts of an incident that was resolved are not settled yet (`incidents.alerts.resolve`)."""
    return PendingAlertResolution.objects.filter(incident=incident).count()


def members_at(events: Iterable[Event], as_of: Position, limit: int, offset: int) -> tuple[list[Alert], int]:
    """As `members_of`, by the events of an incident up to a position: `last_seen` is the time of the last change and
    `repeats` is 0, because neither is in the log."""
    joined: dict[str, tuple[bool, float, int]] = {}
    for event in events:
        _fold(joined, event)
    page = sorted(joined, key=joined.__getitem__)[offset : offset + limit]
    return _in_order(page, alerts_at(page, as_of)), len(joined)


def _fold(joined: dict[str, tuple[bool, float, int]], event: Event) -> None:
    """What `project` does to rows, to (resting, latest first, last come first) by alert."""
    at, told = -event.occurred_at.timestamp(), event.body.get("alerts", ())
    match event.type:
        case "incident.alerts_joined" | "incident.symptoms_joined" | "incident.merge_received":
            for alert in told:
                joined[alert] = (False, at, joined[alert][2] if alert in joined else -len(joined))
        case "incident.split_from":
            for alert in told:
                joined[alert] = (alert in event.body["resting"], at, -len(joined))
        case "incident.merge_undone" | "incident.alerts_removed" | "incident.alerts_moved":
            for alert in told:
                joined.pop(alert, None)
        case "incident.alerts_resolved" | "incident.merged" | "incident.unmerged":
            resting = event.type != "incident.unmerged"
            for alert in joined if event.type == "incident.merged" else joined.keys() & set(told):
                joined[alert] = (resting, at, joined[alert][2])


def why_joined(incident: UUID, ids: Sequence[str]) -> dict[str, str]:
    """By alert why it is a member, where the event that it joined by says so."""
    joined = MemberAlert.objects.filter(incident__pk=incident, alert__in=ids)
    version_of = {str(alert): version for alert, version in joined.values_list("alert", "version")}
    told = {
        one.version: one for one in read_versions(f"incident/{incident}", sorted(set(version_of.values())))
    }
    whys: dict[str, str] = {}
    for alert, version in version_of.items():
        event = told.get(version)
        if event is not None and event.type == "incident.alerts_joined":
            whys[alert] = event.body["why"]
        elif event is not None and event.type == "incident.split_from":
            whys[alert] = why_there(event.body)
    symptoms = [event.body for event in told.values() if event.type == "incident.symptoms_joined"]
    return whys | {alert: why for alert, why in whys_of(symptoms).items() if alert in version_of}


def _in_order(ids: Sequence[str], found: Iterable[Alert]) -> list[Alert]:
    known = {one.id: one for one in found}
    return [known[id_] for id_ in ids if id_ in known]


def tickets_of(ids: Sequence[str]) -> dict[str, Incident]:
    """The open incident of each of these alerts that has one, else the one that it joined last."""
    joined = _joined(ids)
    tickets = {pk: state_of(row) for pk, row in IncidentRow.objects.in_bulk(set(joined.values())).items()}
    return {alert: tickets[pk] for alert, pk in joined.items()}


def ticket_numbers(ids: Sequence[str]) -> dict[str, int]:
    """As `tickets_of`, by number."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT member.alert::text, number FROM incident_alert AS member JOIN incident ON incident.id = incident_id"
            " WHERE member.alert = ANY(%s::uuid[]) ORDER BY state <> 'resolved', member.at, member.id",
            (list(ids),),
        )
        return dict(cursor.fetchall())


def _joined(ids: Sequence[str]) -> dict[str, UUID]:
    """The ids of incidents by alert: an incident may have 100,000 members and is read once."""
    members = MemberAlert.objects.filter(alert__in=ids).order_by("at", "pk")
    found = members.values_list("alert", "incident_id", "incident__state")
    ordered = sorted(found, key=lambda one: one[2] != "resolved")
    return {str(alert): incident for alert, incident, _ in ordered}


def suppressed(ids: Sequence[str]) -> dict[str, str]:
    """Why these alerts, those of them that call nobody, do not, or did not until they were over."""
    over = EndedSuppression.objects.filter(alert__in=ids).values_list("alert", "why")
    held = SuppressedAlert.objects.filter(alert__in=ids).values_list("alert", "why")
    return {str(alert): why for alert, why in (*over, *held)}


def alert_titles(ids: Sequence[str]) -> dict[str, str]:
    """What these alerts are called."""
    return {one.id: one.alert.title for one in alerts(ids)}
