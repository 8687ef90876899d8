"""Deliveries of alerts: the payload as it came, what became of it and the receipt; in partitions of a day, dropped by
retention."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct

from ingest.alerts.decide import Outcome
from ingest.alerts.rows import Statement
from ingest.db.database import plain_array
from ingest.integrations.normalized import Parsed
from ingest.log.append import array


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivery of alerts: the integration (the name of its key) and endpoint, and the payload as received."""

    integration: str
    endpoint: str
    content_type: str
    payload: bytes
    trace: str | None = None


class AlertOutcome(Struct, frozen=True):
    """Outcome of one alert: its id, the version of its stream (0: it has none), the outcome and the reason.

    A change has an id, too, and is `recorded` or `repeated`.
    """

    alert: str
    version: int
    outcome: Outcome | Literal["recorded"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryReceipt:
    """The receipt of a delivery and what became of each alert, in order."""

    receipt: str
    outcomes: tuple[AlertOutcome, ...]


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A delivery with all that can be had of it alone: who works for a group keeps the others waiting."""

    delivery: Delivery
    parsed: Parsed
    receipt: str
    sha256: bytes


def prepare(delivery: Delivery, parsed: Parsed) -> PendingDelivery:
    return PendingDelivery(delivery, parsed, str(uuid.uuid4()), sha256(delivery.payload).digest())


DAY = timedelta(days=1)
AHEAD = 2
"""Days whose partitions are made before they are needed. What no partition takes lands in the one for the rest."""
PATIENCE: Final = "500ms"
"""Longest wait of a partition change for a lock; then it is left to the next call."""
LOCK_NOT_AVAILABLE: Final = "55P03"


def keeping(
    deliveries: Sequence[PendingDelivery], taken: Sequence[DeliveryReceipt], now: datetime
) -> Statement:
    """Statement that writes one row a delivery, for the transaction that holds what it changed."""
    values = [
        (
            entry.receipt,
            now,
            one.delivery.integration,
            one.delivery.endpoint,
            one.delivery.content_type[:200],
            one.sha256,
            one.delivery.payload,
            plain_array(each.alert for each in entry.outcomes),
            plain_array(str(each.version) for each in entry.outcomes),
            plain_array(each.outcome for each in entry.outcomes),
            array(each.why for each in entry.outcomes),
            _as_json([[r.place, r.field, r.reason] for r in one.parsed.refused]),
            _as_json([[r.place, r.reason] for r in one.parsed.left_out]),
            one.delivery.trace,
        )
        for one, entry in zip(deliveries, taken, strict=True)
    ]
    places = f"({', '.join(['%s'] * len(values[0]))})"
    sql = (
        "INSERT INTO alert_delivery (receipt, received_at, integration, endpoint, content_type, sha256, payload,"
        f" alerts, versions, outcomes, whys, refused, left_out, trace) VALUES {', '.join([places] * len(values))}"
    )
    return sql, list(itertools.chain.from_iterable(values))


def _as_json(listed: list[Any]) -> str:
    return json.dumps(listed) if listed else "[]"


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """Stored outcome of one alert of a delivery. `version` is that of its stream, 0 where it has none."""

    alert: str
    version: int
    outcome: str
    why: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A delivery as it is remembered. `refused` are (place, field, reason), `left_out` (place, reason)."""

    receipt: str
    received_at: datetime
    integration: str
    endpoint: str
    content_type: str
    sha256: str
    payload: bytes
    fates: tuple[StoredOutcome, ...]
    refused: tuple[tuple[int, str, str], ...]
    left_out: tuple[tuple[int, str], ...]


def delivered(receipt: str) -> Delivered | None:
    """Delivery of a receipt; None where there is none, or retention dropped it."""
    try:
        UUID(receipt)
    except ValueError:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT receipt::text, received_at, integration, endpoint, content_type, sha256, payload, alerts::text[],"
            " versions, outcomes, whys, refused, left_out FROM alert_delivery WHERE receipt = %s",
            (receipt,),
        )
        row = cursor.fetchone()
    if row is None:
        return None
    id_, received_at, integration, endpoint, content_type, digest, payload, *fates, refused, left_out = row
    return Delivered(
        receipt=id_,
        received_at=received_at,
        integration=integration,
        endpoint=endpoint,
        content_type=content_type,
        sha256=bytes(digest).hex(),
        payload=bytes(payload),
        fates=tuple(StoredOutcome(*each) for each in zip(*fates, strict=True)),
        refused=tuple((place, field, reason) for place, field, reason in json.loads(refused)),
        left_out=tuple((place, reason) for place, reason in json.loads(left_out)),
    )


