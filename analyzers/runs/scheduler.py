"""The tick: which windows are due, and which runs wait for a worker. Any number may run at once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from analyzers.registry import UnknownAnalyzerError
from analyzers.runs import claims, feeds
from analyzers.runs.models import Run, Schedule
from analyzers.runs.timing import clock, due
from ingest.commands import lease
from ingest.queries import now_utc

AHEAD = timedelta(minutes=1)
"""By how much clocks of machines may differ. A window is never run before its end: one that ends later than that was
run by a clock that was wrong."""
log = structlog.get_logger("runs")


def claim_due(schedules: Iterable[Schedule], now: datetime) -> int:
    """Queue the next due window of each schedule and region that has none under way; how many."""
    return sum(_claim_for(schedule, now) for schedule in schedules)


def _claim_for(schedule: Schedule, now: datetime) -> int:
    try:
        kinds = feeds.kinds(schedule.analyzer, schedule.input)
    except UnknownAnalyzerError as problem:
        log.error("schedule without its analyzer", schedule=schedule.name, reason=str(problem))
        return 0
    regions = [schedule.region] if schedule.region else feeds.regions(kinds, now)
    return sum(
        _claim_next(schedule, region, feeds.span(kinds, region), now)
        for region in regions
        if not claims.is_busy(schedule, region)
    )


def _claim_next(schedule: Schedule, region: str, span: feeds.Span | None, now: datetime) -> bool:
    if span is None:
        return False
    last = claims.last_end(schedule, region)
    if last is not None and last > now + AHEAD:
        count = claims.disown_ahead(schedule, region, now + AHEAD)
        log.warning("the clock was set back", schedule=schedule.name, region=region, runs_ahead=count)
        last = claims.last_end(schedule, region)
    at = clock(span.latest, span.arrived_at, now, schedule.idle)
    windows = due(schedule.cadence, span.first, last, at)
    if windows.left_out:
        log.warning(
            "windows left out", schedule=schedule.name, region=region, count=windows.left_out, since=str(last)
        )
    return bool(windows.ends) and claims.claim_window(schedule, region, windows.ends[0], now)


def send(now: datetime | None = None) -> int:
    """Tell workers of the runs that wait; how many."""
    now = now or now_utc()
    return lease.announce_waiting("runs.execute", Run, now)
