"""The rows of incidents that follow from all of their events, without a look at any table: what a rebuild compares
and writes. Commands write the same rows event by event (`projection`); a property test holds both equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from django.db import models

from incidents.incident.models import (
    AnalyzerOutcomeRow,
    EvidenceItem,
    FindingPlacement,
    IncidentRow,
    MemberAlert,
    TimelineEntry,
)
from incidents.incident.projection import (
    ENTRY_FIELDS,
    EVIDENCE,
    PLACES,
    Change,
    Entry,
    columns_of,
    evidence_in,
    outcomes_of,
    parts,
    placement_of,
    timeline_of,
)
from ingest.db.database import Row
from ingest.queries import Event

Columns = Mapping[str, Sequence[Any]]
"""By column, its value in each row."""


def rows_of(changes: Sequence[Change]) -> Mapping[type[models.Model], Columns]:
    """By model, the incidents' own rows first. Each change has all events of its incident."""
    assert all(change.before is None for change in changes)
    made: dict[type[models.Model], Columns] = {
        IncidentRow: _columns([columns_of(change) for change in changes]),
        TimelineEntry: _timeline(changes),
    }
    for model, rows in _OF.items():
        made[model] = _columns(rows(changes))
    for part in parts():
        made[part.model] = _columns(part.rows(changes))
    return made


def _columns(rows: Sequence[Row]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _timeline(changes: Sequence[Change]) -> Columns:
    """The log's longest table: no row is made only to be taken apart."""
    ids, entries = list[str](), list[Entry]()
    for change in changes:
        lines = timeline_of(change.events)
        ids += [change.after.id] * len(lines)
        entries += lines
    values = zip(*map(attrgetter(*ENTRY_FIELDS), entries), strict=True)
    return {"incident_id": ids, **dict(zip(ENTRY_FIELDS, values, strict=True))}


def _evidence(changes: Sequence[Change]) -> Sequence[Row]:
    return [
        {"incident_id": change.after.id, **asdict(piece)}
        for change in changes
        for event in change.events
        if event.type == EVIDENCE
        for piece in evidence_in(event)
    ]


def _placements(changes: Sequence[Change]) -> Sequence[Row]:
    return [
        {"incident_id": change.after.id, **row}
        for change in changes
        for event in change.events
        if event.type in PLACES and (row := placement_of(event)) is not None
    ]


def _members(changes: Sequence[Change]) -> Sequence[Row]:
    """Of each incident in the order in which they joined."""
    rows = list[Row]()
    for change in changes:
        if moving := [event for event in change.events if event.type in _MEMBERS]:
            members: Members = {}
            for event in moving:
                _MEMBERS[event.type](members, event)
            rows += [
                {"incident_id": change.after.id, "alert": alert, **member}
                for alert, member in members.items()
            ]
    return rows


def _outcomes(changes: Sequence[Change]) -> Sequence[Row]:
    return [{"incident_id": change.after.id, **row} for change in changes for row in outcomes_of(change)]


Members = dict[str, dict[str, Any]]


def _join(members: Members, event: Event) -> None:
    for alert in event.body["alerts"]:
        member = members.setdefault(alert, {"version": event.version})
        member |= {"resolved": False, "at": event.occurred_at}


def _split(members: Members, event: Event) -> None:
    _join(members, event)
    for alert in members.keys() & set(event.body["resolved"]):
        members[alert]["resolved"] = True


def _leave(members: Members, event: Event) -> None:
    for alert in event.body["alerts"]:
        members.pop(alert, None)


def _become(resolved: bool, members: Members, event: Event) -> None:
    for alert in members.keys() & set(event.body["alerts"]):
        members[alert] |= {"resolved": resolved, "at": event.occurred_at}


def _merged(members: Members, event: Event) -> None:
    for member in members.values():
        member |= {"resolved": True, "at": event.occurred_at}


_MEMBERS: Mapping[str, Callable[[Members, Event], None]] = {
    "incident.alerts_joined": _join,
    "incident.symptoms_joined": _join,
    "incident.merge_received": _join,
    "incident.split_from": _split,
    "incident.merged": _merged,
    "incident.unmerged": lambda members, event: _become(False, members, event),
    "incident.merge_undone": _leave,
    "incident.alerts_removed": _leave,
    "incident.alerts_moved": _leave,
    "incident.alerts_resolved": lambda members, event: _become(True, members, event),
}

_OF: Mapping[type[models.Model], Callable[[Sequence[Change]], Sequence[Row]]] = {
    EvidenceItem: _evidence,
    FindingPlacement: _placements,
    MemberAlert: _members,
    AnalyzerOutcomeRow: _outcomes,
}
