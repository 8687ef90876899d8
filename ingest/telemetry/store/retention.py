"""How long the rows of a kind are kept, and so how old a row may be that is still taken."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from ingest.telemetry.decode.validate import Bounds
from ingest.telemetry.kinds import KINDS, Kind

FORGOTTEN_AFTER = timedelta(hours=1)
"""Age at which an upload that was never finished is taken for dead."""


def kept_for(kind: Kind) -> timedelta:
    """DOSSIER_TELEMETRY_SPARSE_RETENTION for kinds that are few and asked for by the month, but never less than the
    others."""
    retention: timedelta = settings.TELEMETRY_RETENTION
    long: timedelta = settings.TELEMETRY_SPARSE_RETENTION
    return max(retention, long) if kind.is_kept_long else retention


def bounds(kind: Kind, now: datetime) -> Bounds:
    """Which times the doors take at `now`."""
    return Bounds.around(now, kept_for(kind), settings.TELEMETRY_FUTURE)


def whole_for(kinds: Iterable[str]) -> timedelta:
    """How far back windows of all these kinds (by name) are whole. Of a state kind what is in force stays anyway."""
    spans = [kept_for(KINDS[name]) for name in kinds if not KINDS[name].is_state]
    retention: timedelta = settings.TELEMETRY_RETENTION
    return min(spans, default=retention)
