"""Escalations whose time has come: found in the database about once a second, by `manage.py deliver`.

A ticket goes on in a transaction that holds its row: the events, the next timer and the calls that they ask for are
committed together or not at all, and a second sweep passes over a ticket that the first is at.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from incidents.projections.store import Recorded, record_on, stream_of
from ingest.commands import retrying
from ingest.queries import Context, Event

MOST: Final = 200
"""Tickets of one sweep; what is left is due in the next, which follows at once."""
TOGETHER: Final = 10
"""Tickets of one transaction."""
MOST_AT_ONCE: Final = 3
"""What one ticket does in a sweep: forgotten, started and its first step taken."""
PAUSE: Final = timedelta(seconds=10)
"""For which a ticket whose escalation failed is passed over, so that it keeps no other from being called."""
AUDIT: Final = timedelta(minutes=1)
"""Between looks for tickets without a timer."""
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
    for first in range(0, len(ids), TOGETHER):
        done += retrying(partial(_together, ids[first : first + TOGETHER], directory))
    return done


def _make_up(now: datetime, most: int) -> int:
    """Looks once in a while for tickets that have no timer and no reason: there should be none."""
    if _audited and now - _audited[-1] < AUDIT:
        return 0
    made = sum(make_up(id_) for id_ in overlooked(most))
    if made:
        log.warning("tickets without an escalation", made_up=made)
    _audited[:] = [] if made else [now]
    return made


@transaction.atomic
def _together(ids: Sequence[str], directory: Directory) -> int:
    """Some tickets in one transaction: what each costs of its own is small beside a commit."""
    done = 0
    for id_ in ids:
        # Until it has gone well: what raises takes these few back, and the next round begins without the one at fault.
        _failing[id_] = directory.now + PAUSE
        done += _go_on(id_, directory)
        _failing.pop(id_, None)
    return done


def _go_on(id_: str, directory: Directory) -> bool:
    """Whether anything was due; not where somebody else holds the ticket, whose command comes first."""
    row = IncidentRow.objects.select_for_update(skip_locked=True).filter(pk=id_).first()
    went_on = False
    for _ in range(MOST_AT_ONCE):
        recorded = None if row is None else _one_step(row, directory)
        if recorded is None:
            break
        went_on = True
        if any(event.type == "incident.escalated" for event in recorded.events):
            break
        row = IncidentRow.objects.get(pk=id_)
    return went_on


def _one_step(row: IncidentRow, directory: Directory) -> Recorded | None:
    timer, state = EscalationRow.objects.get(incident=row), state_of(row)
    command = _command(timer.escalation, state, directory)
    if command is None:
        return None
    context = Context(ENGINE, cause=f"{stream_of(state.id)}@{timer.version}")
    recorded = record_on(row, command, context, directory.now)
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
