"""Alerts as rows of `alert`: read under a lock, inserted, changed and counted, many with one statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, get_args
from uuid import UUID

from django.db import connection

from ingest.alerts.deciding import Known
from ingest.doors.alert import Alert, Severity, Status
from ingest.log.entries import array, plain_array
from ingest.log.types import Head


def id_of(integration: str, key: str) -> str:
    """An alert's id: the same integration and key give the same one, for ever."""
    return str(UUID(bytes=sha256(f"{integration}\0{key}".encode()).digest()[:16], version=5))


def stream_of(alert_id: str) -> str:
    return f"alert/{alert_id}"


@dataclass(frozen=True, slots=True)
class Kept:
    """A row, as far as another alert of its key is decided upon."""

    known: Known
    fired: tuple[datetime, ...]
    head: Head


@dataclass(frozen=True, slots=True)
class Written:
    """A row as it is to stand after a change."""

    id: str
    integration: str
    door: str
    alert: Alert
    status: str
    expired: bool
    settled_until: datetime | None
    fired: Sequence[datetime]
    changed_at: datetime
    receipt: str | None
    head: Head


@dataclass(slots=True)
class Count:
    """How often an alert was repeated, and until when the last one counts."""

    repeats: int
    expires_at: datetime | None


def locked(ids: Iterable[str]) -> dict[str, Kept]:
    """The rows of these alerts that exist, held until the transaction ends, always taken in the same order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id::text, status, severity, component, starts_at, expired, settled_until, fired,"
            " version, hash FROM alert"
            " WHERE id = ANY(%s::uuid[]) ORDER BY id FOR UPDATE",
            (plain_array(ids),),
        )
        return {
            id_: Kept(
                Known(status, severity, component, starts_at, expired, settled),
                _times(fired),
                Head(version, bytes(digest)),
            )
            for id_, status, severity, component, starts_at, expired, settled, fired, version, digest in (
                cursor.fetchall()
            )
        }


_COLUMNS: Mapping[str, str] = {
    "id": "uuid",
    "integration": "text",
    "door": "text",
    "key": "text",
    "status": "text",
    "expired": "boolean",
    "settled_until": "timestamptz",
    "severity": "text",
    "title": "text",
    "group_name": "text",
    "component": "text",
    "description": "text",
    "labels": "text",
    "links": "text",
    "images": "text",
    "notes": "text",
    "starts_at": "timestamptz",
    "expires_at": "timestamptz",
    "fired": "text",
    "changed_at": "timestamptz",
    "last_seen": "timestamptz",
    "repeats": "integer",
    "receipt": "uuid",
    "version": "integer",
    "hash": "bytea",
}
_NAMES = ", ".join(_COLUMNS)
_NEW = ", ".join(f"new_{name}" for name in _COLUMNS)
_UNNEST = ", ".join(f"%s::{type_}[]" for type_ in _COLUMNS.values())
_INSERT = (
    f"INSERT INTO alert ({_NAMES}) SELECT {_NEW} FROM unnest({_UNNEST}) AS new ({_NEW}) ORDER BY new_id"
    " ON CONFLICT DO NOTHING"
)
_CHANGE = (
    f"UPDATE alert SET {', '.join(f'{name} = new_{name}' for name in _COLUMNS if name != 'id')}"
    f" FROM unnest({_UNNEST}) AS new ({_NEW}) WHERE id = new_id"
)


def insert(rows: Sequence[Written]) -> bool:
    """Whether all were new; another transaction may have been faster."""
    return _write(_INSERT, rows) == len(rows)


def change(rows: Sequence[Written]) -> None:
    _write(_CHANGE, rows)


def _write(statement: str, rows: Sequence[Written]) -> int:
    if not rows:
        return 0
    columns = zip(*map(_row, rows), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(statement, [array(column) for column in columns])
        return int(cursor.rowcount)


def _row(row: Written) -> tuple[str | None, ...]:
    alert, changed = row.alert, _text(row.changed_at)
    return (
        row.id,
        row.integration,
        row.door,
        alert.key,
        row.status,
        "t" if row.expired else "f",
        _text(row.settled_until),
        alert.severity,
        alert.title,
        alert.group,
        alert.component,
        alert.description,
        as_json(alert.labels),
        as_json(alert.links),
        as_json(alert.images),
        as_json(alert.notes),
        _text(alert.starts_at),
        _text(alert.expires_at) if row.status != "resolved" else None,
        ",".join(str(int(at.timestamp())) for at in row.fired),
        changed,
        changed,
        "0",
        row.receipt,
        str(row.head.version),
        f"\\x{row.head.hash.hex()}",
    )


def count(counts: Mapping[str, Count], now: datetime) -> None:
    """Keep that these alerts were seen again. Their rows must be held by this transaction."""
    if not counts:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE alert SET last_seen = %s, repeats = repeats + new_repeats, expires_at = new_expires_at"
            " FROM unnest(%s::uuid[], %s::integer[], %s::timestamptz[]) AS new (new_id, new_repeats, new_expires_at)"
            " WHERE id = new_id",
            (
                now,
                plain_array(counts),
                plain_array(str(one.repeats) for one in counts.values()),
                array(_text(one.expires_at) for one in counts.values()),
            ),
        )


def as_json(value: Any) -> str:
    if not value:
        return "{}" if isinstance(value, Mapping) else "[]"
    return json.dumps(
        value if isinstance(value, Mapping) else list(value), ensure_ascii=False, separators=(",", ":")
    )


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _times(text: str) -> tuple[datetime, ...]:
    return tuple(datetime.fromtimestamp(int(part), UTC) for part in text.split(",") if part)


@dataclass(frozen=True, slots=True)
class Standing:
    """An alert as it stands, for whoever shows it. `alert.key` is the sender's, `id` ours."""

    id: str
    integration: str
    door: str
    alert: Alert
    status: str
    expired: bool
    fired: tuple[datetime, ...]
    changed_at: datetime
    last_seen: datetime
    repeats: int
    receipt: str | None


_SHOWN = (
    "id::text, integration, door, key, status, expired, severity, title, group_name, component, description, labels,"
    " links, images, notes, starts_at, expires_at, fired, changed_at, last_seen, repeats, receipt::text"
)


def standing(
    condition: str, values: Sequence[Any], order: str = "id", limit: int | None = None
) -> list[Standing]:
    """The alerts that fit a condition, written in SQL over the columns of `alert`."""
    sql = f"SELECT {_SHOWN} FROM alert WHERE {condition} ORDER BY {order}"
    with connection.cursor() as cursor:
        cursor.execute(sql if limit is None else f"{sql} LIMIT {int(limit)}", values)
        return [_standing(*row) for row in cursor.fetchall()]


def _standing(
    id_: str, integration: str, door: str, key: str, status: str, expired: bool, severity: Severity, title: str,
    group: str, component: str | None, description: str, labels: str, links: str, images: str, notes: str,
    starts_at: datetime | None, expires_at: datetime | None, fired: str, changed_at: datetime, last_seen: datetime,
    repeats: int, receipt: str | None,
) -> Standing:  # fmt: skip
    alert = Alert(
        key, _STATUSES[status], title, severity, group, component, description, json.loads(labels),
        tuple(json.loads(links)), tuple(json.loads(images)), starts_at, expires_at, tuple(json.loads(notes)),
    )  # fmt: skip
    return Standing(
        id_, integration, door, alert, status, expired, _times(fired), changed_at, last_seen, repeats, receipt
    )


_STATUSES: Mapping[str, Status] = {status: status for status in get_args(Status)}
