"""Who works on which run. Each step is one conditional statement: who else is trying does not matter.

A run is claimed for a schedule by inserting its row (two unique constraints: once per window, one at a
time), and taken up by a worker with a lease (`ingest.db.lease`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models

from analyzers.runs.models import UNFINISHED, Run, Schedule, State
from ingest.commands import lease

MOST_ATTEMPTS = 3
"""Workers that may be lost over one run before it counts as failed: it may be what kills them."""


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


def finish(run: Run, state: State, now: datetime, **results: Any) -> bool:
    """Write a run's results, inside the recording transaction; False when its token no longer counts."""
    return lease.write(run, state=state, finished_at=now, lease_until=None, **results)


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
