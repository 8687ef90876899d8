"""Events that are dated otherwise than their place in the log allows.

A row that is put in with a `recorded_at` of last month chains well, so no hash shows it. Seals do: what a seal covers
was recorded after the seal before it and before the seal itself, give or take SLACK.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain

from django.db import connection

from ingest.log import source
from ingest.log.types import Position, read_body

SLACK = 600.0
"""Seconds by which `recorded_at` may stand outside of its seals: longer than any transaction runs."""
LONG_BEFORE = 86400.0
"""Seconds between what happened and its record above which it is shown."""
SHOWN = 5
"""Events that are shown one by one."""

_OUTSIDE = """
SELECT epoch, txid::text, seq, stream || '@' || version, recorded_at,
    CASE WHEN recorded_at < %(before)s::timestamptz - %(slack)s * interval '1 second' THEN %(before)s::timestamptz
        ELSE %(after)s::timestamptz END
FROM log_event
WHERE seq >= %(hot)s
    AND (epoch, txid, seq) > (%(b0)s, %(b1)s::xid8, %(b2)s) AND (epoch, txid, seq) <= (%(u0)s, %(u1)s::xid8, %(u2)s)
    AND (recorded_at < %(before)s::timestamptz - %(slack)s * interval '1 second'
        OR recorded_at > %(after)s::timestamptz + %(slack)s * interval '1 second')
"""
_HAPPENED = """
SELECT type, count(*), max(recorded_at - occurred_at),
    (array_agg(stream || '@' || version ORDER BY recorded_at - occurred_at DESC))[1]
FROM log_event WHERE seq >= %s AND occurred_at < recorded_at - %s * interval '1 second' GROUP BY type
"""
TOGETHER = 20
"""Seals in memory; one has up to 80 kB."""
_LAST = Position(2**15, 2**62, 2**62)


def remarks() -> list[str]:
    """Sentences about events that are dated back or ahead, at most SHOWN one by one; empty where there are none."""
    return [*_recorded(), *_happened()]


Span = tuple[datetime | None, datetime | None, Position, Position]
"""Times of two seals, one after the other, and the positions between which the second covers events: these were
recorded between the two. Before the first seal is no time, and after the last one."""


def _recorded() -> list[str]:
    spans = _spans()
    found = sorted([*_outside_in_postgres(spans), *_outside_in_files(spans)])
    sentences = [
        f"{event} says that it was recorded at {at:%Y-%m-%d %H:%M:%S}Z, but a seal {'before' if at < seal else 'after'}"
        f" it is of {seal:%Y-%m-%d %H:%M:%S}Z: it was dated {'back' if at < seal else 'ahead'}"
        for _, event, at, seal in found[:SHOWN]
    ]
    return sentences + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def _spans() -> list[Span]:
    """Spans that seals cover, and the one that none covers yet."""
    spans, before, upto, first = list[Span](), None, Position.START, 1
    while rows := source.of_streams(
        ("body", "recorded_at"), source.Query(streams=["log"], versions=range(first, first + TOGETHER))
    ):
        for text, at in rows:
            body = read_body(text)
            upto = Position.parse(body["upto"])
            spans.append((before, at, Position.parse(body["from"]), upto))
            before = at
        first += TOGETHER
    if before is not None:
        spans.append((before, None, upto, _LAST))
    return spans


Outside = tuple[Position, str, datetime, datetime]
"""Position, id and time of an event, and the time of the seal that it contradicts."""


def _outside_in_postgres(spans: Sequence[Span]) -> Iterator[Outside]:
    with connection.cursor() as cursor:
        for before, after, begin, upto in spans:
            if (piece := source.stretch(upto)).high is not None and piece.high < source.hot_from():
                continue
            cursor.execute(
                _OUTSIDE,
                {
                    "before": before, "after": after, "slack": SLACK, "hot": source.hot_from(),
                    "b0": begin.epoch, "b1": str(begin.txid), "b2": begin.seq,
                    "u0": upto.epoch, "u1": str(upto.txid), "u2": upto.seq,
                },
            )  # fmt: skip
            for epoch, txid, seq, *rest in cursor.fetchall():
                yield Position(epoch, int(txid), seq), *rest


def _outside_in_files(spans: Sequence[Span]) -> Iterator[Outside]:
    begins, slack = [begin for _, _, begin, _ in spans], timedelta(seconds=SLACK)
    columns = ("stream", "version", "recorded_at", "epoch", "txid", "seq")
    for stream, version, at, epoch, txid, seq in chain.from_iterable(source.in_files(columns)):
        position = Position(epoch, int(txid), seq)
        place = bisect_left(begins, position) - 1
        if place < 0:
            continue
        before, after, _, upto = spans[place]
        if position > upto:
            continue
        if before is not None and at < before - slack:
            yield position, f"{stream}@{version}", at, before
        elif after is not None and at > after + slack:
            yield position, f"{stream}@{version}", at, after


def _happened() -> list[str]:
    found = dict[str, tuple[int, timedelta, str]]()
    with connection.cursor() as cursor:
        cursor.execute(_HAPPENED, (source.hot_from(), LONG_BEFORE))
        for type_, count, longest, first in cursor.fetchall():
            found[type_] = count, longest, first
    columns = ("type", "stream", "version", "occurred_at", "recorded_at")
    for type_, stream, version, occurred_at, recorded_at in chain.from_iterable(source.in_files(columns)):
        if (took := recorded_at - occurred_at) > timedelta(seconds=LONG_BEFORE):
            count, longest, first = found.get(type_, (0, timedelta(), ""))
            found[type_] = count + 1, *max((longest, first), (took, f"{stream}@{version}"))
    return [
        f"{count} of {type_} say that they happened more than {LONG_BEFORE / 3600:.0f} h before they were recorded;"
        f" the most {longest.days} d: {first}"
        for type_, (count, longest, first) in sorted(found.items())
    ]
