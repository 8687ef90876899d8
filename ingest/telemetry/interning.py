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
from typing import TypeVar

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from ingest.log import database
from ingest.telemetry.columns import Names, Sets

MOST_REMEMBERED = 2_000_000
"""Entries in a process's memory of names (of sets: the same), about 200 MB; full, it is emptied."""
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
K = TypeVar("K", str, bytes)

_names: dict[str, dict[str, int]] = {}  # by database, then by name
_sets: dict[str, dict[bytes, int]] = {}  # by database, then by the members' ids as bytes


def _memory(memories: dict[str, dict[K, int]]) -> dict[K, int]:
    """What this process remembers of its database; inside a transaction, which may yet be undone, nothing."""
    if connection.in_atomic_block:
        return {}
    known_as = database.name()
    memory = memories.setdefault(known_as, {})
    if len(memory) > MOST_REMEMBERED:
        memory = memories[known_as] = {}
    return memory


def name_ids(names: Sequence[str]) -> Numbers:
    """The numbers of names, given to those that have none yet; shape (names,)."""
    memory = _memory(_names)
    try:
        return np.fromiter(map(memory.__getitem__, names), np.int32, len(names))
    except KeyError:
        _learn_names(memory, [name for name in names if name not in memory])
    return np.fromiter(map(memory.__getitem__, names), np.int32, len(names))


def _learn_names(memory: dict[str, int], unknown: Iterable[str]) -> None:
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


def name_column(column: Names) -> Numbers:
    """The numbers of a column of texts, shape (rows,)."""
    return name_ids(column.names)[column.codes]


def set_column(column: Sets) -> Numbers:
    """The numbers of a column of component sets, shape (rows,)."""
    ids = name_ids(column.names)[column.indices]
    bounds = column.indptr.tolist()
    keys = [np.sort(ids[a:b]).tobytes() for a, b in itertools.pairwise(bounds)]
    memory = _memory(_sets)
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
