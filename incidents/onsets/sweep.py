"""Runs of `changepoint` over the moments at which incidents opened, so that each says since when it lasts.

One run serves all incidents of a region that opened within `STEP`: at most six an hour and region, of an hour of
metrics and a day of history, however many incidents open, and none where no metrics arrive. The runs report no
findings: a change is no fault.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction

from analyzers import queries as analyzers
from analyzers.commands import InvalidRunError, RunRequest, request_run
from incidents.incident.models import IncidentRow
from incidents.onsets.queries import ANALYZER, DEFAULT_REGION

ACTOR = "system:onsets"
STEP = timedelta(minutes=10)
"""Windows end on multiples of this since the epoch."""
AFTER = timedelta(minutes=10)
"""Data after the opening that a window has at least: a new level counts once it has lasted for five minutes."""
LENGTH = timedelta(hours=1)
GRACE = timedelta(minutes=1)
"""Time after its end at which a window is read."""
OLDEST = timedelta(hours=3)
"""Incidents that opened before are left: the sweep was down, or they were recorded later."""
EVERY = 15.0
"""Seconds between looks of a process."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_looked: dict[str, float] = {}


def sweep(now: datetime) -> int:
    """Queue what is due and not there yet; how many runs."""
    if time.monotonic() - _looked.get(ACTOR, -EVERY) < EVERY:
        return 0
    _looked[ACTOR] = time.monotonic()
    return request_onset_runs(now)


def request_onset_runs(now: datetime) -> int:
    """Queue a run for each window that is due and has none; how many. Two processes may call it at once."""
    opened = IncidentRow.objects.filter(opened_at__gt=now - OLDEST, opened_at__lte=now - AFTER - GRACE)
    known = opened.values_list("region", "opened_at").iterator()  # a storm opens thousands
    due = {(region or DEFAULT_REGION, window_end(at)) for region, at in known}
    due = {(region, end) for region, end in due if end + GRACE <= now}
    if not due:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (ACTOR,))
        return sum(_request(region, end, now) for region, end in sorted(due))


def window_end(opened_at: datetime) -> datetime:
    """The end of the window of an incident."""
    return _EPOCH - (_EPOCH - opened_at - AFTER) // STEP * STEP


def _request(region: str, end: datetime, now: datetime) -> bool:
    """Queue the run; False where a run of the window is there, or no metrics of it are."""
    start = end - LENGTH
    if analyzers.runs().filter(analyzer=ANALYZER, region=region, repeats=None, window_end=end).exists():
        return False
    span = analyzers.telemetry_span(("metric",), region)
    if span is None or span.latest < start:
        return False
    try:
        request_run(RunRequest(ANALYZER, region, start, end, report=False), ACTOR, now)
    except InvalidRunError:  # a clock far off
        return False
    return True
