"""A watch of the database server: asked once a second on a connection of its own whether it answers.

A server that stands still (a stalled network path, a frozen machine, SIGSTOP) keeps its connections, so that no driver
notices: each statement would wait for as long as it takes. After PATIENCE seconds without an answer the connections of
this process are shut down; statements then raise OperationalError, and `answers` says no until the server is back.

The same question tells what time it is there (`ingest.db.database`).
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

import psycopg2
import psycopg2.extensions as pg
import structlog
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ingest.db import database

EVERY = 1.0
"""Seconds between questions."""
PATIENCE = 5.0
"""Seconds that the server has for an answer."""

log = structlog.get_logger("database")


class ServerWatch(threading.Thread):
    """Start it once in a process. `answers` and `clock.skew` are read from any thread."""

    def __init__(self, every: float = EVERY, patience: float = PATIENCE) -> None:
        super().__init__(name="server watch", daemon=True)
        self.every, self.patience = every, patience
        self.answers = True
        self.first = threading.Event()
        """Set once the server was asked, with success or without."""
        self.stopping = threading.Event()
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        self._own: Any = None
        connection_created.connect(self._note, weak=True)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._ask()
                if not self.answers:
                    log.warning("database answers again")
                self.answers = True
            except TimeoutError:
                self._leave()
                if self.answers:
                    log.error("database does not answer", seconds=self.patience)
                self.answers = False
                self._shut_down()
            except psycopg2.Error:
                # It refuses or has gone, which every statement notices by itself.
                self._leave()
                self.answers = True
            self.first.set()
            self.stopping.wait(self.every)
        self._leave()

    def close(self) -> None:
        """End the thread and its session."""
        self.stopping.set()
        self.join()
        if self in _watches:
            _watches.remove(self)

    def _note(self, connection: BaseDatabaseWrapper, **_: Any) -> None:
        self._connections.add(connection.connection)

    def _ask(self) -> None:
        """Raises TimeoutError, or psycopg2.Error."""
        if self._own is None:
            parameters = connection.get_connection_params()
            wanted = {name: value for name, value in parameters.items() if name not in _NOT_OURS}
            self._own = psycopg2.connect(**wanted, application_name="dossier watch", async_=True)
            self._wait()
        with self._own.cursor() as cursor:
            before = time.time()
            cursor.execute("SELECT clock_timestamp()")
            self._wait()
            database.measured(cursor.fetchone()[0], before, time.time())

    def _wait(self) -> None:
        deadline = time.monotonic() + self.patience
        while (state := self._own.poll()) != pg.POLL_OK:
            left = deadline - time.monotonic()
            reading, writing = [self._own] * (state == pg.POLL_READ), [self._own] * (state == pg.POLL_WRITE)
            # Asked once more when time is up: perhaps it was this process that stood still.
            if not any(select.select(reading, writing, [], max(left, 0.0))) and left <= 0:
                raise TimeoutError

    def _leave(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            with suppress(psycopg2.Error):
                own.close()

    def _shut_down(self) -> None:
        for one in list(self._connections):
            with suppress(psycopg2.Error, OSError):
                if not one.closed:
                    with socket.socket(fileno=os.dup(one.fileno())) as handle:
                        handle.shutdown(socket.SHUT_RDWR)


_NOT_OURS = ("cursor_factory", "client_encoding", "application_name")
_watches: list[ServerWatch] = []
os.register_at_fork(after_in_child=_watches.clear)


def watch() -> ServerWatch:
    """The watch of this process, started now if it was not."""
    if not _watches:
        _watches.append(ServerWatch())
        _watches[0].start()
    return _watches[0]


def answers() -> bool:
    """False while the server is known to stand still; True where nobody watches."""
    return all(one.answers for one in _watches)
