"""Permissions of the reader of a page, so that it shows no button that would be refused.

`incidents.people.permissions` decides where a command is carried out; pages ask beforehand, by the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from incidents.domain.permissions import CONFIGURE, may
from incidents.people.permissions import person
from incidents.teams.models import Team


@dataclass(frozen=True, slots=True)
class Rights:
    """Staff configure everything; others what belongs to the teams (by slug) that they manage."""

    staff: bool
    teams: frozenset[str] = frozenset()

    @property
    def some(self) -> bool:
        """Whether there is anything that may be configured."""
        return self.staff or bool(self.teams)

    def over(self, team: str | None) -> bool:
        """Whether what belongs to this team, or to none, may be configured."""
        return self.staff or (team is not None and team in self.teams)


def rights(request: HttpRequest) -> Rights:
    """Those of the person who is signed in."""
    user = request.user
    if getattr(user, "is_staff", False) or not isinstance(user, AbstractBaseUser):
        return Rights(staff=getattr(user, "is_staff", False))
    actor = person(user.get_username())
    if actor is None:
        return Rights(staff=False)
    return Rights(False, frozenset(team for team in actor.roles if may(actor, CONFIGURE, (team,))))


def configurers_only(request: HttpRequest, why: str = "") -> Rights:
    """The rights of staff and of managers of some team; raises PermissionDenied, whose page says `why`, for others."""
    found = rights(request)
    if not found.some:
        raise PermissionDenied(why)
    return found


def own_teams(value: Rights) -> list[Team]:
    """The teams that something may be given to by whoever has these rights."""
    return [team for team in Team.objects.all() if value.over(team.slug)]
