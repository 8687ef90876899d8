"""The log's own event type."""

from ingest.log.registry import EventType, register

SEALED = register(EventType("log.sealed"))
