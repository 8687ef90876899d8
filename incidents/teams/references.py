"""References by name: a policy calls a channel, a webhook tells of a team, though no row refers to another.

An object with references is not removed; the error lists them. Modules with references register a function here that
finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from django.db import connection

from incidents.teams.models import Route, Service

Kind = Literal["channel", "policy", "schedule", "service", "team"]
Named = Callable[[str], Iterable[str]]
"""In words (`the policy Nights`) all that name the thing of this name."""
NAMED = 3

_named: dict[Kind, list[Named]] = {}


def register_naming(kind: Kind, named: Named) -> None:
    """Have things of a kind stay as long as `named` finds any."""
    if named not in _named.setdefault(kind, []):
        _named[kind].append(named)


def named_by(kind: Kind, name: str) -> str:
    """Objects that name it, in words for a sentence; empty without any."""
    found = [words for named in _named.get(kind, ()) for words in named(name)]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more


def hold_names() -> None:
    """One change of what is configured at a time, until the transaction ends: nothing is named while it is removed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('configuration names', 0))")


def _by_policy(slug: str) -> list[str]:
    return _routes(policy=slug)


def _by_service(slug: str) -> list[str]:
    return list(dict.fromkeys((*_routes(when__service=slug), *_routes(service__slug=slug))))


def _by_team(slug: str) -> list[str]:
    services = Service.objects.filter(team__slug=slug).values_list("name", flat=True)
    return [*_routes(team__slug=slug), *(f"the service {name}" for name in services)]


def _routes(**asked: str) -> list[str]:
    return [f"the route {name}" for name in Route.objects.filter(**asked).values_list("name", flat=True)]


register_naming("policy", _by_policy)
register_naming("service", _by_service)
register_naming("team", _by_team)
