"""An incident as API and console show it: fields, state of the failure, alerts. A list needs few statements,
none a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from analyzers.queries import judged_until
from incidents.domain.incident.alerts import whys_of
from incidents.domain.incident.split import why_there
from incidents.domain.incident.state import Failure, Incident, Opinion, failure_of
from incidents.domain.values import optional_rfc3339, rfc3339
from incidents.incident.models import (
    IncidentRow,
    MemberAlert,
    PendingAlertResolution,
    SuppressedAlert,
)
from incidents.incident.projection import state_of
from ingest.queries import Alert, Event, Position, alerts, alerts_at, labels_carried, moment_of, read_versions


# View
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class View:
    """An incident and the log position at which this view of it is true."""

    incident: Incident
    version: int
    position: str

    @property
    def url(self) -> str:
        return f"{settings.PUBLIC_URL}/incidents/{self.incident.number}"

    @property
    def opinions(self) -> list[Opinion]:
        """Opinions: first of those that blame it, the most probable first; then of those that name something else,
        then of those that see nothing."""
        opinions = self.incident.opinions.values()
        return sorted(opinions, key=lambda one: (-one.weight, -(one.score or 0.0), one.analyzer))

    def _cause(self) -> dict[str, Any]:
        i = self.incident
        return {
            "component": i.component,
            "ambiguous_with": list(i.ambiguous_with),
            "related": [{"component": name, "how": how} for name, how in sorted(i.related.items())],
        }

    def _merged(self) -> list[dict[str, Any]]:
        found = sorted(self.incident.merged.items(), key=lambda item: item[1].number)
        return [{"id": id_, "number": one.number, "title": one.title} for id_, one in found]

    def _overridden(self) -> list[dict[str, Any]]:
        return [
            {**asdict(one), "starts_at": rfc3339(one.starts_at), "until": rfc3339(one.until)}
            for one in self.incident.overridden
        ]

    def _ownership(self) -> dict[str, Any]:
        i = self.incident
        return {
            "teams": dict(i.team_seconds),
            "owners": dict(i.owner_seconds),
            "until": rfc3339(i.counted_at),
        }

    def as_json(self, failure: Failure) -> dict[str, Any]:
        """`failure`: its state at the moment of this view (`incidents.incident.view`)."""
        i = self.incident
        return {
            "id": i.id,
            "number": i.number,
            "title": i.title,
            "description": i.description,
            "state": i.state,
            "severity": i.severity,
            **self._cause(),
            "region": i.region,
            "team": i.team,
            "routing": i.routing,
            "service": i.service,
            "policy": i.policy,
            "owner": i.owner,
            "dedup_key": i.dedup_key,
            "labels": dict(i.labels),
            "links": [dict(link) for link in i.links],
            "confidence": i.confidence,
            "verdict": i.verdict,
            "analyzer": i.analyzer,
            "opinions": [one.as_json() for one in self.opinions],
            "still_blamed": bool(i.blamed_by),
            "alerts": i.alerts,
            "firing": i.firing,
            "findings": i.findings,
            "hops": i.hops,
            "rejections": i.rejections,
            "handed_from": i.handed_from,
            "accepted_at": optional_rfc3339(i.accepted_at),
            "accepted_by": i.accepted_by,
            "team_since": rfc3339(i.team_since),
            "ownership": self._ownership(),
            "seconds_to_team": i.seconds_to_team,
            "opened_at": rfc3339(i.opened_at),
            "opened_by": i.opened_by,
            "acknowledged_at": optional_rfc3339(i.acknowledged_at),
            "acknowledged_by": i.acknowledged_by,
            "snoozed_until": optional_rfc3339(i.snoozed_until),
            "snoozed_by": i.snoozed_by,
            "silence": i.silence,
            "overridden": self._overridden(),
            "merged_into": i.merged_into and {"id": i.merged_into, "number": i.merged_number},
            "merged": self._merged(),
            "resolved_at": optional_rfc3339(i.resolved_at),
            "resolved_by": i.resolved_by,
            "confirmed_cause": i.confirmed_cause,
            "remediation": None if i.remediation is None else i.remediation.as_json(),
            "proposals": [one.as_json() for one in i.proposals],
            "failure": failure.as_json(),
            "failing_since": optional_rfc3339(i.failing_since),
            "last_failure": optional_rfc3339(i.last_failure),
            "position": self.position,
            "url": self.url,
        }


def view_of(row: IncidentRow) -> View:
    return View(state_of(row), row.version, row.position)


# Failures
# ----------------------------------------------------------------------------------------------------------
def failures_of(views: Iterable[View], as_of: Position | None = None) -> dict[str, Failure]:
    """By id of the incident."""
    shown = list(views)
    now = moment(as_of)
    needed = {one.incident.region for one in shown if depends_on_time(one.incident)}
    judged = {region: judged_until(region, now) for region in needed if region is not None}
    return {
        one.incident.id: failure_of(one.incident, now, judged.get(one.incident.region or "")) for one in shown
    }


def depends_on_time(incident: Incident) -> bool:
    """Whether the state of its failure may change without an event of the incident: windows are judged, or are not."""
    return incident.last_blamed is not None and incident.state != "resolved" and not incident.firing


def failure_shown(view: View, as_of: Position | None = None) -> Failure:
    return failures_of([view], as_of)[view.incident.id]


def moment(as_of: Position | None) -> datetime:
    """The time of a log position, the present for None."""
    return (None if as_of is None else moment_of(as_of)) or timezone.now()


# Members
# ----------------------------------------------------------------------------------------------------------
LOOKED_AT = 500
"""Alerts of an incident in which one looks for what they share: a storm has 30,000, and its first tell as much."""


def members_of(incident: UUID, limit: int, offset: int) -> tuple[list[Alert], int]:
    """A page of the alerts of an incident, those that fire first and then the latest, and how many there are in all."""
    joined = MemberAlert.objects.filter(incident__pk=incident)
    page = joined.order_by("resolved", "-at", "-pk").values_list("alert", flat=True)[offset : offset + limit]
    return _in_order([str(id_) for id_ in page], alerts([str(id_) for id_ in page])), joined.count()


MOST_LATEST = 5
"""Alerts of each incident that `latest_firing` returns."""
_LATEST = """
    SELECT wanted.id::text, member.alert::text
    FROM unnest(%s::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
        SELECT alert FROM incident_alert WHERE incident_id = wanted.id AND NOT resolved
        ORDER BY at DESC, id DESC LIMIT %s
    ) AS member
