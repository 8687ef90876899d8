"""Commands on incidents: load, decide, append, project. The caller holds the transaction.

A command that carries the position its sender last saw is refused after a contending change. Moves between teams
and people are counted for Prometheus once the transaction has committed; rebuilds count nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

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
from ingest.commands import NewStream, StreamAppend, begin, extend
from ingest.db.database import plain_array
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


@dataclass(slots=True)
class LockedIncident:
    """An incident whose row the caller has read and locked in this transaction. Once something is recorded on it, the
    row knows its version and position, and `state` the rest."""

    row: IncidentRow
    state: Incident | None = None

    def take(self, recorded: CommandResult) -> None:
        if recorded.events:
            self.row.version, self.row.position = recorded.events[-1].version, recorded.position
        self.state = recorded.incident


@dataclass(frozen=True, slots=True)
class IncidentCommand:
    """A command on the incident of an id."""

    incident: str
    command: Command
    context: Context


def record(
    incident_id: str, command: Command, context: Context, when: datetime | None = None
) -> CommandResult:
    """Carries out `command` on an incident, as if it were `when` (default: now).

    Raises IncidentNotFoundError, CommandRefusedError (ConcurrentChangeError where the asker had not seen what others
    did), StreamVersionError.
    """
    return record_each([IncidentCommand(incident_id, command, context)], when)[0]


def record_each(
    commands: Sequence[IncidentCommand],
    when: datetime | None = None,
    locked: dict[str, LockedIncident] | None = None,
) -> list[CommandResult]:
    """Each as `record` does it, those on the same incident in the order given: a few statements for all first commands
    of an incident, a few for all second ones.

    `locked` are incidents by id that the caller has locked and recorded nothing on since but with these; those that are
    locked here are added. Raises, and the transaction is lost, where one command does.
    """
    results: dict[int, CommandResult] = {}
    waiting = dict(enumerate(commands))
    known = {} if locked is None else locked
    while waiting:
        first: dict[str, int] = {}
        for place, one in waiting.items():
            first.setdefault(one.incident, place)
        turn = [(place, waiting.pop(place)) for place in first.values()]
        if unknown := first.keys() - known.keys():
            known |= locked_incidents(unknown)
            if missing := unknown - known.keys():
                raise IncidentNotFoundError(f"no incident {min(missing)}")
        ready = [
            LockedCommand(known[one.incident].row, one.command, one.context, known[one.incident].state)
            for _, one in turn
        ]
        for (place, one), recorded in zip(turn, record_together(ready, when), strict=True):
            results[place] = recorded
            known[one.incident].take(recorded)
    return [results[place] for place in range(len(commands))]


def locked_rows(ids: Iterable[str]) -> dict[str, IncidentRow]:
    """By id the rows that there are, locked in the order of their numbers until the transaction ends."""
    rows = IncidentRow.objects.select_for_update().filter(pk__in=set(ids)).order_by("number")
    return {str(row.pk): row for row in rows}


def locked_incidents(ids: Iterable[str]) -> dict[str, LockedIncident]:
    """The same for `record_each`."""
    return {id_: LockedIncident(row) for id_, row in locked_rows(ids).items()}


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


Opening = Open | OpenForFinding | OpenForAlerts | OpenSplitOff


def record_opening(command: Opening, context: Context, when: datetime | None = None) -> CommandResult:
    """Opens an incident. The caller holds the dedup key (`lock_keys`) and has seen no open incident of it."""
    return record_openings([command], context, when)[0]


def record_openings(
    commands: Sequence[Opening], context: Context, when: datetime | None = None
) -> list[CommandResult]:
    """Each as `record_opening` does it, in the order given: a few statements for all of them."""
    now = when or now_utc()
    new = [NewStream(stream_of(one.id), decide(None, one, now), context) for one in commands]
    recorded = iter(begin(new))
    changes = _projected([(None, list(islice(recorded, len(one.events)))) for one in new])
    # Descriptions of the past stay where they were.
    following = [
        PendingAutoAssign(incident=one.id, route=one.routing.path[-1])
        for one in commands
        if when is None and not isinstance(one, OpenSplitOff) and one.routing.follow_suggestion
    ]
    if following:
        PendingAutoAssign.objects.bulk_create(following)
    return [
        CommandResult(change.after, str(change.events[-1].position), tuple(change.events))
        for change in changes
    ]


def _projected(new: Sequence[tuple[Incident | None, Sequence[Event]]]) -> list[Change]:
    changes = project_together(new) if new else []
    for change in changes:
        measure(change.before, change.events, change.after)
    return changes


def open_incident_of(dedup_key: str) -> str | None:
    """The incident that reports and alerts of this key join: the open one, or the one that it was merged into."""
    return open_incidents_of([dedup_key]).get(dedup_key)


def open_incidents_of(dedup_keys: Collection[str]) -> dict[str, str]:
    """The same by dedup key, of those that have one."""
    return _open_among(IncidentRow.objects.all(), "dedup_key", dedup_keys)


def open_incidents_of_groups(group_keys: Collection[str], since: datetime | None) -> dict[str, str]:
    """The same by group of alerts, among its incidents that were opened after `since` (None: ever)."""
    rows = IncidentRow.objects.all() if since is None else IncidentRow.objects.filter(opened_at__gt=since)
    return _open_among(rows, "group_key", group_keys)


def _open_among(rows: QuerySet[IncidentRow], key: str, wanted: Collection[str]) -> dict[str, str]:
    def of(names: Iterable[str]) -> QuerySet[IncidentRow]:
        return rows.filter(**{f"{key}__in": list(names)}).order_by(key, "-number").distinct(key)

    unresolved = of(wanted).exclude(state="resolved").values_list(key, "pk") if wanted else ()
    found = {name: str(pk) for name, pk in unresolved}
    if missing := set(wanted) - found.keys():
        merged = list(of(missing).filter(merged_into__isnull=False).values_list(key, flat=True))
        # Only of these, which are few: no index leads to the newest incident of a dedup key where it is resolved.
        for name, into in of(merged).values_list(key, "merged_into") if merged else ():
            if into is not None and (one := _open_after_merges(into)) is not None:
                found[name] = one
    return found


def _open_after_merges(id_: UUID) -> str | None:
    found = IncidentRow.objects.only("state", "merged_into").get(pk=id_)
    while found.merged_into is not None:
        found = IncidentRow.objects.only("state", "merged_into").get(pk=found.merged_into)
    return None if found.state == "resolved" else str(found.pk)


def refuse_second(row: IncidentRow) -> None:
    """Takes the key of an incident that is to be open again. Raises CommandRefusedError where another one is open for
    it."""
    lock_key(row.dedup_key)
    same = IncidentRow.objects.filter(dedup_key=row.dedup_key).exclude(state="resolved")
    if (other := same.exclude(pk=row.pk).first()) is not None:
        raise CommandRefusedError(f"#{other.number} is already open for the same dedup key")


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership of an alert in an incident that is not resolved; it rests where the alert was resolved there."""

    incident: str
    rests: bool


