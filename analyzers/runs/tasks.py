"""Celery tasks. Each task carries an id at most, and may be called twice, late or never: rows decide."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from celery import shared_task

from analyzers.runs import execution
from analyzers.runs.models import Schedule
from analyzers.runs.scheduler import catch_up, claim_due, send
from analyzers.runs.windows import drop_unused
from ingest.commands import (
    maintain_log_parts,
    maintain_partitions,
    move_old_log,
    move_old_telemetry,
    seal_log,
)
from ingest.queries import now_utc


@shared_task(name="runs.tick")
def tick() -> None:
    """Queue what is due and tell workers what waits. Beat calls it every few seconds."""
    catch_up()
    claim_due(Schedule.objects.filter(enabled=True), _now())
    send()


@shared_task(name="runs.execute")
def execute(run_id: str) -> None:
    """Do one run, then queue the next window of its schedule at once: catching up must not wait for ticks."""
    run = execution.execute(UUID(run_id), _now)
    if run is not None and run.schedule_id is not None:
        claim_due(Schedule.objects.filter(pk=run.schedule_id, enabled=True), _now())
        send()


@shared_task(name="runs.maintain")
def maintain() -> None:
    """Make telemetry partitions ahead, drop those past retention, and what runs kept long ago; then move old rows
    and old parts of the log into files, which may take minutes."""
    maintain_partitions(_now())
    drop_unused(_now())
    try:
        move_old_telemetry(_now())
    finally:  # what keeps telemetry from moving need not keep the log
        move_old_log(_now())


@shared_task(name="runs.seal")
def seal() -> None:
    """Seal the log's newest events, and make parts for the next ones."""
    seal_log()
    maintain_log_parts()


def _now() -> datetime:
    return now_utc()
