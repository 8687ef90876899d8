"""Recorded alerts under other silences, maintenance windows and inhibition rules: when each would be free. Pure.

An alert is suppressed from its firing on while anything holds it; it opens an incident at the first moment at which
nothing does and it still fires. Inhibition follows what fired beside it: a rule mutes its targets from when a source
begins to fire until the last source of the same values is over.

A proposed silence or window begins now and would hold nothing of the past. `proposed` moves it there: what recurs has
its times also before its first one, a silence that holds once holds all the time, a window that comes once is taken in
every week.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from incidents.domain.suppression.recurrence import Recurrence, Times, earlier
from incidents.domain.suppression.rules import Rule, Silence, Window, sides

EVER: Final = datetime.max.replace(tzinfo=UTC)
BEGIN: Final = datetime.min.replace(tzinfo=UTC)
WEEK: Final = timedelta(weeks=1)
MOST_HOLDS: Final = 100
"""Suppressions in a row of one alert."""


@dataclass(slots=True, eq=False)
class Firing:
    """An alert while it fired; `end` is None while it is not over. `matched` is what matchers of silences see."""

    alert: str
    component: str | None
    labels: Mapping[str, str]
    matched: Mapping[str, str]
    start: datetime
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All that holds alerts back."""

    silences: tuple[Silence, ...] = ()
    windows: tuple[Window, ...] = ()
    inhibitions: tuple[Rule, ...] = ()


class PastSuppression:
    """Suppressions over the firings of a span."""

    def __init__(self, rules: Suppressions, firings: Iterable[Firing]) -> None:
        self._rules = rules
        self._sources: dict[UUID, list[tuple[datetime, datetime]]] = defaultdict(list)
        if rules.inhibitions:
            for one in firings:
                for rule in rules.inhibitions:
                    for key in sides(rule, one.labels).mutes:
                        self._sources[key].append((one.start, one.end or EVER))

    def free_at(self, one: Firing) -> datetime | None:
        """Time at which nothing holds it any more; None where it is over by then, or never free."""
        at = one.start
        for _ in range(MOST_HOLDS):
            until = self._held_until(one, at)
            if until is None:
                return at
            if until == EVER or (one.end is not None and until >= one.end):
                return None
            at = until
        return None

    def _held_until(self, one: Firing, at: datetime) -> datetime | None:
        """The latest end of what holds it at a moment; None where nothing does."""
        ends = [
            span.ends_at
            for silence in self._rules.silences
            if silence.fits(one.matched) and (span := silence.span(at)) is not None
        ]
        ends += [
            span.ends_at
            for window in self._rules.windows
            if window.covers(one.component, one.labels) and (span := window.times.at(at)) is not None
        ]
        for rule in self._rules.inhibitions:
            key = sides(rule, one.labels).muted_by
            if key is not None:
                ends += [end for start, end in self._sources.get(key, ()) if start <= at < end]
        return max(ends, default=None)


def proposed(before: Suppressions, after: Suppressions, start: datetime) -> Suppressions:
    """The later ones, with those that the earlier ones lack moved into the past from `start` on."""
    silences = {_key_of_silence(one) for one in before.silences}
    windows = {_key_of_window(one) for one in before.windows}
    return replace(
        after,
        silences=tuple(
            one if _key_of_silence(one) in silences else _silence(one, start) for one in after.silences
        ),
        windows=tuple(
            one if _key_of_window(one) in windows else replace(one, times=_times(one.times, start))
            for one in after.windows
        ),
    )


def _key_of_silence(one: Silence) -> tuple[object, ...]:
    return one.id, one.matchers, one.starts_at, one.ends_at, one.times


def _key_of_window(one: Window) -> tuple[object, ...]:
    return one.slug, one.components, one.services, one.matchers, one.times, one.mode


def _silence(one: Silence, start: datetime) -> Silence:
    if one.times is None:
        return replace(one, starts_at=BEGIN, ends_at=EVER)
    return replace(one, starts_at=BEGIN, times=earlier(one.times, start))


def _times(times: Times, start: datetime) -> Times:
    if times.recurrence is not None:
        return earlier(times, start)
    if times.ends_at - times.starts_at >= WEEK:
        return Times(BEGIN, EVER)
    return earlier(replace(times, recurrence=Recurrence("FREQ=WEEKLY", "UTC")), start)
