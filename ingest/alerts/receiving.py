"""Store what was delivered: the payload as it came, what it changed, and a receipt. All of it or nothing.

One transaction holds the deliveries that wait at the same time (see `group_commit`), the rows of their alerts and the
events `alert.reported`, a stream an alert. A repeat of an alert costs no event: its row keeps when and how often.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Literal

from django.db import DatabaseError, OperationalError, connection, transaction

from ingest.alerts import rows
from ingest.alerts.batch import Batch, By
from ingest.alerts.deciding import Outcome, decide
from ingest.alerts.deliveries import keeping
from ingest.alerts.rows import id_of
from ingest.doors.alert import Alert, Parsed
from ingest.log import database
from ingest.log.retrying import retrying
from ingest.log.types import Context, UnrecordableEvent, WrongExpectedVersion
from ingest.telemetry.group_commit import GroupCommit, GroupLost

MOST_TOGETHER = 64
"""Deliveries in one transaction."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How alerts came: by which integration (the name of its key) and door, and the payload as received."""

    integration: str
    door: str
    content_type: str
    payload: bytes
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one alert: its id, the version of its stream (0: it has none), the outcome and why.

    A change has an id, too, and is `recorded` or `repeated`.
    """

    alert: str
    version: int
    outcome: Outcome | Literal["recorded"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """The receipt of a delivery and what became of each alert, in order."""

    receipt: str
    told: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    delivery: Delivery
    parsed: Parsed
    receipt: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def sha256(self) -> bytes:
        return sha256(self.delivery.payload).digest()


def receive(parsed: Parsed, delivery: Delivery) -> Taken:
    """Store a delivery durably. Raises django.db.Error, and then nothing of it is stored."""
    prepared = Prepared(delivery, parsed)
    if not connection.in_atomic_block:
        known_as = database.name()
        if known_as not in _groups:
            _groups.setdefault(known_as, GroupCommit(_store_group, MOST_TOGETHER))
        try:
            if taken := _groups[known_as].submit(prepared):
                return taken
        except GroupLost as lost:
            raise OperationalError("the transaction that was to store this with others was lost") from lost
    return retrying(partial(_store, [prepared]))[0]


_groups: dict[str, GroupCommit[Prepared, Taken | None]] = {}  # by database
os.register_at_fork(after_in_child=_groups.clear)


def _store_group(deliveries: Sequence[Prepared]) -> Sequence[Taken | None]:
    """None for those that must be tried alone: whatever is wrong then meets only the guilty one."""
    try:
        return _store_unheld(deliveries)
    except (WrongExpectedVersion, UnrecordableEvent):
        return [None] * len(deliveries)
    except DatabaseError as error:
        # A connection that was lost may have been lost after the commit; storing again could then store twice.
        if database.is_lost(error):
            raise
        return [None] * len(deliveries)


def _store_unheld(deliveries: Sequence[Prepared]) -> list[Taken]:
    """Two journeys to the database in all: what is known is read without holding it, and the message that writes is a
    transaction that fails where it has changed since. Who meets that holds it."""
    try:
        return _stored(deliveries, held=False)
    except WrongExpectedVersion:
        return _store(deliveries)


@transaction.atomic
def _store(deliveries: Sequence[Prepared]) -> list[Taken]:
    return _stored(deliveries, held=True)


def _stored(deliveries: Sequence[Prepared], *, held: bool) -> list[Taken]:
    now = datetime.now(UTC)
    named = [
        [id_of(one.delivery.integration, alert.key) for alert in one.parsed.alerts] for one in deliveries
    ]
    batch = Batch(now, rows.kept(sorted({id_ for ids in named for id_ in ids}), hold=held), held=held)
    taken = [
        Taken(
            one.receipt,
            tuple(_take(batch, one, id_, alert) for id_, alert in zip(ids, one.parsed.alerts, strict=True)),
        )
        for one, ids in zip(deliveries, named, strict=True)
    ]
    batch.write([keeping(deliveries, taken, now)])
    return taken


def _take(batch: Batch, prepared: Prepared, id_: str, alert: Alert) -> Told:
    kept = batch.kept.get(id_)
    decision = decide(None if kept is None else kept.known, alert, batch.now)
    if decision.changes:
        by = By(
            prepared.delivery.integration, prepared.delivery.door, prepared.receipt, prepared.sha256.hex()
        )
        batch.change(
            id_, alert, decision.outcome, by, Context(f"key:{by.integration}", trace=prepared.delivery.trace)
        )
    elif decision.outcome == "repeated":
        batch.count(id_, alert)
    return Told(id_, batch.version(id_), decision.outcome, decision.why)
