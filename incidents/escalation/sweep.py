"""Due escalations: found in the database about once a second by `manage.py deliver`.

Their timers are projected from the events of incidents in the transaction that records them, so no open incident
is without one. A sweep holds the rows of its incidents: events, next timers and calls are committed together or
not at all, and a second sweep skips incidents that the first is at.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q

from incidents.domain.escalation.policy import Policy
from incidents.domain.incident import commands as c
from incidents.domain.incident.escalation import (
    CLOCKS,
    ENGINE,
    Escalation,
    due,
    escalation_from,
    next_step,
)
from incidents.domain.incident.state import Incident
from incidents.escalation.models import EscalationPolicy, EscalationRow, project
from incidents.escalation.queries import Directory
from incidents.incident.models import IncidentRow
from incidents.incident.projection import change, state_of
from incidents.incident.repository import CommandResult, LockedCommand, record_together, stream_of
from incidents.notifications.queue import Call, notify_all
from incidents.suppression.suppressor import Covers
from ingest.commands import Backoff, in_halves, retrying
from ingest.queries import Context, Event, read_stream

# Backfill
# ----------------------------------------------------------------------------------------------------------


def missing_timers(most: int, but: Collection[str] = ()) -> list[str]:
    """Incidents that wait for somebody and have no row here: those that are older than escalations."""
    waiting = IncidentRow.objects.exclude(state="resolved").filter(escalation__isnull=True)
    others = waiting.exclude(pk__in=list(but)).order_by("number")
    return [str(pk) for pk in others.values_list("pk", flat=True)[:most]]


@transaction.atomic
def backfill_timers(ids: Sequence[str]) -> int:
    """The rows of incidents that had none; how many still had none."""
    rows = list(IncidentRow.objects.select_for_update().filter(pk__in=ids).order_by("number"))
    # Asked once they are locked: from here on nobody gives them one.
    have = set(EscalationRow.objects.filter(incident__pk__in=ids).values_list("incident_id", flat=True))
    changes = [change(None, read_stream(stream_of(str(row.pk)))) for row in rows if row.pk not in have]
    project(changes)
    return len(changes)


# Sweep
# ----------------------------------------------------------------------------------------------------------
MOST: Final = 1000
"""Incidents of one sweep; what is left is due in the next, which follows at once."""
TOGETHER: Final = 250
"""Incidents of one transaction."""
MOST_AT_ONCE: Final = 3
"""Most actions of one incident in a sweep: forgotten, started and its first step taken."""
PAUSE: Final = 10.0
"""Seconds for which an incident whose escalation failed is passed over, so that it keeps no other from being called."""
AUDIT: Final = timedelta(minutes=1)
"""Between looks for incidents without a timer."""
URGENT: Final = ("critical", "error")

_passed_over = Backoff("escalation", PAUSE)
_audited: list[datetime] = []

log = structlog.get_logger("escalation")


def sweep(now: datetime, most: int = MOST) -> int:
    """Have what is due at `now` go on, the longest overdue first; how many incidents did.

    Raises what the first incident raised that could not go on, after all others have.
    """
    directory, failed, but = Directory(now), dict[str, Exception](), _passed_over.ids()
    done, ahead = _audit(directory, most, but, failed)
    timers = EscalationRow.objects.filter(due_at__lte=now).exclude(pk__in=list(but))
    ids = [*ahead, *(str(pk) for pk in timers.order_by("due_at").values_list("pk", flat=True)[:most])]

    def go_on(part: Sequence[str]) -> int:
        return retrying(partial(_together, part, directory))

    for first in range(0, len(ids), TOGETHER):
        done += in_halves(ids[first : first + TOGETHER], go_on, failed)
    _passed_over.add(failed)
    return done


def _audit(
    directory: Directory, most: int, but: Collection[str], failed: dict[str, Exception]
) -> tuple[int, list[str]]:
    """Looks once in a while for incidents that have no timer and no reason (how many were given one), and for
    timers that a clock has set which was set back since: there should be none. And for incidents that have a
    policy by now."""
    now = directory.now
    if _audited and timedelta(0) <= now - _audited[-1] < AUDIT:
        return 0, []
    made = in_halves(missing_timers(most, but), backfill_timers, failed)
    if made:
        log.warning("incidents without an escalation", made_up=made)
    waiting = EscalationRow.objects.filter(due_at__gt=now + CLOCKS, phase__in=("starting", "climbing"))
    ahead = [str(row.pk) for row in waiting.iterator() if due(row.escalation, now) is not None][:most]
    if ahead:
        log.warning("the clock was set back", timers=len(ahead))
    _audited[:] = [] if made or ahead else [now]
    return made, [id_ for id_ in (*ahead, *_has_policy_now(directory, most)) if id_ not in but]


def _has_policy_now(directory: Directory, most: int) -> list[str]:
    """Incidents about which nobody was called because there was no policy for them, as there is now."""
    policies = dict(EscalationPolicy.objects.values_list("slug", "team__slug"))
    of_incident = Q(incident__team__in=[team for team in policies.values() if team is not None])
    named = Q(state__routed_policy__in=list(policies))
    uncalled = EscalationRow.objects.filter(of_incident | named, incident__state="open", phase="uncalled")
    rows = uncalled.order_by("incident__number").values_list("pk", "incident__team", "state").iterator()
    found = (
        str(pk)
        for pk, team, state in rows
        if isinstance(directory.policy(team, escalation_from(state)), Policy)
    )
    return list(islice(found, most))


@transaction.atomic
def _together(ids: Sequence[str], directory: Directory) -> int:
    """Some incidents in one transaction; not those that somebody else holds, whose command comes first."""
    locked = IncidentRow.objects.select_for_update(skip_locked=True).filter(pk__in=ids).order_by("number")
    rows, went_on = list(locked), set[str]()
    for _ in range(MOST_AT_ONCE):
        recorded = _go_on(rows, directory)
        moved = [one.incident.id for one in recorded if one.events]
        went_on.update(moved)
        called = {
            one.incident.id for one in recorded if any(e.type == "incident.escalated" for e in one.events)
        }
        if not (further := [id_ for id_ in moved if id_ not in called]):
            break
        rows = list(IncidentRow.objects.filter(pk__in=further).order_by("number"))
    return len(went_on)


def _go_on(rows: Sequence[IncidentRow], directory: Directory) -> list[CommandResult]:
    """Next action of each of these; nothing for one that waits."""
    timers = {str(one.pk): one for one in EscalationRow.objects.filter(pk__in=[row.pk for row in rows])}
    requested = []
    covers = Covers(directory.now)
    for row in rows:
        timer = timers[str(row.pk)]
        command = _command(timer.escalation, state := state_of(row), directory)
        if command is not None:
            cover = covers.of(row)
            command = command if cover is None else cover.command
            context = Context(ENGINE, cause=f"{stream_of(str(row.pk))}@{timer.version}")
            requested.append(LockedCommand(row, command, context, state))
    recorded = record_together(requested, directory.now)
    notify_all(
        [
            call
            for entry, one in zip(recorded, requested, strict=True)
            for call in calls(entry, one.context, directory)
        ]
    )
    return recorded


def _command(escalation: Escalation, state: Incident, directory: Directory) -> c.Command | None:
    what = due(escalation, directory.now)
    if what == "policy" or escalation.phase == "uncalled":
        found = directory.policy(state.team, escalation)
        if isinstance(found, Policy):
            return c.StartEscalation(found, escalation.why if what else f"policy is now {found.name}")
        return c.SkipEscalation(found) if what else None
    if what == "step":
        return step(escalation, state, directory)
    if what == "exhausted":
        return c.Exhaust(escalation)
    return None if what is None else c.Forget(escalation)


def step(
    escalation: Escalation, state: Incident, directory: Directory, reason: str | None = None
) -> c.TakeStep:
    """The next step, with whom it reaches now."""
    actions = one.actions if (one := next_step(escalation)) is not None else ()
    return c.TakeStep(escalation, tuple(directory.reached(action, state) for action in actions), reason)


@dataclass(frozen=True, slots=True)
class _Step:
    """Common fields of a step's calls."""

    key: str
    why: str
    urgent: bool
    team: str


def calls(recorded: CommandResult, context: Context, directory: Directory) -> list[Call]:
    """The calls that the events tell of; each has a key and is made once."""
    id_, found = recorded.incident.id, []
    for event in recorded.events:
        if event.type != "incident.escalated":
            continue
        one = _step_of(event, recorded)
        for called in event.body["called"]:
            person = called["person"]
            key = f"{one.key}:person:{person}"
            found.append(
                Call(id_, key, one.why, one.urgent, context, directory.now, person=person, team=one.team)
            )
        for name in event.body["channels"]:
            if (kind := directory.channel(name)) is not None:
                key = f"{one.key}:channel:{name}"
                found.append(
                    Call(id_, key, one.why, True, context, directory.now, None, kind, name, one.team)
                )
    return found


def _step_of(event: Event, recorded: CommandResult) -> _Step:
    body = event.body
    key = f"escalation:{recorded.incident.id}:{body['run']}:{body['round']}:{body['step']}"
    place = f"step {body['step']} of {body['steps']}"
    return _Step(
        key, f"{body['why']} ({place})", recorded.incident.severity in URGENT, recorded.incident.team
    )
