"""Maintenance windows: planned work, during which alerts on what is worked on call nobody. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from incidents.domain.suppression.recurrence import Span, Times
from incidents.domain.suppression.silences import Matcher
from incidents.domain.values import InvalidValueError, check_line

Mode = Literal["hold", "quiet"]
"""`hold`: alerts open no incident until the window ends. `quiet`: they open incidents, which sleep until it ends."""
MOST_PATTERNS: Final = 50
LONGEST_PATTERN: Final = 200


@dataclass(frozen=True, slots=True)
class Window:
    """What is worked on: components that a pattern fits, alerts that every matcher fits, or those that both do.

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
