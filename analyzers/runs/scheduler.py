"""Schedules: which windows are due, the data clock behind that, and the runs queued for workers.

`telemetry.received` events move a cursor for each region and kind; the data clock of a schedule follows the cursors of
the kinds that it reads. The follower hands over whole batches, so that a thousand small bodies cost one look, and the
look comes after the commit: a follower's transaction is short, and the next tick makes up for a lost look.

Any number of processes may schedule at once: a run is claimed by inserting its row (two unique constraints: once per
window, one at a time) and taken up by a worker with a lease (`ingest.db.lease`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection, models, transaction
from django.db.models import Exists, OuterRef

from analyzers import registry
from analyzers.registry import UnknownAnalyzerError
from analyzers.runs.models import UNFINISHED, Run, Schedule, TelemetryCursor
from analyzers.runs.timing import clock, due, first_end
from ingest.commands import Follower, lease, register_follower, run_follower_once
from ingest.queries import TELEMETRY_KINDS, Event, now_utc, parse_rfc3339

log = structlog.get_logger("runs")

AHEAD = timedelta(minutes=1)
"""By how much clocks of machines may differ. A window is never run before its end: one that ends later than that was
run by a clock that was wrong."""

LIVE = timedelta(minutes=2)
"""Telemetry whose newest row was no older than this when it came is live."""
SILENT = timedelta(days=7)
"""A region from which nothing came for so long is no longer looked at by schedules for every region."""

_MOVE = """
INSERT INTO runs_telemetrycursor AS feed (region, kind, first, latest, first_arrived_at, arrived_at, last_received_at)
VALUES (%(region)s, %(kind)s, %(first)s, %(last)s, %(at)s, %(at)s, %(at)s)
ON CONFLICT (region, kind) DO UPDATE SET
    first = least(feed.first, excluded.first),
    latest = greatest(feed.latest, excluded.latest),
    arrived_at = CASE WHEN excluded.latest >= feed.latest THEN excluded.arrived_at ELSE feed.arrived_at END,
    last_received_at = greatest(feed.last_received_at, excluded.last_received_at)
"""


def arrived(events: list[Event]) -> None:
    move_cursors(events)
    transaction.on_commit(queue_due_by_arrival, robust=True)


def queue_due_by_arrival() -> None:
    """Queue what is due by arrival and tell workers."""
    if claim_due(Schedule.objects.filter(enabled=True, by_arrival=True), now_utc()):
        send()


ARRIVALS = register_follower(Follower("runs.arrivals", frozenset({"telemetry.received"}), arrived))


def catch_up() -> None:
    """Move the feeds to the log's end now, unless another process is at it."""
    while run_follower_once(ARRIVALS):
        pass


def claim_due(schedules: Iterable[Schedule], now: datetime) -> int:
    """Queue the next due window of each schedule and region that has none under way; how many."""
    return sum(_claim_schedule(schedule, now) for schedule in schedules)


def _claim_schedule(schedule: Schedule, now: datetime) -> int:
    try:
        kinds = kinds_read(schedule.analyzer, schedule.input)
    except UnknownAnalyzerError as problem:
        log.error("schedule without its analyzer", schedule=schedule.name, reason=str(problem))
        return 0
    regions = [schedule.region] if schedule.region else active_regions(kinds, now)
    return sum(
        _claim_next(schedule, region, telemetry_span(kinds, region), now)
        for region in regions
        if not is_busy(schedule, region)
    )


def _claim_next(schedule: Schedule, region: str, span: TelemetrySpan | None, now: datetime) -> bool:
    if span is None:
        return False
    last = last_end(schedule, region)
    if last is not None and last > now + AHEAD:
        count = disown_ahead(schedule, region, now + AHEAD)
        log.warning("the clock was set back", schedule=schedule.name, region=region, runs_ahead=count)
        last = last_end(schedule, region)
    at = clock(span.latest, span.arrived_at, now, schedule.idle)
    windows = due(schedule.cadence, span.first, last, at)
    if windows.left_out:
        log.warning(
            "windows left out", schedule=schedule.name, region=region, count=windows.left_out, since=str(last)
        )
    return bool(windows.ends) and claim_window(schedule, region, windows.ends[0], now)


def send(now: datetime | None = None) -> int:
    """Tell workers of the runs that wait; how many."""
    now = now or now_utc()
    return lease.announce_waiting("runs.execute", Run, now)


def claim_window(schedule: Schedule, region: str, end: datetime, now: datetime) -> bool:
    """Queue the window of a schedule that ends at `end`, unless it was, or another one is still under way."""
    run = Run(
        schedule=schedule,
        schedule_key=schedule.key(region),
        requested_by="system:schedule",
        analyzer=schedule.analyzer,
        region=region,
        params=schedule.params,
        input=schedule.input,
        window_start=end - schedule.length,
        window_end=end,
        history_wanted=schedule.history,
        created_at=now,
    )
    Run.objects.bulk_create([run], ignore_conflicts=True)
    return Run.objects.filter(pk=run.pk).exists()


def is_busy(schedule: Schedule, region: str) -> bool:
    """Whether a window of the schedule is still under way."""
    return Run.objects.filter(schedule=schedule, region=region, state__in=UNFINISHED).exists()


def disown_ahead(schedule: Schedule, region: str, now: datetime) -> int:
    """Runs of windows that are not over yet, made while the clock was wrong, are the schedule's no more: those windows
    are to be looked at when their time has come. How many there were."""
    ahead = Run.objects.filter(schedule=schedule, region=region, window_end__gt=now)
    return ahead.update(schedule=None)


