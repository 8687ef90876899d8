"""Whether the one who asks may: the one place where roles hold, for the API, the console and whatever else comes.

People are actors `user:NAME`. Keys have their scopes, which the API checks, and the system is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from incidents.domain.permissions import ANYWHERE, CONFIGURE, Forbidden, may, refusal
from incidents.projections.models import IncidentRow
from incidents.roles import actor_name, person, who_can
from ingest.queries import Context

__all__ = ["actor_name", "allow", "allow_configuring", "person", "refusals", "who_can"]


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
