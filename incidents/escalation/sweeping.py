"""Escalations whose time has come: found in the database about once a second, by `manage.py deliver`.

Each ticket goes on in a transaction of its own, which holds the ticket's row: the events, the next timer and the calls
that they ask for are committed together or not at all, and a second sweep passes over a ticket that the first is at.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from django.db import transaction

from incidents.delivery.commands import notify, notify_address
from incidents.domain import commands as c
from incidents.domain.escalating import due, next_step
from incidents.domain.escalation import ENGINE, Escalation
from incidents.domain.incident import Incident
from incidents.escalation.following import make_up, overlooked
from incidents.escalation.models import EscalationRow
from incidents.escalation.targets import Directory, channel_kind
from incidents.projections.models import IncidentRow
from incidents.projections.rows import state_of
from incidents.projections.store import Recorded, record, stream_of
from ingest.commands import retrying
from ingest.queries import Context, Event

MOST: Final = 200
"""Tickets of one sweep; what is left is due in the next, which follows at once."""
MOST_AT_ONCE: Final = 3
"""What one ticket does in a sweep: forgotten, started and its first step taken."""
PAUSE: Final = timedelta(minutes=1)
"""For which a ticket whose escalation failed is passed over, so that it keeps no other from being called."""
URGENT: Final = ("critical", "error")

_failing: dict[str, datetime] = {}
_audited: list[datetime] = []

log = structlog.get_logger("escalation")


def sweep(now: datetime, most: int = MOST) -> int:
    """Have what is due at `now` go on, the longest overdue first; how many tickets did."""
    for id_ in [id_ for id_, until in list(_failing.items()) if until <= now]:
        _failing.pop(id_, None)
    done = _make_up(now, most)
    timers = EscalationRow.objects.filter(due_at__lte=now).exclude(pk__in=list(_failing))
    ids = [str(pk) for pk in timers.order_by("due_at").values_list("pk", flat=True)[:most]]
    directory = Directory(now)
    for id_ in ids:
        # Until it has gone well: what raises ends this round, and the next begins with the other tickets.
        _failing[id_] = now + PAUSE
        done += retrying(partial(_go_on, id_, directory))
        _failing.pop(id_, None)
    return done


def _make_up(now: datetime, most: int) -> int:
    """Looks once in a while for tickets that have no timer and no reason: there should be none."""
    if _audited and now - _audited[-1] < PAUSE:
        return 0
    made = sum(make_up(id_) for id_ in overlooked(most))
    if made:
        log.warning("tickets without an escalation", made_up=made)
    _audited[:] = [] if made else [now]
    return made


@transaction.atomic
def _go_on(id_: str, directory: Directory) -> bool:
    """Whether anything was due; not where somebody else holds the ticket, whose command comes first."""
    row = IncidentRow.objects.select_for_update(skip_locked=True).filter(pk=id_).first()
    if row is None:
        return False
    state, went_on = state_of(row), False
    for _ in range(MOST_AT_ONCE):
        recorded = _one_step(state, directory)
        if recorded is None:
            break
        state, went_on = recorded.incident, True
    return went_on


def _one_step(state: Incident, directory: Directory) -> Recorded | None:
    row = EscalationRow.objects.get(incident__pk=state.id)
    command = _command(row.escalation, state, directory)
    if command is None:
        return None
    context = Context(ENGINE, cause=f"{stream_of(state.id)}@{row.version}")
    recorded = record(state.id, command, context, directory.now)
    call(recorded, context, directory.now)
    return recorded if recorded.events else None


def _command(escalation: Escalation, state: Incident, directory: Directory) -> c.Command | None:
    what = due(escalation, directory.now)
    if what == "policy":
        found = directory.policy(state, escalation)
        return c.CallNobody(found) if isinstance(found, str) else c.StartEscalation(found, escalation.why)
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
class _Call:
    """What the calls of one step have in common."""

    key: str
    why: str
    urgent: bool


def call(recorded: Recorded, context: Context, now: datetime) -> None:
    """Ask for the calls that the events tell of, in their transaction; each has a key and is made once."""
    id_ = recorded.incident.id
    for event in recorded.events:
        if event.type != "incident.escalated":
            continue
        one = _told(event, recorded)
        for called in event.body["called"]:
            person = called["person"]
            notify(person, id_, f"{one.key}:person:{person}", one.why, one.urgent, context, now)
        for name in event.body["channels"]:
            if (kind := channel_kind(name)) is not None:
                notify_address(kind, name, id_, f"{one.key}:channel:{name}", one.why, context, now)


def _told(event: Event, recorded: Recorded) -> _Call:
    body = event.body
    key = f"escalation:{recorded.incident.id}:{body['run']}:{body['round']}:{body['step']}"
    place = f"step {body['step']} of {body['steps']}"
    return _Call(key, f"{body['why']} ({place})", recorded.incident.severity in URGENT)
