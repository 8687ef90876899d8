"""Stretches of time, and local times of a zone as instants. Pure.

A span is half-open: its start belongs to it, its end does not. Instants are in UTC throughout, because Python compares
two times of one zone by the clock on the wall, which stands still or jumps twice a year.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

Span = tuple[datetime, datetime]
"""Start and end, in UTC, the start before the end."""
ALWAYS: Span = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
LARGEST_JUMP = timedelta(hours=26)
"""More than any zone's clock has ever jumped (a day, where islands crossed the date line)."""


def instant(local: datetime, zone: ZoneInfo) -> datetime:
    """The instant at which clocks in `zone` show `local` (which has no zone), as RFC 5545 reads it (3.3.5).

    A time that the clock skips counts with the offset before the gap: 02:30 in the night of spring is 03:30. Of a time
    that comes twice, the first is meant.
    """
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)


def wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """Clock time in `zone` of that instant, without a zone."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same time in order, without overlap; spans that touch become one, empty ones vanish."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def near(spans: Sequence[Span], between: Span) -> Sequence[Span]:
    """Those that touch `between`, of spans in order and without overlap; found in logarithmic time."""
    first = bisect_right(spans, between[0], key=lambda span: span[1])
    return spans[first : bisect_left(spans, between[1], lo=first, key=lambda span: span[0])]


def common(some: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The time that is in both; both are in order and without overlap."""
    found: list[Span] = []
    others = near(others, (some[0][0], some[-1][1])) if some else ()
    one = other = 0
    while one < len(some) and other < len(others):
        start, end = max(some[one][0], others[other][0]), min(some[one][1], others[other][1])
        if start < end:
            found.append((start, end))
        if some[one][1] <= others[other][1]:
            one += 1
        else:
            other += 1
    return found


def without(some: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The time of `some` that is not in `others`; both are in order and without overlap."""
    others = near(others, (some[0][0], some[-1][1])) if some else ()
    edges = [ALWAYS[0], *(edge for span in others for edge in span), ALWAYS[1]]
    free = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]
    return common(some, free)


# In words
# ----------------------------------------------------------------------------------------------------------
def span_words(seconds: float) -> str:
    """`40 s`, `7 min`, `3.5 h`, `2.1 d`."""
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (129_600, 3600, "h")):
        if seconds < limit:
            shown = seconds / size
            return f"{shown:.0f} {unit}" if unit != "h" else f"{shown:.1f} {unit}"
    return f"{seconds / 86400:.1f} d"


def lead_words(lead: timedelta | float | None) -> str:
    """`12 min before the first report`, `3 min after it`: how long a blame came before or after it."""
    if lead is None:
        return "–"
    seconds = lead.total_seconds() if isinstance(lead, timedelta) else lead
    return f"{span_words(abs(seconds))} {'before the first report' if seconds > 0 else 'after it'}"
