"""What Celery calls."""

from celery import shared_task

from incidents.reports.mailing import send_waiting
from incidents.reports.producing import now_utc, produce_missing


@shared_task(name="reports.daily")
def produce_reports() -> None:
    """Record the report of every finished period that has none, and send what waits."""
    produce_missing(now_utc())
    send_waiting(now_utc())
