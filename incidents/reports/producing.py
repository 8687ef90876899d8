"""Record the report of every finished day, once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import transaction

from incidents.reports.daily import report_of
from incidents.reports.events import PRODUCED
from incidents.reports.models import DailyReport
from ingest.commands import append
from ingest.queries import Context, Head, NewEvent, Position, WrongExpectedVersion, read_all

PAUSE = timedelta(minutes=15)
"""After midnight, for the runs of the day's last windows."""
MOST_DAYS = 7
"""Missed days that are made up; older ones can be computed but are not recorded."""
BEGINNING = date(2000, 1, 1)
"""Nothing was recorded before."""


def produce_missing(now: datetime) -> list[date]:
    """Produce the reports of past days that have none; the days. Safe to call at any time, by anyone."""
    first = read_all(Position.START, 1)
    if not first:
        return []
    began = first[0].recorded_at.astimezone(UTC).date()
    known = set(DailyReport.objects.values_list("day", flat=True))
    return [day for day in finished_days(began, now) if day not in known and produce(day, now)]


def finished_days(began: date, now: datetime) -> list[date]:
    """The days since `began` that are over at `now`, oldest first, at most the last `MOST_DAYS`."""
    today = (now - PAUSE).astimezone(UTC).date()
    days = (today - timedelta(days=back) for back in range(MOST_DAYS, 0, -1))
    return [day for day in days if day >= began]


def produce(day: date, now: datetime) -> bool:
    """Record the report of a day; False when there already is one."""
    body = report_of(day)
    try:
        with transaction.atomic():
            new = NewEvent(PRODUCED.name, body, now)
            (event,) = append(f"report/{day.isoformat()}", [new], Head.NEW, Context("system:reports"))
            DailyReport.objects.create(day=day, body=body, position=str(event.position))
    except WrongExpectedVersion:
        return False
    return True


def reports() -> list[DailyReport]:
    """Those produced, newest first."""
    return list(DailyReport.objects.all())


def report(day: date, now: datetime) -> dict[str, Any] | None:
    """The report of a day as recorded, else as it stands now (`final` false); None for a day to come."""
    kept = DailyReport.objects.filter(day=day).first()
    if kept is not None:
        return {**kept.body, "final": True}
    if not BEGINNING <= day <= now.astimezone(UTC).date():
        return None
    return {**report_of(day), "final": False}