_MEMBERSHIPS = (
    "SELECT DISTINCT ON (alert) alert::text, incident_id::text, resolved FROM incident_alert AS member"
    " JOIN incident ON incident.id = incident_id"
    " WHERE alert = ANY(%s::uuid[]) AND state <> 'resolved' ORDER BY alert, resolved, at DESC, member.id DESC"
)
_NEWEST = (
    "SELECT wanted::text, alert::text FROM unnest(%s::uuid[]) AS wanted, LATERAL ("
    " SELECT alert FROM incident_alert WHERE incident_id = wanted"
    " ORDER BY resolved, at DESC, id DESC LIMIT %s) AS member"
)


def memberships(alerts: Collection[str]) -> dict[str, Membership]:
    """By alert, of those that have one; of an alert of several open incidents, as after a split, the one where it
    fires."""
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERSHIPS, (plain_array(alerts),))
        return {alert: Membership(incident, rests) for alert, incident, rests in cursor.fetchall()}


def newest_members(incidents: Collection[str], most: int) -> dict[str, list[str]]:
    """By incident up to `most` of its alerts: those that fire before those that rest, the newest first."""
    found: dict[str, list[str]] = {incident: [] for incident in incidents}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, (plain_array(incidents), most))
        for incident, alert in cursor.fetchall():
            found[incident].append(alert)
    return found


def keep_reactor_out() -> None:
    """Until the transaction ends, what the log asks of incidents waits: alerts and findings meet a settled state."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('follower incidents', 0))")


def next_number() -> int:
    return next_numbers(1)[0]


def next_numbers(count: int) -> list[int]:
    """Numbers rise and are never given twice; an opening that is rolled back leaves a gap."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('incident_number') FROM generate_series(1, %s)", (count,))
        return [int(number) for (number,) in cursor.fetchall()]


def lock_key(dedup_key: str) -> None:
    lock_keys([dedup_key])


def lock_keys(dedup_keys: Iterable[str]) -> None:
    """Makes reports of the same keys wait for each other until the transaction ends. The keys are taken in one order,
    so that two that want several do not wait for each other for ever.

    Without it the partial unique index would refuse the second opening, at the price of a rolled-back number.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('incident key ' || key, 0))"
            " FROM unnest(%s::text[]) AS wanted (key)",
            (sorted(set(dedup_keys)),),
        )
