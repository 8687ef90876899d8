"""Questions of an incident whose suspects cannot be told apart: asked, answered, and what answers change. Pure.

The measurements and their ranking are in `incidents.domain.questions`. An answer narrows the cause among the suspects
of one verdict; where none of them stays likely the cause stays, and the beliefs alone say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from incidents.domain.incident.conclusion import AS_BEFORE, conclusion
from incidents.domain.incident.finding import percent
from incidents.domain.incident.state import (
    Bodies,
    Fact,
    Incident,
    person,
    refuse_merged,
    refuse_resolved,
    replace,
)
from incidents.domain.questions import (
    NONE,
    OUTCOMES,
    RULED_OUT,
    Answer,
    Beliefs,
    Dialogue,
    Group,
    Outcome,
    Question,
    RequestedProbe,
    beliefs_of,
    entropy,
    information,
    leading,
    question_from,
)
from incidents.domain.values import (
    CommandRefusedError,
    InvalidValueError,
    check_line,
    check_text,
    parse_rfc3339,
    rfc3339,
)

REQUESTED: Final = "incident.probe_requested"
ANSWERED: Final = "incident.question_answered"
BY_ROWS: Final = "telemetry"
"""Actor of answers that come from rows."""
MOST_PENDING: Final = 20
MOST_ANSWERS: Final = 200
LONGEST_NOTE: Final = 2_000
SKEW: Final = timedelta(minutes=5)


# Commands
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RequestProbe:
    """Asks agents for a probe until a time."""

    question: Question
    until: datetime


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """The outcome of a measurement. `at`: when it was measured, None: now. `others` are suspects of the same verdict
    that the incident does not name; `sent` and `lost` the probes that the outcome rests on."""

    question: Question
    outcome: Outcome
    by: str
    note: str = ""
    at: datetime | None = None
    others: tuple[Group, ...] = ()
    sent: int | None = None
    lost: int | None = None

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise InvalidValueError("outcome", f"must be one of {', '.join(OUTCOMES)}")
        object.__setattr__(self, "by", check_line("by", self.by))
        object.__setattr__(self, "note", check_text("note", self.note, LONGEST_NOTE))


# Suspects
# ----------------------------------------------------------------------------------------------------------
def groups_of(state: Incident) -> list[Group]:
    """The suspects that an incident knows: of each analyzer that blames its cause or another component on the same
    paths, else its own component."""
    blaming = [
        one
        for one in state.opinions.values()
        if one.stance in ("blames", "blames_other") and one.component not in state.related
    ]
    groups = [Group(tuple(sorted(one.cause)), one.score) for one in blaming if one.cause]
    if groups or state.component is None or state.reported_at is not None:
        return groups
    return [Group((state.component, *state.ambiguous_with), state.confidence)]


def beliefs(state: Incident, others: tuple[Group, ...] = ()) -> dict[str, float]:
    """The probability of each suspect after all answers."""
    return beliefs_of([*groups_of(state), *others], _dialogue(state).counted())


def _dialogue(state: Incident) -> Dialogue:
    return state.questions or Dialogue()


# Decisions
# ----------------------------------------------------------------------------------------------------------
def request_probe(state: Incident, command: RequestProbe, now: datetime) -> Bodies:
    refuse_resolved(state)
    pending = _dialogue(state).pending(now)
    if any(one.question.id == command.question.id for one in pending):
        return []
    if not command.question.is_judged_by_rows:
        raise CommandRefusedError(
            f"agents run probes that are judged by lost packets; a person has to answer: {command.question.text}"
        )
    if len(pending) >= MOST_PENDING:
        raise CommandRefusedError(
            f"#{state.number} has {MOST_PENDING} pending probes already; wait for an answer"
        )
    return [(REQUESTED, {"question": command.question.as_json(), "until": rfc3339(command.until)})]


def answer_question(state: Incident, command: AnswerQuestion, now: datetime) -> Bodies:
    """One event; none for an answer that was recorded before. A late one, of a resolved incident, changes no cause."""
    refuse_merged(state)
    if command.at is not None and command.at > now + SKEW:
        raise CommandRefusedError(f"an answer of {rfc3339(command.at)} is in the future")
    known = _dialogue(state)
    answer = Answer(command.question, command.outcome, min(command.at or now, now), command.by)
    if _is_repeated(known, answer, command.at is not None):
        return []
    if len(known.answers) >= MOST_ANSWERS:
        raise CommandRefusedError(f"#{state.number} has {MOST_ANSWERS} answers already")
    after_answer = replace(state, questions=replace(known, answers=(*known.answers, answer)))
    before, after = beliefs(state, command.others), beliefs(after_answer, command.others)
    component, ambiguous_with, ruled_out = _narrowed(state, after)
    effect = _effect(
        state, command, before, component != state.component or ambiguous_with != state.ambiguous_with
    )
    if effect == "late":
        component, ambiguous_with, ruled_out = state.component, state.ambiguous_with, known.ruled_out
    cause = frozenset(name for name in (component, *ambiguous_with) if name)
    moved = (component, ambiguous_with) != (state.component, state.ambiguous_with)
    body = {
        "question": command.question.as_json(),
        "outcome": command.outcome,
        "by": command.by,
        "note": command.note,
        "at": rfc3339(answer.at),
        "sent": command.sent,
        "lost": command.lost,
        "effect": effect,
        "prior": _rounded(before),
        "posterior": _rounded(after),
        "bits_expected": round(information(before, command.question), 4),
        "bits_gained": round(entropy(before) - entropy(after), 4),
        "component": component,
        "ambiguous_with": list(ambiguous_with),
        "ruled_out": list(ruled_out),
        **(
            conclusion(state.opinions, component, cause, cause | state.related.keys()) if moved else AS_BEFORE
        ),
    }
    return [(ANSWERED, body)]


def _is_repeated(known: Dialogue, answer: Answer, is_timed: bool) -> bool:
    """Whether the same outcome was recorded before: at the same time, or at any where no time is given."""
    return any(
        one.question.id == answer.question.id
        and one.outcome == answer.outcome
        and (not is_timed or one.at == answer.at)
        for one in known.answers
    )


def _effect(state: Incident, command: AnswerQuestion, before: Beliefs, narrows: bool) -> str:
    if state.state == "resolved":
        return "late"
    if command.outcome == "unclear":
        return "unclear"
    if command.outcome in (outcomes := _dialogue(state).outcomes(command.question.id)):
        return "repeated"
    if outcomes - {"unclear"}:
        return "contradicts"
    if not before.keys() & set(command.question.tests):
        return "no_suspect"
    return "narrowed" if narrows else "moved"


def _narrowed(state: Incident, after: Beliefs) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """The component, its group and what answers ruled out, as the beliefs leave them.

    Only suspects that the cause has, or lost by an answer, may be in it again: what a finding told apart stays apart.
    """
    before = _dialogue(state).ruled_out
    group = [name for name in sorted({*state.cause, *before}) if name in after]
    top = max((after[name] for name in group), default=0.0)
    if state.component not in {*group, *before} or top <= 0 or after[NONE] > top:
        return state.component, state.ambiguous_with, before
    left = [name for name in group if after[name] * RULED_OUT >= top]
    component = (
        state.component if state.component in left else max(left, key=lambda name: (after[name], name))
    )
    ruled_out = tuple(sorted({*group} - {*left} | {*before} - {*group}))
    unknown = [name for name in state.ambiguous_with if name not in after]
    return component, tuple(sorted({*left, *unknown} - {component})), ruled_out


def _rounded(beliefs: Beliefs) -> dict[str, float]:
    return {name: round(p, 6) for name, p in beliefs.items()}


# Folding
# ----------------------------------------------------------------------------------------------------------
def probe_requested(state: Incident, event: Fact) -> Incident:
    one = RequestedProbe(
        question_from(event.body["question"]),
        event.occurred_at,
        parse_rfc3339(event.body["until"]),
        person(event.actor),
    )
    known = _dialogue(state)
    over = {past.question.id for past in known.requested if past.until <= event.occurred_at} | {
        one.question.id
    }
    pending = tuple(past for past in known.requested if past.question.id not in over)
    return replace(state, questions=replace(known, requested=(*pending, one)))


def answered(state: Incident, event: Fact) -> Incident:
    """The conclusion of the event is folded by the caller."""
    body, known = event.body, _dialogue(state)
    one = Answer(question_from(body["question"]), body["outcome"], parse_rfc3339(body["at"]), body["by"])
    return replace(
        state,
        component=body["component"],
        ambiguous_with=tuple(body["ambiguous_with"]),
        questions=replace(known, answers=(*known.answers, one), ruled_out=tuple(body["ruled_out"])),
    )


# Sentences
# ----------------------------------------------------------------------------------------------------------
def requested_probe_sentence(name: str, body: Mapping[str, Any]) -> str:
    return f"{name} asked the agents: {question_from(body['question']).text}"


def answered_sentence(name: str, body: Mapping[str, Any]) -> str:
    question = question_from(body["question"])
    words = {"positive": question.positive, "negative": f"not so: {question.positive}", "unclear": "unclear"}
    count = "" if body["sent"] is None else f" ({body['lost']} of {body['sent']} lost)"
    actor = f"{name}" if body["by"] == name or body["by"] == BY_ROWS else f"{body['by']} (sent by {name})"
    actor = "Telemetry" if body["by"] == BY_ROWS else actor
    return f"{actor} answered “{question.text}”: {words[body['outcome']]}{count}. {moved_sentence(body)}"


def moved_sentence(body: Mapping[str, Any]) -> str:
    """Move of the leading suspect's probability, as a sentence."""
    if body["effect"] == "unclear":
        return "No probability changes"
    name, now = leading(body["posterior"])
    before = body["prior"].get(name, 0.0)
    late = "; the incident is resolved, its cause stays" if body["effect"] == "late" else ""
    return f"{name}: {percent(before)} → {percent(now)}{late}"
