"""Read models of incidents, written from events by commands and rebuilds alike.

`state_of(fields_of(state)) == state`. Timeline and evidence are pure, and serve `as_of` too. Other packages
register further parts (`register_part`), written in the same transaction. Windows: the components blamed in the
latest windows of each schedule, from `analysis.recorded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import msgspec
from django.db import connection, models

from incidents.domain.incident.evolve import evolve
from incidents.domain.incident.finding import WINDOWS_WATCHED, ScheduleWindow
from incidents.domain.incident.outcome import analyzer_outcomes
from incidents.domain.incident.state import (
    HandedOver,
    Incident,
    Merged,
    Overridden,
    Shown,
    is_quiet,
    opinion_from,
    replace,
)
from incidents.domain.incident.timeline import repeated, sentence
from incidents.domain.proposals import proposal_from
from incidents.domain.questions import dialogue_from
from incidents.domain.remediation.state import remediation_from
from incidents.domain.values import SEVERITIES, optional_rfc3339, optional_time, parse_rfc3339, rfc3339
from incidents.incident.models import (
    AnalyzerOutcomeRow,
    EvidenceItem,
    FindingPlacement,
    IncidentRow,
    MemberAlert,
    ScheduleWindowRow,
    TimelineEntry,
)
from ingest.db.database import plain_array, upsert
from ingest.queries import Event


# Parts of other packages
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Change:
    """Change of one incident by events: `before` is None where they are all that it has. `states[n]` is the incident
    after `events[n]`.
    """

    before: Incident | None
    events: Sequence[Event]
    states: Sequence[Incident]

    @property
    def after(self) -> Incident:
        return self.states[-1]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of `model` (which have `incident` and `version`) follow from events alone.

    `project` gets what is new of several incidents, each once, and writes them together. `rows` gets all events of
    several incidents, and looks at no table.
    """

    model: type[models.Model]
    project: Callable[[Sequence[Change]], None]
    rows: Callable[[Sequence[Change]], list[dict[str, Any]]]


_parts: dict[str, Part] = {}


def register_part(part: Part) -> None:
    """Register a part, when Django starts. A model has one part."""
    if _parts.setdefault(part.model._meta.label, part) != part:
        raise ValueError(f"{part.model._meta.label} is registered twice, differently")


def parts() -> tuple[Part, ...]:
    return tuple(_parts.values())


# Rows
# ----------------------------------------------------------------------------------------------------------
_TUPLES = ("ambiguous_with", "links", "blamed_by")
_FIELDS = tuple(field.name for field in fields(Incident))


def fields_of(state: Incident) -> dict[str, Any]:
    """The columns of `IncidentRow` but `version` and `position`."""
    columns = dict(vars(state))
    for name in _TUPLES:
        columns[name] = list(columns[name])
    columns["shown"] = {
        analyzer: {"score": shown.score, "window_end": rfc3339(shown.window_end)}
        for analyzer, shown in state.shown.items()
    }
    columns["known_until"] = {feed: rfc3339(at) for feed, at in state.known_until.items()}
    columns["overridden"] = [
        {**asdict(one), "starts_at": rfc3339(one.starts_at), "until": rfc3339(one.until)}
        for one in state.overridden
    ]
    columns["opinions"] = {name: one.as_json() for name, one in state.opinions.items()}
    columns["handed_over"] = None if state.handed_over is None else _hand_over_json(state.handed_over)
    columns["handed_from"] = state.handed_from
    columns["remediation"] = None if state.remediation is None else state.remediation.as_json()
    columns["questions"] = None if state.questions is None else state.questions.as_json()
    columns["proposals"] = [one.as_json() for one in state.proposals] or None
    columns["merged"] = {name: asdict(one) for name, one in state.merged.items()}
    columns["cause"] = sorted(state.covers)
    columns["severity_rank"] = SEVERITIES.index(state.severity)
    columns["quiet"] = is_quiet(state)
    return columns


def state_of(row: IncidentRow) -> Incident:
    values = {name: getattr(row, name) for name in _FIELDS}
    for name in _TUPLES:
        values[name] = tuple(values[name])
    values["id"] = str(row.id)
    values["shown"] = {
        analyzer: Shown(shown["score"], parse_rfc3339(shown["window_end"]))
        for analyzer, shown in row.shown.items()
    }
    values["known_until"] = {feed: parse_rfc3339(at) for feed, at in row.known_until.items()}
    values["overridden"] = tuple(overridden_from(one) for one in row.overridden)
    values["opinions"] = {name: opinion_from(one) for name, one in row.opinions.items()}
    values["merged"] = {
        name: Merged(**{**one, "cause": tuple(one["cause"])}) for name, one in row.merged.items()
    }
    values["merged_into"] = None if row.merged_into is None else str(row.merged_into)
    values["silence"] = None if row.silence is None else str(row.silence)
    values["remediation"] = None if row.remediation is None else remediation_from(row.remediation)
    values["questions"] = None if row.questions is None else dialogue_from(row.questions)
    values["proposals"] = tuple(proposal_from(one) for one in row.proposals or ())
    values["handed_over"] = None if row.handed_over is None else _hand_over_from(row.handed_over)
    return Incident(**values)


