"""What time does to tickets. Beat only ticks: what is due is found in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from celery import shared_task
from django.db import transaction

from incidents import alerting, waking
from incidents.projections.store import keep_reactor_out
from ingest.commands import retrying


@shared_task(name="incidents.settle", ignore_result=True)
def settle() -> tuple[int, int, int]:
    """Tickets that were held open and are quiet, alerts whose silence ended, tickets that wake: how many of each."""
    settled, released = retrying(partial(_held, alerting.settle)), 0
    while part := retrying(partial(_held, alerting.unsilence)):
        released += part
    return settled, released, retrying(partial(_held, waking.wake))


@transaction.atomic
def _held(do: Callable[[datetime], int]) -> int:
    keep_reactor_out()
    return do(datetime.now(UTC))
