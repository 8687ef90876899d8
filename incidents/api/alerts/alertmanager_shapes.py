"""Shapes of Alertmanager's API v2, from which answers are rendered and the OpenAPI document is made."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field


class Receiver(Struct, frozen=True):
    """A team."""

    name: str
    labels: dict[str, str]


class AlertStatus(Struct, frozen=True, rename="camel"):
    """Ids, not fingerprints, of what suppresses an alert: by them it can be found here."""

    state: Literal["active", "suppressed"]
    silenced_by: list[str]
    inhibited_by: list[str]
    muted_by: list[str]


class FiringAlert(Struct, frozen=True, rename="camel"):
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime
    ends_at: datetime
    updated_at: datetime
    fingerprint: str
    receivers: list[Receiver]
    status: AlertStatus
    generator_url: str | UnsetType = field(default=UNSET, name="generatorURL")


class AlertGroup(Struct, frozen=True, rename="camel"):
    labels: dict[str, str]
    route_labels: dict[str, str]
    receiver: Receiver
    alerts: list[FiringAlert]


class SilenceMatcher(Struct, frozen=True, rename="camel"):
    name: str
    value: str
    is_regex: bool
    is_equal: bool = True


class SilenceStatus(Struct, frozen=True):
    state: Literal["pending", "active", "expired"]


class ListedSilence(Struct, frozen=True, rename="camel"):
    id: str
    status: SilenceStatus
    matchers: list[SilenceMatcher]
    starts_at: datetime
    ends_at: datetime
    updated_at: datetime
    created_by: str
    comment: str
    annotations: dict[str, str]
    url: str


class NewSilence(Struct, frozen=True, rename="camel"):
    """With `id` it takes the place of that silence."""

    matchers: list[SilenceMatcher]
    starts_at: datetime
    ends_at: datetime
    created_by: str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET
    id: str | UnsetType = UNSET


class MadeSilence(Struct, frozen=True):
    silence_id: str = field(name="silenceID")


class Configuration(Struct, frozen=True):
    original: str


class Cluster(Struct, frozen=True):
    name: str
    status: str
    peers: list[str]


class ServerStatus(Struct, frozen=True, rename="camel"):
    cluster: Cluster
    version_info: dict[str, str]
    config: Configuration
    uptime: datetime
