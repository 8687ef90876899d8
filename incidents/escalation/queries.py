"""State of escalations: of one incident, the next recipients and their time; of all, whether the sweep keeps up.
Policies in force, and the people that an action reaches at a moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Count, Min, Q
from django.utils import timezone

from incidents import queries
from incidents.domain.escalation.policy import Action, Policy, Step
from incidents.domain.incident.escalation import Escalation, ReachedTarget, as_people_read, follow, next_step
from incidents.domain.incident.evolve import evolve
from incidents.domain.incident.state import Incident
from incidents.domain.notifications.delivery import Kind
from incidents.domain.values import UNREADABLE, InvalidValueError
from incidents.escalation.models import EscalationPolicy, EscalationRow
from incidents.notifications.models import ContactMethod
from incidents.notifications.queries import Unreachable, unreachable
from incidents.oncall.models import OnCallSchedule
from incidents.oncall.queries import ScheduleNotFoundError, on_call, people_in
from incidents.teams.models import Membership, Team
from ingest.queries import Position

# Targets
# ----------------------------------------------------------------------------------------------------------
Found = tuple[tuple[str, ...], str | None]
"""The people that are reached, and why nobody is."""


@dataclass
class Directory:
    """Look-ups of one moment, each made once: a storm of incidents asks the same questions."""

    now: datetime
    _found: dict[Action, Found] = field(default_factory=dict)
    _policies: dict[str, Policy | str | None] = field(default_factory=dict)
    _of_teams: dict[str, Policy | str] = field(default_factory=dict)
    _channels: dict[str, Kind | None] = field(default_factory=dict)

    def policy(self, team: str, escalation: Escalation) -> Policy | str:
        """The policy that holds for an incident which this team has, or why none does."""
        named = escalation.routed_policy
        if named is not None and team == escalation.routed_team:
            if named not in self._policies:
                self._policies[named] = _read(EscalationPolicy.objects.filter(slug=named).first())
            if (found := self._policies[named]) is not None:
                return found
        if team not in self._of_teams:
            self._of_teams[team] = _of_team(team)
        return self._of_teams[team]

    def reached(self, action: Action, state: Incident) -> ReachedTarget:
        """People that it reaches now."""
        if action.kind == "owner":
            if state.owner is None:
                return ReachedTarget(action, (), "no owner")
            return ReachedTarget(action, *self._people(Action("person", state.owner)))
        return ReachedTarget(action, *self._people(action))

    def channel(self, name: str) -> Kind | None:
        """Kind of a shared channel; None where there is none of that name."""
        if name not in self._channels:
            self._channels[name] = channel_kind(name)
        return self._channels[name]

    def _people(self, action: Action) -> Found:
        if action not in self._found:
            self._found[action] = _look_up(action, self.now)
        return self._found[action]


def _read(row: EscalationPolicy | None) -> Policy | str | None:
    """None where there is none; a sentence where somebody wrote one into the table that cannot be."""
    try:
        return None if row is None else row.policy
    except InvalidValueError as error:
        return f"the policy {row} cannot be read: {error}"


def _of_team(slug: str) -> Policy | str:
    if (found := _read(EscalationPolicy.objects.filter(team__slug=slug).first())) is not None:
        return found
    team = Team.objects.filter(slug=slug).first()
    return f"{slug if team is None else team.name} has no escalation policy"


def _look_up(action: Action, now: datetime) -> Found:
    if action.kind == "person":
        found = _active([action.value])
        return found, None if found else "no active account with this name"
    if action.kind == "schedule":
        return _on_call(action.value, now)
    if action.kind == "team":
        return _team(action.value)
    if action.kind == "channel":
        known = channel_kind(action.value) is not None
        return (), None if known else "no such channel"
    return (), None


def _on_call(schedule: str, now: datetime) -> Found:
    try:
        found = _active(on_call(schedule, now))
    except ScheduleNotFoundError:
        return (), "no such schedule"
    except UNREADABLE as error:
        return (), f"the schedule cannot be read: {error}"
    return found, None if found else "no one is on call"


def _team(slug: str) -> Found:
    members = Membership.objects.filter(team__slug=slug).exclude(role=Membership.Role.VIEWER)
    found = _active(members.values_list("user__username", flat=True))
    return found, None if found else "no member can be notified"


def _active(names: Iterable[str]) -> tuple[str, ...]:
    users = get_user_model().objects.filter(is_active=True, username__in=names)
    return tuple(users.order_by("username").values_list("username", flat=True))


def missing(action: Action) -> str | None:
    """Reason why an action of a policy can never reach anybody as it is written; None where it may.

    A schedule that has a gap now, or a team that is empty, is none of these.
    """
    name = action.value
    if action.kind == "person":
        return None if _active([name]) else "no active account with this name"
    if action.kind == "schedule":
        return None if OnCallSchedule.objects.filter(slug=name).exists() else "no such schedule"
    if action.kind == "team":
        return None if Team.objects.filter(slug=name).exists() else "no such team"
    if action.kind == "channel":
        return None if channel_kind(name) is not None else "no such channel"
    return None


def channel_kind(name: str) -> Kind | None:
    """Kind of a shared channel; None where there is none of that name."""
    row = ContactMethod.objects.filter(user__isnull=True, name=name).first()
    return None if row is None else row.kind  # type: ignore[return-value]


def calls_channel(name: str) -> list[str]:
    return _policies_that("channel", name)


def calls_schedule(slug: str) -> list[str]:
    return _policies_that("schedule", slug)


def calls_team(slug: str) -> list[str]:
    """Or are what the incidents of that team follow."""
    return _policies_that("team", slug, Q(team__slug=slug))


def _policies_that(call: str, name: str, more: Q | None = None) -> list[str]:
    calling = Q(steps__contains=[{"actions": [{call: name}]}])
    found = EscalationPolicy.objects.filter(calling if more is None else calling | more)
    return [f"the escalation policy {one}" for one in found.values_list("name", flat=True)]


# Queries
# ----------------------------------------------------------------------------------------------------------
LATE: Final = timedelta(seconds=60)
"""Delay from which a timer counts as late."""


@dataclass(frozen=True, slots=True)
class Next:
    """The step that comes next: whom it reaches as things are planned for that time, and whom not."""

    people: tuple[tuple[str, str], ...]
    """Each with what they are called as."""
    actions: tuple[str, ...]
    """Actions besides calling people."""
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


def policy_in_force(state: Incident, now: datetime) -> str | None:
    """Slug of the policy that an incident follows, or would if it were escalated now; None without one."""
    row = EscalationRow.objects.filter(incident__pk=state.id).first()
    if row is None:
        return None
    found = row.escalation.policy or Directory(now).policy(state.team, row.escalation)
    return found.slug if isinstance(found, Policy) else None


def escalation_status_at(reference: str, as_of: Position) -> EscalationStatus | None:
    """Progress at a moment, out of the log, which does not have the recipients of the next step.

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
        row.slug
        for row in OnCallSchedule.objects.all()
        if any(username in one["people"] for one in row.layers)
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
    found = OnCallSchedule.objects.filter(slug__in=schedules) if schedules else ()
    members = Membership.objects.filter(team__slug__in=teams).exclude(role=Membership.Role.VIEWER)
    inside = members.values_list("user__username", flat=True) if teams else ()
    now = timezone.now()
    return named.union(inside, *(people_in(schedule, now) for schedule in found))


