"""The routing table: which team gets an incident, with which service, severity, policy and grouping, and why.
Pure.

Rules are a tree. Of the rules of one level the first that matches wins, then the first match among its children,
and so on; no other branch is tried. A rule inherits what it leaves open. A rule matches if all its conditions
hold.

Hours of the week (`mon-fri 09:00-17:00`) are those of the wall clock in a time zone, also when it is put forward
or back. A span that ends before it begins ends the next day and belongs to the day on which it began.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from incidents.domain.suppression.rules import Matcher
from incidents.domain.values import InvalidValueError, Severity, check_line

# Hours
# ----------------------------------------------------------------------------------------------------------
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FORM = "such as `mon-fri 09:00-17:00`, `sat,sun 00:00-24:00` or `22:00-06:00` (every day)"
MOST_SPANS = 20
_SPAN = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:-[a-z]{3})?(?:,[a-z]{3}(?:-[a-z]{3})?)*) )?"
    r"(?P<from>[0-2][0-9]:[0-5][0-9])-(?P<to>[0-2][0-9]:[0-5][0-9])"
)
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Span:
    """`days` count from Monday, 0; `start` and `end` are minutes since midnight, `end` at most 24 hours."""

    text: str
    days: frozenset[int]
    start: int
    end: int

    def holds(self, day: int, minute: int) -> bool:
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or (
            (day - 1) % 7 in self.days and minute < self.end
        )


@dataclass(frozen=True, slots=True)
class Hours:
    spans: tuple[Span, ...]
    zone: str = "UTC"

    def hold(self, at: datetime) -> bool:
        """Whether the moment is within one of the spans; `at` must know its offset."""
        there = at.astimezone(_zone(self.zone))
        minute = 60 * there.hour + there.minute
        return any(span.holds(there.weekday(), minute) for span in self.spans)

    def __str__(self) -> str:
        return f"{', '.join(span.text for span in self.spans)} {self.zone}"


def hours_from(field: str, spans: Sequence[object], zone: object) -> Hours:
    """Raises InvalidValueError. `zone` is a name of the IANA database."""
    if not 1 <= len(spans) <= MOST_SPANS:
        raise InvalidValueError(field, f"must be a list of 1 to {MOST_SPANS} spans, {FORM}")
    return Hours(tuple(_span(field, text) for text in spans), check_zone("zone", zone))


def check_zone(field: str, zone: object) -> str:
    name = check_line(field, zone, 60)
    try:
        _zone(name)
    except (LookupError, ValueError, OSError):
        raise InvalidValueError(field, "must be a time zone such as UTC or Europe/Berlin") from None
    return name


@lru_cache(maxsize=100)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _span(field: str, text: object) -> Span:
    line = check_line(field, text, 60).lower()
    found = _SPAN.fullmatch(line)
    if found is None:
        raise InvalidValueError(field, f"must be {FORM}, not {line!r}")
    start, end = _minutes(field, found["from"]), _minutes(field, found["to"])
    if start in (end, _DAY):
        raise InvalidValueError(field, f"must end at another time than it begins, before 24:00: {line!r}")
    return Span(line, _days(field, found["days"]), start, end)


def _minutes(field: str, text: str) -> int:
    minutes = 60 * int(text[:2]) + int(text[3:])
    if minutes > _DAY:
        raise InvalidValueError(field, f"must hold times up to 24:00, not {text}")
    return minutes


def _days(field: str, text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise InvalidValueError(field, f"must name days as {', '.join(DAYS)}, not {part!r}")
        start, end = DAYS.index(first), DAYS.index(last or first)
        days |= {day % 7 for day in range(start, end + (1 if start <= end else 8))}
    return frozenset(days)


# Patterns
# ----------------------------------------------------------------------------------------------------------
LONGEST = 20_000
"""Characters of a text with matchers."""
EXAMPLE = 'disk=~"d.*"'
_MATCHER = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)+)"|([^=!~\s",]+))\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^",\n]*))\s*',
    re.DOTALL,
)
_SIGNS = {"=": (False, True), "!=": (False, False), "=~": (True, True), "!~": (True, False)}


def read_matchers(text: str) -> list[dict[str, Any]]:
    """Matchers as `silencing.matchers_from` takes them. Braces around them may stand. Raises InvalidValueError."""
    if len(text) > LONGEST:
        raise InvalidValueError("matchers", f"must be at most {LONGEST} characters, not {len(text)}")
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1]
    found = []
    while rest := rest.lstrip(", \t\r\n"):
        one = _MATCHER.match(rest)
        after = rest[one.end() :] if one else ""
        # A matcher on a line of its own needs no comma.
        if one is None or (after and after[0] != "," and "\n" not in one[0][len(one[0].rstrip()) :]):
            raise InvalidValueError("matchers", f"must be such as {EXAMPLE}, not {rest[:60]!r}")
        is_regex, is_equal = _SIGNS[one[3]]
        value = one[5].strip() if one[4] is None else _unquoted(one[4])
        name = one[2] if one[1] is None else _unquoted(one[1])
        found.append({"name": name, "value": value, "isRegex": is_regex, "isEqual": is_equal})
        rest = after
    if not found:
        raise InvalidValueError("matchers", f"are missing; write one or more, such as {EXAMPLE}")
    return found


def write_matchers(matchers: Iterable[Matcher]) -> str:
    """One a line, as `read_matchers` reads them."""
    return "\n".join(map(str, matchers))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text, flags=re.DOTALL)


# Conditions
# ----------------------------------------------------------------------------------------------------------
class Subject(msgspec.Struct, frozen=True):
    """Subject of routing: an alert, a finding or a report, as far as it tells. `confidence` is 0 to 1."""

    component: str | None = None
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    service: str | None = None
    """The slug of the service that the component belongs to."""
    analyzer: str | None = None
    confidence: float | None = None
    severity: Severity | None = None
    integration: str | None = None
    at: datetime | None = None
    """Time of the record."""


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
        if self.pattern and (subject.component is None or not fnmatchcase(subject.component, self.pattern)):
            return False
        confidence, at = subject.confidence, subject.at
        return (
            (not self.service or subject.service == self.service)
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
        """Conditions that matched, once all hold."""
        return _matched(self)

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


# Rules
# ----------------------------------------------------------------------------------------------------------
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
    """Grouping of alerts that share an incident: those that a rule gets with equal `by` (None: those of one alert
    rule, team and integration), and the time after its opening in which an incident takes new ones (None: while it
    is open)."""

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
        return msgspec.structs.replace(subject, service=service_of(subject, self.services))


def service_of(subject: Subject, services: Mapping[str, Service]) -> str | None:
    """Service with the most specific pattern for the component (the most letters that are no wildcard, then by
    slug); else that which the label `service` names."""
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


@lru_cache(maxsize=1_000)
def _matched(conditions: Conditions) -> str:
    """A storm asks it of the same rule for each alert."""
    return " and ".join(one.text for one in conditions.each(Subject())) or "everything"


def route(subject: Subject, table: RoutingTable, ambiguous_with: Iterable[str] = ()) -> Routing:
    """Decision of the deepest rule that matches; says when an ambiguous partner belongs to another team."""
    subject = table.located(subject)
    return _routing(subject, _path(subject, table.rules), table, ambiguous_with)


def _routing(
    subject: Subject, path: Path, table: RoutingTable, ambiguous_with: Iterable[str] = ()
) -> Routing:
    decision = _decided(subject, [rule for _, rule in path])
    team = _team(decision, table)
    reason = _reason(subject, path, team, decision, table)
    for other in sorted(ambiguous_with):
        partner = msgspec.structs.replace(subject, component=other, service=None)
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


Path = Sequence[tuple[int, Rule]]
"""The rules that match, from the first level down, each with its place on its level."""


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


_OF_KIND: Final = re.compile(r"\*|[^*?\[\]/]+/\*")
"""A glob that matches all components of one kind, or all."""


def _tells_kinds_only(table: RoutingTable) -> bool:
    """Whether two components of the same kind match the same globs, whatever they are called."""
    of_rules = (rule.when.pattern for rule in every_rule(table.rules))
    of_services = (pattern for one in table.services.values() for pattern in one.patterns)
    return all(_OF_KIND.fullmatch(glob) for glob in chain(of_rules, of_services) if glob)


class RouteCache:
    """Decisions of a table, taken once for all subjects that differ in nothing that the rules look at, and for all that
    the same rules match; the rules know time to the minute."""

    def __init__(self, table: RoutingTable) -> None:
        self._table = table
        self._labels = sorted(labels_that_count(table))
        self._timed = any(rule.when.hours is not None for rule in every_rule(table.rules))
        self._kinds_only = _tells_kinds_only(table)
        self._known: dict[Any, tuple[Path, Any]] = {}
        self._of_path: dict[Any, Routing] = {}

    def route(self, subject: Subject) -> Routing:
        labels, component = subject.labels, subject.component
        key = (
            # A storm names a component an alert: of 10,000 few kinds.
            component[: component.find("/") + 1] if self._kinds_only and component else component,
            bool(labels),
            tuple([labels.get(name) for name in self._labels]),
            subject.service,
            subject.analyzer,
            subject.confidence,
            subject.severity,
            subject.integration,
            subject.at and subject.at.replace(second=0, microsecond=0) if self._timed else None,
        )
        known = self._known.get(key)
        if known is None:
            located = self._table.located(subject)
            path = _path(located, self._table.rules)
            known = self._known[key] = (path, (tuple(place for place, _ in path), located.service))
        path, decided_by = known
        # Where no rule matches, the reason names the component.
        case = decided_by if path else (decided_by, component, bool(labels))
        routing = self._of_path.get(case)
        if routing is None:
            routing = self._of_path[case] = _routing(self._table.located(subject), path, self._table)
        return routing


def every_rule(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Each rule before those beneath it."""
    for rule in rules:
        yield rule
        yield from every_rule(rule.children)


def _path(subject: Subject, rules: Sequence[Rule]) -> Path:
    for place, rule in enumerate(rules, start=1):
        if rule.when.hold(subject):
            return ((place, rule), *_path(subject, rule.children))
    return ()


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


def _reason(subject: Subject, path: Path, team: Team, decision: Rule, table: RoutingTable) -> str:
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
