"""The line on a ticket's page that says who is called next and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from incidents.domain.policies import spoken
from incidents.escalation.queries import LATE, Next, Standing, standing


@dataclass(frozen=True, slots=True)
class Line:
    """`tone` is quiet, or bad where nobody will come by themselves. `at`: when it happens, for a title."""

    text: str
    tone: str = "quiet"
    at: datetime | None = None
    why: str = ""


def line_of(reference: str, now: datetime) -> Line | None:
    """None where there is nothing to say: somebody has answered."""
    _, found = standing(reference, now)
    return None if found is None else words(found, now)


def words(found: Standing, now: datetime) -> Line | None:
    one = found.escalation
    due = one.due_at
    if one.phase == "uncalled":
        return Line(f"Nobody is called: {one.why}", "bad")
    if one.phase == "exhausted":
        return Line(f"Nobody is called any more: {one.why}", "bad")
    if due is None or one.phase == "resting":
        return None
    if now - due > LATE:
        late = spoken((now - due).total_seconds())
        return Line(f"The next call is late by {late}; manage.py deliver may not be running", "bad", due)
    when = f"in {spoken((due - now).total_seconds())}, at {due:%H:%M} UTC" if due > now else "now"
    if one.phase == "acknowledged":
        return Line(f"Calls for somebody again {when} if nothing is done", at=due) if one.settled else None
    if one.at_end:
        return Line(f"All were called; gives up {when}", at=due)
    return Line(f"{_whom(found.next)} {when}{_place(found)}", at=due, why=_missing(found.next))


def _whom(following: Next | None) -> str:
    if following is None:
        return "Looks for whom to call"
    if not following.people:
        return "Calls nobody" if not following.actions else f"Will {following.actions[0]}"
    return f"Calls {', '.join(person for person, _ in following.people)}"


def _place(found: Standing) -> str:
    one = found.escalation
    if one.policy is None:
        return ""
    place = f"step {one.step + 1} of {len(one.policy.steps)}"
    return f" ({place}, round {one.round} of {one.policy.rounds})" if one.policy.rounds > 1 else f" ({place})"


def _missing(following: Next | None) -> str:
    return "; ".join(f"{target}: {why}" for target, why in following.unreachable) if following else ""
