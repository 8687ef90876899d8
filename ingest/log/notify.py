"""Tell followers that something was committed. Never inside a transaction: a NOTIFY there takes a lock that
all databases of the cluster share, and holds it while the commit is flushed to disk."""

from __future__ import annotations

import time

from django.db import connection

from ingest.db import database

CHANNEL = "dossier_log"
QUIET = 0.2
"""Seconds between two notifications from one process. A follower that was woken looks again every few
milliseconds for longer than this (`follow.ALERT`), so that what is held back here is seen all the same."""

_last: dict[str, float] = {}  # by database


def notify() -> None:
    """Wake the followers, unless this process just did. Call it after the commit, in autocommit mode."""
    known_as, now = database.name(), time.monotonic()
    if now - _last.get(known_as, 0.0) < QUIET:
        return
    _last[known_as] = now
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")
