"""The event types of incidents. Names are permanent; `tests/golden/events` holds one of each."""

from __future__ import annotations

from incidents.domain.incident import EVENT_TYPES
from ingest.commands import EventType, register_event_type


def register() -> None:
    for name in EVENT_TYPES:
        register_event_type(EventType(name))
