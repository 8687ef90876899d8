"""Leadership among processes of one kind, of which one works and the others stand by.

The leader holds an advisory lock of a database session (PostgreSQL 18 documentation, 13.3.5), which the server lets go
of when that process ends. One that stands still or is cut off keeps its session: those who stand by end sessions that
show no life (`ingest.log.takeover`). No setting says who leads.
"""

from __future__ import annotations

import threading
import time

import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from ingest.log.takeover import end_forsaken

EVERY = 1.0
"""Seconds between looks; each is a statement in the session that has the lock."""
SURE = 2.5
"""Seconds after which a process that could not look does not count on its lock."""

log = structlog.get_logger("leader")


class Leader(threading.Thread):
    """Takes the lock of `name` as soon as it is free, and keeps it, until `close` is called or the process ends."""

    def __init__(self, name: str, every: float = EVERY) -> None:
        super().__init__(name=f"leader {name}", daemon=True)
        self._role, self._every = name, every
        self._ending = threading.Event()
        self._holds, self._looked = False, float("-inf")

    @property
    def leads(self) -> bool:
        """Whether this process is the one that works now."""
        return self._holds and time.monotonic() - self._looked < SURE

    def run(self) -> None:
        while not self._ending.is_set():
            session = connection.copy()
            try:
                while not self._ending.is_set():
                    self._look(session)
                    self._ending.wait(self._every)
            except (DatabaseError, InterfaceError) as error:
                log.warning("database away", leader=self._role, error=str(error).strip())
            finally:
                self._holds = False
                session.close()
                connection.close()
            self._ending.wait(self._every)

    def close(self) -> None:
        """Let go of the lock."""
        self._ending.set()
        self.join()

    def _look(self, session: BaseDatabaseWrapper) -> None:
        began = time.monotonic()
        with session.cursor() as cursor:
            if self._holds:
                cursor.execute("SELECT 1")  # the lock lives as long as the session
            else:
                cursor.execute(
                    "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (f"lead {self._role}",)
                )
                self._holds = bool(cursor.fetchone()[0])
                if self._holds:
                    log.info("leads", leader=self._role)
        self._looked = began
        if not self._holds:
            end_forsaken()
