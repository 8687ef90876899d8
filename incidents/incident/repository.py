"""Commands on incidents: load, decide, append, project. The caller holds the transaction.

A command that carries the position its sender last saw is refused after a contending change. Moves between teams
and people are counted for Prometheus once the transaction has committed; rebuilds count nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import connection, transaction
from django.db.models import QuerySet
from prometheus_client import Counter, Histogram

from incidents.domain.incident.commands import Command, Open, OpenForAlerts, OpenForFinding, OpenSplitOff
from incidents.domain.incident.decide import (
    CommandRefusedError,
    ConcurrentChangeError,
    Happened,
    contending,
    decide,
)
from incidents.domain.incident.evolve import fold
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError
from incidents.incident.models import IncidentRow, PendingAutoAssign, TimelineEntry
from incidents.incident.projection import Change, project_together, state_of
from ingest.commands import StreamAppend, append, extend
from ingest.queries import Context, Event, Head, NewEvent, heads, now_utc, read_streams

# Conflicts
# ----------------------------------------------------------------------------------------------------------
_POSITION = re.compile(r"[0-9a-f]{36}")


class ExpectedContext(Context, frozen=True):
    """`seen` is the `position` of the incident that the asker looked at; None: it is done however it stands."""

    seen: str | None = None


def seen_from(field: str, text: str) -> str | None:
    """A position as an ETag or a form carries it; `*` and nothing say that it does not matter. Raises
    InvalidValueError."""
    position = text.strip().removeprefix("W/").strip('"')
    if position in ("", "*"):
        return None
    if not _POSITION.fullmatch(position):
        raise InvalidValueError(field, "must be an ETag of the incident")
    return position


def changes_since(incident_id: str, command: Command, context: Context) -> tuple[Happened, ...]:
    """Events that contend with the command and are newer than those the actor has seen, oldest first."""
    seen, types = getattr(context, "seen", None), contending(command)
    if seen is None or not types:
        return ()
    newer = TimelineEntry.objects.filter(incident__pk=incident_id, position__gt=seen, type__in=types)
    return tuple(
        Happened(one.type, one.last_at, one.actor, one.text, one.position)
        for one in newer.order_by("version")
    )


# Metrics
# ----------------------------------------------------------------------------------------------------------
MOVES = Counter(
    "dossier_incident_moves",
    "Hand-overs, rejections and hand-overs taken back, committed by this process",
    ["kind", "source", "target"],
)
TEAM_SECONDS = Counter(
    "dossier_incident_team_seconds",
    "Time that incidents spent with a team, counted when they left it",
    ["team"],
)
OWNER_SECONDS = Counter(
    "dossier_incident_owner_seconds",
    "Time that incidents were owned by somebody, counted when they were no more",
    ["owner"],
)
TO_TEAM = Histogram(
    "dossier_incident_seconds_to_team",
    "From the opening of an incident until it came to the team that resolved it, to stay",
    buckets=(60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600),
)

_MOVES = {
    "incident.reassigned": "hand_over",
    "incident.reassignment_rejected": "bounce",
    "incident.reassignment_undone": "undo",
}


def measure(before: Incident | None, events: Iterable[Event], after: Incident) -> None:
    """Counts once the transaction that recorded `events` has committed."""
    joined_events = list(events)
    transaction.on_commit(lambda: _count(before, joined_events, after), robust=True)


def _count(before: Incident | None, events: Iterable[Event], after: Incident) -> None:
    for event in events:
        if event.type in _MOVES:
            MOVES.labels(_MOVES[event.type], event.body["from"], event.body["to"]).inc()
    for counter, was, spent in (
        (TEAM_SECONDS, {} if before is None else before.team_seconds, after.team_seconds),
        (OWNER_SECONDS, {} if before is None else before.owner_seconds, after.owner_seconds),
    ):
        for name, seconds in spent.items():
            if seconds > was.get(name, 0.0):
                counter.labels(name).inc(seconds - was.get(name, 0.0))
    if after.seconds_to_team is not None and (before is None or before.seconds_to_team is None):
        TO_TEAM.observe(after.seconds_to_team)


# Commands
# ----------------------------------------------------------------------------------------------------------
class IncidentNotFoundError(LookupError):
    """No incident has this id or number."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The incident after a command and the events that the command made: none when nothing changed."""

    incident: Incident
    position: str
    events: tuple[Event, ...]


def stream_of(incident_id: str) -> str:
    return f"incident/{incident_id}"


@dataclass(frozen=True, slots=True)
class LockedCommand:
    """A command on the incident of a row that the caller has read and locked in this transaction."""

    row: IncidentRow
    command: Command
    context: Context
    state: Incident | None = None
    """State of the row, where the caller has made it already."""


def record(
    incident_id: str, command: Command, context: Context, when: datetime | None = None
) -> CommandResult:
    """Carries out `command` on an incident, as if it were `when` (default: now).

    Raises IncidentNotFoundError, CommandRefusedError (ConcurrentChangeError where the asker had not seen what others
    did), StreamVersionError.
    """
    row = IncidentRow.objects.select_for_update().filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    return record_on(row, command, context, when)


def record_on(
    row: IncidentRow, command: Command, context: Context, when: datetime | None = None
) -> CommandResult:
    """As `record`, on the row of an incident that the caller has read and locked in this transaction."""
    return record_together([LockedCommand(row, command, context)], when)[0]


