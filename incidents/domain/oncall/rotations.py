"""Shifts: layers of rotations, times of the week, absences, overrides. Pure.

All that repeats is counted on the clock on the wall, so that a hand-over at 09:00 stays at 09:00 in summer: the turn in
the night of the change is an hour longer or shorter, of hourly turns too. Local times that do not exist or come twice
are read as RFC 5545 has it (see `spans.instant`). A turn that would begin after the next one, where a day is skipped at
the date line, does not take place.

Of several layers the last one that has somebody counts, over all of them the override that was made last. Somebody who
is away is skipped for exactly that time: the next one of the same rotation who is there stands in, and nobody else's
turn moves. Where a whole rotation is away, the layer below shows through. A rotation may be for holidays only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, Literal
from zoneinfo import ZoneInfo

from incidents.domain.oncall.spans import ALWAYS, LARGEST_JUMP, Span, common, instant, merged, wall, without

Holidays = Literal["include", "only", "exclude"]
LOOK_AHEAD: Final = (timedelta(days=8), timedelta(days=40), timedelta(days=400))
"""Spans in which the next hand-over is looked for, the near future first."""
_MOMENT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TimesOfWeek:
    """On these days (0 is Monday) from one time of day to another; one that is not later is on the next day."""

    days: frozenset[int]
    begins: timedelta
    ends: timedelta

    def spans(self, between: Span, zone: ZoneInfo) -> list[Span]:
        """All that touch `between`, in local time on the clock."""
        length = self.ends if self.ends > self.begins else self.ends + timedelta(days=1)
        first = wall(between[0], zone).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
        count = (wall(between[1], zone) - first).days + 2
        days = (first + timedelta(days=n) for n in range(count))
        return [
            (instant(day + self.begins, zone), instant(day + length, zone))
            for day in days
            if day.weekday() in self.days
        ]


@dataclass(frozen=True, slots=True)
class Rotation:
    """People who take turns from `start` on, a time on the clock of `zone`; `turn` is whole hours on that clock."""

    name: str
    people: tuple[str, ...]
    start: datetime
    zone: ZoneInfo
    turn: timedelta
    times: tuple[TimesOfWeek, ...] = ()
    """Times at which it applies; none: always."""
    holidays: Holidays = "include"
    end: datetime | None = None

    def begins(self, number: int) -> datetime:
        """Begin of the turn of that number, 0 being the first."""
        return instant(self.start + number * self.turn, self.zone)

    def turns(self, between: Span) -> list[tuple[datetime, datetime, int]]:
        """Turns that touch `between`, cut to it: start, end, number. They leave no time between them."""
        margin = LARGEST_JUMP + self.turn
        low, high = (wall(moment, self.zone) for moment in between)
        first = max(0, (low - margin - self.start) // self.turn)
        last = max(first, (high + margin - self.start) // self.turn)
        starts = [self.begins(number) for number in range(first, last + 2)]
        for place in range(len(starts) - 1, 0, -1):  # the later turn wins where the clock skipped a start
            starts[place - 1] = min(starts[place - 1], starts[place])
        cut = (
            (max(start, between[0]), min(end, between[1]), first + place)
            for place, (start, end) in enumerate(pairwise(starts))
        )
        return [(start, end, number) for start, end, number in cut if start < end]

    def applies(self, between: Span, holidays: Sequence[Span]) -> Sequence[Span]:
        """The part of `between` that it is for."""
        last = between[1] if self.end is None else min(between[1], instant(self.end, self.zone))
        spans: Sequence[Span] = merged([(between[0], last)])
        if self.times:
            spans = common(spans, merged(s for one in self.times for s in one.spans(between, self.zone)))
        if self.holidays == "include":
            return spans
        return common(spans, holidays) if self.holidays == "only" else without(spans, holidays)


@dataclass(frozen=True, slots=True)
class Override:
    """`person` is on call from `start` to `end`, whoever it would be; also if they are away."""

    person: str
    start: datetime
    end: datetime
    id: str = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """`person` is on call from `start` to `end` (UTC, half-open); `layer` says by which rotation, or the override."""

    start: datetime
    end: datetime
    person: str
    layer: str = ""
    override: str = ""


@dataclass(frozen=True, slots=True)
class Schedule:
    layers: tuple[Rotation, ...]
    """The last one that has somebody counts."""
    overrides: tuple[Override, ...] = ()
    """In the order in which they were made."""
    holidays: tuple[Span, ...] = ()
    away: Mapping[str, Sequence[Span]] = field(default_factory=dict)
    """Absences of people: in order, without overlap."""
    gone: frozenset[str] = frozenset()
    """People who are not there any more; not even an override brings them back."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Next hand-over and its person; None: nobody."""

    at: datetime
    person: str | None


def begun_before(schedule: Schedule, moment: datetime) -> Schedule:
    """The schedule with every rotation begun by a moment, whole rounds earlier, so that nobody's turn moves."""
    return replace(schedule, layers=tuple(_begun_before(one, moment) for one in schedule.layers))


