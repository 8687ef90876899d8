"""A delivery of alerts, as it is stored and what is answered."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from ingest.alerts.decide import Outcome
from ingest.integrations.normalized import Parsed


@dataclass(frozen=True, slots=True)
class Delivery:
    """How alerts came: by which integration (the name of its key) and door, and the payload as received."""

    integration: str
    door: str
    content_type: str
    payload: bytes
    trace: str | None = None


class AlertOutcome(Struct, frozen=True):
    """What became of one alert: its id, the version of its stream (0: it has none), the outcome and why.

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
    told: tuple[AlertOutcome, ...]


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A delivery with all that can be had of it alone: who works for a group keeps the others waiting."""

    delivery: Delivery
    parsed: Parsed
    receipt: str
    sha256: bytes


def prepare(delivery: Delivery, parsed: Parsed) -> PendingDelivery:
    return PendingDelivery(delivery, parsed, str(uuid.uuid4()), sha256(delivery.payload).digest())
