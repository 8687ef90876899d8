"""Alerts of `POST /api/v2/alerts` that were read a moment ago, known again by their bytes. Pure but for that memory.

A Prometheus sends every alert that fires once a minute, byte for byte as before but for `endsAt`. What is remembered is
what the same bytes gave when they were read in full, so nothing is taken here that would not be taken there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from ingest.integrations.normalized import MOST_ALERTS, Alert, instant

MOST = 100_000
"""Alerts that a process remembers, at about half a KiB each. When it is full it is emptied: of more alerts than that,
sent in turn, the one that was met last is as far from coming back as any other."""
LONGEST = 2_000
"""Bytes of the longest alert that is remembered."""

_ABSENT = msgspec.Raw()


class _Item(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    labels: msgspec.Raw
    annotations: msgspec.Raw = _ABSENT
    startsAt: msgspec.Raw = _ABSENT
    generatorURL: msgspec.Raw = _ABSENT
    endsAt: msgspec.Raw = _ABSENT


_items = msgspec.json.Decoder(list[_Item]).decode
_texts = msgspec.json.Decoder(dict[str, str]).decode
_text = msgspec.json.Decoder(str).decode
# Packed: as objects they would take three times the room, and the garbage collector a walk through all of them.
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Alert).decode
_known: dict[bytes, bytes] = {}  # by the digest of what was sent, because that is as long as the alert


def remembered(
    body: bytes, read: Callable[[Mapping[str, Any]], Alert]
) -> list[tuple[Alert, datetime | None]] | None:
    """The alerts of a body, each with its end; `read` makes one of what `endsAt` has no part in.

    None where the body holds anything but what Prometheus writes, or `read` raises ValueError: the body is to be read
    in full, for what is wrong with it.
    """
    try:
        items = _items(body)
        return None if len(items) > MOST_ALERTS else [(_alert(i, read), _end(bytes(i.endsAt))) for i in items]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def _alert(item: _Item, read: Callable[[Mapping[str, Any]], Alert]) -> Alert:
    # NUL stands in no JSON, so the parts do not run into each other.
    told = b"\0".join((item.labels, item.annotations, item.startsAt, item.generatorURL))
    digest = blake2b(told, digest_size=16).digest()
    known = _known.get(digest)
    if known is not None:
        return _unpack(known)
    alert = read(
        {
            "labels": _texts(item.labels),
            "annotations": _texts(item.annotations) if item.annotations is not _ABSENT else None,
            "startsAt": _text(item.startsAt) if item.startsAt is not _ABSENT else None,
            "generatorURL": _text(item.generatorURL) if item.generatorURL is not _ABSENT else None,
        }
    )
    if len(told) <= LONGEST:
        if len(_known) >= MOST:
            _known.clear()
        _known[digest] = _pack(alert)
    return alert


@lru_cache(maxsize=1_000)
def _end(raw: bytes) -> datetime | None:
    """Alerts that are sent together mostly end together."""
    return instant(_text(raw)) if raw else None
