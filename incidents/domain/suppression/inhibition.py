"""Inhibition: while one alert fires, others need nobody to be called. Alertmanager's semantics. Pure.

An alert is muted by a rule if it matches the rule's target matchers and another alert fires that matches the source
matchers and has the same values for the labels in `equal`; a missing label and an empty one are the same. What
matches both sides is not muted by what matches both sides too, itself among it.
(prometheus.io/docs/alerting/latest/configuration, inhibit_rule)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from incidents.domain.suppression.silences import Matcher
from incidents.domain.values import InvalidValueError, check_line

MOST_EQUAL: Final = 50


@dataclass(frozen=True, slots=True)
class Rule:
    """`id` changes whenever the rule does: what an older edition muted is looked at again."""

    id: UUID
    name: str
    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...] = ()

    def is_source(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels) for one in self.source)

    def is_target(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels) for one in self.target)

    def why(self, source: str) -> str:
        """Why an alert called nobody while the one with the title `source` fired."""
        same = f" for the same {', '.join(self.equal)}" if self.equal else ""
        return f"inhibited by the rule {self.name} while “{source}” fires{same}"


@dataclass(frozen=True, slots=True)
class Sides:
    """What an alert is to a rule while it fires.

    `mutes`: the keys of all that it can mute, none where it is no source; `muted_by`: the key that mutes it as soon as
    an alert has it in `mutes`, None where it is no target.
    """

    mutes: frozenset[UUID]
    muted_by: UUID | None


def sides(rule: Rule, labels: Mapping[str, str]) -> Sides:
    """A source mutes targets of its key. One that is a target too has only the key of those that are merely targets."""
    is_source, is_target = rule.is_source(labels), rule.is_target(labels)
    values = json.dumps([labels.get(name, "") for name in rule.equal])
    any_source, other_source = uuid5(rule.id, f"any {values}"), uuid5(rule.id, f"other {values}")
    mutes: frozenset[UUID] = frozenset()
    if is_source:
        mutes = frozenset({any_source} if is_target else {any_source, other_source})
    if not is_target:
        return Sides(mutes, None)
    return Sides(mutes, other_source if is_source else any_source)


def equal_from(value: object) -> tuple[str, ...]:
    """Names of labels that must be the same. Raises InvalidValueError."""
    if not isinstance(value, list | tuple) or len(value) > MOST_EQUAL:
        raise InvalidValueError("equal", f"must be a list of at most {MOST_EQUAL} label names")
    names = tuple(check_line(f"equal[{place}]", one) for place, one in enumerate(value))
    if len(set(names)) < len(names):
        raise InvalidValueError("equal", "must not name a label twice")
    return names
