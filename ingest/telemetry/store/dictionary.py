"""Texts and component sets as numbers. Numbers are given once and never change, so every process may remember
them.

New ones are inserted in sorted order, each statement a transaction of its own, before the transaction that
stores the rows: two bodies with the same new names wait for each other briefly and never in a circle. Names
that a refused body brought stay; they harm nobody.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from ingest.db import database
from ingest.telemetry.decode.builder import NONE_KNOWN, KnownTexts
from ingest.telemetry.decode.columns import Names, Sets

MOST_REMEMBERED = 2_000_000
"""Entries in a process's memory of texts (of sets: the same), about 200 MB; full, it is emptied."""
BATCH = 10_000

_FIND_NAMES = "SELECT name, id FROM telemetry_name WHERE name = ANY(%s)"
_ADD_NAMES = """
INSERT INTO telemetry_name (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING RETURNING name, id
"""
_FIND_SETS = "SELECT digest, id FROM telemetry_set WHERE digest = ANY(%s)"
_ADD_SETS = """
INSERT INTO telemetry_set (digest, members)
SELECT new.digest, new.members::integer[] FROM unnest(%s::bytea[], %s::text[]) AS new (digest, members)
ON CONFLICT DO NOTHING RETURNING digest, id
"""
Numbers = NDArray[np.int32]

_texts: dict[str, dict[str, dict[str, int]]] = {}  # by database, then by type of field, then by text
_sets: dict[str, dict[bytes, int]] = {}  # by database, then by the members' ids as bytes


def known_texts() -> KnownTexts:
    """By type what this process remembers: texts that were good in a field of that type, and their numbers.

    Inside a transaction, which may yet be undone, it remembers nothing.
    """
    return NONE_KNOWN if connection.in_atomic_block else _texts.get(database.name(), NONE_KNOWN)


def _memory_of_texts(type_: str) -> dict[str, int]:
    if connection.in_atomic_block:
        return {}
    memories = _texts.setdefault(database.name(), {})
    if sum(map(len, memories.values())) > MOST_REMEMBERED:
        memories = _texts[database.name()] = {}
    return memories.setdefault(type_, {})


def _memory_of_sets() -> dict[bytes, int]:
    if connection.in_atomic_block:
        return {}
    memory = _sets.setdefault(database.name(), {})
    if len(memory) > MOST_REMEMBERED:
        memory = _sets[database.name()] = {}
    return memory


def _text_ids(texts: Sequence[str], type_: str) -> Numbers:
    """The numbers of texts that are good in a field of a type, given to those that have none yet; shape (texts,)."""
    memory = _memory_of_texts(type_)
    try:
        return np.fromiter(map(memory.__getitem__, texts), np.int32, len(texts))
    except KeyError:
        _learn_texts(memory, [text for text in texts if text not in memory])
    return np.fromiter(map(memory.__getitem__, texts), np.int32, len(texts))


def _learn_texts(memory: dict[str, int], unknown: Iterable[str]) -> None:
    ordered = sorted(set(unknown))
    with connection.cursor() as cursor:
        for start in range(0, len(ordered), BATCH):
            wanted = ordered[start : start + BATCH]
            cursor.execute(_FIND_NAMES, (wanted,))
            memory.update(cursor.fetchall())
            # Looked for first: a conflict burns a number, and there are only two thousand million.
            if new := [name for name in wanted if name not in memory]:
                cursor.execute(_ADD_NAMES, (new,))
                memory.update(cursor.fetchall())
            if overtaken := [name for name in new if name not in memory]:
                cursor.execute(_FIND_NAMES, (overtaken,))
                memory.update(cursor.fetchall())


def text_column(column: Names, type_: str) -> Numbers:
    """The numbers of a column of texts, shape (rows,), all of them good in a field of that type."""
    return _text_ids(column.names, type_)[column.codes]


def set_column(column: Sets) -> Numbers:
    """The numbers of a column of component sets, shape (rows,)."""
    ids = _text_ids(column.names, "component")[column.indices]
    bounds = column.indptr.tolist()
    keys = [np.sort(ids[a:b]).tobytes() for a, b in itertools.pairwise(bounds)]
    memory = _memory_of_sets()
    if unknown := [key for key in keys if key not in memory]:
        _learn_sets(memory, unknown)
    return np.fromiter(map(memory.__getitem__, keys), np.int32, len(keys))[column.codes]


def _learn_sets(memory: dict[bytes, int], unknown: Iterable[bytes]) -> None:
    digests = {hashlib.sha256(key).digest()[:16]: key for key in unknown}
    ordered = sorted(digests)
    found: dict[bytes, int] = {}
    with connection.cursor() as cursor:
        for start in range(0, len(ordered), BATCH):
            wanted = ordered[start : start + BATCH]
            cursor.execute(_FIND_SETS, (wanted,))
            found.update((bytes(digest), number) for digest, number in cursor.fetchall())
            if new := [digest for digest in wanted if digest not in found]:
                cursor.execute(_ADD_SETS, (new, [_array(digests[digest]) for digest in new]))
                found.update((bytes(digest), number) for digest, number in cursor.fetchall())
            if overtaken := [digest for digest in new if digest not in found]:
                cursor.execute(_FIND_SETS, (overtaken,))
                found.update((bytes(digest), number) for digest, number in cursor.fetchall())
    memory.update((digests[digest], number) for digest, number in found.items())


def _array(key: bytes) -> str:
    return "{" + ",".join(map(str, np.frombuffer(key, np.int32).tolist())) + "}"
