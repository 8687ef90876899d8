"""Who somebody is to the rules of roles: a person with what they are in each team. Tables are asked, incidents are not.

What is allowed on an incident is asked for in `incidents.permissions`, a floor further up.
"""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth import get_user_model

from incidents.domain.permissions import ROLES, ForbiddenError, Person, may, needed, refusal
from incidents.teams.models import Membership
from ingest.queries import Context

PEOPLE = "user:"


def actor_name(context: Context) -> str | None:
    """The name of the person who acts; None for a key or the system."""
    return context.actor.removeprefix(PEOPLE) if context.actor.startswith(PEOPLE) else None


def person(name: str) -> Person | None:
    """Somebody and their roles; None as long as nobody is in any team, when everybody may work on every incident."""
    held = Membership.objects.select_related("team").filter(user__username=name)
    roles = {row.team.slug: row.role for row in held}
    if not roles and not Membership.objects.exists():
        return None
    found = get_user_model().objects.filter(username=name, is_active=True).first()
    if found is None:
        return Person(name)
    return Person(name, found.is_staff or found.is_superuser, roles)


def people_allowed(command: str, teams: Collection[str]) -> list[str]:
    """Names of the people in these teams, or with none in any, who could; not of staff."""
    enough = ROLES[ROLES.index(needed(command)) :]
    found = Membership.objects.filter(role__in=enough, user__is_active=True)
    if teams:
        found = found.filter(team__slug__in=list(teams))
    return sorted(set(found.values_list("user__username", flat=True)))


def allow_at(command: str, team: str | None, context: Context) -> None:
    """Raises ForbiddenError where the actor is a person who may not do that to what belongs to the team.

    What belongs to no team is open to those who may do it in any.
    """
    name = actor_name(context)
    who = None if name is None else person(name)
    teams = list(who.roles) if who is not None and team is None else [team] if team else []
    if who is not None and not may(who, command, teams):
        raise ForbiddenError(refusal(who, command, teams, people_allowed(command, teams)))
