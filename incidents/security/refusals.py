"""Refused links, signatures and buttons on the audit: once an hour for each reason, however many there are."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from django.db import transaction

from ingest.commands import record_configuration
from ingest.queries import Context, StreamVersionError, configured, now_utc


def record_refusal(
    kind: str, key: str, reason: str, actor: str, about: Mapping[str, str] | None = None
) -> None:
    """`kind` and `key` as the audit names it; `about` is added to the entry, and holds no secret."""
    after = {**(about or {}), "outcome": f"refused: {reason}", "hour": f"{now_utc():%Y-%m-%d %H}"}
    with suppress(StreamVersionError), transaction.atomic():  # another request records the same
        known = configured(kind, key)
        record_configuration(kind, key, known[-1].body["after"] if known else None, after, Context(actor))