def record_together(commands: Sequence[LockedCommand], when: datetime | None = None) -> list[CommandResult]:
    """Each as `record_on` does it, each on another incident, in the order given: a few statements for all of them.

    Raises, and records none, where one of them does.
    """
    if not commands:
        return []
    now = when or now_utc()
    known = heads([stream_of(str(one.row.pk)) for one in commands])
    states = _all_loaded([one.row for one in commands], known, [one.state for one in commands])
    assert len(states) == len(commands), "each command is on another incident"
    decided = [
        (one, state, _decided(state, one.command, one.context, now))
        for one, state in zip(commands, states.values(), strict=True)
    ]
    added = [
        StreamAppend(stream := stream_of(state.id), events, known[stream], one.context)
        for one, state, events in decided
        if events
    ]
    recorded = iter(extend(added))
    changed = [(state, list(islice(recorded, len(events)))) for _, state, events in decided if events]
    after = {change.after.id: change for change in _projected(changed)}
    return [
        CommandResult(change.after, str(change.events[-1].position), tuple(change.events))
        if (change := after.get(state.id)) is not None
        else CommandResult(state, one.row.position, ())
        for one, state, _ in decided
    ]


def loaded(row: IncidentRow) -> Incident:
    """The incident of a row that the caller has locked."""
    stream = stream_of(str(row.pk))
    return _all_loaded([row], heads([stream]), [None])[str(row.pk)]


def _all_loaded(
    rows: Sequence[IncidentRow], known: Mapping[str, Head], made: Sequence[Incident | None]
) -> dict[str, Incident]:
    """A row was written with the event; one that is behind is not believed."""
    streams = {str(row.pk): stream_of(str(row.pk)) for row in rows}
    behind = [streams[str(row.pk)] for row in rows if row.version != known[streams[str(row.pk)]].version]
    events = read_streams(behind) if behind else {}
    states: dict[str, Incident] = {}
    for row, ready in zip(rows, made, strict=True):
        events_of_row = events.get(streams[str(row.pk)])
        state = (ready or state_of(row)) if events_of_row is None else fold(events_of_row)
        assert state is not None
        states[str(row.pk)] = state
    return states


def _decided(state: Incident, command: Command, context: Context, now: datetime) -> list[NewEvent]:
    """Events of the command, unless somebody else was first. Raises ConcurrentChangeError."""
    happened = changes_since(state.id, command, context)
    try:
        events = decide(state, command, now)
    except CommandRefusedError as refused:
        if happened:
            raise ConcurrentChangeError(state.number, happened, refused.reason) from refused
        raise
    if events and happened:
        raise ConcurrentChangeError(state.number, happened)
    return events


def record_opening(
    command: Open | OpenForFinding | OpenForAlerts | OpenSplitOff,
    context: Context,
    when: datetime | None = None,
) -> CommandResult:
    """Opens an incident. The caller holds the dedup key (`lock_key`) and has seen no open incident of it."""
    stream = stream_of(command.id)
    events = append(stream, decide(None, command, when or now_utc()), Head.NEW, context)
    (change,) = _projected([(None, events)])
    # Descriptions of the past stay where they were.
    if when is None and not isinstance(command, OpenSplitOff) and command.routing.follow_suggestion:
        PendingAutoAssign.objects.create(incident=command.id, route=command.routing.path[-1])
    return CommandResult(change.after, str(events[-1].position), tuple(events))


def _projected(new: Sequence[tuple[Incident | None, Sequence[Event]]]) -> list[Change]:
    changes = project_together(new) if new else []
    for change in changes:
        measure(change.before, change.events, change.after)
    return changes


def open_incident_of(dedup_key: str) -> str | None:
    """The incident that reports and alerts of this key join: the open one, or the one that it was merged into."""
    return _open_among(IncidentRow.objects.filter(dedup_key=dedup_key))


def open_incident_of_group(group_key: str, since: datetime | None) -> str | None:
    """The same of a group of alerts, among its incidents that were opened after `since` (None: ever)."""
    of_group = IncidentRow.objects.filter(group_key=group_key)
    return _open_among(of_group if since is None else of_group.filter(opened_at__gt=since))


def _open_among(rows: QuerySet[IncidentRow]) -> str | None:
    newest = rows.order_by("-number").only("state", "merged_into")
    found = newest.exclude(state="resolved").first() or newest.first()
    while found is not None and found.merged_into is not None:
        found = IncidentRow.objects.only("state", "merged_into").get(pk=found.merged_into)
    return None if found is None or found.state == "resolved" else str(found.pk)


def refuse_second(row: IncidentRow) -> None:
    """Takes the key of an incident that is to be open again. Raises CommandRefusedError where another one is open for
    it."""
    lock_key(row.dedup_key)
    same = IncidentRow.objects.filter(dedup_key=row.dedup_key).exclude(state="resolved")
    if (other := same.exclude(pk=row.pk).first()) is not None:
        raise CommandRefusedError(f"#{other.number} is already open for the same dedup key")


def keep_reactor_out() -> None:
    """Until the transaction ends, what the log asks of incidents waits: alerts and findings meet a settled state."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('follower incidents', 0))")


def next_number() -> int:
    """Numbers rise and are never given twice; an opening that is rolled back leaves a gap."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('incident_number')")
        return int(cursor.fetchone()[0])


def lock_key(dedup_key: str) -> None:
    """Makes reports of the same key wait for each other until the transaction ends.

    Without it the partial unique index would refuse the second opening, at the price of a rolled-back number.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"incident key {dedup_key}",)
        )
