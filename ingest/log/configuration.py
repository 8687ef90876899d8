"""Who changed what configures Dossier, and what it was before and after: every such change is an event.

The rows themselves are ordinary tables that people edit; a stream of `configuration.changed` stands beside each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from ingest.log.events import CONFIGURED
from ingest.log.store import append, head, read_stream
from ingest.log.types import Context, Event, Json, NewEvent


def stream_of(kind: str, key: str) -> str:
    """The stream of one configured thing; `key` may be any text."""
    return f"configuration/{kind}/{quote(key, safe='-._~/*')}"


def record_configuration(
    kind: str,
    key: str,
    before: Mapping[str, Json] | None,
    after: Mapping[str, Json] | None,
    context: Context,
) -> Sequence[Event]:
    """Record a change in the transaction that makes it; nothing where nothing changed.

    `kind` is what the API calls it (`route`, `team`, `webhook`, …), `key` what people call this one. None before is a
    creation, None after a removal. Both must be without secrets: write that one changed, never what it is. Raises
    WrongExpectedVersion where another transaction changes the same one (see `retrying`), UnrecordableEvent.
    """
    if before == after:
        return ()
    stream = stream_of(kind, key)
    body = {"kind": kind, "key": key, "before": before, "after": after}
    return append(stream, [NewEvent(CONFIGURED.name, body, datetime.now(UTC))], head(stream), context)


def configured(kind: str, key: str) -> list[Event]:
    """Every change of one thing, the first one first."""
    return read_stream(stream_of(kind, key))
