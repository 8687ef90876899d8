"""What Celery calls for alerts."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from ingest.alerts.changes import forget_changes
from ingest.alerts.payloads import maintain
from ingest.db import clock


@shared_task(name="alerts.maintain", ignore_result=True)
def maintain_deliveries() -> dict[str, int]:
    now = clock.now()
    forgotten = forget_changes(now - settings.TELEMETRY_SPARSE_RETENTION)
    return {**maintain(now), "changes": forgotten}
