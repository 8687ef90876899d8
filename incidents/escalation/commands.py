"""Commands of people on an escalation: the next step now, or a new start."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from incidents.domain.escalation.policy import Action, check_reason
from incidents.domain.incident import commands as c
from incidents.domain.incident.escalation import next_step
from incidents.domain.incident.state import Incident, refuse_resolved
from incidents.domain.values import CommandRefusedError
from incidents.escalation.models import EscalationRow
from incidents.escalation.queries import Directory
from incidents.escalation.sweep import URGENT, backfill_timers, calls, step
from incidents.incident.models import IncidentRow
from incidents.incident.repository import CommandResult, IncidentNotFoundError, loaded, record
from incidents.notifications.queue import Call, notify_all
from incidents.people.permissions import allow
from incidents.suppression import suppressor
from ingest.commands import retrying
from ingest.queries import Context, now_utc


def escalate(incident_id: str, reason: str, context: Context) -> CommandResult:
    """Call the next people now. Where nobody is being called (it is acknowledged or snoozed, or all were called) begin
    with the first step again, within a second; the incident then waits for somebody.

    Raises InvalidValueError without a reason, CommandRefusedError where the incident is resolved or has no policy,
    IncidentNotFoundError.
    """
    allow("escalate", context, incident_id)
    return retrying(partial(_escalate, incident_id, check_reason(reason), context))


@transaction.atomic
def _escalate(incident_id: str, reason: str, context: Context) -> CommandResult:
    row = IncidentRow.objects.select_for_update().filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    backfill_timers([incident_id])
    state, now = loaded(row), now_utc()
    refuse_resolved(state)
    directory = Directory(now)
    recorded = record(incident_id, _command_of(state, reason, directory), context, now)
    notify_all(calls(recorded, context, directory))
    return recorded


def page(incident_id: str, action: Action, reason: str, context: Context) -> CommandResult:
    """Page the people of one action of a policy now, beside the escalation, which goes on; a comment names them.

    Raises CommandRefusedError where the incident is resolved or the action reaches nobody, IncidentNotFoundError.
    """
    allow("escalate", context, incident_id)
    return retrying(partial(_page, incident_id, action, check_reason(reason), context))


@transaction.atomic
def _page(incident_id: str, action: Action, reason: str, context: Context) -> CommandResult:
    row = IncidentRow.objects.select_for_update().filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    state, now = loaded(row), now_utc()
    refuse_resolved(state)
    reached = Directory(now).reached(action, state)
    if not reached.people:
        raise CommandRefusedError(f"{action.kind} {action.value}: {reached.problem}")
    recorded = record(incident_id, c.Comment(f"Paged {', '.join(reached.people)}: {reason}"), context, now)
    (event,) = recorded.events
    urgent = state.severity in URGENT
    notify_all(
        [
            Call(incident_id, f"page:{event.id}:{one}", reason, urgent, context, now, one, team=state.team)
            for one in reached.people
        ]
    )
    return recorded


def _command_of(state: Incident, reason: str, directory: Directory) -> c.Command:
    escalation = EscalationRow.objects.get(incident__pk=state.id).escalation
    if state.state == "open" and next_step(escalation) is not None:
        return step(escalation, state, directory, reason)
    found = directory.policy(state.team, escalation)
    if isinstance(found, str):
        raise CommandRefusedError(f"no one can be notified for #{state.number}: {found}")
    overriding = suppressor.overriding(state.id, directory.now)
    return c.StartEscalation(found, reason, requested=True, overriding=overriding)
