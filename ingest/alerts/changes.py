"""Changes that senders tell of: a deployment, another configuration. Each is an event and a row, and opens no incident.

A change that says when it happened is known again when its sender repeats the message, because the same integration
sends the same bytes; one that does not say it is another change each time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from ingest.alerts.deliveries import (
    AlertOutcome,
    Delivery,
    DeliveryReceipt,
    PendingDelivery,
    keeping,
    prepare,
)
from ingest.alerts.events import CHANGED, VALIDATED
from ingest.alerts.rows import as_json
from ingest.db import database
from ingest.integrations.normalized import LABELS_OF_COMPONENTS, LONGEST_NAME, Parsed, component_of
from ingest.integrations.pagerduty import Change
from ingest.log.append import append, retrying
from ingest.log.read import head, read_stream
from ingest.log.types import Context, Head, NewEvent, ordered_id, rfc3339

ENDPOINT = "pagerduty-change"
SHORTEST_NAME = 3
"""Characters of a name without its kind that two things may meet by: `host/1` and `disk/1` have nothing in common."""
_COLUMNS = "id, integration, summary, source, component, details, links, notes, at, received_at, receipt"
_SHOWN = (
    f"{_COLUMNS.replace('id,', 'id::text,', 1).replace('receipt', 'receipt::text')}, validation, validated_at"
)
_NAMING = {"source", "component", *(label for label, _ in LABELS_OF_COMPONENTS)} - {"cluster"}
"""Labels that name what something is about. Half of all incidents are in the same cluster."""
_PORT = re.compile(r":\d{1,5}$")


class UnknownChangeError(LookupError):
    """There is no change of that id."""


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """A change as it is kept. `at` is when it happened, or came where nobody said; `receipt` names its delivery.

    `validation` is the body of its latest `change.validated`, None where nobody validated it, and `validated_at` when.
    `targets` are all components of a change that names several. One that is read from rows of telemetry has no
    delivery.
    """

    id: str
    integration: str
    summary: str
    source: str
    component: str | None
    details: dict[str, str]
    links: tuple[dict[str, str], ...]
    notes: tuple[str, ...]
    at: datetime
    received_at: datetime | None
    receipt: str | None
    validation: Mapping[str, Any] | None = None
    validated_at: datetime | None = None
    targets: tuple[str, ...] = ()


def names_of(labels: Iterable[tuple[str, str]]) -> list[str]:
    """Names in labels, in lower case: whole, and without the kind. Labels that name nothing are left out.

    Of a label with dots, as those within custom details have, the last part counts; of `host:port` the host.
    """
    found: set[str] = set()
    for label, text in labels:
        name = _PORT.sub("", text.strip().lower())
        if label.rpartition(".")[2] not in _NAMING or not 0 < len(name) <= LONGEST_NAME:
            continue
        found.add(name)
        _, slash, bare = name.partition("/")
        if slash and len(bare) >= SHORTEST_NAME:
            found.add(bare)
    return sorted(found)


def take_change(change: Change, delivery: Delivery) -> DeliveryReceipt:
    """Store a change durably. Raises django.db.Error, and then nothing of it is stored."""
    return retrying(partial(_store, change, prepare(delivery, Parsed(()))))


@transaction.atomic
def _store(change: Change, prepared: PendingDelivery) -> DeliveryReceipt:
    now = database.now()
    id_ = _id(change, prepared)
    new = _insert(id_, change, prepared, now)
    if new:
        context = Context(f"key:{prepared.delivery.integration}", trace=prepared.delivery.trace)
        event = NewEvent(CHANGED.name, _body(id_, change, prepared), now)
        append(f"change/{id_}", [event], Head.NEW, context)
    taken = DeliveryReceipt(prepared.receipt, (AlertOutcome(id_, 1, "recorded" if new else "repeated"),))
    with connection.cursor() as cursor:
        cursor.execute(*keeping([prepared], [taken], now))
    return taken


def _id(change: Change, prepared: PendingDelivery) -> str:
    if change.at is None:
        return str(ordered_id(database.now()))
    digest = sha256(prepared.delivery.integration.encode() + b"\0" + prepared.delivery.payload).digest()
    return str(UUID(bytes=digest[:16], version=5))


def _component(change: Change) -> str | None:
    return component_of({**(change.details or {}), "component": change.source}) or component_of(
        change.details or {}
    )


def _insert(id_: str, change: Change, prepared: PendingDelivery, now: datetime) -> bool:
    details = change.details or {}
    values: tuple[Any, ...] = (
        id_,
        prepared.delivery.integration,
        change.summary,
        change.source,
        _component(change),
        as_json(details),
        as_json(change.links),
        as_json(change.notes),
        change.at or now,
        now,
        prepared.receipt,
        names_of([("source", change.source), *details.items()]),
    )
    places = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO reported_change ({_COLUMNS}, names) VALUES ({places}) ON CONFLICT DO NOTHING",
            values,
        )
        return bool(cursor.rowcount)


def _body(id_: str, change: Change, prepared: PendingDelivery) -> dict[str, Any]:
    return {
        "change": id_,
        "integration": prepared.delivery.integration,
        "endpoint": prepared.delivery.endpoint,
        "summary": change.summary,
        "source": change.source,
        "component": _component(change),
        "at": None if change.at is None else rfc3339(change.at),
        "details": dict(change.details or {}),
        "links": [dict(link) for link in change.links],
        "notes": list(change.notes),
        "receipt": prepared.receipt,
        "sha256": prepared.sha256.hex(),
    }


def changes(
    since: datetime,
    until: datetime,
    names: Sequence[str] | None = None,
    limit: int = 100,
    known_by: datetime | None = None,
    *,
    validated: bool = False,
) -> list[ReportedChange]:
    """Changes that happened between two moments, the latest first; with `names` those about any of them (lower
    case), with `known_by` those that had been told of by then, with `validated` those that have a validation."""
    about = "" if names is None else " AND names && %s::text[]"
    about += "" if known_by is None else " AND received_at <= %s"
    about += " AND validation IS NOT NULL" if validated else ""
    entries = [*([] if names is None else [list(names)]), *([] if known_by is None else [known_by])]
    values: list[Any] = [since, until, *entries, limit]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_SHOWN} FROM reported_change WHERE at >= %s AND at <= %s{about}"
            " ORDER BY at DESC, id LIMIT %s",
            values,
        )
        found = [_change(*row) for row in cursor.fetchall()]
    known = [_as_known(one, known_by) for one in found]
    return [one for one in known if one.validation is not None or not validated]


def _as_known(one: ReportedChange, known_by: datetime | None) -> ReportedChange:
    """With the validation that was the latest then."""
    if known_by is None or one.validated_at is None or one.validated_at <= known_by:
        return one
    for event in reversed(read_stream(f"change/{one.id}")):
        if event.type == VALIDATED.name and event.recorded_at <= known_by:
            return replace(one, validation=event.body, validated_at=event.recorded_at)
    return replace(one, validation=None, validated_at=None)


def record_validation(id_: str, verdict: Mapping[str, Any], context: Context) -> bool:
    """Store a verdict on a change as `change.validated`; False if the latest one is the same, and nothing is stored.

    Raises UnknownChangeError where there is none of that id.
    """
    return retrying(partial(_validated, id_, {"change": id_, **verdict}, context))


@transaction.atomic
def _validated(id_: str, body: Mapping[str, Any], context: Context) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT validation FROM reported_change WHERE id = %s::uuid FOR UPDATE", (id_,))
        row = cursor.fetchone()
        if row is None:
            raise UnknownChangeError(id_)
        if row[0] is not None and json.loads(row[0]) == body:
            return False
        now, stream = database.now(), f"change/{id_}"
        append(stream, [NewEvent(VALIDATED.name, dict(body), now)], head(stream), context)
        cursor.execute(
            "UPDATE reported_change SET validation = %s, validated_at = %s WHERE id = %s::uuid",
            (as_json(body), now, id_),
        )
    return True


def change(id_: str) -> ReportedChange | None:
    """One change; None where there is none of that id."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_SHOWN} FROM reported_change WHERE id = %s::uuid", (id_,))
        row = cursor.fetchone()
    return None if row is None else _change(*row)


def forget_changes(before: datetime) -> int:
    """Delete changes reported before then; returns their number. Their events stay."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM reported_change WHERE received_at < %s", (before,))
        return int(cursor.rowcount)


def _change(
    id_: str, integration: str, summary: str, source: str, component: str | None, details: str, links: str,
    notes: str, at: datetime, received_at: datetime, receipt: str, validation: str | None,
    validated_at: datetime | None,
) -> ReportedChange:  # fmt: skip
    return ReportedChange(
        id_, integration, summary, source, component, json.loads(details), tuple(json.loads(links)),
        tuple(json.loads(notes)), at, received_at, receipt,
        None if validation is None else json.loads(validation), validated_at,
    )  # fmt: skip
