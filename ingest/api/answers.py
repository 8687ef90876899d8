"""Answers of the endpoints in JSON: each is rendered from the type that the OpenAPI document describes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpResponse
from msgspec import UNSET, Struct, UnsetType

encoded = msgspec.json.Encoder().encode


class RefusedAlert(Struct, frozen=True):
    alert: int
    field: str
    reason: str


class LeftOutAlert(Struct, frozen=True):
    alert: int
    reason: str


class AcceptedAlerts(Struct, frozen=True):
    accepted: int
    receipt: str
    refused: list[RefusedAlert] | UnsetType = UNSET
    left_out: list[LeftOutAlert] | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class AcceptedRows(Struct, frozen=True):
    accepted: int
    receipt: str


class AcceptedHeartbeat(Struct, frozen=True):
    heartbeat: str
    due: datetime
    receipt: str


class EventAnswer(Struct, frozen=True):
    """Answer in the format of PagerDuty's Events API."""

    status: str
    message: str


class AcceptedEvent(EventAnswer, frozen=True):
    dedup_key: str


class RefusedEvent(EventAnswer, frozen=True):
    errors: list[str]


class KindField(Struct, frozen=True, omit_defaults=True):
    name: str
    type: str
    optional: bool
    help: str
    unit: str | UnsetType = UNSET
    choices: list[str] | UnsetType = UNSET
    signed: bool | UnsetType = UNSET
    default: Any = UNSET


class KindOfTelemetry(Struct, frozen=True):
    """Fields of a row of the kind."""

    kind: str
    help: str
    state: bool
    interval: bool
    key: str | None
    formats: list[str]
    fields: list[KindField]


class KindsOfTelemetry(Struct, frozen=True):
    kinds: list[KindOfTelemetry]


def in_json(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(encoded(value), status=status, content_type="application/json")
