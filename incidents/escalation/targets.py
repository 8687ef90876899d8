"""What an escalation looks up when it goes on: the policy in force, and whom an action reaches at that moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db.models import Q

from incidents.domain.escalation.policy import Action, Policy
from incidents.domain.incident.escalation import ReachedTarget
from incidents.domain.incident.escalation_engine import Escalation
from incidents.domain.incident.state import Incident
from incidents.domain.notifications.rules import Kind
from incidents.domain.values import UNREADABLE, InvalidValueError
from incidents.escalation.models import EscalationPolicy
from incidents.notifications.models import ContactMethod
from incidents.oncall.models import Schedule
from incidents.oncall.queries import ScheduleNotFoundError, on_call
from incidents.teams.models import Membership, Team

Found = tuple[tuple[str, ...], str | None]
"""The people that are reached, and why nobody is."""


@dataclass
class Directory:
    """What was looked up for one moment, each thing once: a storm of incidents asks the same questions."""

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
        """Whom it reaches now."""
        if action.kind == "owner":
            if state.owner is None:
                return ReachedTarget(action, (), "no owner")
            return ReachedTarget(action, *self._people(Action("person", state.owner)))
        return ReachedTarget(action, *self._people(action))

    def channel(self, name: str) -> Kind | None:
        """How a shared channel is spoken to; None where there is none of that name."""
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
    """Why an action of a policy can never reach anybody as it is written; None where it may.

    A schedule that has a gap now, or a team that is empty, is none of these.
    """
    name = action.value
    if action.kind == "person":
        return None if _active([name]) else "no active account with this name"
    if action.kind == "schedule":
        return None if Schedule.objects.filter(slug=name).exists() else "no such schedule"
    if action.kind == "team":
        return None if Team.objects.filter(slug=name).exists() else "no such team"
    if action.kind == "channel":
        return None if channel_kind(name) is not None else "no such channel"
    return None


def channel_kind(name: str) -> Kind | None:
    """How a shared channel is spoken to; None where there is none of that name."""
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
