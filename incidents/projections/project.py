"""Events into read models. A command and a rebuild run this same code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

from django.db import connection

from incidents.domain.evolve import evolve
from incidents.domain.incident import Incident
from incidents.domain.standing import standings
from incidents.projections.models import (
    EvidenceItem,
    FindingPlaced,
    IncidentRow,
    MemberAlert,
    StandingRow,
    TimelineEntry,
)
from incidents.projections.parts import parts
from incidents.projections.rows import fields_of
from incidents.projections.timeline import COUNTED, Entry, evidence_in, next_entry
from ingest.queries import Event

_SETTLES = frozenset({"incident.resolved", "incident.reopened", "incident.cause_missed"})
_OUTCOMES = {
    "incident.opened": "opened",
    "incident.finding_joined": "joined",
    "incident.finding_recorded": "recorded",
}


def project(before: Incident | None, events: Sequence[Event]) -> Incident:
    """Brings the read models of one incident up to its newest events, in order; returns the state after them.

    Needs a transaction that keeps other writers of this incident out.
    """
    state = before
    for event in events:
        state = evolve(state, event)
    assert state is not None
    columns = {**fields_of(state), "version": events[-1].version, "position": str(events[-1].position)}
    # Updated in place also by a rebuild: a command that waits for the row must find it, not a grave.
    if not IncidentRow.objects.filter(pk=state.id).update(**columns):
        IncidentRow.objects.create(**columns)
    _timeline(state.id, events)
    _evidence(state.id, events)
    for event in events:
        _finding(state.id, event)
        _members(state.id, event)
    _standings(state, events)
    for part in parts():
        part.project(before, events, state)
    return state


def _timeline(incident: str, events: Sequence[Event]) -> None:
    row = None
    if events[0].version > 1 and events[0].type in COUNTED:
        row = TimelineEntry.objects.filter(incident__pk=incident).order_by("-version").first()
    last = None if row is None else entry_of(row)
    changed: dict[int, Entry] = {}
    for event in events:
        last = next_entry(last, event)
        changed[last.version] = last
    TimelineEntry.objects.bulk_create(
        [TimelineEntry(incident_id=incident, **asdict(entry)) for entry in changed.values()],
        update_conflicts=True,
        unique_fields=("incident", "version"),
        update_fields=("last_version", "count", "last_at", "actor", "trace", "text", "body", "position"),
    )


def entry_of(row: TimelineEntry) -> Entry:
    return Entry(**{field.name: getattr(row, field.name) for field in fields(Entry)})


def _evidence(incident: str, events: Sequence[Event]) -> None:
    pieces = [piece for event in events for piece in evidence_in(event)]
    EvidenceItem.objects.bulk_create(EvidenceItem(incident_id=incident, **asdict(piece)) for piece in pieces)


def _finding(incident: str, event: Event) -> None:
    outcome, finding = _OUTCOMES.get(event.type), event.body.get("finding")
    if outcome is not None and finding is not None:
        FindingPlaced.objects.create(
            run=finding["run"],
            component=finding["component"],
            outcome=outcome,
            incident_id=incident,
            version=event.version,
        )


_JOIN = (
    "INSERT INTO incident_alert (incident_id, version, alert, resting, at)"
    " SELECT %s, %s, new_alert, false, %s FROM unnest(%s::uuid[]) WITH ORDINALITY AS new (new_alert, place)"
    " ORDER BY place ON CONFLICT (incident_id, alert) DO UPDATE SET resting = false, at = EXCLUDED.at"
)


def _members(incident: str, event: Event) -> None:
    """In SQL: a storm's alerts join in events of hundreds; a model for each would cost several times that."""
    if event.type in ("incident.alerts_joined", "incident.symptoms_joined", "incident.absorbed"):
        with connection.cursor() as cursor:
            cursor.execute(_JOIN, (incident, event.version, event.occurred_at, event.body["alerts"]))
    elif event.type == "incident.merged":
        MemberAlert.objects.filter(incident__pk=incident).update(resting=True, at=event.occurred_at)
    elif event.type == "incident.split":
        back = MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["alerts"])
        back.update(resting=False, at=event.occurred_at)
    elif event.type in ("incident.separated", "incident.alerts_left"):
        MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["alerts"]).delete()
    elif event.type == "incident.alerts_rested":
        members = MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["alerts"])
        members.update(resting=True, at=event.occurred_at)


def _standings(state: Incident, events: Sequence[Event]) -> None:
    """Each as the latest resolution has it; a ticket that was reopened has none until it is resolved again."""
    settled = [event.version for event in events if event.type in _SETTLES]
    if not settled:
        return
    StandingRow.objects.filter(incident__pk=state.id).delete()
    StandingRow.objects.bulk_create(
        StandingRow(incident_id=state.id, version=settled[-1], **asdict(one)) for one in standings(state)
    )
