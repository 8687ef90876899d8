"""Celery tasks."""

from celery import shared_task
from django.utils import timezone

from incidents.oncall.calendars import read_again


@shared_task(name="oncall.read_calendars", ignore_result=True)
def read_calendars() -> int:
    """Recurrences of calendars, followed further; how many calendars there were."""
    return read_again(timezone.now())
