"""Reports that are sent again with the Idempotency-Key that they had: answered as before, and recorded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from incidents.domain.values import InvalidValueError
from incidents.incident.repository import lock_key, stream_of
from incidents.teams.models import ReportIdempotencyKey
from ingest.queries import Event, read_stream

LONGEST: Final = 255
REMEMBERED: Final = timedelta(days=1)
"""For how long a key is known."""


class KeyReusedError(Exception):
    """The key was used for a report that says something else."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A report's Idempotency-Key: whose it is, and the SHA-256 of the report."""

    actor: str
    key: str
    digest: bytes

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= LONGEST or not self.key.isprintable():
            raise InvalidValueError("Idempotency-Key", f"must be one line of 1 to {LONGEST} characters")


@dataclass(frozen=True, slots=True)
class Before:
    """Result of a report when it came first."""

    incident: str
    opened: bool
    events: tuple[Event, ...]


def find(once: IdempotencyKey, now: datetime) -> Before | None:
    """The outcome of the report with this key; None where none came within REMEMBERED. Until the transaction ends the
    next report with this key waits. Raises KeyReusedError.
    """
    lock_key(f"idempotency:{once.actor}:{once.key}")
    row = ReportIdempotencyKey.objects.filter(actor=once.actor, key=once.key, at__gt=now - REMEMBERED).first()
    if row is None:
        return None
    if bytes(row.digest) != once.digest:
        raise KeyReusedError(f"the Idempotency-Key {once.key} was used for another report")
    events = read_stream(stream_of(str(row.incident)), after_version=row.first - 1)
    return Before(str(row.incident), row.opened, tuple(e for e in events if e.version <= row.last))


def keep(
    once: IdempotencyKey, incident: str, events: Sequence[Event], now: datetime, *, opened: bool
) -> None:
    """Remember what the report became, and forget those of long ago."""
    ReportIdempotencyKey.objects.filter(at__lte=now - REMEMBERED).delete()
    ReportIdempotencyKey.objects.create(
        actor=once.actor,
        key=once.key,
        digest=once.digest,
        incident=incident,
        opened=opened,
        first=events[0].version,
        last=events[-1].version,
        at=now,
    )
