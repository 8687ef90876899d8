"""Rules that suppress alerts: silences, maintenance windows and inhibition, as in Alertmanager. Pure.

Matchers are Alertmanager's. Regular expressions are RE2's, as in Prometheus: linear in the text, so none keeps a
worker busy for ever; they match the whole value.

Inhibition: a rule mutes an alert that matches its target matchers while another alert fires that matches its
source matchers and has the same values for the labels in `equal`; a missing label and an empty one are the same.
An alert that matches both sides is not muted by another that matches both, itself among them.
(prometheus.io/docs/alerting/latest/configuration, inhibit_rule)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, Literal, get_args
from uuid import UUID, uuid5

import re2

from incidents.domain.suppression.recurrence import Span, Times
from incidents.domain.values import InvalidValueError, check_line

# Unreadable
# ----------------------------------------------------------------------------------------------------------
LONGEST: Final = 200
"""Characters of a reason: it may quote what somebody wrote."""


def passed_over(unreadable: Sequence[tuple[str, str]]) -> str:
    """Of (what it is called, why it cannot be read); empty where all can be.

    >>> passed_over([("the silence `disks`", "matchers: must be a list")])
    'the silence `disks` held nothing back, because it cannot be read: matchers: must be a list'
    """
    if not unreadable:
        return ""
    what, why = unreadable[0]
    others = len(unreadable) - 1
    more = f" (and {others} other{'' if others == 1 else 's'})" if others else ""
    cut = why if len(why) <= LONGEST else f"{why[: LONGEST - 1]}…"
    return f"{what}{more} had no effect because of an error: {cut}"


def because(why: str, unreadable: str) -> str:
    """A reason, with what was passed over for it."""
    return f"{why}; {unreadable}" if unreadable else why


# Silences
# ----------------------------------------------------------------------------------------------------------
_BARE = re.compile(r"[^=!~\s\",{}\\]+")
"""A name of a label that needs no quotes."""

MOST_MATCHERS = 50


@dataclass(frozen=True, slots=True)
class Matcher:
    """A label equals `value`, or differs, or matches a regular expression, or does not. A missing label is empty."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.name, "")
        same = bool(_compiled(self.value).fullmatch(value)) if self.is_regex else value == self.value
        return same == self.is_equal

    def __str__(self) -> str:
        """As Alertmanager writes it, and `matching_text.read_matchers` reads it."""
        sign = {(False, True): "=", (False, False): "!=", (True, True): "=~", (True, False): "!~"}
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        name = self.name
        if not _BARE.fullmatch(name):
            name = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f'{name}{sign[self.is_regex, self.is_equal]}"{quoted}"'

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "isRegex": self.is_regex, "isEqual": self.is_equal}