def maintain(now: datetime) -> dict[str, int]:
    """Make the partitions of the coming days, drop those that are older than DOSSIER_ALERT_RETENTION; how many of each.

    What somebody reads for longer than PATIENCE is left to the next call. Must not be called inside a transaction.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    keep_from = now - settings.ALERT_RETENTION
    there = _partitions()
    coming = [day for ahead in range(1, AHEAD + 1) if _name(day := today + DAY * ahead) not in there]
    over = [name for name, day in sorted(there.items()) if day is not None and day + DAY <= keep_from]
    made = sum(_changed(partial(_make, day)) for day in coming)
    dropped = sum(_changed(partial(_drop, name)) for name in over)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM alert_delivery_rest WHERE received_at < %s", (keep_from,))
    return {"made": made, "dropped": dropped}


def _name(day: datetime) -> str:
    return f"alert_delivery_{day:%Y%m%d}"


def _partitions() -> dict[str, datetime | None]:
    """By name the day that each holds; None for that of the rest."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'alert_delivery'::regclass"
        )
        names = [name for (name,) in cursor.fetchall()]
    days = {name: name.removeprefix("alert_delivery_") for name in names}
    return {
        name: datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC) if day.isdecimal() else None
        for name, day in days.items()
    }


def _changed(change: Callable[[CursorWrapper], None]) -> bool:
    """Whether the change could be made. Nobody waits for long: behind whoever waits for a dump, or another reader that
    takes hours, senders would wait, and the followers of the log for the transaction to end."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{PATIENCE}'")
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('alert_delivery'))")
            change(cursor)
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", None) != LOCK_NOT_AVAILABLE:
            raise
        return False
    return True


def _make(day: datetime, cursor: CursorWrapper) -> None:
    # Attached, not made in place: that would wait for every writer.
    name = _name(day)
    cursor.execute("SELECT to_regclass(%s)", (name,))
    if cursor.fetchone()[0] is not None:
        return  # another process was faster
    cursor.execute(f"CREATE TABLE {name} (LIKE alert_delivery INCLUDING ALL)")
    cursor.execute(
        f"ALTER TABLE alert_delivery ATTACH PARTITION {name} FOR VALUES FROM (%s) TO (%s)", (day, day + DAY)
    )


def _drop(name: str, cursor: CursorWrapper) -> None:
    cursor.execute(f"DROP TABLE IF EXISTS {name}")


@dataclass(frozen=True, slots=True)
class Latest:
    """A delivery in a list: the titles of its alerts as they stand now, and what was refused of it."""

    receipt: str
    received_at: datetime
    endpoint: str
    titles: tuple[str, ...]
    refused: tuple[tuple[int, str, str], ...]


def latest(integration: str, since: datetime, limit: int) -> list[Latest]:
    """Deliveries of an integration since then, the newest first. Reads the days in between: keep them few."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT d.receipt::text, d.received_at, d.endpoint, d.refused,"
            " (SELECT array_agg(a.title ORDER BY a.title) FROM alert AS a WHERE a.id = ANY(d.alerts))"
            " FROM alert_delivery AS d WHERE d.integration = %s AND d.received_at >= %s"
            " ORDER BY d.received_at DESC LIMIT %s",
            (integration, since, limit),
        )
        rows = cursor.fetchall()
    return [
        Latest(receipt, at, endpoint, tuple(titles or ()), tuple(tuple(one) for one in json.loads(refused)))
        for receipt, at, endpoint, refused, titles in rows
    ]


@dataclass(frozen=True, slots=True)
class WithoutAlert:
    """A delivery that gave no alert: why, and the payload as received. `left_out` says that the mapping meant it so."""

    receipt: str
    received_at: datetime
    content_type: str
    payload: bytes
    why: str
    left_out: bool


def unread(integration: str, since: datetime, limit: int) -> list[WithoutAlert]:
    """The latest deliveries since then that hold something that could not be read, newest first. What gave an alert
    when it was read again, byte for byte the same, is none of them."""
    return _without_alert(
        integration,
        since,
        limit,
        "refused <> '[]' AND NOT EXISTS (SELECT FROM alert_delivery AS again"
        " WHERE again.integration = d.integration AND again.received_at >= d.received_at"
        " AND again.sha256 = d.sha256 AND cardinality(again.alerts) > 0)",
    )


def left_out(integration: str, since: datetime, limit: int) -> list[WithoutAlert]:
    """The latest deliveries since then of which the mapping leaves everything out, newest first."""
    return _without_alert(integration, since, limit, "refused = '[]' AND left_out <> '[]'")


def _without_alert(integration: str, since: datetime, limit: int, which: str) -> list[WithoutAlert]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT receipt::text, received_at, content_type, payload, refused, left_out FROM alert_delivery AS d"
            f" WHERE integration = %s AND received_at >= %s AND cardinality(alerts) = 0 AND {which}"
            " ORDER BY received_at DESC LIMIT %s",
            (integration, since, limit),
        )
        rows = cursor.fetchall()
    return [
        WithoutAlert(
            receipt,
            at,
            content_type,
            bytes(payload),
            _why(json.loads(refused), json.loads(left)),
            refused == "[]",
        )
        for receipt, at, content_type, payload, refused, left in rows
    ]


def _why(refused: list[Any], left_out: list[Any]) -> str:
    if refused:
        _, field, reason = refused[0]
        return f"{field}: {reason}" if field else str(reason)
    return str(left_out[0][-1])
