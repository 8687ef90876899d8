"""Who works on which run. Each step is one conditional statement: who else is trying does not matter.

A run is claimed for a schedule by inserting its row (two unique constraints: once per window, one at a
time), taken up by a worker with a lease and a token, and finished only by whoever holds the token. A worker
that dies leaves a lease that ends; a worker that was merely slow finds that its token no longer counts and
records nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from analyzers.runs.models import UNFINISHED, Run, Schedule, State

MOST_ATTEMPTS = 3
"""Workers that may be lost over one run before it counts as failed: it may be what kills them."""
RESEND = timedelta(seconds=30)
"""A run that nobody took up for so long is sent again: the broker may have forgotten it."""


def lease() -> timedelta:
    """How long a worker may take over one run before another takes it up."""
    span: timedelta = settings.RUN_LEASE_TIMEOUT
    return span


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


def waiting(now: datetime) -> list[uuid.UUID]:
    """Runs that a worker should be told of: queued or left by a lost worker, and not told of just now."""
    again = min(RESEND, lease())
    told_long_ago = Q(sent_at=None) | Q(sent_at__lt=now - again) | Q(sent_at__gt=now + again)
    found = Run.objects.filter(_open_to_all(now), told_long_ago).order_by("created_at")
    return list(found.values_list("pk", flat=True))


def _open_to_all(now: datetime) -> Q:
    # No lease reaches that far: the clock was set back since. Clocks of machines differ by less than a lease.
    over = Q(lease_until__lt=now) | Q(lease_until__gt=now + 2 * lease())
    return Q(state=State.QUEUED) | Q(over, state=State.RUNNING)


def sent(runs: Sequence[uuid.UUID], now: datetime) -> None:
    Run.objects.filter(pk__in=runs, state__in=UNFINISHED).update(sent_at=now)


def take_up(run_id: uuid.UUID, now: datetime) -> Run | None:
    """The run with a fresh token and lease, or None when it is finished or in another worker's hands."""
    token = uuid.uuid4()
    Run.objects.filter(_open_to_all(now), pk=run_id).update(
        state=State.RUNNING, claim=token, lease_until=now + lease(), attempts=F("attempts") + 1
    )
    return Run.objects.select_related("repeats").filter(pk=run_id, claim=token).first()


def finish(run: Run, state: State, now: datetime, **results: Any) -> bool:
    """Write a run's results, inside the recording transaction; False when its token no longer counts."""
    held = Run.objects.filter(pk=run.pk, claim=run.claim, state=State.RUNNING)
    return held.update(state=state, finished_at=now, lease_until=None, **results) == 1


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
