"""Events that are dated otherwise than their place in the log allows.

A row that is put in with a `recorded_at` of last month chains well, so no hash shows it. Seals do: what a seal covers
was recorded after the seal before it and before the seal itself, give or take SLACK.
"""

from __future__ import annotations

from django.db import connection

from ingest.log.types import Position

SLACK = 600.0
"""Seconds by which `recorded_at` may stand outside of its seals: longer than any transaction runs."""
LONG_BEFORE = 86400.0
"""Seconds between what happened and its record above which it is shown."""
SHOWN = 5
"""Events that are shown one by one."""

_SEALS = """
SELECT recorded_at, lag(recorded_at) OVER (ORDER BY version) AS before,
    body::json ->> 'from' AS begin, body::json ->> 'upto' AS upto
FROM log_event WHERE stream = 'log' AND type = 'log.sealed' ORDER BY version
"""
_OUTSIDE = """
SELECT stream || '@' || version, recorded_at,
    CASE WHEN recorded_at < %(before)s::timestamptz - %(slack)s * interval '1 second' THEN %(before)s::timestamptz
        ELSE %(after)s::timestamptz END
FROM log_event
WHERE (epoch, txid, seq) > (%(b0)s, %(b1)s::xid8, %(b2)s) AND (epoch, txid, seq) <= (%(u0)s, %(u1)s::xid8, %(u2)s)
    AND (recorded_at < %(before)s::timestamptz - %(slack)s * interval '1 second'
        OR recorded_at > %(after)s::timestamptz + %(slack)s * interval '1 second')
ORDER BY epoch, txid, seq
"""
_HAPPENED = """
SELECT type, count(*), (array_agg(stream || '@' || version ORDER BY recorded_at - occurred_at DESC))[1],
    max(recorded_at - occurred_at)
FROM log_event WHERE occurred_at < recorded_at - %s * interval '1 second' GROUP BY type ORDER BY type
"""
_LAST = Position(2**15, 2**62, 2**62)


def remarks() -> list[str]:
    """Sentences about events that are dated back or ahead, at most SHOWN one by one; empty where there are none."""
    return [*_recorded(), *_happened()]


def _recorded() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_SEALS)
        seals = cursor.fetchall()
        spans = [
            (before, at, Position.parse(begin), Position.parse(upto)) for at, before, begin, upto in seals
        ]
        if spans:
            spans.append((spans[-1][1], None, spans[-1][3], _LAST))  # what no seal covers yet
        found = []
        for before, after, begin, upto in spans:
            cursor.execute(
                _OUTSIDE,
                {
                    "before": before, "after": after, "slack": SLACK,
                    "b0": begin.epoch, "b1": str(begin.txid), "b2": begin.seq,
                    "u0": upto.epoch, "u1": str(upto.txid), "u2": upto.seq,
                },
            )  # fmt: skip
            found += cursor.fetchall()
    sentences = [
        f"{event} says that it was recorded at {at:%Y-%m-%d %H:%M:%S}Z, but a seal {'before' if at < seal else 'after'}"
        f" it is of {seal:%Y-%m-%d %H:%M:%S}Z: it was dated {'back' if at < seal else 'ahead'}"
        for event, at, seal in found[:SHOWN]
    ]
    return sentences + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def _happened() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_HAPPENED, (LONG_BEFORE,))
        return [
            f"{count} of {type_} say that they happened more than {LONG_BEFORE / 3600:.0f} h before they were recorded;"
            f" the most {longest.days} d: {first}"
            for type_, count, first, longest in cursor.fetchall()
        ]
