"""Reports of past periods on demand: asked for by a person, made by a worker, with how far it is.

Rows decide, as with runs: a worker takes a production up under a lease and a token. The report itself is recorded
once whoever makes it: its stream has one first event.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta

from django.db import transaction

from incidents.reports.compose import period_name, steps
from incidents.reports.models import ProducedReport, ReportJob, ReportSchedule
from incidents.reports.periods import PAUSE, Cadence, period_of
from incidents.reports.produce import ReportNotFoundError, find, periods_due, produce
from ingest.commands import lease
from ingest.queries import Position, now_utc, read_all

MOST_ATTEMPTS = 3
Now = Callable[[], datetime]


class InvalidPeriodError(ValueError):
    """The report cannot be made; the message says why."""


def demand(schedule: ReportSchedule, day: date, actor: str, now: datetime) -> str:
    """Have the report of the period that a day lies in made; its id. One that there is stays as it is. Raises
    InvalidPeriodError."""
    cadence: Cadence = schedule.cadence  # type: ignore[assignment]
    if not 2000 <= day.year <= 9000:
        raise InvalidPeriodError(f"{day} lies outside of the years 2000 to 9000")
    period = period_of(cadence, day, schedule.zone)
    if period.end > now:
        raise InvalidPeriodError(f"{period.words} is not over yet; look at the report so far")
    due = period.end + max(PAUSE, timedelta(hours=schedule.hour))
    if schedule.enabled and now < due:
        raise InvalidPeriodError(f"the report of {period.words} is generated at {due:%-d %b %H:%M} UTC")
    first = read_all(Position.START, 1)
    if not first or period.end <= first[0].recorded_at:
        raise InvalidPeriodError(f"no data was recorded in {period.words}")
    name = period_name(schedule.name, period)
    if ProducedReport.objects.filter(pk=name).exists():
        return name
    with transaction.atomic():
        parameters = {
            "requested_by": actor,
            "created_at": now,
            "state": "queued",
            "sent_at": None,
            "attempts": 0,
            "step": 0,
            "error": "",
        }
        again = ReportJob.objects.filter(pk=name, state__in=("failed", "done"))
        if not again.update(**parameters):
            ReportJob.objects.bulk_create([ReportJob(report=name, **parameters)], ignore_conflicts=True)
        transaction.on_commit(send)
    return name


def production(report: str) -> ReportJob | None:
    """State of a requested report."""
    return ReportJob.objects.filter(pk=report).first()


def send() -> None:
    """Tell workers of reports that somebody asked for and nobody makes."""
    lease.announce_waiting("reports.produce", ReportJob, now_utc())


def make(report: str, now: Now) -> bool:
    """Make it, unless another worker does; whether it is there now."""
    row = lease.take_up(ReportJob, report, now())
    if row is None:
        return False
    made = _make(row, report, now)
    lease.let_go(row)
    return made


def _make(row: ReportJob, report: str, now: Now) -> bool:
    if row.attempts > MOST_ATTEMPTS:
        lease.write(row, state="failed", error=f"given up after {MOST_ATTEMPTS} workers were lost over it")
        return False
    try:
        schedule, period = find(report)
    except ReportNotFoundError as error:
        lease.write(row, state="failed", error=str(error))
        return False
    parts = steps(schedule)

    def tell(step: str) -> None:
        at = parts.index(step) + 1 if step in parts else len(parts)
        lease.write(row, step=at, steps=len(parts), what=step, lease_until=now() + lease.lease())

    # A report of a schedule is for the readers of the schedule, too; any other only for the person who asked.
    mailed = schedule.enabled and period in periods_due(schedule, now())
    produce(schedule, period, now(), actor=row.requested_by, mailed=mailed, tell=tell)
    return lease.write(row, state="done", lease_until=None)
