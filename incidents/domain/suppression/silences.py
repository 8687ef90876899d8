"""Silences: what nobody is to be called for, for a time. Matchers as Alertmanager has them. Pure.

Regular expressions are RE2's, as Prometheus': linear in the text, so that none can keep a worker busy for ever. They
match the whole value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import re2

from incidents.domain.suppression.recurrence import Span, Times
from incidents.domain.values import InvalidValueError, check_line

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
        told = labels.get(self.name, "")
        same = bool(_compiled(self.value).fullmatch(told)) if self.is_regex else told == self.value
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
    """When it holds within that time, if not throughout."""

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
        """Why an alert that it holds for called nobody."""
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


def matchers_of(stored: Iterable[Mapping[str, Any]]) -> tuple[Matcher, ...]:
    """Matchers as they are kept, which were read once before."""
    return tuple(Matcher(one["name"], one["value"], one["isRegex"], one["isEqual"]) for one in stored)


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
            told = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
            raise InvalidValueError(
                f"{field}.value", f"must be a regular expression of RE2: {told}"
            ) from None
    return Matcher(check_line(f"{field}.name", value.get("name")), text, flags["isRegex"], flags["isEqual"])


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
