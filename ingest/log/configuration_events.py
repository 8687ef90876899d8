"""Events of configuration changes: actor, value before and after.

The rows themselves are ordinary tables that people edit; a stream of `configuration.changed` stands beside each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from urllib.parse import quote

from django.db import transaction

from ingest.db import database
from ingest.log.append import append
from ingest.log.events import CONFIGURED
from ingest.log.read import head, read_newest, read_stream, read_transaction
from ingest.log.types import Context, Event, Json, NewEvent, Position

_RECEIPT = re.compile(r"c-([0-9a-f]{1,4})-([0-9a-f]{1,16})")


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
    StreamVersionError where another transaction changes the same one (see `retrying`), UnrecordableEventError.
    """
    if before == after:
        return ()
    stream = stream_of(kind, key)
    body = {"kind": kind, "key": key, "before": before, "after": after}
    events = append(stream, [NewEvent(CONFIGURED.name, body, database.now())], head(stream), context)
    if (recorded := _recorded.get()) is not None:
        transaction.on_commit(partial(recorded.extend, events))
    return events


_recorded: ContextVar[list[Event] | None] = ContextVar("recorded", default=None)


@contextmanager
def hearing_of_changes() -> Iterator[list[Event]]:
    """Collect the configuration changes of this thread, once they are committed."""
    events: list[Event] = []
    token = _recorded.set(events)
    try:
        yield events
    finally:
        _recorded.reset(token)


def receipt_of_change(position: Position) -> str:
    """The receipt of all that was changed in the transaction of one change."""
    return f"c-{position.epoch:x}-{position.txid:x}"


def changes_of_receipt(receipt: str) -> list[Event]:
    """Changes of a receipt, in order; nothing for another text."""
    parts = _RECEIPT.fullmatch(receipt)
    together = read_transaction(int(parts[1], 16), int(parts[2], 16)) if parts else []
    return [event for event in together if event.type == CONFIGURED.name]


def configured(kind: str, key: str) -> list[Event]:
    """Every change of one thing, the first one first."""
    return read_stream(stream_of(kind, key))


def newest_configured(kind: str, keys: Sequence[str], upto: Position) -> list[Event]:
    """The newest change of each of these things up to a position."""
    return read_newest([stream_of(kind, key) for key in keys], upto)
