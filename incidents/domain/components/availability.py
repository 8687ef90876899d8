"""Availability of a component, from the spans in which it was out. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Part:
    """A span of time with the share of it in which the component was up, 0 to 1."""

    start: datetime
    end: datetime
    up: float


Span = tuple[datetime, datetime]


def merged(spans: Iterable[Span], start: datetime, end: datetime) -> list[Span]:
    """The spans, cut to [start, end), in order and without overlap."""
    found: list[Span] = []
    for first, last in sorted((max(a, start), min(b, end)) for a, b in spans if a < end and b > start):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def up_between(spans: Iterable[Span], start: datetime, end: datetime) -> float:
    """The share of [start, end) outside of all spans. A span without length is 1: nothing was out."""
    if end <= start:
        return 1.0
    out = sum((last - first for first, last in merged(spans, start, end)), timedelta())
    return 1 - out / (end - start)


def up_by_part(spans: Iterable[Span], start: datetime, end: datetime, length: timedelta) -> list[Part]:
    """Availability of each part of `length` from `start` on; the last one may be shorter."""
    listed, parts, at = list(spans), [], start
    while at < end:
        until = min(at + length, end)
        parts.append(Part(at, until, up_between(listed, at, until)))
        at = until
    return parts
