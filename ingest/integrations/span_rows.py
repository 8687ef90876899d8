"""Spans of traces as rows of the kind `span`. Pure.

The recorded spans name pods, not services. A pod of a Deployment is `SERVICE-HASH-POD`, where the hash of its
replica set has up to ten and the pod five characters of Kubernetes' own alphabet; a pod of a StatefulSet is
`SERVICE-N`. What ends in neither is its own service. (Kubernetes, `rand.SafeEncodeString`: digits and
consonants that spell no words.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta

from ingest.integrations.spans import Span, instant
from ingest.log.types import rfc3339

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_DEPLOYMENT = re.compile(rf"(.+)-[{_SAFE}0-9a-f]{{5,10}}-[{_SAFE}]{{5}}")
_ORDINAL = re.compile(r"(.+)-\d+")

MINUTE_NS = 60 * 10**9


def service_of(pod: str) -> str:
    """The service that a pod belongs to, by its name."""
    match = _DEPLOYMENT.fullmatch(pod) or _ORDINAL.fullmatch(pod)
    return match[1] if match else pod


def span_rows(spans: Iterable[Span], shift: timedelta = timedelta(0)) -> list[dict[str, object]]:
    """One `span` row a span, in order of time; `shift` is added to every time.

    Spans that end before they start are left out, and of one that came twice the earlier is kept.
    """
    rows: list[dict[str, object]] = []
    seen: set[tuple[str, str]] = set()
    for span in sorted(spans, key=lambda one: (one.start, one.trace, one.span)):
        if span.duration_us < 0 or (span.trace, span.span) in seen:
            continue
        seen.add((span.trace, span.span))
        when = instant(span.start) + shift
        row: dict[str, object] = {
            "time": rfc3339(when),
            "trace": span.trace,
            "span": span.span,
            "service": service_of(span.instance),
            "instance": span.instance,
            "operation": span.operation,
            "duration_us": span.duration_us,
            "error": span.error,
        }
        if span.parent is not None:
            row["parent"] = span.parent
        rows.append(row)
    return rows


def put_before(normal: Sequence[Sequence[int]], times: Sequence[int]) -> list[timedelta]:
    """Moves of stretches of fault-free time so that they follow each other and end where the minute begins in which
    `times` start: by whole minutes, so that a minute stays a minute. Times are nanoseconds since 1970.
    """
    border = min(times) // MINUTE_NS
    moves = []
    for stretch in reversed(normal):
        last, first = max(stretch) // MINUTE_NS, min(stretch) // MINUTE_NS
        moves.append(timedelta(minutes=border - 1 - last))
        border -= last - first + 1
    return moves[::-1]
