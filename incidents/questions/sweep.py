"""Answers from telemetry: `probe` rows of a path that an incident asked for, looked for by `manage.py deliver`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import OperationalError

from incidents.domain.incident.commands import AnswerQuestion
from incidents.domain.incident.questions import BY_ROWS
from incidents.domain.incident.state import Incident
from incidents.domain.questions import LEAST_PACKETS, Question, RequestedProbe, lost_for_positive, measured
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.questions.commands import record_answer
from incidents.questions.queries import others
from incidents.remediation.queries import DEFAULT_REGION
from ingest.queries import Context, ProbedPath, now_utc, probes_between

ACTOR: Final = "system:incidents"
EVERY: Final = 5.0
"""Seconds between two looks of one process."""
LATE: Final = timedelta(days=1)
"""Time after the end of a request in which rows of its time still answer it."""

log = structlog.get_logger("questions")
_looked: dict[str, float] = {}


def sweep(_: datetime) -> int:
    """Answers what rows answer; how many answers that made."""
    if time.monotonic() - _looked.get("sweep", -EVERY) < EVERY:
        return 0
    _looked["sweep"] = time.monotonic()
    return answer_requested(now_utc())


def answer_requested(now: datetime) -> int:
    """The same at once, at a time."""
    found = 0
    watched = IncidentRow.objects.filter(questions__isnull=False, merged_into=None)
    for row in watched.exclude(resolved_at__lt=now - LATE).order_by("number"):
        state = state_of(row)
        assert state.questions is not None
        for request in state.questions.requested:
            if now < request.until + LATE and not state.questions.answered_since(request):
                found += _answered(state, request, now)
    return found


def _answered(state: Incident, request: RequestedProbe, now: datetime) -> int:
    question = request.question
    try:
        rows = probes_between(
            state.region or DEFAULT_REGION, question.src, question.dst, request.at, min(now, request.until)
        )
    except OperationalError as error:
        log.warning("answers not looked for", incident=state.number, error=str(error).strip())
        return 0
    path = _of_path(rows, question)
    if path is None or path.sent < (LEAST_PACKETS if now >= request.until else question.packets):
        return 0
    command = AnswerQuestion(
        measured(question, path.sent),
        "positive" if path.lost >= lost_for_positive(path.sent) else "negative",
        BY_ROWS,
        at=path.last,
        others=others(state),
        sent=path.sent,
        lost=path.lost,
    )
    return len(record_answer(state.id, command, Context(ACTOR)).events)


def _of_path(rows: Sequence[ProbedPath], question: Question) -> ProbedPath | None:
    """The sums over the path that was asked for; rows without hops count as of it."""
    for hops in (question.hops, ()):
        for one in rows:
            if one.hops == hops:
                return one
    return None
