"""Store what was delivered: the payload as it came, what it changed, and a receipt. All of it or nothing.

One transaction holds the deliveries that wait at the same time (see `group_commit`), the rows of their alerts and the
events `alert.reported`, a stream an alert. A repeat of an alert costs no event: its row keeps when and how often.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from django.db import DatabaseError, OperationalError, connection, transaction

from ingest.alerts import cache, rows
from ingest.alerts.decide import decide
from ingest.alerts.deliveries import AlertOutcome, Delivery, DeliveryReceipt, PendingDelivery, prepare
from ingest.alerts.payloads import keeping
from ingest.alerts.rows import CachedRow, id_of
from ingest.alerts.write_batch import Batch, By
from ingest.db import clock, database
from ingest.db.group_commit import GroupCommit, GroupCommitError
from ingest.integrations.normalized import Parsed
from ingest.log.retry import retrying
from ingest.log.types import Context, StreamVersionError, UnrecordableEventError

MOST_TOGETHER = 64
"""Deliveries in one transaction."""
LARGEST_TOGETHER = 2**20
"""Bytes of a delivery that shares its transaction; small ones do not wait for tens of thousands of alerts."""


def receive(parsed: Parsed, delivery: Delivery) -> DeliveryReceipt:
    """Store a delivery durably. Raises django.db.Error, and then nothing of it is stored."""
    one = prepare(delivery, parsed)
    if not connection.in_atomic_block and len(delivery.payload) <= LARGEST_TOGETHER:
        known_as = database.name()
        if known_as not in _groups:
            _groups.setdefault(known_as, GroupCommit(_store_group, MOST_TOGETHER))
        try:
            if taken := _groups[known_as].submit(one):
                return taken
        except GroupCommitError as lost:
            raise OperationalError("the transaction that was to store this with others was lost") from lost
    return retrying(partial(_store, [one]))[0]


_groups: dict[str, GroupCommit[PendingDelivery, DeliveryReceipt | None]] = {}  # by database
os.register_at_fork(after_in_child=_groups.clear)


def _store_group(deliveries: Sequence[PendingDelivery]) -> Sequence[DeliveryReceipt | None]:
    """None for those that must be tried alone: whatever is wrong then meets only the guilty one."""
    try:
        return _store_unheld(deliveries)
    except (StreamVersionError, UnrecordableEventError):
        return [None] * len(deliveries)
    except DatabaseError as error:
        # A connection that was lost may have been lost after the commit; storing again could then store twice.
        if database.is_lost(error):
            raise
        return [None] * len(deliveries)


def _store_unheld(deliveries: Sequence[PendingDelivery]) -> list[DeliveryReceipt]:
    """At most two journeys to the database: what is known is remembered, or read without holding it, and the message
    that writes is a transaction that fails where it has changed since. Who meets that reads it and holds it."""
    named = _named(deliveries)
    ids = {id_ for one in named for id_ in one}
    known = cache.recalled(ids)
    strangers = ids - known.keys()
    try:
        read = rows.kept(sorted(strangers), hold=False) if strangers and not cache.all_new() else None
        unread = known.keys() if read is not None else ids
        batch, taken = _stored(deliveries, named, {**known, **(read or {})}, unread, held=False)
    except StreamVersionError:
        cache.forget(ids)
        cache.met(0, others=bool(strangers))
        return _store(deliveries)
    cache.met(len(strangers), others=bool(read))
    cache.remember({id_: kept for id_, kept in batch.kept.items() if kept is not known.get(id_)})
    return taken


@transaction.atomic
def _store(deliveries: Sequence[PendingDelivery]) -> list[DeliveryReceipt]:
    named = _named(deliveries)
    read = rows.kept(sorted({id_ for ids in named for id_ in ids}), hold=True)
    return _stored(deliveries, named, read, (), held=True)[1]


def _named(deliveries: Sequence[PendingDelivery]) -> list[list[str]]:
    """The ids of the alerts of each delivery."""
    return [[id_of(one.delivery.integration, alert.key) for alert in one.parsed.alerts] for one in deliveries]


def _stored(
    deliveries: Sequence[PendingDelivery],
    named: Sequence[Sequence[str]],
    known: Mapping[str, CachedRow],
    unread: Collection[str],
    *,
    held: bool,
) -> tuple[Batch, list[DeliveryReceipt]]:
    """`known` are the alerts that there are, as far as is known; of the `unread` nobody has asked the database."""
    now = clock.now()
    batch = Batch(now, known, held=held)
    taken = [_taken(batch, one, ids, unread) for one, ids in zip(deliveries, named, strict=True)]
    batch.write([keeping(deliveries, taken, now)])
    return batch, taken


def _taken(
    batch: Batch, one: PendingDelivery, ids: Sequence[str], unread: Collection[str]
) -> DeliveryReceipt:
    delivery = one.delivery
    by = By(delivery.integration, delivery.door, one.receipt, one.sha256.hex())
    context = Context(f"key:{by.integration}", trace=delivery.trace)
    told = list[AlertOutcome]()
    for id_, alert in zip(ids, one.parsed.alerts, strict=True):
        kept = batch.kept.get(id_)
        decision = decide(None if kept is None else kept.known, alert, batch.now)
        if decision.changes:
            batch.change(id_, alert, decision.outcome, by, context)
        elif decision.outcome == "repeated":
            batch.count(id_, alert)
        elif id_ in unread:  # what is ignored is written nowhere, so nothing would find out
            raise StreamVersionError(rows.stream_of(id_), batch.version(id_))
        told.append(AlertOutcome(id_, batch.version(id_), decision.outcome, decision.why))
    return DeliveryReceipt(one.receipt, tuple(told))
