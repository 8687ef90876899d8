"""Content of a database, read at one time and put back later, beside the servers that go on."""

from __future__ import annotations

from io import BytesIO
from typing import LiteralString

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

    def __init__(self, session: Cursor) -> None:
        self._session = session
        self._rows = {table: self._read(table) for table in self._with_rows()}

    def restore(self) -> None:
        """In one transaction, so that the servers see neither half of it nor a log that can be changed."""
        self._session.execute("BEGIN")
        # As a replica: without foreign keys and triggers, but for those that fire always.
        self._session.execute("SET LOCAL session_replication_role = replica")
        for table in self._with_rows():
            if table not in self._rows or self._read(table) != self._rows[table]:
                self._delete(table)
        for table in self._rows.keys() - self._with_rows():
            into = SQL("COPY {} FROM STDIN").format(Identifier(table))
            self._session.copy_expert(into, BytesIO(self._rows[table]))
        self._session.execute("COMMIT")

    def _delete(self, table: str) -> None:
        self._session.execute(_ALWAYS, (table,))
        triggers = [name for (name,) in self._session.fetchall()]
        for trigger in triggers:
            self._alter(table, "DISABLE TRIGGER {}", trigger)
        self._session.execute(SQL("DELETE FROM {}").format(Identifier(table)))
        for trigger in triggers:
            self._alter(table, "ENABLE ALWAYS TRIGGER {}", trigger)

    def _alter(self, table: str, what: LiteralString, trigger: str) -> None:
        statement = SQL("ALTER TABLE {} " + what)
        self._session.execute(statement.format(Identifier(table), Identifier(trigger)))

    def _with_rows(self) -> set[str]:
        self._session.execute(_TABLES)
        tables = [name for (name,) in self._session.fetchall()]
        each = SQL("SELECT {} WHERE EXISTS (SELECT FROM {})")
        query = SQL(" UNION ALL ").join(each.format(Literal(one), Identifier(one)) for one in tables)
        self._session.execute(query)
        return {name for (name,) in self._session.fetchall()}

    def _read(self, table: str) -> bytes:
        found = BytesIO()
        rows = SQL("COPY (SELECT * FROM {}) TO STDOUT").format(Identifier(table))
        self._session.copy_expert(rows, found)
        return found.getvalue()
