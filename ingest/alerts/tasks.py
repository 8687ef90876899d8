"""What time does to alerts. Beat only ticks: what is due is found in the database."""

from __future__ import annotations

from datetime import UTC, datetime

from celery import shared_task

from ingest.alerts.deliveries import maintain
from ingest.alerts.expiring import expire
from ingest.alerts.heartbeats import check


@shared_task(name="alerts.expire", ignore_result=True)
def expire_alerts() -> tuple[int, int]:
    """Alerts whose sender fell silent, and heartbeats that are overdue: how many of each."""
    now = datetime.now(UTC)
    return expire(now), check(now)


@shared_task(name="alerts.maintain", ignore_result=True)
def maintain_deliveries() -> dict[str, int]:
    return maintain(datetime.now(UTC))
