"""Which team gets an incident, with which service, severity, policy and grouping, and why. Pure.

Rules are a tree. Of the rules of one level the first that matches wins, then the first that matches of those beneath,
and so on; no other branch is tried. What a rule leaves open it has from the rule above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Final

from incidents.domain.routing.conditions import ANYTHING, Conditions, Subject
from incidents.domain.values import Severity

MOST_RULES = 1_000
DEEPEST = 10
"""Levels of the tree."""


@dataclass(frozen=True, slots=True)
class Team:
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class Service:
    """Components that match one of `patterns` (globs, as in rules) are its parts."""

    slug: str
    name: str
    team: Team | None = None
    patterns: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which alerts share an incident: those that a rule gets with equal `by` (None: those of one alert rule, team and
    integration), and how long after its opening an incident takes new ones (None: while it is open)."""

    by: tuple[str, ...] | None = None
    window: timedelta | None = None


BY_RULE: Final = Grouping()


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    when: Conditions = ANYTHING
    team: Team | None = None
    service: str | None = None
    severity: Severity | None = None
    policy: str | None = None
    grouping: Grouping | None = None
    follow_suggestion: bool | None = None
    """Whether an incident goes on by itself to the team that is suggested for it (`heeding`)."""
    children: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Routing:
    """The decision, the place of the rule on the first level that made it (None: none did), and the reason in words.

    `path` names the rules that matched, from the first level down; `service` and `policy` are slugs.
    """

    team: str
    rule: int | None
    explanation: str
    path: tuple[str, ...] = ()
    service: str | None = None
    severity: Severity | None = None
    policy: str | None = None
    grouping: Grouping = BY_RULE
    follow_suggestion: bool = False


@dataclass(frozen=True, slots=True)
class RoutingTable:
    rules: Sequence[Rule]
    default: Team
    services: Mapping[str, Service] = field(default_factory=dict)
    """By slug."""
    passed_over: Mapping[str, str] = field(default_factory=dict)
    """Rules that cannot be read as they stand (a time zone that is no more), by name, with the reason."""

    def located(self, subject: Subject) -> Subject:
        """With the service that it belongs to, unless it names one."""
        if subject.service is not None or not self.services:
            return subject
        return replace(subject, service=service_of(subject, self.services))


def service_of(subject: Subject, services: Mapping[str, Service]) -> str | None:
    """That with the most specific pattern for the component (the most letters that are no wildcard, then by slug); else
    that which the label `service` names."""
    component = subject.component
    if component is not None:
        fits = [
            (-_literal(pattern), one.slug)
            for one in services.values()
            for pattern in one.patterns
            if fnmatchcase(component, pattern)
        ]
        if fits:
            return min(fits)[1]
    named = subject.labels.get("service", "")
    return named if named in services else None


def _literal(pattern: str) -> int:
    return sum(letter not in "*?[]" for letter in pattern)


def covers(broad: str, narrow: str) -> bool:
    """Whether one glob matches surely all that another does: of `broad` only `*` counts as a wildcard."""
    if "[" in broad or "?" in broad:
        return broad == narrow
    return re.fullmatch(".*".join(map(re.escape, broad.split("*"))), narrow, re.DOTALL) is not None


def route(subject: Subject, table: RoutingTable, ambiguous_with: Iterable[str] = ()) -> Routing:
    """What the deepest rule that matches decides; says when an ambiguous partner belongs to another team."""
    subject = table.located(subject)
    path = tuple(_path(subject, table.rules))
    decision = _decided(subject, [rule for _, rule in path])
    team = _team(decision, table)
    reason = _reason(subject, path, team, decision, table)
    for other in sorted(ambiguous_with):
        partner = replace(subject, component=other, service=None)
        others_team = team_of(partner, table)
        if others_team != team:
            reason += f"; `{other}`, indistinguishable in the data, belongs to {others_team.name}"
            break
    if table.passed_over:
        reason += f"; {_passed_over(table.passed_over)}"
    return Routing(
        team=team.slug,
        rule=path[0][0] if path else None,
        explanation=reason,
        path=tuple(rule.name for _, rule in path),
        service=decision.service,
        severity=decision.severity,
        policy=decision.policy,
        grouping=decision.grouping or BY_RULE,
        follow_suggestion=bool(decision.follow_suggestion),
    )


def _passed_over(rules: Mapping[str, str]) -> str:
    name, why = next(iter(rules.items()))
    others = len(rules) - 1
    more = f", and {others} other rule{'' if others == 1 else 's'}" if others else ""
    return f"rule `{name}`{more} was skipped: {why}"


def team_of(subject: Subject, table: RoutingTable) -> Team:
    """The team alone, without the reason."""
    subject = table.located(subject)
    return _team(_decided(subject, [rule for _, rule in _path(subject, table.rules)]), table)


def labels_that_count(table: RoutingTable) -> frozenset[str]:
    """The labels that decide where something goes: two alerts that differ in others only go the same way."""
    named = {matcher.name for rule in every_rule(table.rules) for matcher in rule.when.labels}
    return frozenset(named | {"service"} if table.services else named)


def every_rule(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Each rule before those beneath it."""
    for rule in rules:
        yield rule
        yield from every_rule(rule.children)


def _path(subject: Subject, rules: Sequence[Rule]) -> Iterator[tuple[int, Rule]]:
    """The rules that match, from the first level down, each with its place on its level."""
    for place, rule in enumerate(rules, start=1):
        if rule.when.hold(subject):
            yield place, rule
            yield from _path(subject, rule.children)
            return


def _decided(subject: Subject, path: Sequence[Rule]) -> Rule:
    """The rules of the path laid over each other: the deepest one that says something is right."""
    decision = Rule("", service=subject.service)
    for rule in path:
        decision = Rule(
            rule.name,
            team=rule.team or decision.team,
            service=rule.service or decision.service,
            severity=rule.severity or decision.severity,
            policy=rule.policy or decision.policy,
            grouping=rule.grouping or decision.grouping,
            follow_suggestion=decision.follow_suggestion
            if rule.follow_suggestion is None
            else rule.follow_suggestion,
        )
    return decision


def _team(decision: Rule, table: RoutingTable) -> Team:
    service = table.services.get(decision.service or "")
    return decision.team or (service and service.team) or table.default


def _reason(
    subject: Subject, path: Sequence[tuple[int, Rule]], team: Team, decision: Rule, table: RoutingTable
) -> str:
    to = f"routed to {team.name}"
    service = table.services.get(decision.service or "")
    by_service = decision.team is None and service is not None and service.team is not None
    if path:
        steps = [f"rule {_step(*path[0])}", *(f"in it {_step(*step)}" for step in path[1:])]
        owns = f"; it has the service {service.name}" if by_service and service is not None else ""
        worth = f"; its rule makes it {decision.severity}" if decision.severity else ""
        goes_on = "; auto-assign to the predicted team, if any" if decision.follow_suggestion else ""
        return f"{to} because {', '.join(steps)}{owns}{worth}{goes_on}"
    if by_service and service is not None:
        return f"{to} because no rule matches and it has the service {service.name}"
    if subject.component is not None:
        return f"{to} because no rule matches `{subject.component}`"
    return f"{to} because no component" + (" and no rule matches" if subject.labels else "")


def _step(place: int, rule: Rule) -> str:
    return f"`{rule.name}` ({ordinal(place)}) matched {rule.when.matched()}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, … 11th."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


EACH_ALONE: Final = ("...",)
"""Labels to group by that say: every alert has an incident of its own. As Alertmanager writes it."""
