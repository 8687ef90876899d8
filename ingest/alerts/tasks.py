"""What Celery calls for alerts."""

from __future__ import annotations

from datetime import UTC, datetime

from celery import shared_task

from ingest.alerts.deliveries import maintain


@shared_task(name="alerts.maintain", ignore_result=True)
def maintain_deliveries() -> dict[str, int]:
    return maintain(datetime.now(UTC))