def last_end(schedule: Schedule, region: str) -> datetime | None:
    """The end of the last window that the schedule has claimed in a region."""
    ends = Run.objects.filter(schedule=schedule, region=region)
    newest: datetime | None = ends.aggregate(newest=models.Max("window_end"))["newest"]
    return newest


@dataclass(frozen=True, slots=True)
class TelemetrySpan:
    """Telemetry of a region: from `first` to `latest` (data time), the latest of it at `arrived_at`."""

    first: datetime
    latest: datetime
    arrived_at: datetime


def move_cursors(events: list[Event]) -> None:
    """Take `telemetry.received` events into account."""
    with connection.cursor() as cursor:
        for event in events:
            body = event.body
            if body["rows"] == 0:
                continue
            moved = {
                "region": body["region"],
                "kind": body["kind"],
                "first": _counted(body["kind"], body["first"], event),
                "last": _counted(body["kind"], body["last"], event),
                "at": event.recorded_at,
            }
            cursor.execute(_MOVE, moved)


def active_regions(kinds: Iterable[str], now: datetime) -> list[str]:
    """The regions from which something of these kinds came lately."""
    cursors = TelemetryCursor.objects.filter(kind__in=list(kinds), last_received_at__gte=now - SILENT)
    return sorted(set(cursors.values_list("region", flat=True)))


def _counted(kind: str, at: str, event: Event) -> datetime:
    """A time of rows; of what is planned no later than its arrival: it does not say how far the data came."""
    declared, time = TELEMETRY_KINDS.get(kind), parse_rfc3339(at)
    return min(time, event.recorded_at) if declared is not None and declared.ahead else time


def regions_with_data(kinds: Iterable[str]) -> tuple[str, ...]:
    """The regions from which anything of these kinds ever came."""
    cursors = TelemetryCursor.objects.filter(kind__in=list(kinds))
    return tuple(sorted(set(cursors.values_list("region", flat=True))))


def telemetry_span(kinds: Iterable[str], region: str) -> TelemetrySpan | None:
    """The span of what came in a region of these kinds; None when nothing did."""
    return span_of_cursors(list(TelemetryCursor.objects.filter(region=region, kind__in=list(kinds))))


def span_of_cursors(feeds: Sequence[TelemetryCursor]) -> TelemetrySpan | None:
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
    return TelemetrySpan(first, newest.latest, newest.arrived_at)


def telemetry_behind(region: str | None, now: datetime) -> dict[tuple[str, str], datetime]:
    """Position of the data at `now`, by kind and region, where it is behind the clock: backfilled, late, replayed.

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
        return kinds_read(analyzer, input or "")
    except (UnknownAnalyzerError, ValueError):
        return None


def kinds_read(analyzer: str, input: str) -> tuple[str, ...]:
    """The kinds that an analyzer reads: those of the input named, else of all.

    Raises UnknownAnalyzerError.
    """
    inputs = registry.get(analyzer).inputs
    return tuple({kind: None for one in inputs if input in ("", one.name) for kind in one.kinds})


@dataclass(frozen=True, slots=True)
class Wait:
    """A region in which a schedule has never run; all regions where `region` is empty."""

    region: str
    why: str
    first_row_at: datetime | None = None
    first_run_at: datetime | None = None
    """About when, by the wall (telemetry that comes faster than time goes by brings it sooner); None where it is due
    already, or nobody knows."""
    is_blocked: bool = False
    """It cannot run, or go on running, until somebody mends its analyzer."""


def faulty_analyzers() -> dict[str, str]:
    """Problems by name of analyzers that are installed or scheduled; empty when all is well."""
    found = {problem.name: f"{problem.plugin}: {problem.reason}" for problem in registry.problems()}
    wanted = Schedule.objects.filter(enabled=True).order_by("analyzer").values_list("analyzer", flat=True)
    for name in wanted.distinct():
        if name not in registry.installed() and name not in found:
            found[name] = f"{name}: a schedule runs it and it is not installed"
    return found


def schedule_waits(schedule: Schedule, now: datetime) -> list[Wait]:
    """The regions in which a schedule waits for its first run; none where it is off."""
    if not schedule.enabled:
        return []
    try:
        kinds = kinds_read(schedule.analyzer, schedule.input)
    except UnknownAnalyzerError as problem:
        return [Wait(schedule.region, str(problem).removesuffix("."), is_blocked=True)]
    ran = Run.objects.filter(schedule=schedule, region=OuterRef("region"))
    cursors = TelemetryCursor.objects.filter(kind__in=kinds).annotate(ran=Exists(ran))
    if schedule.region:
        cursors = cursors.filter(region=schedule.region)
    else:
        cursors = cursors.filter(region__in=active_regions(kinds, now))
    found: dict[str, list[TelemetryCursor]] = {}
    for feed in cursors.order_by("region", "kind"):
        found.setdefault(feed.region, []).append(feed)
    if not found:
        within = "" if schedule.region else f" in the last {SILENT.days} days"
        return [Wait(schedule.region, f"no telemetry of {', '.join(kinds)} received{within}")]
    return [
        _first_run(schedule, region, span, now)
        for region, rows in found.items()
        if not getattr(rows[0], "ran") and (span := span_of_cursors(rows)) is not None  # noqa: B009
    ]


def _first_run(schedule: Schedule, region: str, span: TelemetrySpan, now: datetime) -> Wait:
    at = clock(span.latest, span.arrived_at, now, schedule.idle)
    left = first_end(schedule.cadence, span.first) + schedule.grace - at
    if left <= timedelta(0):
        return Wait(region, "its first window has ended and runs next", span.first)
    if at - schedule.length < span.first:
        why = "its window begins before the first row"
    else:
        why = "its first window has not ended yet"
    return Wait(region, why, span.first, now + left)
