"""`manage.py migrate` as Django has it, one at a time on a database: two that begin on an empty one would race."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.utils import CursorWrapper

from deploy.observability.health import foreign_database

LOCK = "SELECT pg_try_advisory_lock(hashtextextended('dossier migrate', 0))"
PAUSE = 0.2  # seconds between tries; a statement that waited would hold back CREATE INDEX CONCURRENTLY


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> Any:
        with alone(options["database"]):
            if reason := foreign_database():
                raise CommandError(reason)
            return super().handle(*args, **options)


def _taken(cursor: CursorWrapper) -> bool:
    cursor.execute(LOCK)
    return bool(cursor.fetchone()[0])


@contextmanager
def alone(alias: str) -> Iterator[None]:
    """Hold the lock of migrations on a connection of its own; it ends with that connection, however it ends."""
    own = connections[alias].copy()
    try:
        with own.cursor() as cursor:
            while not _taken(cursor):
                time.sleep(PAUSE)
            yield
    finally:
        own.close()
