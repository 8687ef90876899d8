"""Events into read models. A command and a rebuild run this same code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from django.db import connection

from incidents.domain.incident.evolve import fold
from incidents.domain.incident.outcome import analyzer_outcomes
from incidents.domain.incident.state import Incident
from incidents.incident.bulk_sql import upsert
from incidents.incident.models import (
    AnalyzerOutcomeRow,
    EvidenceItem,
    FindingPlacement,
    IncidentRow,
    MemberAlert,
    TimelineEntry,
)
from incidents.incident.projection_parts import Change, parts
from incidents.incident.rows import fields_of
from incidents.incident.timeline_projection import LOOKS_BACK, Entry, evidence_in, next_entry
from ingest.queries import Event

_SETTLES = frozenset({"incident.resolved", "incident.reopened", "incident.analyzer_missed_cause"})
_OUTCOMES = {
    "incident.opened": "opened",
    "incident.finding_joined": "joined",
    "incident.finding_recorded": "recorded",
}


def project(before: Incident | None, events: Sequence[Event]) -> Incident:
    """Brings the read models of one incident up to its newest events, in order; returns the state after them.

    Needs a transaction that keeps other writers of this incident out.
    """
    return project_together([(before, events)])[0].after


def project_together(new: Sequence[tuple[Incident | None, Sequence[Event]]]) -> list[Change]:
    """As `project`, of several incidents, each named once, with a few statements for all of them."""
    changes = [_change(before, events) for before, events in new]
    _rows(changes)
    _timeline(changes)
    _evidence(changes)
    for change in changes:
        for event in change.events:
            _finding(change.after.id, event)
            _members(change.after.id, event)
    _record_outcomes(changes)
    for part in parts():
        part.project(changes)
    return changes


def _change(before: Incident | None, events: Sequence[Event]) -> Change:
    after = fold(events, before)
    assert after is not None
    return Change(before, events, after)


_FURTHER = (
    "UPDATE incident SET version = new_version, position = new_position"
    " FROM unnest(%s::uuid[], %s::integer[], %s::integer[], %s::text[])"
    " AS new (new_id, old_version, new_version, new_position)"
    " WHERE id = new_id AND version = old_version RETURNING id::text"
)


def _rows(changes: Sequence[Change]) -> None:
    further = _gone_further([change for change in changes if change.before == change.after])
    rows = [
        {
            **fields_of(change.after),
            "version": change.events[-1].version,
            "position": str(change.events[-1].position),
        }
        for change in changes
        if change.after.id not in further
    ]
    # Updated in place also by a rebuild: a command that waits for the row must find it, not a grave.
    upsert(IncidentRow, rows, ("id",))


def _gone_further(changes: Sequence[Change]) -> set[str]:
    """Which of the incidents that stand as before have been written; a row that was behind is to be written whole."""
    if not changes:
        return set()
    values = (
        [change.after.id for change in changes],
        [change.events[0].version - 1 for change in changes],
        [change.events[-1].version for change in changes],
        [str(change.events[-1].position) for change in changes],
    )
    with connection.cursor() as cursor:
        cursor.execute(_FURTHER, values)
        return {id_ for (id_,) in cursor.fetchall()}


def _timeline(changes: Sequence[Change]) -> None:
    counting = [
        change.after.id
        for change in changes
        if change.events[0].version > 1 and change.events[0].type in LOOKS_BACK
    ]
    last = _last_entries(counting) if counting else {}
    made: list[dict[str, Any]] = []
    for change in changes:
        id_ = change.after.id
        entry, changed = last.get(id_), dict[int, Entry]()
        for event in change.events:
            entry = next_entry(entry, event)
            changed[entry.version] = entry
        made += [{"incident_id": id_, **_columns(one)} for one in changed.values()]
    # A line that is counted on stays of its type and keeps its first time: the upsert writes both as they were.
    upsert(TimelineEntry, made, ("incident_id", "version"))


def _last_entries(incidents: Sequence[str]) -> dict[str, Entry]:
    rows = TimelineEntry.objects.filter(incident__pk__in=incidents).order_by("incident_id", "-version")
    return {str(row.incident_id): entry_of(row) for row in rows.distinct("incident_id")}


def _columns(entry: Entry) -> dict[str, Any]:
    """`asdict` would copy the body, however deep."""
    return {field.name: getattr(entry, field.name) for field in fields(Entry)}


def entry_of(row: TimelineEntry) -> Entry:
    return Entry(**{field.name: getattr(row, field.name) for field in fields(Entry)})


def _evidence(changes: Sequence[Change]) -> None:
    EvidenceItem.objects.bulk_create(
        EvidenceItem(incident_id=change.after.id, **asdict(piece))
        for change in changes
        for event in change.events
        for piece in evidence_in(event)
    )


def _finding(incident: str, event: Event) -> None:
    outcome, finding = _OUTCOMES.get(event.type), event.body.get("finding")
    if outcome is not None and finding is not None:
        FindingPlacement.objects.create(
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


_JOINING = frozenset(
    {"incident.alerts_joined", "incident.symptoms_joined", "incident.merge_received", "incident.split_from"}
)
_LEAVING = frozenset({"incident.merge_undone", "incident.alerts_removed", "incident.alerts_moved"})


def _members(incident: str, event: Event) -> None:
    """In SQL: a storm's alerts join in events of hundreds; a model for each would cost several times that."""
    if event.type in _JOINING:
        with connection.cursor() as cursor:
            cursor.execute(_JOIN, (incident, event.version, event.occurred_at, event.body["alerts"]))
        if event.type == "incident.split_from":
            there = MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["resting"])
            there.update(resting=True)
    elif event.type == "incident.merged":
        MemberAlert.objects.filter(incident__pk=incident).update(resting=True, at=event.occurred_at)
    elif event.type == "incident.unmerged":
        back = MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["alerts"])
        back.update(resting=False, at=event.occurred_at)
    elif event.type in _LEAVING:
        MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["alerts"]).delete()
    elif event.type == "incident.alerts_resolved":
        members = MemberAlert.objects.filter(incident__pk=incident, alert__in=event.body["alerts"])
        members.update(resting=True, at=event.occurred_at)


def _record_outcomes(changes: Sequence[Change]) -> None:
    """Each as the latest resolution has it; an incident that was reopened has none until it is resolved again."""
    settled = {
        change.after.id: (event.version, change.after)
        for change in changes
        for event in change.events
        if event.type in _SETTLES
    }
    if not settled:
        return
    AnalyzerOutcomeRow.objects.filter(incident__in=list(settled)).delete()
    AnalyzerOutcomeRow.objects.bulk_create(
        AnalyzerOutcomeRow(incident_id=id_, version=version, **asdict(one))
        for id_, (version, state) in settled.items()
        for one in analyzer_outcomes(state)
    )
