"""Where escalations stand: of one incident, who is called next and when; of all, whether the sweep keeps up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Min
from django.utils import timezone

from incidents import queries
from incidents.domain.escalation.policy import Action, Policy, Step
from incidents.domain.incident.escalation import ReachedTarget, as_people_read, next_step
from incidents.domain.incident.escalation_engine import Escalation, follow
from incidents.domain.incident.evolve import evolve
from incidents.domain.incident.state import Incident
from incidents.escalation.models import EscalationPolicy, EscalationRow
from incidents.escalation.targets import Directory
from incidents.notifications.queries import unreachable
from incidents.oncall.models import Schedule
from incidents.oncall.queries import people_in
from incidents.teams.models import Membership
from ingest.queries import Position

LATE: Final = timedelta(seconds=60)
"""How long a timer may be due before it counts as late."""


@dataclass(frozen=True, slots=True)
class Next:
    """The step that comes next: whom it reaches as things are planned for that time, and whom not."""

    people: tuple[tuple[str, str], ...]
    """Each with what they are called as."""
    actions: tuple[str, ...]
    """What it does besides calling people."""
    unreachable: tuple[tuple[str, str], ...]
    """Each with the reason."""


@dataclass(frozen=True, slots=True)
class EscalationStatus:
    escalation: Escalation
    next: Next | None


def escalation_status(state: Incident, now: datetime) -> EscalationStatus | None:
    """Of this incident. None for one that is older than escalations and was not yet looked at."""
    row = EscalationRow.objects.filter(incident__pk=state.id).first()
    if row is None:
        return None
    escalation = row.escalation
    then = max(now, escalation.due_at or now)
    return EscalationStatus(escalation, _next(escalation, state, Directory(then)))


def escalation_status_at(reference: str, as_of: Position) -> EscalationStatus | None:
    """How far it had come at a moment, out of the log; whom the next step would have reached then is not in there.

    Raises IncidentNotFoundError.
    """
    state: Incident | None = None
    known: Escalation | None = None
    for event in queries.incident_events(reference, as_of):
        state = evolve(state, event)
        known = follow(known, state, event)
    return None if known is None else EscalationStatus(known, None)


def is_called(username: str, team: str | None) -> bool:
    """Whether some policy calls this person: by name, by a schedule in which they take turns, or by this team."""
    turns = {
        row.slug for row in Schedule.objects.all() if any(username in one["people"] for one in row.layers)
    }
    actions = (
        action for row in EscalationPolicy.objects.all() for step in row.steps for action in step["actions"]
    )
    return any(
        action.get("person") == username
        or action.get("schedule") in turns
        or (team is not None and action.get("team") == team)
        for action in actions
    )


def people_called(row: EscalationPolicy) -> set[str]:
    """Everybody whom a policy may call: by name, by a schedule in which they take turns, as members of a team."""
    actions = [action for step in row.steps for action in step["actions"]]
    named = {action["person"] for action in actions if "person" in action}
    schedules = [action["schedule"] for action in actions if "schedule" in action]
    teams = [action["team"] for action in actions if "team" in action]
    found = Schedule.objects.filter(slug__in=schedules) if schedules else ()
    members = Membership.objects.filter(team__slug__in=teams).exclude(role=Membership.Role.VIEWER)
    inside = members.values_list("user__username", flat=True) if teams else ()
    now = timezone.now()
    return named.union(inside, *(people_in(schedule, now) for schedule in found))


def called_but_unreachable() -> dict[str, str]:
    """By person, why nothing can reach somebody whom a policy calls or who takes turns in a schedule."""
    called = [people_called(row) for row in EscalationPolicy.objects.all()]
    now = timezone.now()
    return unreachable(set().union(*called, *(people_in(row, now) for row in Schedule.objects.all())))


def _next(escalation: Escalation, state: Incident, directory: Directory) -> Next | None:
    step = next_step(escalation)
    if escalation.phase == "starting":
        policy = directory.policy(state.team, escalation)
        step = policy.steps[0] if isinstance(policy, Policy) else None
    return None if step is None else _reaches(step, state, directory)


def _reaches(step: Step, state: Incident, directory: Directory) -> Next:
    reached = [directory.reached(action, state) for action in step.actions]
    return Next(
        tuple(_people(reached).items()),
        tuple(_does(one.action) for one in reached if not one.people and not one.problem),
        tuple((str(one.action), one.problem) for one in reached if one.problem),
    )


def _people(reached: Iterable[ReachedTarget]) -> dict[str, str]:
    people: dict[str, str] = {}
    for one in reached:
        for person in one.people:
            people.setdefault(person, str(one.action))
    return people


def _does(action: Action) -> str:
    words = {"severity": f"raise the severity to {action.value}", "bridge": "add a call link"}
    return words.get(action.kind, f"notify {action}")


def as_json(standing: EscalationStatus, now: datetime) -> dict[str, Any]:
    following = standing.next
    told = None
    if following is not None:
        told = {
            "people": [{"person": person, "as": why} for person, why in following.people],
            "actions": list(following.actions),
            "unreachable": [{"target": target, "why": why} for target, why in following.unreachable],
        }
    return {**as_people_read(standing.escalation, now), "next": told}


def policies() -> list[EscalationPolicy]:
    return list(EscalationPolicy.objects.select_related("team"))


def overdue(now: datetime) -> tuple[int, float]:
    """How many timers have been due for longer than `LATE`, and for how many seconds the oldest has been due at all."""
    due = EscalationRow.objects.filter(due_at__lt=now)
    oldest = due.aggregate(oldest=Min("due_at"))["oldest"]
    late = due.filter(due_at__lt=now - LATE).aggregate(late=Count("pk"))["late"]
    return late, 0.0 if oldest is None else (now - oldest).total_seconds()