def called_but_unreachable() -> dict[str, Unreachable]:
    """By person, why nothing can reach somebody whom a policy calls or who takes turns in a schedule."""
    called = [people_called(row) for row in EscalationPolicy.objects.all()]
    now = timezone.now()
    return unreachable(set().union(*called, *(people_in(row, now) for row in OnCallSchedule.objects.all())))


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


def as_json(status: EscalationStatus, now: datetime) -> dict[str, Any]:
    following = status.next
    following_step = None
    if following is not None:
        following_step = {
            "people": [{"person": person, "as": why} for person, why in following.people],
            "actions": list(following.actions),
            "unreachable": [{"target": target, "why": why} for target, why in following.unreachable],
        }
    return {**as_people_read(status.escalation, now), "next": following_step}


def policies() -> list[EscalationPolicy]:
    return list(EscalationPolicy.objects.select_related("team"))


def overdue(now: datetime) -> tuple[int, float]:
    """Number of timers that have been due for longer than `LATE`, and the seconds for which the oldest has been due
    at all."""
    due = EscalationRow.objects.filter(due_at__lt=now)
    oldest = due.aggregate(oldest=Min("due_at"))["oldest"]
    late = due.filter(due_at__lt=now - LATE).aggregate(late=Count("pk"))["late"]
    return late, 0.0 if oldest is None else (now - oldest).total_seconds()