def overridden_from(stored: dict[str, Any]) -> Overridden:
    times = {name: parse_rfc3339(stored[name]) for name in ("starts_at", "until")}
    return Overridden(**{**stored, **times})


_TIMES = ("at", "acknowledged_at", "team_since")


def _hand_over_json(sent: HandedOver) -> dict[str, Any]:
    return {**asdict(sent), **{name: optional_rfc3339(getattr(sent, name)) for name in _TIMES}}


def _hand_over_from(body: dict[str, Any]) -> HandedOver:
    return HandedOver(**{**body, **{name: optional_time(body[name]) for name in _TIMES}})


# Windows
# ----------------------------------------------------------------------------------------------------------
WINDOWS_STORED = 2 * WINDOWS_WATCHED
"""More than are counted, so that a window that finishes late still finds its neighbours."""


def project_window(event: Event) -> None:
    """An inconclusive window says nothing and is not counted; a window run again replaces itself."""
    one = _window(event)
    if one is None:
        return
    ScheduleWindowRow.objects.update_or_create(
        schedule=one.schedule,
        end=one.end,
        defaults={"start": one.start, "run": one.run, "causes": one.causes},
    )
    # Counted back from this one: windows that a clock which was wrong ran ahead of time must not push it out.
    earlier = ScheduleWindowRow.objects.filter(schedule=one.schedule, end__lte=one.end).order_by("-end")
    old = earlier.values_list("pk", flat=True)[WINDOWS_STORED:]
    ScheduleWindowRow.objects.filter(pk__in=list(old)).delete()


class Folded:
    """In memory what `project_window` makes of the same events in the table."""

    def __init__(self) -> None:
        self._of: dict[str, dict[datetime, ScheduleWindowRow]] = {}

    def add(self, event: Event) -> None:
        one = _window(event)
        if one is None:
            return
        known = self._of.setdefault(one.schedule, {})
        known[one.end] = one
        for end in sorted((end for end in known if end <= one.end), reverse=True)[WINDOWS_STORED:]:
            del known[end]

    def rows(self) -> list[ScheduleWindowRow]:
        return [row for known in self._of.values() for row in known.values()]


def _window(event: Event) -> ScheduleWindowRow | None:
    body = event.body
    if body["schedule"] is None or body["status"] == "inconclusive":
        return None
    return ScheduleWindowRow(
        schedule=body["schedule"],
        start=parse_rfc3339(body["window"]["start"]),
        end=parse_rfc3339(body["window"]["end"]),
        run=body["run"],
        causes=[sorted({s["component"], *(s.get("ambiguous_with") or ())}) for s in body["suspects"]],
    )


def windows_of(schedule: str) -> list[ScheduleWindow]:
    rows = ScheduleWindowRow.objects.filter(schedule=schedule)
    return [
        ScheduleWindow(row.start, row.end, tuple(frozenset(cause) for cause in row.causes)) for row in rows
    ]


# Timeline and evidence
# ----------------------------------------------------------------------------------------------------------
# A finding joins every few minutes for as long as a failure lasts, an alert may be repeated ten thousand times: the
# timeline counts those in a row.
COUNTED = frozenset(
    {
        "incident.alerts_joined",
        "incident.alerts_resolved",
        "incident.symptoms_joined",
        "incident.alerts_removed",
        "incident.finding_joined",
        "incident.finding_recorded",
        "incident.report_joined",
        "incident.opinion_changed",
        "incident.repair_judged",
    }
)
_BLAMES = frozenset({"incident.finding_joined", "incident.finding_recorded"})
EVIDENCE = "incident.evidence_attached"
LOOKS_BACK = COUNTED | {EVIDENCE}
"""Event types that may change the line before them."""


