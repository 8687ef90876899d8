"""Alerts as this process last knew them: a repeat of one needs no look at its row, and neither do new ones in a row.

What is decided upon memory is written only where the alert still stands so: the hash of the newest event of its stream
is compared by the statement that writes, and who was overtaken forgets and reads. What is ignored is written nowhere,
so it is decided upon a row that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ingest.alerts.rows import CachedRow
from ingest.db import database

MOST = 100_000
"""Alerts that a process remembers, at about 0.4 KiB each; when it is full it is emptied."""

STRANGERS = 256
"""So many alerts in a row that were not remembered have to be new before the next ones are taken for new unread: it
costs a transaction where one of them is not. In a storm they are; what fires again reaches the process that knows it
half the time, so that day by day they are not."""

# Packed, as in `ingest.integrations.prometheus.cache`: less room, nothing for the garbage collector to walk through.
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(CachedRow).decode
_known: dict[str, dict[str, bytes]] = {}  # by database and id
_in_a_row: dict[str, int] = {}  # by database


def recalled(ids: Iterable[str]) -> dict[str, CachedRow]:
    """Those of these alerts that are remembered."""
    known = _known.get(database.name(), {})
    return {id_: _unpack(packed) for id_ in ids if (packed := known.get(id_)) is not None}


def remember(alerts: Mapping[str, CachedRow]) -> None:
    """That these alerts stand so: they were read or written, and committed."""
    known = _known.setdefault(database.name(), {})
    if len(known) + len(alerts) > MOST:
        known.clear()
    known.update((id_, _pack(kept)) for id_, kept in alerts.items())


def all_new() -> bool:
    """Whether alerts that are not remembered may be taken for new ones: the statement that writes makes sure of it."""
    return _in_a_row.get(database.name(), 0) >= STRANGERS


def met(new: int, *, others: bool) -> None:
    """How many alerts that were not remembered were new, and whether there were others, which were not."""
    _in_a_row[database.name()] = 0 if others else _in_a_row.get(database.name(), 0) + new


def forget(ids: Iterable[str]) -> None:
    known = _known.get(database.name(), {})
    for id_ in ids:
        known.pop(id_, None)
