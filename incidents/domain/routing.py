"""Which team gets a ticket, and why. Ordered rules, first match wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Team:
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Components that match `pattern`, a shell glob over `kind/name` whose `*` also crosses `/`."""

    pattern: str
    team: Team

    def matches(self, component: str) -> bool:
        return fnmatchcase(component, self.pattern)


@dataclass(frozen=True, slots=True)
class Routing:
    """The decision, the number of the rule that made it (None: the default) and the reason as a sentence."""

    team: str
    rule: int | None
    explanation: str


@dataclass(frozen=True, slots=True)
class RoutingTable:
    rules: Sequence[Rule]
    default: Team


def route(component: str | None, table: RoutingTable, ambiguous_with: Iterable[str] = ()) -> Routing:
    """The team of the first rule that matches; says when an ambiguous partner belongs to another team."""
    if component is None:
        return Routing(
            table.default.slug, None, f"routed to {table.default.name} because no component was named"
        )
    team, number = _first_match(component, table)
    if number is None:
        reason = f"routed to {team.name} because no rule matches `{component}`"
    else:
        reason = f"routed to {team.name} because rule {number} matched `{table.rules[number - 1].pattern}`"
    for other in sorted(ambiguous_with):
        other_team, _ = _first_match(other, table)
        if other_team != team:
            reason += f"; `{other}`, which the data cannot tell apart from it, belongs to {other_team.name}"
            break
    return Routing(team.slug, number, reason)


def _first_match(component: str, table: RoutingTable) -> tuple[Team, int | None]:
    for number, rule in enumerate(table.rules, start=1):
        if rule.matches(component):
            return rule.team, number
    return table.default, None
