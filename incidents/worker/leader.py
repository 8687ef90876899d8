"""Presence of a sending process: a lock that Postgres itself releases when the process ends.

A message belongs to the process that claimed it until its lease ends, or until that process is gone: its session holds
an advisory lock under the process's number, and the server ends the session of a process that was killed within
moments. A session may end without its process, too (the server is started anew, an administrator ends it), so others
wait for GRACE, in which a living process takes its lock again, and one that cannot starts nothing more meanwhile.
Where no session ends, as when a machine loses its network, leases hold as if there were no locks.
"""

from __future__ import annotations

import secrets
import threading
import time

import structlog
from django.db import InterfaceError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

KIND = 0x44534E44
"""The first half of the lock's key; the second is the number of the process."""
EVERY = 0.5
"""Seconds between looks."""
GRACE = 5.0
"""Seconds for which a lock has to be gone before what its process claimed is anybody's."""
SURE = 2.5
"""Seconds after which a process that could not look does not count on its lock."""

log = structlog.get_logger("deliver")

_HELD = (
    "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = {kind} AND objsubid = 2 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND objid = {number}{more})"
)
_STANDS = (
    f"SELECT {_HELD.format(kind=KIND, number='%s', more=' AND pid = pg_backend_pid()')}"
    " AND EXISTS (SELECT FROM worker_process WHERE number = %s)"
)
_GONE = f"SELECT number FROM worker_process WHERE NOT {_HELD.format(kind=KIND, number='number', more='')}"
_BURY = (
    f"WITH gone AS (DELETE FROM worker_process WHERE number = %s"
    f" AND NOT {_HELD.format(kind=KIND, number='number', more='')} RETURNING number)"
    " UPDATE notifications_notificationdelivery SET lease_until = NULL, holder = NULL FROM gone"
    " WHERE holder = gone.number AND state = 'waiting' AND lease_until IS NOT NULL"
)


class Presence:
    """Runs in a thread of its own until `stop` is set."""

    def __init__(self) -> None:
        self._number = 0
        self._looked = float("-inf")
        self._gone_since: dict[int, float] = {}

    @property
    def number(self) -> int | None:
        """Number to claim under now; None where nothing is known of the lock, so that leases alone hold."""
        return self._number if self._number and time.monotonic() - self._looked < SURE else None

    def holds(self, number: int | None, seconds: float) -> bool:
        """Whether what was claimed under a number is still this process's; waits so long to be sure of it."""
        deadline = time.monotonic() + seconds
        while number is not None and number != self.number:
            # The number changes only when others have taken over what was claimed under the old one.
            if number != self._number or time.monotonic() > deadline:
                return False
            time.sleep(EVERY / 5)
        return True

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            session = connection.copy()
            try:
                while not stop.is_set():
                    self.look(session)
                    stop.wait(EVERY)
            except (OperationalError, InterfaceError) as error:
                log.warning("database away", presence=self._number, error=str(error).strip())
                stop.wait(EVERY)
            finally:
                session.close()

    def look(self, session: BaseDatabaseWrapper) -> None:
        """Keep the lock, or take it again, and take over from processes that are gone."""
        began = time.monotonic()
        with session.cursor() as cursor:
            cursor.execute(_STANDS, (self._number, self._number))
            if cursor.fetchone()[0] or self._enter(cursor):
                self._looked = began
            cursor.execute(_GONE)
            gone = {number for (number,) in cursor.fetchall()}
            self._gone_since = {number: self._gone_since.get(number, began) for number in gone}
            for number, since in self._gone_since.items():
                if began - since >= GRACE:
                    cursor.execute(_BURY, (number,))
                    log.warning("took over from a stopped process", process=number, steps=cursor.rowcount)

    def _enter(self, cursor: CursorWrapper) -> bool:
        """Take the lock: under the number that it had, unless others gave that up because they saw no lock for too
        long. Not while a session that is lost still has it."""
        cursor.execute("SELECT EXISTS (SELECT FROM worker_process WHERE number = %s)", (self._number,))
        number = self._number if cursor.fetchone()[0] else secrets.randbelow(2**31 - 1) + 1
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", (KIND, number))
        if not cursor.fetchone()[0]:
            return False
        cursor.execute("INSERT INTO worker_process (number) VALUES (%s) ON CONFLICT DO NOTHING", (number,))
        self._number = number
        return True
