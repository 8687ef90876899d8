"""What Celery calls. Each task carries an id at most, and may be called twice, late or never: rows decide."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError as BrokerAway

from incidents.scorecards import worker
from ingest.queries import now_utc

log = structlog.get_logger("backtests")


@shared_task(name="scorecards.tick")
def tick() -> None:
    """Tell workers of backtests that wait, and forget old ones."""
    send()
    worker.drop_old(_now())


@shared_task(name="scorecards.backtest")
def backtest(id: str) -> None:
    """A turn of one backtest; if there is more to do, the next one queues behind what came meanwhile."""
    if worker.turn(UUID(id), _now):
        send()


def send() -> int:
    """Tell workers of waiting backtests; how many. A broker that is away is tried again by the next tick."""
    told = []
    for id in worker.waiting(_now()):
        try:
            backtest.apply_async((str(id),), retry=False)
        except BrokerAway as error:
            log.warning("broker away", reason=str(error), waiting=str(id))
            break
        told.append(id)
    worker.sent(told, _now())
    return len(told)


def _now() -> datetime:
    return now_utc()
