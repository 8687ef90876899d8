"""Reads that see the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_snapshot() -> Iterator[None]:
    """All reads inside see the same rows, unless a transaction is open already; rows that move into files meanwhile are
    seen once.

    A lock needs no snapshot: when the first read takes one, no partition can leave its table any more.
    """
    nested = connection.in_atomic_block
    with transaction.atomic():
        with connection.cursor() as cursor:
            if not nested:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("LOCK TABLE telemetry_cold IN ACCESS SHARE MODE")
        yield
