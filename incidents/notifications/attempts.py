"""Steps as rows, the lanes that they go through, and what may be shown of an address."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from incidents.domain.notifications.rules import Step
from incidents.notifications.models import ContactMethod, Notification, NotificationDelivery
from incidents.notifications.recipients import Reachable

SENDING: Final = (
    "notification_id",
    "place",
    "source",
    "method_id",
    "label",
    "kind",
    "lane",
    "at",
    "next_at",
    "attempts",
    "state",
    "held",
    "why",
)
"""The columns of a step that is new; the others are empty."""


def planned(
    row: Notification, found: Sequence[Step], known: Reachable, after: int = 0
) -> list[NotificationDelivery]:
    """Rows of steps, numbered on from `after`."""
    made = []
    for place, step in enumerate(found, start=after):
        method = known.rows.get(step.method.name) if step.method.source == "method" else None
        made.append(
            NotificationDelivery(
                notification=row,
                place=place,
                source=step.method.source,
                method=method,
                label=step.method.name,
                kind=step.method.kind,
                lane="email" if method is None else queue_key(method.kind, method.address),
                at=step.at,
                next_at=step.at,
            )
        )
    return made


def queue_key(kind: str, address: str) -> str:
    """Whose trouble is whose: all mail goes through one server; other addresses stand for themselves.

    Never holds a secret: the address of a service is one, and stands here as a hash.
    """
    if kind == "email":
        return "email"
    if kind == "webhook":
        return f"webhook {_host(address)}"
    scheme = address.partition("://")[0][:30]
    return f"apprise {scheme} {hashlib.sha256(address.encode()).hexdigest()[:16]}"


def shown(kind: str, address: str) -> str:
    """What people see of an address that has no name."""
    if kind == "webhook":
        return f"webhook at {_host(address)}"
    return address.partition("://")[0][:30]


def _host(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "")[:200]
    except ValueError:
        return ""


def masked(row: ContactMethod) -> str:
    """What may be shown of an address: of a mail all of it, of a webhook the host, of a service its name."""
    if not row.address:
        return "cannot be read: enter it again"
    if row.kind == "email":
        return row.address
    scheme, _, _ = row.address.partition("://")
    return f"{scheme[:30]}://{_host(row.address) if row.kind == 'webhook' else ''}…"
