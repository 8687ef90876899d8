"""Alerts as rows of `alert`: read, inserted, changed and counted, many with one statement; and the per-process cache of
those met last, so that a repeat skips the database read.

What writes comes as statements with their values, for `ingest.alerts.store` to send as one message. A decision upon
the cache is written only where the alert still stands so: the statement that writes compares the hash of the newest
event of its stream, and who was overtaken forgets and reads. What is ignored is written nowhere, so it is decided upon
a row that was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, get_args

import msgspec
from django.db import connection
from msgspec import Struct

from ingest.alerts.decide import Known
from ingest.db import database
from ingest.db.database import plain_array
from ingest.integrations.normalized import Alert, Severity, Status
from ingest.log.append import array
from ingest.log.read import read_newest, read_streams
from ingest.log.types import Event, Head, Position

PART = 2_000
"""Rows that a cursor over all of them fetches at a time."""


def id_of(integration: str, key: str) -> str:
    """An alert's id: the same integration and key give the same one, for ever."""
    text = sha256(f"{integration}\0{key}".encode()).hexdigest()
    # A UUID of version 5, written out: every alert that comes in is looked up by it.
    return (
        f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:32]}"
    )


def stream_of(alert_id: str) -> str:
    return f"alert/{alert_id}"


class CachedRow(Struct, frozen=True, array_like=True):
    """A row, as far as another alert of its key is decided upon."""

    known: Known
    fired: str
    """Begin of firing, as `times` reads it: few that come in need to know."""
    head: Head


class Written(Struct, frozen=True):
    """A row as it is to stand after a change."""

    id: str
    integration: str
    endpoint: str
    alert: Alert
    status: str
    expired: bool
    settled_until: datetime | None
    fired: Sequence[datetime]
    changed_at: datetime
    receipt: str | None
    head: Head


class Count(Struct):
    """Number of repetitions of an alert, and the end of the last one."""

    repeats: int
    expires_at: datetime | None


Statement = tuple[str, Sequence[Any]]
"""SQL with its values."""


