"""Celery tasks for alerts."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from ingest.alerts.changes import forget_changes
from ingest.alerts.deliveries import maintain
from ingest.db import database


@shared_task(name="alerts.maintain", ignore_result=True)
def maintain_deliveries() -> dict[str, int]:
    now = database.now()
    forgotten = forget_changes(now - settings.TELEMETRY_SPARSE_RETENTION)
    return {**maintain(now), "changes": forgotten}
