"""Session locks of processes that were killed."""

from __future__ import annotations

import time

from ingest.db.database import alone

PATIENCE = 20.0  # seconds


def until_free(name: str) -> None:
    """Postgres notices the death of a process, and lets go of its locks, a moment later."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with alone(name) as is_free:
            if is_free:
                return
        assert time.monotonic() < deadline, f"the lock {name} is held"
        time.sleep(0.02)