_ELSEWHERE: Mapping[str, frozenset[str]] = {
    EVIDENCE: frozenset({"items"}),
    "incident.alerts_joined": frozenset({"alerts"}),
    "incident.alerts_resolved": frozenset({"alerts"}),
    "incident.symptoms_joined": frozenset({"alerts", "explanations", "explanation_of"}),
    "incident.alerts_removed": frozenset({"alerts"}),
    "incident.merge_received": frozenset({"alerts"}),
    "incident.split_from": frozenset({"alerts", "resolved"}),
    "incident.alerts_moved": frozenset({"alerts"}),
    "incident.unmerged": frozenset({"alerts"}),
    "incident.merge_undone": frozenset({"alerts"}),
}
"""By type of event, fields that have read models of their own: pieces of evidence and member alerts."""


class Entry(msgspec.Struct, frozen=True):
    """A line of the timeline: the event `version`, or `count` like findings up to `last_version`."""

    version: int
    last_version: int
    count: int
    type: str
    at: datetime
    last_at: datetime
    actor: str
    trace: str | None
    text: str
    body: Mapping[str, Any]
    position: str


ENTRY_FIELDS = Entry.__struct_fields__


@dataclass(frozen=True, slots=True)
class Evidence:
    """A table, chart or text, attached by event `version`, with the finding and parameters it is from."""

    version: int
    place: int
    kind: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    chart: Mapping[str, Any]
    text: str
    at: datetime
    actor: str
    analyzer: str | None
    finding: Mapping[str, Any] | None
    params: Mapping[str, Any] | None


def next_entry(last: Entry | None, event: Event) -> Entry:
    """The entry that `event` adds, or the last one counted on: then it keeps that one's `version`."""
    elsewhere = _ELSEWHERE.get(event.type)
    entry = Entry(
        version=event.version,
        last_version=event.version,
        count=1,
        type=event.type,
        at=event.occurred_at,
        last_at=event.occurred_at,
        actor=event.actor,
        trace=event.trace,
        text=sentence(event),
        body=event.body
        if elsewhere is None
        else {name: value for name, value in event.body.items() if name not in elsewhere},
        position=str(event.position),
    )
    if last is None or event.type not in LOOKS_BACK:
        return entry
    if _is_of(last, event):
        return msgspec.structs.replace(
            last, last_version=event.version, last_at=event.occurred_at, position=entry.position
        )
    if last.type != event.type or event.type not in COUNTED:
        return entry
    if _source(last.type, last.actor, last.body) != _source(event.type, event.actor, event.body):
        return entry
    count = last.count + 1
    return msgspec.structs.replace(
        entry, version=last.version, at=last.at, count=count, text=repeated(event, count)
    )


def _is_of(last: Entry, event: Event) -> bool:
    """Whether this is the evidence of the runs that the last line counts: a line of its own would end the count."""
    if event.type != EVIDENCE or last.type not in _BLAMES or event.body["finding"] is None:
        return False
    return bool(event.body["finding"]["analyzer"] == last.body["finding"]["analyzer"])


def _source(type_: str, actor: str, body: Mapping[str, Any]) -> str:
    if type_ == "incident.opinion_changed":
        return str(body["opinion"]["analyzer"])
    if type_ == "incident.alerts_joined":
        return str(body["why"])
    if type_ == "incident.alerts_removed":
        return str(body["why"])
    if type_ == "incident.symptoms_joined":
        return "" if body["source"] is None else str(body["source"]["number"])
    if type_ == "incident.alerts_resolved":
        return "flapping" if body["flapping"] else ""
    if type_ == "incident.repair_judged":
        return str(body["proof"]["verdict"])
    return actor if type_ == "incident.report_joined" else str(body["finding"]["analyzer"])


def timeline_of(events: Iterable[Event]) -> list[Entry]:
    """Oldest first."""
    entries: dict[int, Entry] = {}
    last: Entry | None = None
    for event in events:
        last = next_entry(last, event)
        entries[last.version] = last
    return list(entries.values())


def evidence_in(event: Event) -> list[Evidence]:
    """The pieces that one event attached."""
    if event.type != EVIDENCE:
        return []
    finding = event.body["finding"]
    return [
        Evidence(
            version=event.version,
            place=place,
            kind=item["kind"],
            title=item["title"],
            columns=item.get("columns", []),
            rows=item.get("rows", []),
            chart=item.get("chart", {}),
            text=item.get("text", ""),
            at=event.occurred_at,
            actor=event.actor,
            analyzer=None if finding is None else finding["analyzer"],
            finding=finding,
            params=event.body["params"],
        )
        for place, item in enumerate(event.body["items"])
    ]


def worth_a_screen(attached: Iterable[tuple[int, str | None]]) -> set[int]:
    """Of (version, analyzer) pairs the versions to show: of an analyzer what it had first and has now."""
    versions: dict[str | None, list[int]] = {}
    for version, analyzer in attached:
        versions.setdefault(analyzer, []).append(version)
    people = versions.pop(None, [])
    return {*people, *(end for found in versions.values() for end in (min(found), max(found)))}