def existing(ids: Iterable[str], *, hold: bool) -> dict[str, CachedRow]:
    """The rows of these alerts that exist; with `hold` they are the transaction's until it ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id::text, status, severity, component, starts_at, expired, settled_until, changed_at, fired,"
            f" version, hash FROM alert WHERE id = ANY(%s::uuid[]){_HOLD if hold else ''}",
            (plain_array(ids),),
        )
        return {
            id_: CachedRow(
                Known(status, severity, component, starts_at, expired, settled, changed_at),
                fired,
                Head(version, bytes(digest)),
            )
            for id_, status, severity, component, starts_at, expired, settled, changed_at, fired, version, digest in (
                cursor.fetchall()
            )
        }


_HOLD = " ORDER BY id FOR UPDATE"
"""Always in the same order: two that hold the same rows would else wait for each other in a circle."""


def locking(ids: Iterable[str]) -> list[Statement]:
    """Holds rows that are about to be written, where there are several."""
    wanted = list(ids)
    if len(wanted) < 2:
        return []
    sql = f"SELECT count(*) FROM (SELECT FROM alert WHERE id = ANY(%s::uuid[]){_HOLD}) AS held"
    return [(sql, (plain_array(wanted),))]


_COLUMNS: Mapping[str, str] = {
    "id": "uuid",
    "integration": "text",
    "endpoint": "text",
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
    "annotations": "text",
}
_QUOTED = frozenset({"integration", "endpoint", "key", "title", "group_name", "component", "description", "labels",
    "links", "images", "notes", "fired", "hash",
    "annotations"})  # fmt: skip
_NEW = ", ".join(f"new_{name}" for name in _COLUMNS)
_UNNEST = ", ".join(f"%s::{type_}[]" for type_ in _COLUMNS.values())
_INSERT = f"SELECT alert_insert({', '.join(['%s'] * len(_COLUMNS))})"
_CHANGE = (
    f"UPDATE alert SET {', '.join(f'{name} = new_{name}' for name in _COLUMNS if name != 'id')}"
    f" FROM unnest({_UNNEST}) AS new ({_NEW}) WHERE id = new_id"
)


def insert(rows: Sequence[Written]) -> list[Statement]:
    """Fails where another transaction was faster with one of them."""
    return _write(_INSERT, rows)


def change(rows: Sequence[Written]) -> list[Statement]:
    return _write(_CHANGE, rows)


def _write(statement: str, rows: Sequence[Written]) -> list[Statement]:
    if not rows:
        return []
    columns = zip(_COLUMNS, zip(*map(_row, rows), strict=True), strict=True)
    # What nobody outside wrote has nothing in it to quote; quoting it would cost as much as the rest.
    return [(statement, [(array if name in _QUOTED else plain_array)(column) for name, column in columns])]


def _row(row: Written) -> tuple[Any, ...]:
    """Texts that need quotes may be None; of the others NULL is the word for it."""
    alert, changed = row.alert, _text(row.changed_at)
    return (
        row.id,
        row.integration,
        row.endpoint,
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
        _text(alert.expires_at) if row.status != "resolved" else "NULL",
        seconds(row.fired),
        changed,
        changed,
        "0",
        row.receipt or "NULL",
        str(row.head.version),
        f"\\x{row.head.hash.hex()}",
        None if alert.annotations is None else as_json(alert.annotations),
    )


def count(counts: Mapping[str, Count], heads: Mapping[str, Head], now: datetime) -> list[Statement]:
    """Keep that these alerts were seen again. Fails where the stream of one does not end in its head."""
    if not counts:
        return []
    ids = sorted(counts)  # always in the same order, as by _HOLD
    values = (
        now,
        plain_array(ids),
        b"".join([heads[id_].hash for id_ in ids]),
        plain_array(str(counts[id_].repeats) for id_ in ids),
        plain_array(_text(counts[id_].expires_at) for id_ in ids),
    )
    return [("SELECT alert_count(%s, %s, %s, %s, %s)", values)]


_encode = msgspec.json.Encoder().encode


def as_json(value: Any) -> str:
    return _encode(value).decode() if value else "{}" if isinstance(value, Mapping) else "[]"


def _text(at: datetime | None) -> str:
    return "NULL" if at is None else _encode(at).decode()


def seconds(times: Iterable[datetime]) -> str:
    """Times as a row keeps them: seconds since 1970, with commas."""
    return ",".join(str(int(at.timestamp())) for at in times)


def times(text: str) -> tuple[datetime, ...]:
    """The times that `seconds` wrote."""
    return tuple(datetime.fromtimestamp(int(part), UTC) for part in text.split(",") if part)


@dataclass(frozen=True, slots=True)
class CurrentAlert:
    """An alert as it stands, for whoever shows it. `alert.key` is the sender's, `id` ours."""

    id: str
    integration: str
    endpoint: str
    alert: Alert
    status: str
    expired: bool
    fired_text: str
    changed_at: datetime
    last_seen: datetime
    repeats: int
    receipt: str | None

    @property
    def fired(self) -> tuple[datetime, ...]:
        """Begin of firing, as far as that is remembered."""
        return times(self.fired_text)


_SHOWN = (
    "id::text, integration, endpoint, key, status, expired, severity, title, group_name, component, description,"
    " labels, links, images, notes, starts_at, expires_at, fired, changed_at, last_seen, repeats, receipt::text,"
    " annotations"
)


def current_alerts(
    condition: str, values: Sequence[Any], order: str = "id", limit: int | None = None, offset: int = 0
) -> list[CurrentAlert]:
    """The alerts that fit a condition, written in SQL over the columns of `alert`."""
    sql = _select(condition, order)
    with connection.cursor() as cursor:
        cursor.execute(sql if limit is None else f"{sql} LIMIT {int(limit)} OFFSET {int(offset)}", values)
        return [_current_alert(*row) for row in cursor.fetchall()]


