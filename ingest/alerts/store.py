"""Store what was delivered: the payload as it came, what it changed, and a receipt. All of it or nothing.

One transaction holds the deliveries that wait at the same time (see `GroupCommit`), the rows of their alerts and the
events `alert.reported`, a stream an alert. A repeat of an alert costs no event: its row keeps when and how often.
`Batch` collects what several deliveries, or time, do to alerts, and writes it with few statements."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DatabaseError, OperationalError, connection, transaction
from msgspec import Struct, structs

from ingest.alerts import rows
from ingest.alerts.decide import Known, Outcome, decide, fired_recently
from ingest.alerts.deliveries import (
    AlertOutcome,
    Delivery,
    DeliveryReceipt,
    PendingDelivery,
    keeping,
    prepare,
)
from ingest.alerts.events import REPORTED
from ingest.alerts.rows import CachedRow, Count, Statement, Written, id_of, stream_of
from ingest.db import database
from ingest.db.database import GroupCommit, GroupCommitError
from ingest.integrations.gpu import slot_in
from ingest.integrations.normalized import Alert, Parsed
from ingest.log.append import StreamAppend, extend_through, retrying, saying_overtaken
from ingest.log.types import Context, Head, NewEvent, StreamVersionError, UnrecordableEventError, rfc3339

_REST = frozenset({"resolved", "expired", "settled"})


class By(Struct, frozen=True):
    """Origin of a change; receipt and payload's SHA-256 (hex) are None where time alone did it."""

    integration: str
    endpoint: str
    receipt: str | None = None
    sha256: str | None = None


class _Changed(Struct):
    after: Head
    events: list[NewEvent]
    context: Context
    row: Written


class Batch:
    """Collects changes; `write` writes them.

    `held` says that the rows in `kept` are held by the transaction that writes. Without it what changed since they were
    read makes `write` fail.
    """

    def __init__(self, now: datetime, cached: Mapping[str, CachedRow], *, held: bool) -> None:
        self.now = now
        self._held = held
        self.cached = dict(cached)
        self._before = frozenset(cached)
        self._changed: dict[str, _Changed] = {}
        self._counts: dict[str, Count] = {}

    def count(self, id_: str, alert: Alert) -> None:
        """The alert was sent again and says nothing new."""
        counted = self._counts.setdefault(id_, Count(0, None))
        counted.repeats += 1
        counted.expires_at = alert.expires_at if alert.status != "resolved" else None

    def change(
        self, id_: str, alert: Alert, outcome: Outcome, by: By, context: Context,
        settled_until: datetime | None = None,
    ) -> None:  # fmt: skip
        """The alert changes: an event and a new row. What comes after in this batch is decided upon it. Until
        `settled_until` its sender may not know yet that it is over."""
        cached, at_rest = self.cached.get(id_), outcome in _REST
        fired = list(rows.times(cached.fired)) if cached is not None else []
        if outcome == "fired":
            fired = fired_recently(fired, self.now)
        status = "resolved" if at_rest else alert.status
        if cached is not None and status == "firing" and cached.known.status == "acknowledged":
            status = "acknowledged"  # that it got worse does not take anybody's word back
        changed = self._changed.get(id_)
        after = Head.NEW if cached is None else cached.head if changed is None else changed.after
        event = NewEvent(REPORTED.name, _body(id_, alert, status, outcome, len(fired), by), self.now)
        expired = outcome in ("expired", "settled")
        row = Written(
            id_, by.integration, by.endpoint, alert, status, expired, settled_until, fired, self.now, by.receipt,
            Head.NEW,
        )  # fmt: skip
        events = [event] if changed is None else [*changed.events, event]
        self._changed[id_] = _Changed(after, events, context, row)
        starts_at = alert.starts_at or (cached.known.starts_at if cached is not None else None)
        self.cached[id_] = CachedRow(
            Known(status, alert.severity, alert.component, starts_at, expired, settled_until, self.now),
            rows.seconds(fired),
            after,
        )
        self._counts.pop(id_, None)

    def version(self, id_: str) -> int:
        """The version at which the alert's stream will stand; 0 where it has none."""
        changed = self._changed.get(id_)
        if changed is not None:
            return changed.after.version + len(changed.events)
        return self.cached[id_].head.version if id_ in self.cached else 0

    def write(self, more: Sequence[Statement] = ()) -> None:
        """One message to the database, with `more` at its end; outside of a transaction it is one of its own.

        Raises StreamVersionError when another transaction was faster: then nothing is written.
        """
        if not self._changed:
            with saying_overtaken(next(iter(self._counts), "")):
                _send([*self._counted(), *more])
            return

        extensions = [
            StreamAppend(stream_of(id_), one.events, one.after, one.context)
            for id_, one in self._changed.items()
        ]
        with extend_through(extensions) as (heads, sql, values):
            new, old = list[Written](), list[Written]()
            for (id_, changed), head in zip(self._changed.items(), heads, strict=True):
                # As it would be read again: what the sender did not say this time is not in the row.
                known = structs.replace(self.cached[id_].known, starts_at=changed.row.alert.starts_at)
                self.cached[id_] = structs.replace(self.cached[id_], known=known, head=head)
                (old if id_ in self._before else new).append(structs.replace(changed.row, head=head))
            written = [*rows.insert(new), *rows.change(old), *self._counted()]
            _send([*self._hold(old), (sql, values), *written, *more])

    def _counted(self) -> list[Statement]:
        return rows.count(self._counts, {id_: self.cached[id_].head for id_ in self._counts}, self.now)

    def _hold(self, changed: Sequence[Written]) -> list[Statement]:
        """Statements that lock alerts: counting alone goes through them in their order; changes have to lock all."""
        if self._held or not changed:
            return []
        return rows.locking(self._before & (self._changed.keys() | self._counts.keys()))


