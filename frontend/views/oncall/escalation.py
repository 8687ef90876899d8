"""The line on an incident's page that says who is called next and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from frontend import time_zones
from incidents.domain.escalation.policy import Step, spoken
from incidents.domain.incident.state import Incident
from incidents.escalation.queries import LATE, EscalationStatus, Next, escalation_status, escalation_status_at
from incidents.notifications.queries import unreachable
from ingest.queries import Position


@dataclass(frozen=True, slots=True)
class Line:
    """`tone` is quiet, or bad where nobody will come by themselves. `at`: when it happens, for a title."""

    text: str
    tone: str = "quiet"
    at: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    text: str
    done: bool
    next: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is called for an incident, step by step, and where that stands in words."""

    says: str
    steps: Sequence[PlannedStep]


def escalation_of(it: Incident, now: datetime, as_of: Position | None) -> EscalationStatus | None:
    """How far the calls for an incident have come, or had come at a moment."""
    return escalation_status(it, now) if as_of is None else escalation_status_at(it.id, as_of)


def plan_of(found: EscalationStatus) -> Plan:
    one = found.escalation
    steps = () if one.policy is None else one.policy.steps
    told = [
        PlannedStep(
            _step_words(place, step),
            done=one.phase != "starting" and (one.round > 1 or place < one.step),
            next=one.phase == "climbing" and place == one.step,
        )
        for place, step in enumerate(steps)
    ]
    policy = "" if one.policy is None else f" Policy “{one.policy.name}”"
    again = "" if one.policy is None or one.policy.rounds == 1 else f", {one.policy.rounds} rounds"
    return Plan(f"{_PHASES[one.phase]}: {one.why}.{policy}{again}{':' if steps else ''}", told)


_PHASES = {
    "starting": "Starting",
    "climbing": "Waiting for a response",
    "exhausted": "Escalation ended",
    "uncalled": "No one is paged",
    "acknowledged": "Being worked on",
    "resting": "No one is paged",
}


def _step_words(place: int, step: Step) -> str:
    when = (
        "At once"
        if place == 0 and not step.after
        else f"After {spoken(step.after)}"
        if step.after
        else "Then"
    )
    return f"{when}: {', '.join(str(action) for action in step.actions)}"


def past_words(found: EscalationStatus) -> Line | None:
    """The line as it would have read at a moment: what was to follow, which later events may have changed."""
    one = found.escalation
    if one.phase in ("uncalled", "exhausted"):
        return words(found, one.due_at or datetime.now(UTC))
    # Until a policy is looked up, nobody knows of a call: there may be no policy.
    if one.due_at is None or one.phase != "climbing":
        return None
    what = (
        "All steps done; escalation was due to end" if one.at_end else f"The next step was due{_place(found)}"
    )
    return Line(f"{what} at {_clock(one.due_at)}", at=one.due_at)


def _clock(moment: datetime) -> str:
    return f"{time_zones.local(moment):%H:%M} {time_zones.offset(moment)}"


def words(found: EscalationStatus, now: datetime) -> Line | None:
    one = found.escalation
    due = one.due_at
    if one.phase == "uncalled":
        return Line(f"No one is paged: {one.why}", "bad")
    if one.phase == "exhausted":
        return Line(f"Escalation ended: {one.why}", "bad")
    if due is None or one.phase == "resting":
        return None
    if now - due > LATE:
        late = spoken((now - due).total_seconds())
        return Line(f"The next step is late by {late}; manage.py deliver may not be running", "bad", due)
    when = f"in {spoken((due - now).total_seconds())}, at {_clock(due)}" if due > now else "now"
    if one.phase == "acknowledged":
        return Line(f"Re-pages {when} without progress", at=due) if one.settled else None
    if one.at_end:
        return Line(f"All steps done; escalation ends {when}", at=due)
    lost = {} if found.next is None else unreachable(person for person, _ in found.next.people)
    missing = [_missing(found.next), *(f"{person}: {why}" for person, why in lost.items())]
    alone = found.next is not None and bool(lost) and len(lost) == len(found.next.people)
    text = f"{_names_of(found.next)} {when}{_place(found)}"
    return Line(text, "bad" if alone else "quiet", at=due, why="; ".join(filter(None, missing)))


def _names_of(following: Next | None) -> str:
    if following is None:
        return "Determining recipients"
    if not following.people:
        return "Notifies no one" if not following.actions else f"Will {following.actions[0]}"
    return f"Notifies {', '.join(person for person, _ in following.people)}"


def _place(found: EscalationStatus) -> str:
    one = found.escalation
    if one.policy is None:
        return ""
    place = f"step {one.step + 1} of {len(one.policy.steps)}"
    return f" ({place}, round {one.round} of {one.policy.rounds})" if one.policy.rounds > 1 else f" ({place})"


def _missing(following: Next | None) -> str:
    return "; ".join(f"{target}: {why}" for target, why in following.unreachable) if following else ""
