"""Leases on rows of work, for one worker at a time. Each step is one conditional statement, so concurrent attempts are
safe.

The table has `state` ("queued", "running", or its end), `claim` (token of the worker), `lease_until`, `attempts` and
`sent_at`. The database session of a worker holds an advisory lock of its token. The server releases it when the worker
ends for any reason, and the row is free at once. If the machine is unreachable or the work raised, the lease ends by
time; a slow worker finds its token replaced and writes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

import structlog
from celery import current_app
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import BooleanField, F, Model, Q, QuerySet
from django.db.models.expressions import RawSQL
from kombu.exceptions import OperationalError as BrokerAway

from ingest.db.database import lease_is_over

RESEND = timedelta(seconds=30)
"""Time after which an unclaimed row is announced again: the broker may have lost the message."""
M = TypeVar("M", bound=Model)
_IS_LOST = """
NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint << 32 | objid::bigint = hashtextextended('lease ' || claim, 0))
"""


def lease() -> timedelta:
    """Longest time of one worker on a row before another may claim it."""
    span: timedelta = settings.RUN_LEASE_TIMEOUT
    return span


def waiting(model: type[M], now: datetime) -> list[Any]:
    """Keys of unclaimed rows that were not announced within `RESEND`, oldest first."""
    again = min(RESEND, lease())
    not_just_now = Q(sent_at=None) | Q(sent_at__lt=now - again) | Q(sent_at__gt=now + again)
    taken_since = Q(state="running", sent_at__lte=F("lease_until") - lease())
    rows = _rows(model).filter(_free(now), not_just_now | taken_since).order_by("created_at")
    return list(rows.values_list("pk", flat=True))


def announce_waiting(task: str, model: type[M], now: datetime) -> int:
    """Send the named task for each waiting row; returns their number."""
    sent = announce(task, waiting(model, now))
    note_sent(model, sent, now)
    return len(sent)


def note_sent(model: type[M], keys: Sequence[object], now: datetime) -> None:
    _rows(model).filter(pk__in=keys, state__in=("queued", "running")).update(sent_at=now)


def take_up(model: type[M], pk: object, now: datetime) -> M | None:
    """The row with a fresh token and lease; None where it is finished or in another worker's hands."""
    token = uuid.uuid4()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"lease {token}",))
    _rows(model).filter(_free(now), pk=pk).update(
        state="running", claim=token, lease_until=now + lease(), attempts=F("attempts") + 1
    )
    row = _rows(model).filter(pk=pk, claim=token).first()
    if row is None:
        _unlock(token)
    return row


def let_go(row: Model) -> None:
    """End the work of this process on a row that it took up: where it is not finished, others may take it up."""
    _unlock(row.claim)  # type: ignore[attr-defined]


def _unlock(token: uuid.UUID) -> None:
    with (
        suppress(OperationalError, InterfaceError),
        connection.cursor() as cursor,
    ):  # a lost session has no lock
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (f"lease {token}",))


def write(row: Model, **changes: Any) -> bool:
    """Change a row that was taken up; False where its token no longer counts."""
    claimed = _rows(type(row)).filter(pk=row.pk, claim=row.claim, state="running")  # type: ignore[attr-defined]
    return claimed.update(**changes) == 1


def _rows(model: type[M]) -> QuerySet[M]:
    rows = model._default_manager.alias(is_lost=RawSQL(_IS_LOST, (), BooleanField()))
    return cast("QuerySet[M]", rows)


def _free(now: datetime) -> Q:
    return Q(state="queued") | Q(lease_is_over(now, lease()) | Q(is_lost=True), state="running")


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
