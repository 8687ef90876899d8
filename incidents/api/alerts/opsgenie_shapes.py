"""Shapes of Opsgenie's Alert API, from which answers are rendered and the OpenAPI document is made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from msgspec import UNSET, Struct, UnsetType, field

from ingest.alerts.rows import CurrentAlert
from ingest.integrations.opsgenie import priority_of

OF_ALERT = frozenset({"entity", "priority", "source", "tags", "team", "user"})
"""Labels that are fields of an alert there; the others are its details."""


class OpsgenieAnswer(Struct, frozen=True, kw_only=True):
    """Fields of every answer: the id of the request; its duration is not measured."""

    request_id: str = field(name="requestId")
    took: float = 0.0


class Accepted(OpsgenieAnswer, frozen=True):
    """`requestId` is the receipt of the delivery."""

    result: str


class Refusal(OpsgenieAnswer, frozen=True):
    message: str


class AlertIntegration(Struct, frozen=True):
    id: str
    name: str
    type: str


class ListedAlert(Struct, frozen=True, rename="camel", kw_only=True):
    id: str
    tiny_id: str
    alias: str
    message: str
    status: str
    acknowledged: bool
    is_seen: bool
    tags: list[str]
    snoozed: bool
    count: int
    last_occurred_at: datetime
    created_at: datetime
    updated_at: datetime
    source: str
    owner: str
    priority: str
    responders: list[dict[str, str]]
    integration: AlertIntegration


class WholeAlert(ListedAlert, frozen=True, rename="camel", kw_only=True):
    entity: str
    description: str
    details: dict[str, str]
    url: str


class Paging(Struct, frozen=True):
    first: str
    next: str | UnsetType = UNSET


class AlertPage(OpsgenieAnswer, frozen=True):
    data: list[ListedAlert]
    paging: Paging


class AlertAnswer(OpsgenieAnswer, frozen=True):
    data: WholeAlert


class ListedNote(Struct, frozen=True, rename="camel"):
    note: str
    owner: str
    created_at: datetime
    offset: str


class NotePage(OpsgenieAnswer, frozen=True):
    data: list[ListedNote]


class AlertCount(Struct, frozen=True):
    count: int


class CountAnswer(OpsgenieAnswer, frozen=True):
    data: AlertCount


class RequestStatus(Struct, frozen=True, rename="camel"):
    status: str
    success: bool
    is_success: bool
    processed_at: str
    integration_id: str
    alert_id: str
    alias: str


class RequestAnswer(OpsgenieAnswer, frozen=True):
    data: RequestStatus


def listed(row: CurrentAlert) -> ListedAlert:
    return ListedAlert(**_fields(row))


def whole(row: CurrentAlert) -> WholeAlert:
    alert = row.alert
    return WholeAlert(
        **_fields(row),
        entity=alert.labels.get("entity", alert.component or ""),
        description=alert.description,
        details={name: text for name, text in alert.labels.items() if name not in OF_ALERT},
        url=f"{settings.PUBLIC_URL}/receipts/{row.receipt}" if row.receipt else "",
    )


def _fields(row: CurrentAlert) -> dict[str, Any]:
    alert = row.alert
    tags, team = alert.labels.get("tags", ""), alert.labels.get("team", "")
    return {
        "id": row.id,
        "tiny_id": row.id[:8],
        "alias": alert.key,
        "message": alert.title,
        "status": "closed" if row.status == "resolved" else "open",
        "acknowledged": row.status == "acknowledged",
        "is_seen": row.status == "acknowledged",
        "tags": tags.split(", ") if tags else [],
        "snoozed": False,
        "count": row.repeats + 1,
        "last_occurred_at": row.last_seen,
        "created_at": row.fired[-1] if row.fired else row.changed_at,
        "updated_at": row.changed_at,
        "source": alert.labels.get("source", ""),
        "owner": "",
        "priority": priority_of(alert),
        "responders": [{"type": "team", "name": team}] if team else [],
        "integration": AlertIntegration(row.integration, row.integration, "API"),
    }