@dataclass(frozen=True, slots=True)
class Silence:
    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str
    times: Times | None = None
    """Times at which it holds within that span, if not throughout."""

    def span(self, at: datetime) -> Span | None:
        """From when until when it holds without a break, at a moment at which it does."""
        if not self.starts_at <= at < self.ends_at:
            return None
        return Span(self.starts_at, self.ends_at) if self.times is None else self.times.at(at)

    def holds(self, labels: Mapping[str, str], at: datetime) -> bool:
        return self.span(at) is not None and self.fits(labels)

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether it holds for these labels while it is in force."""
        return all(one.matches(labels) for one in self.matchers)

    def why(self, at: datetime) -> str:
        """Reason why an alert that it holds for called nobody."""
        span = self.span(at)
        matchers = ", ".join(map(str, self.matchers))
        until = f"{self.ends_at if span is None else span.ends_at:%Y-%m-%d %H:%M} UTC"
        return f"silenced by {self.created_by} until {until} ({matchers}): {self.comment}"


def first_that_holds(silences: Iterable[Silence], labels: Mapping[str, str], at: datetime) -> Silence | None:
    return next((one for one in silences if one.holds(labels, at)), None)


def matchers_from(value: object) -> tuple[Matcher, ...]:
    """Matchers as Alertmanager's API writes them. Raises InvalidValueError; at least one must not match the empty
    text."""
    matchers = each_matcher(value)
    if all(one.matches({}) for one in matchers):
        raise InvalidValueError(
            "matchers",
            "at least one matcher must not match an alert without labels, otherwise all alerts would be silenced",
        )
    return matchers


def each_matcher(value: object) -> tuple[Matcher, ...]:
    """The same, whatever they match. Raises InvalidValueError."""
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_MATCHERS:
        raise InvalidValueError("matchers", f"must be a list of 1 to {MOST_MATCHERS} matchers")
    return tuple(_matcher(f"matchers[{place}]", one) for place, one in enumerate(value))


def _matcher(field: str, value: object) -> Matcher:
    if not isinstance(value, Mapping):
        raise InvalidValueError(field, 'must be an object {"name", "value", "isRegex", "isEqual"}')
    flags = {name: value.get(name, default) for name, default in (("isRegex", False), ("isEqual", True))}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise InvalidValueError(f"{field}.{name}", "must be true or false")
    text = check_line(f"{field}.value", value.get("value", ""), 1_000, blank=True)
    if flags["isRegex"]:
        try:
            _compiled(text)
        except re2.error as error:
            (reason,) = error.args
            explained = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
            raise InvalidValueError(
                f"{field}.value", f"must be a regular expression of RE2: {explained}"
            ) from None
    return Matcher(check_line(f"{field}.name", value.get("name")), text, flags["isRegex"], flags["isEqual"])


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


# Maintenance
# ----------------------------------------------------------------------------------------------------------
Mode = Literal["hold", "quiet"]
"""`hold`: alerts open no incident until the window ends. `quiet`: they open incidents, which sleep until it ends."""
MOST_PATTERNS: Final = 50
LONGEST_PATTERN: Final = 200


@dataclass(frozen=True, slots=True)
class Window:
    """Scope of a window: components that a pattern fits, alerts that every matcher fits, or those that both do.

    `components` are its own patterns and those of its services; where it has either, what none of them fits is not
    worked on.

    A pattern is a shell glob over `kind/name` whose `*` also crosses `/`, as in routes. `id` changes whenever the
    window does: what an older edition held is looked at again.
    """

    id: str
    slug: str
    reason: str
    components: tuple[str, ...]
    matchers: tuple[Matcher, ...]
    times: Times
    mode: Mode
    services: tuple[str, ...] = ()

    def covers(self, component: str | None, labels: Mapping[str, str]) -> bool:
        if (self.components or self.services) and not self.names(component):
            return False
        return all(one.matches(labels) for one in self.matchers)

    def names(self, component: str | None) -> bool:
        """Whether a pattern fits a component; none does where only matchers say what is worked on."""
        return component is not None and any(fnmatchcase(component, one) for one in self.components)

    def why(self, span: Span) -> str:
        until = f"{span.ends_at:%Y-%m-%d %H:%M} UTC"
        return f"in the maintenance window {self.slug} until {until}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ActiveWindow:
    """A window within one of its spans."""

    window: Window
    span: Span

    @property
    def why(self) -> str:
        return self.window.why(self.span)


def in_force(windows: Iterable[Window], at: datetime) -> list[ActiveWindow]:
    """Those that hold now, the one that ends last first."""
    found = [ActiveWindow(one, span) for one in windows if (span := one.times.at(at)) is not None]
    return sorted(found, key=lambda one: one.span.ends_at, reverse=True)


def first_that_covers(
    windows: Iterable[ActiveWindow], mode: Mode, component: str | None, labels: Mapping[str, str]
) -> ActiveWindow | None:
    found = (one for one in windows if one.window.mode == mode)
    return next((one for one in found if one.window.covers(component, labels)), None)


def patterns_from(value: object) -> tuple[str, ...]:
    """Raises InvalidValueError. One that would take in every component has to be written as a matcher, and thought
    about."""
    if not isinstance(value, list | tuple) or len(value) > MOST_PATTERNS:
        raise InvalidValueError(
            "components", f"must be a list of at most {MOST_PATTERNS} patterns such as tor/dc1-*"
        )
    patterns = tuple(
        check_line(f"components[{place}]", one, LONGEST_PATTERN) for place, one in enumerate(value)
    )
    for place, one in enumerate(patterns):
        if not one.strip("*?"):
            raise InvalidValueError(
                f"components[{place}]", "matches every component; list the affected components"
            )
    return patterns


def mode_from(value: object) -> Mode:
    for mode in get_args(Mode):
        if value == mode:
            return mode  # type: ignore[no-any-return]
    raise InvalidValueError("mode", f"must be one of {', '.join(get_args(Mode))}")


# Inhibition
# ----------------------------------------------------------------------------------------------------------
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
        """Reason why an alert called nobody while the one with the title `source` fired."""
        same = f" for the same {', '.join(self.equal)}" if self.equal else ""
        return f"inhibited by the rule {self.name} while “{source}” fires{same}"


@dataclass(frozen=True, slots=True)
class Sides:
    """Sides of a rule that an alert is on while it fires.

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
