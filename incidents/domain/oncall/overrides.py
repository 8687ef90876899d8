"""Overrides and swaps: who takes which time over, and when that can be taken back. Pure.

A swap is two overrides with one reason: each of two people takes a stretch in which the other one is on call. Stretches
of it can only be taken back together, and only before the first of them has begun: afterwards somebody has done their
part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from incidents.domain.oncall.rotations import Override, Schedule, gaps, shifts
from incidents.domain.oncall.spans import Span
from incidents.domain.values import CommandRefusedError, InvalidValueError

LONGEST: Final = timedelta(days=90)
FURTHEST: Final = timedelta(days=400)
"""Latest begin of an override, from now."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time in which `person` is on call and that somebody else is to take. No start: from now on."""

    person: str
    start: datetime | None
    end: datetime


def times_of(start: datetime | None, end: datetime, now: datetime, field: str = "") -> Span:
    """Begin and end of an override; it never begins before now. `field` precedes names in InvalidValueError."""
    begins = max(start or now, now)
    if end <= begins:
        raise InvalidValueError(f"{field}ends_at", "must be later than the start and than now")
    if end - begins > LONGEST:
        raise InvalidValueError(
            f"{field}ends_at", f"must be at most {LONGEST.days} days after the start; change the layers"
        )
    if begins - now > FURTHEST:
        raise InvalidValueError(f"{field}starts_at", f"must be within {FURTHEST.days} days")
    return begins, end


def swapped(schedule: Schedule, first: Stretch, second: Stretch, now: datetime) -> tuple[Override, Override]:
    """Overrides by which two people take over of each other.

    Raises InvalidValueError where they are not two, or one is not on call for all of their stretch.
    """
    if first.person == second.person:
        raise InvalidValueError("second.person", "must be a different person")
    taken = []
    for name, given, by in (("first", first, second.person), ("second", second, first.person)):
        begins, ends = times_of(given.start, given.end, now, f"{name}.")
        _check_on_call(schedule, f"{name}.person", given.person, (begins, ends))
        taken.append(Override(by, begins, ends))
    return taken[0], taken[1]


def _check_on_call(schedule: Schedule, field: str, person: str, span: Span) -> None:
    others = sorted({one.person for one in shifts(schedule, *span)} - {person})
    if others:
        raise InvalidValueError(
            field, f"must be on call for the whole period; part of it belongs to {', '.join(others)}"
        )
    if gaps(schedule, *span):
        raise InvalidValueError(field, "must be on call for the whole period; part of it is not covered")


def ended(override: Span, now: datetime) -> datetime | None:
    """End of an override that is ended now; None if it had not begun, so that nothing of it remains.

    Raises CommandRefusedError where it is over.
    """
    start, end = override
    if end <= now:
        raise CommandRefusedError("The override has already ended.")
    return None if start >= now else now


def check_reversible(swap: Iterable[Span], now: datetime) -> None:
    """Raises CommandRefusedError where a part of a swap has begun."""
    if any(start <= now for start, _ in swap):
        raise CommandRefusedError("Part of the swap has begun; override the remaining time instead.")
