"""Content of a database, read at one time and put back later, beside the servers that go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from typing import LiteralString

import psycopg2
from psycopg2.extensions import cursor as Cursor
from psycopg2.sql import SQL, Identifier, Literal

_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    " AND NOT relispartition ORDER BY 1"
)

_ALWAYS = (
    "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND tgenabled = 'A' AND NOT tgisinternal"
)


class Snapshot:
    """Rows of all tables. Sequences are left alone: no number is given twice, so that caches of servers stay right."""

    def __init__(self, host: str, database: str) -> None:
        self._host, self._database = host, database
        with self._transaction() as session:
            self._rows = {table: _read(session, table) for table in _with_rows(session)}

    def restore(self) -> None:
        """In one transaction, so that the servers see neither half of it nor a log that can be changed."""
        with self._transaction() as session:
            # As a replica: without foreign keys and triggers, but for those that fire always.
            session.execute("SET LOCAL session_replication_role = replica")
            for table in _with_rows(session):
                if table not in self._rows or _read(session, table) != self._rows[table]:
                    _delete(session, table)
            for table in self._rows.keys() - _with_rows(session):
                into = SQL("COPY {} FROM STDIN").format(Identifier(table))
                session.copy_expert(into, BytesIO(self._rows[table]))

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        """A session for each use: a test may end all sessions of its database."""
        connected = psycopg2.connect(host=self._host, user="dossier", dbname=self._database)
        with closing(connected) as session, session, session.cursor() as cursor:
            yield cursor


def _delete(session: Cursor, table: str) -> None:
    session.execute(_ALWAYS, (table,))
    triggers = [name for (name,) in session.fetchall()]
    for trigger in triggers:
        _alter(session, table, "DISABLE TRIGGER {}", trigger)
    session.execute(SQL("DELETE FROM {}").format(Identifier(table)))
    for trigger in triggers:
        _alter(session, table, "ENABLE ALWAYS TRIGGER {}", trigger)


def _alter(session: Cursor, table: str, what: LiteralString, trigger: str) -> None:
    statement = SQL("ALTER TABLE {} " + what)
    session.execute(statement.format(Identifier(table), Identifier(trigger)))


def _with_rows(session: Cursor) -> set[str]:
    session.execute(_TABLES)
    tables = [name for (name,) in session.fetchall()]
    each = SQL("SELECT {} WHERE EXISTS (SELECT FROM {})")
    session.execute(SQL(" UNION ALL ").join(each.format(Literal(one), Identifier(one)) for one in tables))
    return {name for (name,) in session.fetchall()}


def _read(session: Cursor, table: str) -> bytes:
    found = BytesIO()
    rows = SQL("COPY (SELECT * FROM {}) TO STDOUT").format(Identifier(table))
    session.copy_expert(rows, found)
    return found.getvalue()
