"""Asking agents for probes and recording answers. Each function is one transaction.

Raises as `incidents.commands` does. While a probe is asked for it is on the ping lists of the incident's region.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from django.db import transaction

from analyzers.commands import request_probe, withdraw_probes
from incidents.domain.incident.commands import AnswerQuestion, RequestProbe
from incidents.domain.incident.state import Incident
from incidents.domain.questions import Outcome, Question
from incidents.domain.values import CommandRefusedError
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import CommandResult, IncidentNotFoundError, record
from incidents.people.permissions import allow
from incidents.questions.queries import find, others
from incidents.remediation.queries import DEFAULT_REGION
from ingest.commands import retrying
from ingest.queries import Context, now_utc

REQUESTED_FOR: Final = timedelta(minutes=30)
"""Time for which agents are to make a probe."""


class UnknownQuestionError(CommandRefusedError):
    """The incident has no question of this id, neither now nor among those that were asked or answered."""


def request(incident_id: str, question_id: str, context: Context) -> CommandResult:
    """Puts a probe on the ping lists for half an hour; one that is there already changes nothing."""
    allow("request_probe", context, incident_id)
    now = now_utc()
    state, question = _found(incident_id, question_id, now)
    command = RequestProbe(question, now + REQUESTED_FOR)
    return retrying(partial(_ask, state.id, command, context, now))


def answer(
    incident_id: str,
    question_id: str,
    outcome: Outcome,
    by: str,
    context: Context,
    *,
    note: str = "",
    at: datetime | None = None,
) -> CommandResult:
    """Records the outcome of a measurement; an answer that was recorded before changes nothing."""
    allow("answer_question", context, incident_id)
    state, question = _found(incident_id, question_id, now_utc())
    command = AnswerQuestion(question, outcome, by, note, at, others(state))
    return record_answer(state.id, command, context)


def record_answer(incident_id: str, command: AnswerQuestion, context: Context) -> CommandResult:
    return retrying(partial(_answer, incident_id, command, context))


def _found(incident_id: str, question_id: str, now: datetime) -> tuple[Incident, Question]:
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    state = state_of(row)
    question = find(state, question_id, now)
    if question is None:
        raise UnknownQuestionError(
            f"#{state.number} has no question {question_id[:60]}, open or answered; nothing was recorded. "
            "Add the measurement as a comment"
        )
    return state, question


@transaction.atomic
def _ask(incident_id: str, command: RequestProbe, context: Context, now: datetime) -> CommandResult:
    done = record(incident_id, command, context, now)
    one = command.question
    if done.events:
        region = done.incident.region or DEFAULT_REGION
        path = (one.src, one.dst, one.hops)
        request_probe(done.incident.number, one.id, region, path, one.packets, command.until, now)
    return done


@transaction.atomic
def _answer(incident_id: str, command: AnswerQuestion, context: Context) -> CommandResult:
    done = record(incident_id, command, context)
    if done.events:
        withdraw_probes(done.incident.number, command.question.id)
    return done
