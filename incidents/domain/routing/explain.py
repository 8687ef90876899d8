"""Explanation of a routing, rule by rule. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from incidents.domain.routing.rules import Routing, RoutingTable, Rule, Subject, ordinal, route

Outcome = Literal["matched", "did_not_match", "not_tried"]


@dataclass(frozen=True, slots=True)
class Tried:
    """Outcome of one rule; `depth` 0 is the first level, `place` counts from 1 on its level."""

    rule: str
    depth: int
    place: int
    outcome: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class Explanation:
    subject: Subject
    routing: Routing
    rules: tuple[Tried, ...]


def explain(subject: Subject, table: RoutingTable) -> Explanation:
    """The decision of `route`, and for each rule of the tree why it did or did not take part."""
    located = table.located(subject)
    return Explanation(located, route(located, table), tuple(_walk(located, table.rules, 0)))


def _walk(subject: Subject, rules: Sequence[Rule], depth: int) -> Iterator[Tried]:
    winner: Rule | None = None
    for place, rule in enumerate(rules, start=1):
        if winner is not None:
            why = f"not tried, because `{winner.name}` before it matched"
            yield Tried(rule.name, depth, place, "not_tried", why)
            yield from _child_explanations(rule, depth, why)
        elif (why_not := rule.when.why_not(subject)) is not None:
            yield Tried(rule.name, depth, place, "did_not_match", why_not)
            yield from _child_explanations(
                rule, depth, f"not tried, because `{rule.name}` above it did not match"
            )
        else:
            winner = rule
            matched = f"{ordinal(place)} of its level: matched {rule.when.matched()}"
            yield Tried(rule.name, depth, place, "matched", matched)
            yield from _walk(subject, rule.children, depth + 1)


def _child_explanations(rule: Rule, depth: int, why: str) -> Iterator[Tried]:
    for place, child in enumerate(rule.children, start=1):
        yield Tried(child.name, depth + 1, place, "not_tried", why)
        yield from _child_explanations(child, depth + 1, why)
