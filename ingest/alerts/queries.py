"""What can be asked about alerts."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.alerts.rows import Standing, standing, stream_of
from ingest.log.store import read_stream
from ingest.log.types import Event


def alerts(ids: Sequence[str]) -> list[Standing]:
    """These alerts as they stand, the one that changed last first."""
    return standing("id = ANY(%s::uuid[])", (list(ids),), "changed_at DESC, id")


def open_alerts() -> list[Standing]:
    """All alerts that fire or are acknowledged."""
    return standing("status <> 'resolved'", (), "changed_at, id")


def firing_alerts(ids: Sequence[str]) -> list[Event]:
    """The newest event of each of these alerts that still fires, in the order of the log."""
    firing = standing("id = ANY(%s::uuid[]) AND status <> 'resolved'", (list(ids),))
    return sorted((read_stream(stream_of(one.id))[-1] for one in firing), key=lambda event: event.position)