"""


def latest_firing(incidents: Sequence[str]) -> dict[str, list[Alert]]:
    """By id of the incident the alerts that fire, the latest first, at most MOST_LATEST of each: two statements."""
    if not incidents:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_LATEST, (list(incidents), MOST_LATEST))
        rows = cursor.fetchall()
    known = {one.id: one for one in alerts([alert for _, alert in rows])}
    found: dict[str, list[Alert]] = {}
    for incident, alert in rows:
        if alert in known:
            found.setdefault(incident, []).append(known[alert])
    return found


@dataclass(frozen=True, slots=True)
class Shared:
    """Labels that at least half of the alerts carry with the same value, and the share that does."""

    labels: list[tuple[str, str, float]]
    looked_at: int


def shared_by(incident: UUID) -> Shared:
    """Labels that the alerts of an incident share, by the latest of those that fire."""
    joined = MemberAlert.objects.filter(incident__pk=incident).order_by("resolved", "-at", "-pk")
    ids = [str(one) for one in joined.values_list("alert", flat=True)[:LOOKED_AT]]
    carried = labels_carried(ids, (len(ids) + 1) // 2)
    return Shared([(name, value, count / len(ids)) for name, value, count in carried], len(ids))


def pending_resolutions(incident: UUID) -> int:
    """Number of alerts of a resolved incident that are still to be resolved (`incidents.alerts.resolve`)."""
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
    """Apply the changes of `project` to rows, to (resolved, latest first, last come first) by alert."""
    at, result = -event.occurred_at.timestamp(), event.body.get("alerts", ())
    match event.type:
        case "incident.alerts_joined" | "incident.symptoms_joined" | "incident.merge_received":
            for alert in result:
                joined[alert] = (False, at, joined[alert][2] if alert in joined else -len(joined))
        case "incident.split_from":
            for alert in result:
                joined[alert] = (alert in event.body["resolved"], at, -len(joined))
        case "incident.merge_undone" | "incident.alerts_removed" | "incident.alerts_moved":
            for alert in result:
                joined.pop(alert, None)
        case "incident.alerts_resolved" | "incident.merged" | "incident.unmerged":
            resolved = event.type != "incident.unmerged"
            for alert in joined if event.type == "incident.merged" else joined.keys() & set(result):
                joined[alert] = (resolved, at, joined[alert][2])


def why_joined(incident: UUID, ids: Sequence[str]) -> dict[str, str]:
    """By alert why it is a member, where the event that it joined by says so."""
    joined = MemberAlert.objects.filter(incident__pk=incident, alert__in=ids)
    version_of = {str(alert): version for alert, version in joined.values_list("alert", "version")}
    joined_events = {
        one.version: one for one in read_versions(f"incident/{incident}", sorted(set(version_of.values())))
    }
    whys: dict[str, str] = {}
    for alert, version in version_of.items():
        event = joined_events.get(version)
        if event is not None and event.type == "incident.alerts_joined":
            whys[alert] = event.body["why"]
        elif event is not None and event.type == "incident.split_from":
            whys[alert] = why_there(event.body)
    symptoms = [event.body for event in joined_events.values() if event.type == "incident.symptoms_joined"]
    return whys | {alert: why for alert, why in whys_of(symptoms).items() if alert in version_of}


def _in_order(ids: Sequence[str], found: Iterable[Alert]) -> list[Alert]:
    known = {one.id: one for one in found}
    return [known[id_] for id_ in ids if id_ in known]


def incidents_of(ids: Sequence[str]) -> dict[str, Incident]:
    """The open incident of each of these alerts that has one, else the one that it joined last."""
    joined = _joined(ids)
    incidents = {pk: state_of(row) for pk, row in IncidentRow.objects.in_bulk(set(joined.values())).items()}
    return {alert: incidents[pk] for alert, pk in joined.items()}


def incident_numbers(ids: Sequence[str]) -> dict[str, int]:
    """As `incidents_of`, by number."""
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
    """By alert, why those of them notify nobody, or notified nobody until they were over."""
    found = SuppressedAlert.objects.filter(alert__in=ids).values_list("alert", "why")
    return {str(alert): why for alert, why in found}


def alert_titles(ids: Sequence[str]) -> dict[str, str]:
    """Titles of these alerts."""
    return {one.id: one.alert.title for one in alerts(ids)}
