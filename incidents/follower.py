"""What the log asks of incidents: findings and alerts become incidents, other verdicts become opinions and
notes on them.

The follower's place moves in the transaction of its effects, so each event takes effect once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import cache
from itertools import groupby

from analyzers.queries import kinds_of
from incidents.alerts.correlate import (
    absorb_symptoms,
    on_incident_resolved,
    place_alerts,
    release_withdrawn_symptoms,
)
from incidents.domain.incident import commands as c
from incidents.domain.incident.finding import Finding, finding_from
from incidents.domain.incident.finding_placement import JoinOpen, OpenNew, RecordOnResolved, place, subject_of
from incidents.domain.incident.state import Incident
from incidents.domain.routing.rules import Routing, route
from incidents.domain.time import parse_rfc3339
from incidents.findings import context_of, note_missed, record_opinions
from incidents.incident.models import FindingPlacement, IncidentRow
from incidents.incident.repository import lock_key, next_number, open_ticket_of, record, record_opening
from incidents.incident.rows import state_of
from incidents.incident.windows import project_window, windows_of
from incidents.teams.models import routing_table
from ingest.commands import Follower, register_follower
from ingest.queries import Context, Event


def handle(events: list[Event]) -> None:
    """In the order of the log: a run's `analysis.recorded` comes before its findings. Alerts in a row go together."""
    for are_alerts, run in groupby(events, lambda event: event.type == "alert.reported"):
        if are_alerts:
            place_alerts(list(run))
        else:
            _one_by_one(run)


def _one_by_one(events: Iterable[Event]) -> None:
    for event in events:
        if event.type == "analysis.recorded":
            # Incidents first: the transaction should get its id while it holds their rows (see `_append`).
            _note_no_longer_blamed(event)
            record_opinions(event)
            project_window(event)
            release_withdrawn_symptoms(event)
        elif event.type == "incident.resolved":
            note_missed(event)
            on_incident_resolved(event)
        else:
            _place(finding_from(event.body), event)


FOLLOWED = frozenset({"alert.reported", "analysis.recorded", "finding.reported", "incident.resolved"})


@cache
def follower() -> Follower:
    return Follower("incidents", FOLLOWED, handle)


def register() -> None:
    register_follower(follower())


def _place(finding: Finding, event: Event) -> None:
    if FindingPlacement.objects.filter(run=finding.run, component=finding.component).exists():
        return
    rows = IncidentRow.objects.filter(cause__overlap=sorted(finding.cause))
    # Locked, so that what is decided here still holds when it is carried out.
    same = [state_of(row) for row in rows.order_by("number").select_for_update()]
    windows = [] if finding.schedule is None else windows_of(finding.schedule)
    kinds = kinds_of(finding.run, finding.analyzer) if any(one.known_until for one in same) else None
    placement = place(finding, same, windows, kinds)
    context = context_of(event)
    if isinstance(placement, JoinOpen):
        command = c.JoinFinding(finding, _routed(finding, event).severity)
        joined = record(placement.incident.id, command, context)
        absorb_symptoms(placement.incident, joined.incident, event)
        release_withdrawn_symptoms(event)
    elif isinstance(placement, RecordOnResolved):
        record(placement.incident.id, c.RecordFinding(finding), context)
    elif isinstance(placement, OpenNew):
        absorb_symptoms(None, _open(finding, placement.why, _routed(finding, event), context), event)


def _routed(finding: Finding, event: Event) -> Routing:
    return route(subject_of(finding, event.recorded_at), routing_table(), finding.ambiguous_with)


def _open(finding: Finding, why: str, routing: Routing, context: Context) -> Incident:
    key, number = finding.dedup_key, next_number()
    lock_key(key)
    # An incident may hold the key that is no longer about this component: its cause was narrowed, or a report chose it.
    taken = open_ticket_of(key) is not None
    # The id follows from the finding: nothing that is handled twice opens two incidents.
    id_ = str(uuid.uuid5(uuid.NAMESPACE_URL, f"finding:{finding.run}:{finding.component}"))
    opening = c.OpenForFinding(id_, number, routing, finding, why, f"{key}#{number}" if taken else key)
    return record_opening(opening, context).incident


def _note_no_longer_blamed(event: Event) -> None:
    body = event.body
    if body["schedule"] is None or body["status"] == "inconclusive":
        return
    named = {name for s in body["suspects"] for name in (s["component"], *(s.get("ambiguous_with") or ()))}
    end = body["window"]["end"]
    blamed = IncidentRow.objects.filter(blamed_by__contains=[body["schedule"]]).exclude(state="resolved")
    quiet = blamed.exclude(cause__overlap=sorted(named)).filter(last_blamed__lt=parse_rfc3339(end))
    for id_ in quiet.order_by("number").values_list("pk", flat=True):
        note = c.ClearFinding(body["run"], body["schedule"], body["analyzer"], end)
        record(str(id_), note, context_of(event))
