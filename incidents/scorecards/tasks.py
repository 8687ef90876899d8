"""Celery tasks. Each task carries an id at most, and may be called twice, late or never: rows decide."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from celery import shared_task

from incidents.scorecards import worker
from ingest.queries import now_utc


@shared_task(name="scorecards.tick")
def tick() -> None:
    """Tell workers of backtests that wait, and forget old ones."""
    worker.send(_now())
    worker.drop_old(_now())


@shared_task(name="scorecards.backtest")
def backtest(id: str) -> None:
    """A turn of one backtest; if there is more to do, the next one queues behind what came meanwhile."""
    if worker.turn(UUID(id), _now):
        worker.send(_now())


def _now() -> datetime:
    return now_utc()