def count_alerts(condition: str, values: Sequence[Any]) -> int:
    """Number of alerts that fit a condition, as that of `current_alerts`."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM alert WHERE {condition}", values)
        (count,) = cursor.fetchone()
        return int(count)


def current_alerts_in_parts(
    condition: str, values: Sequence[Any], order: str = "id"
) -> Iterator[CurrentAlert]:
    """As `current_alerts`, as of when the first one is read, by a cursor that holds PART of them at a time."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_select(condition, order), values)
        while rows := cursor.fetchmany(PART):
            yield from (_current_alert(*row) for row in rows)


def _select(condition: str, order: str) -> str:
    return f"SELECT {_SHOWN} FROM alert WHERE {condition} ORDER BY {order}"


def _current_alert(
    id_: str, integration: str, endpoint: str, key: str, status: str, expired: bool, severity: Severity, title: str,
    group: str, component: str | None, description: str, labels: str, links: str, images: str, notes: str,
    starts_at: datetime | None, expires_at: datetime | None, fired: str, changed_at: datetime, last_seen: datetime,
    repeats: int, receipt: str | None, annotations: str | None,
) -> CurrentAlert:  # fmt: skip
    alert = Alert(
        key, _STATUSES[status], title, severity, group, component, description, _read(labels),
        _list(links), _list(images), starts_at, expires_at, _list(notes),
        annotations=None if annotations is None else _read(annotations),
    )  # fmt: skip
    return CurrentAlert(
        id_, integration, endpoint, alert, status, expired, fired, changed_at, last_seen, repeats, receipt
    )


def reported(event: Event) -> CurrentAlert:
    """An alert as it stood after an event: `last_seen` and `repeats` as of that."""
    body = event.body
    alert = Alert(
        body["key"], body["status"], body["title"], body["severity"], body["group"], body["component"],
        body["description"], body["labels"], tuple(body["links"]), tuple(body["images"]), _at(body["starts_at"]),
        _at(body["expires_at"]), tuple(body["notes"]), annotations=body.get("annotations"),
    )  # fmt: skip
    return CurrentAlert(
        body["alert"], body["integration"], body["endpoint"], alert, body["status"],
        body["change"] in ("expired", "settled"), "", event.occurred_at, event.occurred_at, 0, body["receipt"],
    )  # fmt: skip


def _at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


_read = msgspec.json.Decoder().decode


def _list(text: str) -> tuple[Any, ...]:
    return () if text == "[]" else tuple(_read(text))


_STATUSES: Mapping[str, Status] = {status: status for status in get_args(Status)}


MOST = 100_000
"""Alerts that a process remembers, at about 0.4 KiB each; when it is full it is emptied."""

STRANGERS = 256
"""So many alerts in a row that were not remembered have to be new before the next ones are taken for new unread: it
costs a transaction where one of them is not. In a storm they are; what fires again reaches the process that knows it
half the time, so that day by day they are not."""

# Packed, as in `ingest.integrations.prometheus`: less room, nothing for the garbage collector to walk through.
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(CachedRow).decode
_known: dict[str, dict[str, bytes]] = {}  # by database and id
_in_a_row: dict[str, int] = {}  # by database


def recalled(ids: Iterable[str]) -> dict[str, CachedRow]:
    """Those of these alerts that are remembered."""
    known = _known.get(database.name(), {})
    return {id_: _unpack(packed) for id_ in ids if (packed := known.get(id_)) is not None}


def remember(alerts: Mapping[str, CachedRow]) -> None:
    """Remember the state of these alerts: they were read or written, and committed."""
    known = _known.setdefault(database.name(), {})
    if len(known) + len(alerts) > MOST:
        known.clear()
    known.update((id_, _pack(stored)) for id_, stored in alerts.items())


def all_new() -> bool:
    """Whether alerts that are not remembered may be taken for new ones: the statement that writes makes sure of it."""
    return _in_a_row.get(database.name(), 0) >= STRANGERS


def met(new: int, *, others: bool) -> None:
    """Number of alerts not remembered that were new, and whether there were others, which were not."""
    _in_a_row[database.name()] = 0 if others else _in_a_row.get(database.name(), 0) + new


