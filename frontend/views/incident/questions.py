"""Questions that would tell the suspects of an incident apart, fetched beside its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show, user_name
from incidents import queries
from incidents.domain.questions import NONE, Beliefs, Question, question_from
from incidents.people.permissions import refusals
from incidents.questions.queries import Move, by_probability, questions_of
from ingest.queries import now_utc

MOST_SUSPECTS = 8
WORDS = {
    "narrowed": "narrowed the cause",
    "moved": "",
    "contradicts": "contradicts an earlier answer",
    "repeated": "measured before with the same outcome; counts once",
    "unclear": "no probability changes",
    "no_suspect": "tests none of the suspects",
    "late": "came after the incident was resolved; its cause stays",
}


@dataclass(frozen=True, slots=True)
class Step:
    """An answer as the page shows it: what moved are the suspects whose probability changed most, before and after."""

    move: Move
    question: Question
    effect: str
    moved: Sequence[tuple[str, float, float]]


@page
@require_safe
def questions(request: HttpRequest, number: int) -> HttpResponse:
    """The suspects with their probabilities, the best measurements with forms, and how answers moved the suspects."""
    state = queries.get(str(number)).incident
    now = now_utc()
    found = questions_of(state, now)
    refused = refusals(user_name(request), {"request_probe", "answer_question"}, state.id)
    context = {
        "i": state,
        "found": found,
        "suspects": _shown(found.beliefs),
        "more": max(0, len(found.beliefs) - MOST_SUSPECTS),
        "steps": [_step(one) for one in reversed(found.moves)],
        "requested": {one.question.id for one in found.pending},
        "refused": refused,
    }
    return show(request, "frontend/incident/questions.html", context, section="inbox")


def _shown(found: Beliefs) -> list[tuple[str, float]]:
    return [(_name(name), p) for name, p in by_probability(found)[:MOST_SUSPECTS]]


def _step(one: Move) -> Step:
    before, after = one.body["prior"], one.body["posterior"]
    by_change = sorted(after, key=lambda name: (-abs(after[name] - before.get(name, 0.0)), name))
    moved = [(_name(name), before.get(name, 0.0), after[name]) for name in by_change[:4]]
    return Step(one, question_from(one.body["question"]), WORDS[one.body["effect"]], moved)


def _name(name: str) -> str:
    return "none of these" if name == NONE else name
