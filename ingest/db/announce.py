"""Telling workers of rows that wait. The rows decide what is done; a message that is lost is sent again by a tick."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import structlog
from celery import current_app
from kombu.exceptions import OperationalError as BrokerAway

T = TypeVar("T")
log = structlog.get_logger("workers")


def announce(task: str, ids: Iterable[T]) -> list[T]:
    """Send the named task once per id; the ids that were sent. Stops at the first failure of the broker."""
    sent = []
    for id in ids:
        try:
            current_app.send_task(task, (str(id),), retry=False)
        except BrokerAway as error:
            log.warning("broker away", reason=str(error), task=task, waiting=str(id))
            break
        sent.append(id)
    return sent