def _begun_before(one: Rotation, moment: datetime) -> Rotation:
    late = one.start - (wall(moment, one.zone) - LARGEST_JUMP)
    around = one.turn * len(one.people)
    return one if late <= timedelta() else replace(one, start=one.start - around * -(-late // around))


def person_on_call(schedule: Schedule, at: datetime) -> str | None:
    """Person on call at that instant."""
    found = shifts(schedule, at, at + _MOMENT)
    return found[0].person if found else None


@dataclass(frozen=True, slots=True)
class StandIn:
    """An override that applies: until when, and in whose place; None: of nobody else."""

    until: datetime
    instead_of: str | None


def stand_in_at(schedule: Schedule, at: datetime) -> StandIn | None:
    """The override by which somebody is on call at that instant; None: by no override."""
    overriding = shifts(replace(schedule, layers=()), at, at + LOOK_AHEAD[-1])
    if not overriding or overriding[0].start > at:
        return None
    rotated = person_on_call(replace(schedule, overrides=()), at)
    return StandIn(overriding[0].end, None if rotated == overriding[0].person else rotated)


def shifts(schedule: Schedule, start: datetime, end: datetime) -> list[Shift]:
    """Shifts from `start` to `end`: in order, without overlap, cut to that span. No shift: nobody."""
    free: Sequence[Span] = merged([(start, end)])
    found: list[Shift] = []
    for override in reversed(schedule.overrides):
        if override.person not in schedule.gone:
            taken = common(free, [(override.start, override.end)])
            why = override.id or "override"
            found += [Shift(begins, ends, override.person, override=why) for begins, ends in taken]
            free = without(free, taken)
    # From the top down, each layer for the time that is left: what lies under others costs nothing.
    for layer in reversed(schedule.layers):
        turned = _rotated(layer, schedule, free)
        found += turned
        free = without(free, [(one.start, one.end) for one in turned])
    return _joined(sorted(found, key=lambda one: one.start))


def gaps(schedule: Schedule, start: datetime, end: datetime) -> list[Span]:
    """Gaps between two instants in which nobody is on call."""
    if start >= end:
        return []
    return without([(start, end)], merged((one.start, one.end) for one in shifts(schedule, start, end)))


def next_handover(schedule: Schedule, at: datetime) -> Handover | None:
    """The first instant after `at` from which on somebody else is on call, or nobody. None: not within 400 days."""
    now = person_on_call(schedule, at)
    for span in LOOK_AHEAD:
        edge = at
        for one in shifts(schedule, at, at + span):
            if one.start > edge and now is not None:
                return Handover(edge, None)
            if one.person != now:
                return Handover(one.start, one.person)
            edge = one.end
        if edge < at + span and now is not None:
            return Handover(edge, None)
    return None


@dataclass(frozen=True, slots=True)
class Turn:
    """Time without a break in which `person` is on call; no start or end: further away than 400 days."""

    person: str
    start: datetime | None
    end: datetime | None


def turn_at(schedule: Schedule, at: datetime) -> Turn | None:
    """The whole turn of the person on call at `at`, whichever layers and overrides it consists of; None in a gap."""
    for reach in LOOK_AHEAD:
        between = (at - reach, at + reach)
        run = next((one for one in _runs(shifts(schedule, *between)) if one.start <= at < one.end), None)
        if run is None:
            return None
        start = run.start if run.start > between[0] else None
        end = run.end if run.end < between[1] else None
        if (start is not None and end is not None) or reach == LOOK_AHEAD[-1]:
            return Turn(run.person, start, end)
    return None


def _runs(found: Iterable[Shift]) -> list[Shift]:
    """Shifts that touch are one where the same person is on call, for whatever reason."""
    return _joined(replace(one, layer="", override="") for one in found)


def people_of(schedule: Schedule) -> frozenset[str]:
    """Everybody whom a layer names."""
    return frozenset(person for layer in schedule.layers for person in layer.people)


def _rotated(layer: Rotation, schedule: Schedule, free: Sequence[Span]) -> list[Shift]:
    if not free:
        return []
    applies = common(free, layer.applies((free[0][0], free[-1][1]), schedule.holidays))
    if not applies:
        return []
    away = {**schedule.away, **dict.fromkeys(schedule.gone, (ALWAYS,))}
    found: list[Shift] = []
    for start, end, number in layer.turns((applies[0][0], applies[-1][1])):
        place = number % len(layer.people)
        order = layer.people[place:] + layer.people[:place]
        found += _filled(layer.name, order, common([(start, end)], applies), away)
    return found


def _filled(
    layer: str, order: Iterable[str], free: Sequence[Span], away: Mapping[str, Sequence[Span]]
) -> list[Shift]:
    """The time goes to the first one in `order` who is there."""
    found: list[Shift] = []
    for person in order:
        missed = common(free, away.get(person, ()))
        found += [Shift(start, end, person, layer) for start, end in without(free, missed)]
        free = missed
        if not free:
            break
    return sorted(found, key=lambda one: one.start)


def _joined(found: Iterable[Shift]) -> list[Shift]:
    """Shifts that touch are one where the same person is on call for the same reason."""
    joined: list[Shift] = []
    for one in found:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.end == one.start
            and replace(last, end=one.end) == replace(one, start=last.start)
        ):
            joined[-1] = replace(last, end=one.end)
        else:
            joined.append(one)
    return joined
