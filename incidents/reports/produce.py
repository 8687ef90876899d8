"""Record the report of every finished period, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from incidents.reports.compose import compose, period_name
from incidents.reports.events import PRODUCED
from incidents.reports.mail import address_to_subscribers
from incidents.reports.models import ProducedReport, ReportSchedule
from incidents.reports.periods import Cadence, Period, named, over, period_at
from ingest.commands import append
from ingest.queries import Context, Head, NewEvent, Position, StreamVersionError, read_all, watermark


class ReportNotFoundError(LookupError):
    """No schedule has a report of that name."""


def produce_missing(now: datetime) -> list[str]:
    """Produce the reports of past periods that have none; their ids. Safe to call at any time, by anyone."""
    made = []
    for schedule in ReportSchedule.objects.filter(enabled=True):
        made += produce_all(schedule, periods_due(schedule, now), now)
    return made


def periods_due(schedule: ReportSchedule, now: datetime) -> list[Period]:
    """The periods whose report is made by itself; none before the first event."""
    first = read_all(Position.START, 1)
    if not first:
        return []
    since = max(schedule.since, first[0].recorded_at)
    return over(_cadence(schedule), schedule.zone, schedule.hour, since, now)


def produce_all(schedule: ReportSchedule, periods: Iterable[Period], now: datetime) -> list[str]:
    """Produce those of the periods, oldest first, that have no report; their ids."""
    wanted = {period_name(schedule.name, period): period for period in periods}
    known = set(ProducedReport.objects.filter(pk__in=list(wanted)).values_list("pk", flat=True))
    return [id_ for id_, period in wanted.items() if id_ not in known and produce(schedule, period, now)]


def produce(
    schedule: ReportSchedule,
    period: Period,
    now: datetime,
    *,
    actor: str = "system:reports",
    mailed: bool = True,
    tell: Callable[[str], None] = lambda _step: None,
) -> bool:
    """Record the report of a period, and address it to whoever wants it; False when there already is one."""
    body = compose(schedule, period, watermark(), tell)
    id_ = body["id"]
    try:
        with transaction.atomic():
            new = NewEvent(PRODUCED.name, body, now)
            (event,) = append(f"report/{id_}", [new], Head.NEW, Context(actor))
            made = ProducedReport.objects.create(
                id=id_,
                schedule=schedule.name,
                start=period.start,
                end=period.end,
                body=body,
                position=str(event.position),
            )
            if mailed:
                address_to_subscribers(schedule, made)
    except StreamVersionError:
        return False
    return True


def report(id_: str, now: datetime) -> dict[str, Any]:
    """A report as recorded, else as it stands now (`final` false). Raises ReportNotFoundError."""
    report = None if "\0" in id_ else ProducedReport.objects.filter(pk=id_).first()
    if report is not None:
        return {**report.body, "final": True}
    schedule, period = find(id_)
    if period.start > now:
        raise ReportNotFoundError(f"{period.words} has not begun")
    return {**compose(schedule, period, watermark()), "final": False}


def find(id_: str) -> tuple[ReportSchedule, Period]:
    """The schedule and the period that an id names: `weekly-2026-W46`. Raises ReportNotFoundError."""
    # A name may hold hyphens itself: the longest one that fits is meant.
    for schedule in sorted(ReportSchedule.objects.all(), key=lambda one: -len(one.name)):
        if id_.startswith(f"{schedule.name}-"):
            try:
                return schedule, named(
                    _cadence(schedule), id_.removeprefix(f"{schedule.name}-"), schedule.zone
                )
            except ValueError:
                continue
    raise ReportNotFoundError(f"no report {id_[:80]}")


def current(schedule: ReportSchedule, now: datetime) -> str:
    """The id of the period that is not over yet."""
    return period_name(schedule.name, period_at(_cadence(schedule), now, schedule.zone))


def reproduce(id_: str) -> dict[str, Any]:
    """A recorded report computed anew from what the log held when it was made. Raises ReportNotFoundError."""
    report = ProducedReport.objects.filter(pk=id_).first()
    if report is None or not report.body["position"]:
        raise ReportNotFoundError(f"no recorded report {id_[:80]} can be generated again")
    schedule, period = find(id_)
    body = compose(schedule, period, Position.parse(report.body["position"]))
    # The report before may have been made since.
    return body if report.body["changes"] else {**body, "changes": None}


def now_utc() -> datetime:
    return datetime.now(UTC)


def _cadence(schedule: ReportSchedule) -> Cadence:
    cadence: Cadence = schedule.cadence  # type: ignore[assignment]
    return cadence