# Project
# ----------------------------------------------------------------------------------------------------------
_SETTLES = frozenset({"incident.resolved", "incident.reopened", "incident.analyzer_missed_cause"})
PLACES = {
    "incident.opened": "opened",
    "incident.finding_joined": "joined",
    "incident.finding_recorded": "recorded",
}
"""Outcome of a finding by the type of event that places it."""


def project(before: Incident | None, events: Sequence[Event]) -> Incident:
    """Brings the read models of one incident up to its newest events, in order; returns the state after them.

    Needs a transaction that keeps other writers of this incident out.
    """
    return project_together([(before, events)])[0].after


def project_together(new: Sequence[tuple[Incident | None, Sequence[Event]]]) -> list[Change]:
    """As `project`, of several incidents, each named once, with a few statements for all of them."""
    changes = [change(before, events) for before, events in new]
    _rows(changes)
    _timeline(changes)
    _evidence(changes)
    _findings(changes)
    _members(changes)
    _record_outcomes(changes)
    for part in parts():
        part.project(changes)
    return changes


def change(before: Incident | None, events: Sequence[Event]) -> Change:
    """Incident before and after the events, of which there is at least one."""
    states: list[Incident] = []
    state = before
    for event in events:
        state = evolve(state, event)
        states.append(state)
    return Change(before, events, states)


_COUNTS = ("title", "alerts", "firing", "flapping", "alert_at", "reported_at")
"""Fields of a state that alerts change when they join and when they are over: the title of a group tells how many."""
_FURTHER = (
    "UPDATE incident SET version = new_version, position = new_position, quiet = new_quiet, title = new_title,"
    " alerts = new_alerts, firing = new_firing, flapping = new_flapping, alert_at = new_alert_at,"
    " reported_at = new_reported_at"
    " FROM unnest(%s::uuid[], %s::integer[], %s::integer[], %s::text[], %s::boolean[], %s::text[], %s::integer[],"
    " %s::integer[], %s::boolean[], %s::timestamptz[], %s::timestamptz[]) AS new (new_id, old_version,"
    " new_version, new_position, new_quiet, new_title, new_alerts, new_firing, new_flapping, new_alert_at,"
    " new_reported_at)"
    " WHERE id = new_id AND version = old_version RETURNING id::text"
)


def _rows(changes: Sequence[Change]) -> None:
    further = _gone_further([change for change in changes if _counts_on(change)])
    upsert(IncidentRow, [columns_of(change) for change in changes if change.after.id not in further], ("id",))


def columns_of(change: Change) -> dict[str, Any]:
    """The columns of its IncidentRow."""
    last = change.events[-1]
    return {**fields_of(change.after), "version": last.version, "position": str(last.position)}


def _counts_on(change: Change) -> bool:
    """Whether the incident stands as before, but for what its alerts change: of a row's 68 columns few."""
    before, after = change.before, change.after
    return before is not None and after == replace(before, **{name: getattr(after, name) for name in _COUNTS})


def _gone_further(changes: Sequence[Change]) -> set[str]:
    """Those of these incidents whose rows have been written; a row that was behind is to be written whole."""
    if not changes:
        return set()
    values: list[list[Any]] = [
        [change.after.id for change in changes],
        [change.events[0].version - 1 for change in changes],
        [change.events[-1].version for change in changes],
        [str(change.events[-1].position) for change in changes],
        [is_quiet(change.after) for change in changes],
        *([getattr(change.after, name) for change in changes] for name in _COUNTS),
    ]
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
        made += [{"incident_id": id_, **entry_columns(one)} for one in changed.values()]
    # A line that is counted on stays of its type and keeps its first time: the upsert writes both as they were.
    upsert(TimelineEntry, made, ("incident_id", "version"))


def _last_entries(incidents: Sequence[str]) -> dict[str, Entry]:
    rows = TimelineEntry.objects.filter(incident__pk__in=incidents).order_by("incident_id", "-version")
    return {str(row.incident_id): entry_of(row) for row in rows.distinct("incident_id")}


def entry_columns(entry: Entry) -> dict[str, Any]:
    """The columns of its TimelineEntry. `asdict` would copy the body, however deep."""
    return {name: getattr(entry, name) for name in ENTRY_FIELDS}


def entry_of(row: TimelineEntry) -> Entry:
    return Entry(**{name: getattr(row, name) for name in ENTRY_FIELDS})


def _evidence(changes: Sequence[Change]) -> None:
    EvidenceItem.objects.bulk_create(
        EvidenceItem(incident_id=change.after.id, **asdict(piece))
        for change in changes
        for event in change.events
        for piece in evidence_in(event)
    )