def _send(statements: Sequence[Statement]) -> None:
    """Several statements in one message: the database carries out all of them or none."""
    if not statements:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "; ".join(sql for sql, _ in statements), [value for _, values in statements for value in values]
        )


def _body(id_: str, alert: Alert, status: str, change: Outcome, fired: int, by: By) -> dict[str, Any]:
    return {
        "alert": id_,
        "integration": by.integration,
        "endpoint": by.endpoint,
        "key": alert.key,
        "change": change,
        "status": status,
        "title": alert.title,
        "severity": alert.severity,
        "group": alert.group,
        "component": alert.component,
        "description": alert.description,
        "labels": dict(alert.labels),
        "links": [dict(link) for link in alert.links],
        "images": [dict(image) for image in alert.images],
        "starts_at": _text(alert.starts_at),
        "expires_at": _text(alert.expires_at),
        "notes": list(alert.notes),
        "annotations": None if alert.annotations is None else dict(alert.annotations),
        "fired": fired,
        "receipt": by.receipt,
        "sha256": by.sha256,
    }


def _text(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)


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
    known = rows.recalled(ids)
    strangers = ids - known.keys()
    try:
        read = rows.existing(sorted(strangers), hold=False) if strangers and not rows.all_new() else None
        unread = known.keys() if read is not None else ids
        batch, taken = _stored(deliveries, named, {**known, **(read or {})}, unread, held=False)
    except StreamVersionError:
        rows.forget(ids)
        rows.met(0, others=bool(strangers))
        return _store(deliveries)
    rows.met(len(strangers), others=bool(read))
    rows.remember({id_: cached for id_, cached in batch.cached.items() if cached is not known.get(id_)})
    return taken


@transaction.atomic
def _store(deliveries: Sequence[PendingDelivery]) -> list[DeliveryReceipt]:
    named = _named(deliveries)
    read = rows.existing(sorted({id_ for ids in named for id_ in ids}), hold=True)
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
    now = database.now()
    batch = Batch(now, known, held=held)
    taken = [_taken(batch, one, ids, unread) for one, ids in zip(deliveries, named, strict=True)]
    batch.write([keeping(deliveries, taken, now)])
    return batch, taken


def _taken(
    batch: Batch, one: PendingDelivery, ids: Sequence[str], unread: Collection[str]
) -> DeliveryReceipt:
    delivery = one.delivery
    by = By(delivery.integration, delivery.endpoint, one.receipt, one.sha256.hex())
    context = Context(f"key:{by.integration}", trace=delivery.trace)
    outcomes = list[AlertOutcome]()
    for id_, alert in zip(ids, one.parsed.alerts, strict=True):
        cached = batch.cached.get(id_)
        decision = decide(None if cached is None else cached.known, alert, batch.now)
        if decision.changes:
            batch.change(id_, alert, decision.outcome, by, context)
        elif decision.outcome == "repeated":
            batch.count(id_, alert)
        elif id_ in unread:  # what is ignored is written nowhere, so nothing would find out
            raise StreamVersionError(rows.stream_of(id_), batch.version(id_))
        outcomes.append(AlertOutcome(id_, batch.version(id_), decision.outcome, decision.why))
    return DeliveryReceipt(one.receipt, tuple(outcomes))


# Parts in slots: the GPU that a slot held at a time, so that an alert names the part and its history follows the part.
# A row of `placement` says it: the unit `slot/NODE:NUMBER` holds the component `gpu/SERIAL` from `time` on. Its next
# row replaces it.
# ----------------------------------------------------------------------------------------------------------
_HELD = """
SELECT asked.place, part.name
FROM unnest(%s::integer[], %s::text[], %s::timestamptz[]) AS asked (place, slot, at)
JOIN telemetry_name AS unit ON unit.name = asked.slot
CROSS JOIN LATERAL (
    SELECT components, active FROM telemetry_placement AS told
    WHERE told.region = (SELECT id FROM telemetry_name WHERE name = %s) AND told.unit = unit.id
        AND told."time" <= asked.at AND receipt NOT IN (SELECT number FROM telemetry_unfinished)
    ORDER BY "time" DESC, id DESC LIMIT 1
) AS held
JOIN telemetry_set AS parts ON parts.id = held.components
JOIN telemetry_name AS part ON part.id = ANY(parts.members)
WHERE held.active
ORDER BY asked.place, part.name
"""


def name_parts(parsed: Parsed, region: str, now: datetime) -> Parsed:
    """The same, alerts whose labels name a slot on the part of their component's kind that the slot held at their start
    (`now` where they name none). An alert stays as it is where no placement of the region says what its slot held.

    Raises django.db.Error.
    """
    found = list(parsed.alerts)
    named = [slot_in(alert.labels) if alert.component else "" for alert in found]
    requested = [place for place, slot in enumerate(named) if slot]
    if not requested:
        return parsed
    slots = [f"slot/{named[place]}" for place in requested]
    times = [found[place].starts_at or now for place in requested]
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [requested, slots, times, region])
        for place, part in reversed(cursor.fetchall()):
            component = found[place].component or ""
            if part.partition("/")[0] == component.partition("/")[0]:
                found[place] = structs.replace(found[place], component=part)
    return replace(parsed, alerts=tuple(found))
