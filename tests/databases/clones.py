"""Databases in which transactions really commit, each used by one test after the other."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import psycopg2
import pytest
from django.db import connection, connections
from psycopg2.extensions import connection as Session
from psycopg2.extensions import cursor as Cursor

from tests.databases.base import DATABASES, SESSIONS
from tests.databases.snapshot import Snapshot

USES: Final = 50
"""Deleted rows stay in the files of a table, and they grow: then it is time for another clone."""


@contextmanager
def transaction(host: str, database: str, session: Session | None = None) -> Iterator[Cursor]:
    """One transaction in the session, or in one of its own."""
    if session is not None:
        with session, session.cursor() as cursor:
            yield cursor
        return
    with (
        closing(psycopg2.connect(host=host, user="dossier", dbname=database)) as own,
        transaction(host, database, own) as cursor,
    ):
        yield cursor


def lead_to(database: str) -> None:
    """Let Django know the database by a name that it never had: caches of this process are kept by name."""
    alias = f"t_{uuid.uuid4().hex[:12]}"
    DATABASES[alias] = database
    connection.settings_dict["NAME"] = alias


class Databases:
    """A clone is a thousand files, and its first session reads the catalogs anew. Both serve many tests, each of which
    knows the database by a name of its own.
    """

    def __init__(self, administrator: Cursor, host: str, template: str) -> None:
        self._administrator, self._host, self._template = administrator, host, template
        self._free: dict[str, int] = {}  # how often each was used
        self._migrated: Snapshot | None = None

    @contextmanager
    def one(self) -> Iterator[str]:
        """A database as the migrations left it, to which Django's connections lead."""
        connections.close_all()
        database, uses = self._free.popitem() if self._free else (self._cloned(), 0)
        name = connection.settings_dict["NAME"]
        lead_to(database)
        connection.connect()
        try:
            yield database
        finally:
            session, connection.connection = connection.connection, None
            connections.close_all()
            connection.settings_dict["NAME"] = name
            if uses < USES and self._is_restored(database, session):
                self._free[database] = uses + 1
            else:
                SESSIONS.pop(database, None)
                self._administrator.execute(f'DROP DATABASE "{database}" WITH (FORCE)')

    def _cloned(self) -> str:
        """A thread that outlives its test connects to the template, which then cannot be cloned: say whose it is."""
        database = f"t_{uuid.uuid4().hex[:12]}"
        if left := self._other_sessions(self._template, patience=5):
            self._administrator.execute("SELECT query FROM pg_stat_activity WHERE pid = ANY(%s)", (left,))
            pytest.fail(f"an earlier test left a thread with a session: {self._administrator.fetchall()}")
        self._administrator.execute(
            f'CREATE DATABASE "{database}" TEMPLATE "{self._template}" STRATEGY file_copy'
        )
        with transaction(self._host, database) as cursor:
            # Sequences do not roll back: tests with `db` leave the template's further on, each time a little.
            cursor.execute("ALTER SEQUENCE incident_number RESTART")
            if self._migrated is None:
                self._migrated = Snapshot(cursor)
            else:
                self._migrated.restore(cursor)
        return database

    def _is_restored(self, database: str, session: Session | None) -> bool:
        """Whether it can be used again. Django's session, if it still answers, is kept for the next test."""
        assert self._migrated is not None, "a database is cloned before it is used"
        kept = 0
        if session is not None and not session.closed and _answers(session):
            SESSIONS[database], kept = session, session.info.backend_pid
        if left := self._other_sessions(database, patience=0.1, but=kept):
            self._administrator.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) pid", (left,))
        with transaction(self._host, database, SESSIONS.get(database)) as cursor:
            return self._migrated.restore(cursor)

    def _other_sessions(self, database: str, *, patience: float, but: int = 0) -> list[int]:
        """The processes of sessions that did not end in time."""
        query = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> %s"
        deadline = time.monotonic() + patience
        while True:
            self._administrator.execute(query, [database, but])
            left = [pid for (pid,) in self._administrator.fetchall()]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.002)


def _answers(session: Session) -> bool:
    """Whether it is as if newly connected: no settings, locks, temporary tables or notifications of its test."""
    try:
        session.rollback()
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute("DISCARD ALL")
        session.autocommit = False
    except (psycopg2.OperationalError, psycopg2.InterfaceError):
        return False
    session.notifies.clear()
    return True
