"""Celery tasks."""

from celery import shared_task

from incidents.reports import on_demand
from incidents.reports.mail import send_waiting
from incidents.reports.produce import now_utc, produce_missing
from incidents.reviews.reminders import remind


@shared_task(name="reports.daily")
def produce_reports() -> None:
    """Record the report of every finished period that has none, and send what waits, also to owners of actions."""
    produce_missing(now_utc())
    send_waiting(now_utc())
    remind(now_utc())


@shared_task(name="reports.tick")
def tick() -> None:
    """Tell workers of reports that somebody asked for and nobody makes."""
    on_demand.send()


@shared_task(name="reports.produce")
def produce(report: str) -> None:
    on_demand.make(report, now_utc)
