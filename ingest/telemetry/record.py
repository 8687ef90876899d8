"""Rows that Dossier itself records, through the same decoding, storage and event as those of senders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ingest.telemetry.decode.body import decode
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import tables
from ingest.telemetry.store.tables import bounds
from ingest.telemetry.store.write import Delivery, Receipt, find_repeated, receive


def record_rows(
    kind: str, rows: Sequence[Mapping[str, Any]], region: str, actor: str, known_as: str | None = None
) -> Receipt:
    """Store rows of a region, all or none; the event names the actor. Rows that came before under the same `known_as`
    get their first receipt and are not stored again. Raises InvalidRowsError, InvalidBodyError, django.db.Error.
    """
    declared = KINDS[kind]
    body = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    delivery = Delivery(actor, hashlib.sha256(body).digest(), len(body), None, known_as)
    if known_as is not None and (first := find_repeated(declared, delivery)):
        return first
    within = bounds(declared, datetime.now(UTC))
    return receive(decode("application/json", declared, body, region, within, tables.known_texts()), delivery)
