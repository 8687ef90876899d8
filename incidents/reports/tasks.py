"""What Celery calls."""

from datetime import UTC, datetime

from celery import shared_task

from incidents.reports.producing import produce_missing


@shared_task(name="reports.daily")
def daily_report() -> None:
    """Record the report of every finished day that has none."""
    produce_missing(datetime.now(UTC))
