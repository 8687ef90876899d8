"""Due times of windows. Pure: no clock and no database, so that every case can be tried in a millisecond.

Windows are cut in data time, `[end - length, end)`, with ends on multiples of `every` since the epoch. A
window is due when the data clock has passed its end by `grace`. The data clock is the newest data time seen,
and it goes on at the pace of the wall once nothing has arrived for longer than `idle`: a fleet in which
nothing fails sends nothing, and its windows must still be looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_BEHIND = 288
"""Windows of a schedule that are made up after a pause: a day of one every five minutes."""

_SPAN = re.compile(r"(\d{1,9})(ms|s|m|h|d)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Cadence:
    """Cut of time by a schedule: `length` of a window, `every` the distance of their ends, `grace` to wait."""

    length: timedelta
    every: timedelta
    grace: timedelta


@dataclass(frozen=True, slots=True)
class Due:
    """Ends of the windows to run, oldest first, and how many older ones are too many and left out."""

    ends: tuple[datetime, ...]
    left_out: int = 0


def clock(latest: datetime, arrived_at: datetime, now: datetime, idle: timedelta) -> datetime:
    """The data clock. `latest` is the newest data time, `arrived_at` when it came.

    It never runs ahead of the wall: one sender whose clock is fast must not close the windows of all others.
    """
    return min(now, latest + max(timedelta(0), now - arrived_at - idle))


def due(cadence: Cadence, first: datetime, last_end: datetime | None, clock: datetime) -> Due:
    """The windows that are due and have not been run: from the first one that there is, or from the one after
    `last_end`, the end of the last window that was run.
    """
    newest = _steps_before(clock - cadence.grace, cadence.every)
    oldest = (first_end(cadence, first) - EPOCH) // cadence.every
    if last_end is not None:
        oldest = max(oldest, _steps_before(last_end, cadence.every) + 1)
    count = max(0, newest - oldest + 1)
    taken = min(count, MOST_BEHIND)
    return Due(
        tuple(EPOCH + step * cadence.every for step in range(newest - taken + 1, newest + 1)), count - taken
    )


def first_end(cadence: Cadence, first: datetime) -> datetime:
    """The end of the first window that lies wholly in the telemetry, of which `first` is the oldest data time: with it
    a schedule starts that has never run."""
    return EPOCH + _steps_after(first + cadence.length, cadence.every) * cadence.every


def _steps_before(moment: datetime, every: timedelta) -> int:
    return (moment - EPOCH) // every


def _steps_after(moment: datetime, every: timedelta) -> int:
    return -((EPOCH - moment) // every)


def parse_span(text: str) -> timedelta:
    """`90s`, `5m`, `1h`, `30d`, `250ms` as a timedelta; ValueError for anything else."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a span of time such as 90s, 5m, 1h or 30d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def span_text(span: timedelta) -> str:
    """The shortest exact spelling that `parse_span` reads."""
    milliseconds = span // timedelta(milliseconds=1)
    for unit in ("d", "h", "m", "s"):
        size = timedelta(**{_UNITS[unit]: 1}) // timedelta(milliseconds=1)
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"
