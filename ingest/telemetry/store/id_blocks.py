"""Numbers for receipts, drawn by the thousand: one journey to the database less for every body."""

from __future__ import annotations

import os
import threading

from django.db import connection

from ingest.db import database

BLOCK = 1000

_lock = threading.Lock()
_drawn: dict[str, range] = {}  # by database: what is left of the block
os.register_at_fork(after_in_child=_drawn.clear)


def draw(count: int) -> list[int]:
    """Numbers that nobody else has. They are unique, not in order of time; those of a process that ends are lost."""
    numbers: list[int] = []
    known_as = database.name()
    with _lock:
        while len(numbers) < count:
            left = _drawn.get(known_as) or _block()
            wanted = count - len(numbers)
            numbers += left[:wanted]
            _drawn[known_as] = left[wanted:]
    return numbers


def _block() -> range:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('telemetry_receipt_number')")
        (number,) = cursor.fetchone()
    return range(number * BLOCK, (number + 1) * BLOCK)
