"""Why a schedule that is on has not run yet, and when it will: by the same hands of the clock as the tick."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from analyzers import registry
from analyzers.registry import UnknownAnalyzerError
from analyzers.runs import feeds
from analyzers.runs.models import Run, Schedule, TelemetryCursor
from analyzers.runs.timing import clock, first_end


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


def waits(schedule: Schedule, now: datetime) -> list[Wait]:
    """The regions in which a schedule waits for its first run; none where it is off."""
    if not schedule.enabled:
        return []
    try:
        kinds = feeds.kinds(schedule.analyzer, schedule.input)
    except UnknownAnalyzerError as problem:
        return [Wait(schedule.region, str(problem).removesuffix("."), is_blocked=True)]
    ran = Run.objects.filter(schedule=schedule, region=OuterRef("region"))
    heard = TelemetryCursor.objects.filter(kind__in=kinds).annotate(ran=Exists(ran))
    if schedule.region:
        heard = heard.filter(region=schedule.region)
    else:
        heard = heard.filter(region__in=feeds.regions(kinds, now))
    found: dict[str, list[TelemetryCursor]] = {}
    for feed in heard.order_by("region", "kind"):
        found.setdefault(feed.region, []).append(feed)
    if not found:
        lately = "" if schedule.region else f" in the last {feeds.SILENT.days} days"
        return [Wait(schedule.region, f"nothing of what it reads ({', '.join(kinds)}) has come{lately}")]
    return [
        _wait(schedule, region, span, now)
        for region, rows in found.items()
        if not getattr(rows[0], "ran") and (span := feeds.span_of(rows)) is not None  # noqa: B009
    ]


def _wait(schedule: Schedule, region: str, span: feeds.Span, now: datetime) -> Wait:
    at = clock(span.latest, span.arrived_at, now, schedule.idle)
    left = first_end(schedule.cadence, span.first) + schedule.grace - at
    if left <= timedelta(0):
        return Wait(region, "its first window is over and runs next", span.first)
    if at - schedule.length < span.first:
        why = "its window begins before the first row"
    else:
        why = "its first window is not over yet"
    return Wait(region, why, span.first, now + left)
