"""What a rule of routing asks of what is to be routed: all of its conditions must hold. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from incidents.domain.routing.hours import Hours
from incidents.domain.suppression.silences import Matcher
from incidents.domain.values import Severity


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be routed: an alert, a finding or a report, as far as it tells. `confidence` is 0 to 1."""

    component: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    service: str | None = None
    """The slug of the service that the component belongs to."""
    analyzer: str | None = None
    confidence: float | None = None
    severity: Severity | None = None
    integration: str | None = None
    at: datetime | None = None
    """When it was recorded."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: what it is in words, and why it does not hold (None: it holds)."""

    text: str
    fails: str | None


@dataclass(frozen=True, slots=True)
class Conditions:
    """`pattern` is a shell glob over `kind/name` whose `*` also crosses `/`. What is empty or None asks nothing."""

    pattern: str = ""
    labels: tuple[Matcher, ...] = ()
    service: str = ""
    analyzer: str = ""
    integration: str = ""
    severities: tuple[Severity, ...] = ()
    min_confidence: float | None = None
    hours: Hours | None = None

    def each(self, subject: Subject) -> Iterator[Condition]:
        if self.pattern:
            yield Condition(f"`{self.pattern}`", self._component(subject))
        for matcher in self.labels:
            yield Condition(f"`{matcher}`", _label(matcher, subject.labels))
        for name, wanted in (
            ("service", self.service),
            ("analyzer", self.analyzer),
            ("integration", self.integration),
        ):
            if wanted:
                yield Condition(f"{name} `{wanted}`", _same(name, wanted, getattr(subject, name)))
        if self.severities:
            wanted = " or ".join(self.severities)
            fits = subject.severity in self.severities
            yield Condition(f"severity {wanted}", None if fits else f"its severity is {subject.severity}")
        if self.min_confidence is not None:
            yield Condition(
                f"confidence of {_percent(self.min_confidence)} or more", self._confidence(subject)
            )
        if self.hours is not None:
            yield Condition(f"hours {self.hours}", self._hours(subject))

    def hold(self, subject: Subject) -> bool:
        """Whether `why_not` has nothing to say, without making its sentences: a storm asks this very often."""
        confidence, at = subject.confidence, subject.at
        return (
            (
                not self.pattern
                or (subject.component is not None and fnmatchcase(subject.component, self.pattern))
            )
            and (not self.service or subject.service == self.service)
            and (not self.analyzer or subject.analyzer == self.analyzer)
            and (not self.integration or subject.integration == self.integration)
            and (not self.severities or subject.severity in self.severities)
            and (
                self.min_confidence is None or (confidence is not None and confidence >= self.min_confidence)
            )
            and (self.hours is None or (at is not None and self.hours.hold(at)))
            and all(matcher.matches(subject.labels) for matcher in self.labels)
        )

    def matched(self) -> str:
        """What matched, once all hold."""
        return " and ".join(condition.text for condition in self.each(Subject())) or "everything"

    def why_not(self, subject: Subject) -> str | None:
        """The first condition that does not hold and why; None when all hold."""
        failing = (one for one in self.each(subject) if one.fails is not None)
        return next((f"{one.text} does not match: {one.fails}" for one in failing), None)

    def _component(self, subject: Subject) -> str | None:
        if subject.component is None:
            return "no component"
        return None if fnmatchcase(subject.component, self.pattern) else f"it is `{subject.component}`"

    def _confidence(self, subject: Subject) -> str | None:
        if subject.confidence is None:
            return "it has none"
        assert self.min_confidence is not None
        return None if subject.confidence >= self.min_confidence else f"it is {_percent(subject.confidence)}"

    def _hours(self, subject: Subject) -> str | None:
        if subject.at is None:
            return "the time is unknown"
        assert self.hours is not None
        return None if self.hours.hold(subject.at) else f"received at {subject.at:%a %H:%M} {subject.at:%Z}"


ANYTHING: Final = Conditions()


def _label(matcher: Matcher, labels: Mapping[str, str]) -> str | None:
    if matcher.matches(labels):
        return None
    found = labels.get(matcher.name)
    return f"no label {matcher.name}" if found is None else f"{matcher.name} is `{found}`"


def _same(name: str, wanted: str, found: str | None) -> str | None:
    return None if found == wanted else f"no {name}" if found is None else f"it is `{found}`"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