def _findings(changes: Sequence[Change]) -> None:
    FindingPlacement.objects.bulk_create(
        FindingPlacement(incident_id=change.after.id, **row)
        for change in changes
        for event in change.events
        if (row := placement_of(event)) is not None
    )


def placement_of(event: Event) -> dict[str, Any] | None:
    """The columns of the FindingPlacement that the event makes."""
    outcome, finding = PLACES.get(event.type), event.body.get("finding")
    if outcome is None or finding is None:
        return None
    return {
        "run": finding["run"],
        "component": finding["component"],
        "outcome": outcome,
        "version": event.version,
    }


_MOVED = (
    " FROM unnest(%s::uuid[], %s::integer[], %s::timestamptz[], %s::text[]) WITH ORDINALITY"
    " AS event (new_incident, new_version, new_at, alerts, place),"
    " unnest(alerts::uuid[]) WITH ORDINALITY AS moved (new_alert, nth)"
)
_JOIN = (
    "INSERT INTO incident_alert (incident_id, version, alert, resolved, at)"
    f" SELECT new_incident, new_version, new_alert, false, new_at{_MOVED}"
    " ORDER BY place, nth ON CONFLICT (incident_id, alert) DO UPDATE SET resolved = false, at = EXCLUDED.at"
)
_REST = (
    f"UPDATE incident_alert SET resolved = true, at = new_at{_MOVED}"
    " WHERE incident_id = new_incident AND alert = new_alert"
)


_JOINING = frozenset(
    {"incident.alerts_joined", "incident.symptoms_joined", "incident.merge_received", "incident.split_from"}
)
_LEAVING = frozenset({"incident.merge_undone", "incident.alerts_removed", "incident.alerts_moved"})
_RESTING = "incident.alerts_resolved"
_MOVING_ALONE = _LEAVING | {"incident.merged", "incident.unmerged", "incident.split_from"}
_MOVING = _JOINING | _MOVING_ALONE | {_RESTING}


def _members(changes: Sequence[Change]) -> None:
    """Write the first event about members of each incident, then the second ones: one statement for each kind."""
    of_each = [
        (change.after.id, iter([event for event in change.events if event.type in _MOVING]))
        for change in changes
    ]
    while turn := [(id_, event) for id_, events in of_each if (event := next(events, None)) is not None]:
        _move_together(_JOIN, [(id_, event) for id_, event in turn if event.type in _JOINING])
        _move_together(_REST, [(id_, event) for id_, event in turn if event.type == _RESTING])
        for id_, event in turn:
            _move(id_, event)


def _move_together(sql: str, turn: Sequence[tuple[str, Event]]) -> None:
    """In SQL: a storm's alerts join in events of hundreds; a model for each would cost several times that."""
    moved = [
        (id_, event.version, event.occurred_at, plain_array(event.body["alerts"])) for id_, event in turn
    ]
    if moved:
        with connection.cursor() as cursor:
            cursor.execute(sql, [list(column) for column in zip(*moved, strict=True)])


def _move(incident: str, event: Event) -> None:
    """Write what few events change."""
    if event.type not in _MOVING_ALONE:
        return
    members = MemberAlert.objects.filter(incident__pk=incident)
    if event.type == "incident.split_from":
        members.filter(alert__in=event.body["resolved"]).update(resolved=True)
    elif event.type == "incident.merged":
        members.update(resolved=True, at=event.occurred_at)
    elif event.type == "incident.unmerged":
        members.filter(alert__in=event.body["alerts"]).update(resolved=False, at=event.occurred_at)
    elif event.type in _LEAVING:
        members.filter(alert__in=event.body["alerts"]).delete()


def _record_outcomes(changes: Sequence[Change]) -> None:
    """Each as the latest resolution has it; an incident that was reopened has none until it is resolved again."""
    settled = [change for change in changes if any(event.type in _SETTLES for event in change.events)]
    if not settled:
        return
    AnalyzerOutcomeRow.objects.filter(incident__in=[change.after.id for change in settled]).delete()
    AnalyzerOutcomeRow.objects.bulk_create(
        AnalyzerOutcomeRow(incident_id=change.after.id, **row)
        for change in settled
        for row in outcomes_of(change)
    )


def outcomes_of(change: Change) -> list[dict[str, Any]]:
    """The columns of each AnalyzerOutcomeRow, where the events settle any."""
    versions = [event.version for event in change.events if event.type in _SETTLES]
    if not versions:
        return []
    return [{"version": versions[-1], **asdict(one)} for one in analyzer_outcomes(change.after)]
