"""How far the telemetry of a region has come: the data clock's hands, kept from the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from analyzers import registry
from analyzers.registry import UnknownAnalyzerError
from analyzers.runs.events import parse_instant
from analyzers.runs.models import Run, TelemetryCursor
from analyzers.runs.timing import clock
from ingest.queries import TELEMETRY_KINDS, Event

LIVE = timedelta(minutes=2)
"""Telemetry whose newest row was no older than this when it came is live."""
SILENT = timedelta(days=7)
"""A region from which nothing came for so long is no longer looked at by schedules for every region."""

_MOVE = """
INSERT INTO runs_telemetrycursor AS feed (region, kind, first, latest, first_arrived_at, arrived_at, heard_at)
VALUES (%(region)s, %(kind)s, %(first)s, %(last)s, %(at)s, %(at)s, %(at)s)
ON CONFLICT (region, kind) DO UPDATE SET
    first = least(feed.first, excluded.first),
    latest = greatest(feed.latest, excluded.latest),
    arrived_at = CASE WHEN excluded.latest >= feed.latest THEN excluded.arrived_at ELSE feed.arrived_at END,
    heard_at = greatest(feed.heard_at, excluded.heard_at)
"""


@dataclass(frozen=True, slots=True)
class Span:
    """What came from a region: from `first` to `latest` (data time), the latest of it at `arrived_at`."""

    first: datetime
    latest: datetime
    arrived_at: datetime


def move(events: list[Event]) -> None:
    """Take `telemetry.received` events into account."""
    with connection.cursor() as cursor:
        for event in events:
            body = event.body
            if body["rows"] == 0:
                continue
            moved = {
                "region": body["region"],
                "kind": body["kind"],
                "first": parse_instant(body["first"]),
                "last": parse_instant(body["last"]),
                "at": event.recorded_at,
            }
            cursor.execute(_MOVE, moved)


def regions(kinds: Iterable[str], now: datetime) -> list[str]:
    """The regions from which something of these kinds came lately."""
    heard = TelemetryCursor.objects.filter(kind__in=list(kinds), heard_at__gte=now - SILENT)
    return sorted(set(heard.values_list("region", flat=True)))


def regions_with_data(kinds: Iterable[str]) -> tuple[str, ...]:
    """The regions from which anything of these kinds ever came."""
    heard = TelemetryCursor.objects.filter(kind__in=list(kinds))
    return tuple(sorted(set(heard.values_list("region", flat=True))))


def span(kinds: Iterable[str], region: str) -> Span | None:
    """The span of what came in a region of these kinds; None when nothing did."""
    return span_of(list(TelemetryCursor.objects.filter(region=region, kind__in=list(kinds))))


def span_of(feeds: Sequence[TelemetryCursor]) -> Span | None:
    """The span of one region's feeds; None of none.

    A state (a placement) may be years old: it counts from its arrival, or from the first other row if that
    is older.
    """
    if not feeds:
        return None
    newest = max(feeds, key=lambda feed: (feed.latest, feed.arrived_at))
    first = min(
        feed.first_arrived_at if TELEMETRY_KINDS[feed.kind].is_state else feed.first for feed in feeds
    )
    return Span(first, newest.latest, newest.arrived_at)


def behind(region: str | None, now: datetime) -> dict[tuple[str, str], datetime]:
    """How far the data had come at `now`, by kind and region, where it is behind the wall: backfilled, late, replayed.

    What came late is taken to go on as late; what is `LIVE` is left out. States are, too: nothing happens in them. A
    region of None is every region.
    """
    found = TelemetryCursor.objects.all() if region is None else TelemetryCursor.objects.filter(region=region)
    return {
        (feed.kind, feed.region): clock(feed.latest, feed.arrived_at, now, timedelta(0))
        for feed in found
        if feed.arrived_at - feed.latest > LIVE
        and (kind := TELEMETRY_KINDS.get(feed.kind)) is not None
        and not kind.is_state
    }


def kinds_of(run: str, analyzer: str) -> tuple[str, ...] | None:
    """The kinds that a run read; those of every input of its analyzer where the run is not known, None where the
    analyzer is not."""
    try:
        input = Run.objects.filter(pk=UUID(run)).values_list("input", flat=True).first()
        return kinds(analyzer, input or "")
    except (UnknownAnalyzerError, ValueError):
        return None


def kinds(analyzer: str, input: str) -> tuple[str, ...]:
    """The kinds that an analyzer reads: those of the input named, else of all.

    Raises UnknownAnalyzerError.
    """
    inputs = registry.get(analyzer).inputs
    return tuple({kind: None for one in inputs if input in ("", one.name) for kind in one.kinds})
