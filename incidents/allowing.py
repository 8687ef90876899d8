"""Whether the one who asks may: the one place where roles hold, for the API, the console and whatever else comes.

People are actors `user:NAME`. Keys have their scopes, which the API checks, and the system is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth import get_user_model

from incidents.catalog.models import Membership
from incidents.domain.permissions import ANYWHERE, CONFIGURE, ROLES, Forbidden, Person, may, needed, refusal
from incidents.projections.models import IncidentRow
from ingest.queries import Context

PEOPLE = "user:"


def actor_name(context: Context) -> str | None:
    """The name of the person who acts; None for a key or the system."""
    return context.actor.removeprefix(PEOPLE) if context.actor.startswith(PEOPLE) else None


def person(name: str) -> Person | None:
    """Somebody and their roles; None as long as nobody is in any team, when everybody may work on every ticket."""
    held = Membership.objects.select_related("team").filter(user__username=name)
    roles = {row.team.slug: row.role for row in held}
    if not roles and not Membership.objects.exists():
        return None
    found = get_user_model().objects.filter(username=name, is_active=True).first()
    if found is None:
        return Person(name)
    return Person(name, found.is_staff or found.is_superuser, roles)


def allow(command: str, context: Context, incident_id: str | None = None) -> None:
    """Raises Forbidden where the actor is a person who may not do that to this ticket."""
    name = actor_name(context)
    if name is None:
        return
    who = person(name)
    if who is None or may(who, command, ()):
        return
    teams = () if command in ANYWHERE or incident_id is None else _teams(command, incident_id)
    if not may(who, command, teams):
        raise Forbidden(refusal(who, command, teams, who_can(command, teams)))


def allow_configuring(context: Context, *things: Mapping[str, Any] | None) -> None:
    """Raises Forbidden where a person may not configure what belongs to the `team` of each of these, before and after.

    Who is staff, or a manager of some team, the door has asked for; here it is asked which team's.
    """
    name = actor_name(context)
    who = None if name is None else person(name)
    if who is None:
        return
    for thing in things:
        team = None if thing is None else thing.get("team")
        teams = (team,) if team else ()
        if thing is not None and not may(who, CONFIGURE, teams):
            raise Forbidden(refusal(who, CONFIGURE, teams, who_can(CONFIGURE, teams) if teams else ()))


def _teams(command: str, incident_id: str) -> tuple[str, ...]:
    """The team of a ticket; whoever handed it over may take that back, too."""
    row = IncidentRow.objects.filter(pk=incident_id).values_list("team", "handed_from").first()
    if row is None:
        return ()
    team, before = row
    return (team, before) if command == "undo" and before else (team,)


def who_can(command: str, teams: Collection[str]) -> list[str]:
    """Names of the people in these teams, or with none in any, who could; not of staff."""
    enough = ROLES[ROLES.index(needed(command)) :]
    found = Membership.objects.filter(role__in=enough, user__is_active=True)
    if teams:
        found = found.filter(team__slug__in=list(teams))
    return sorted(set(found.values_list("user__username", flat=True)))


def refusals(name: str, commands: Collection[str], incident_id: str) -> dict[str, str]:
    """Of these commands those that the person would be refused on this ticket, each with the reason and who could."""
    who = person(name)
    if who is None:
        return {}
    refused: dict[str, str] = {}
    known: dict[tuple[str, ...], list[str]] = {}
    for command in sorted(commands):
        if may(who, command, ()):
            continue
        teams = () if command in ANYWHERE else _teams(command, incident_id)
        if not may(who, command, teams):
            can = known.setdefault(teams, who_can(command, teams))
            refused[command] = refusal(who, command, teams, can)
    return refused