def forget(ids: Iterable[str]) -> None:
    known = _known.get(database.name(), {})
    for id_ in ids:
        known.pop(id_, None)


def alerts(ids: Sequence[str]) -> list[CurrentAlert]:
    """These alerts as they stand, the one that changed last first."""
    return current_alerts("id = ANY(%s::uuid[])", (list(ids),), "changed_at DESC, id")


def alerts_at(ids: Sequence[str], as_of: Position) -> list[CurrentAlert]:
    """These alerts as the log had them at a position, those of them that it knew then.

    How often they were repeated is not in the log: `last_seen` is the time of the last change, `repeats` 0.
    """
    return [reported(event) for event in read_newest([stream_of(id_) for id_ in ids], as_of)]


def open_alerts() -> Iterator[CurrentAlert]:
    """All alerts that fire or are acknowledged, read in parts: there may be 100,000 of them."""
    return current_alerts_in_parts("status <> 'resolved'", (), "changed_at, id")


def firing_alerts(ids: Sequence[str]) -> list[Event]:
    """The newest event of each of these alerts that still fires, in the order of the log."""
    firing = current_alerts("id = ANY(%s::uuid[]) AND status <> 'resolved'", (list(ids),))
    return read_newest([stream_of(one.id) for one in firing])


LATE = timedelta(hours=1)
"""An alert may change so long before the log has it."""


def firing_at(as_of: Position, moment: datetime) -> Iterator[tuple[Event, datetime]]:
    """The newest event of each alert that fired at a position, of that moment, with when it began to."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            "SELECT id::text FROM alert WHERE status <> 'resolved' OR changed_at >= %s", [moment - LATE]
        )
        while rows := cursor.fetchmany(PART):
            newest = read_newest([stream_of(id_) for (id_,) in rows], as_of)
            firing = [event for event in newest if event.body["status"] != "resolved"]
            older = read_streams([one.stream for one in firing if one.body["change"] != "fired"], as_of)
            for event in firing:
                fired = [one for one in older.get(event.stream, ()) if one.body["change"] == "fired"]
                yield event, (fired[-1] if fired else event).recorded_at


class Brief(Struct, frozen=True):
    """Fields of an alert that decide its incident."""

    component: str | None
    title: str
    severity: Severity


def briefs(ids: Sequence[str]) -> dict[str, Brief]:
    """By id, with one statement: a storm has 30,000 of them and their labels are not needed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id::text, component, title, severity FROM alert WHERE id = ANY(%s::uuid[])",
            (plain_array(ids),),
        )
        return {
            id_: Brief(component, title, severity) for id_, component, title, severity in cursor.fetchall()
        }


def components_of(ids: Sequence[str]) -> set[str]:
    """Of these alerts, however many: the database tells apart what a storm of 30,000 is on, in half the time."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT component FROM alert WHERE id = ANY(%s::uuid[]) AND component IS NOT NULL",
            (list(ids),),
        )
        return {component for (component,) in cursor.fetchall()}


def firing_on(components: Sequence[str]) -> dict[str, int]:
    """By component how many alerts fire on it or are acknowledged; those without any are left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT component, count(*) FROM alert WHERE status <> 'resolved' AND component = ANY(%s)"
            " GROUP BY component",
            (list(components),),
        )
        return {name: int(count) for name, count in cursor.fetchall()}


def labels_carried(ids: Sequence[str], least: int) -> list[tuple[str, str, int]]:
    """Labels with the value that at least so many of these alerts carry, and how many do; the commonest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT label.key, label.value, count(*) FROM alert, jsonb_each_text(labels::jsonb) AS label"
            " WHERE id = ANY(%s::uuid[]) GROUP BY 1, 2 HAVING count(*) >= %s ORDER BY 3 DESC, 1, 2",
            (list(ids), least),
        )
        return [(str(name), str(value), int(count)) for name, value, count in cursor.fetchall()]
