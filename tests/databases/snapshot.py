"""Content of a database, read at one time and put back later."""

from __future__ import annotations

from io import BytesIO
from typing import Any, LiteralString

from psycopg2.extensions import cursor as Cursor
from psycopg2.sql import SQL, Composable, Identifier, Literal

_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"

_WRITTEN = f"{_TABLES} AND relkind = 'r' AND pg_relation_size(oid) > 0"

_SEQUENCES = "SELECT sequencename, last_value, start_value FROM pg_sequences WHERE schemaname = 'public'"

_SCHEMA = """
SELECT relname, relkind::text, relnatts::text, relchecks::text FROM pg_class
 WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT proname, prosrc, '', '' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT tgrelid::regclass::text, tgname, tgenabled::text, '' FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'settings', setconfig::text, '', '' FROM pg_db_role_setting
 WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

_ALWAYS = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgenabled = 'A' AND NOT tgisinternal"


class Snapshot:
    """Rows, sequences and schema of a database that is about to be used."""

    def __init__(self, session: Cursor) -> None:
        rows = {name: _rows(session, name) for (name,) in _all(session, _WRITTEN)}
        self._rows = {name: those for name, those in rows.items() if those}
        self._tables, self._sequences = (
            {name for (name,) in _all(session, _TABLES)},
            _all(session, _SEQUENCES),
        )
        self._schema = _all(session, _SCHEMA)

    def restore_rows(self, session: Cursor) -> None:
        """In one transaction, so that servers beside it see neither half of it nor a log that can be changed."""
        # As a replica: without foreign keys and triggers, but for those that fire always.
        session.execute("SET LOCAL session_replication_role = replica")
        written = {name for (name,) in _all(session, _WRITTEN)}
        changed = {name for name, rows in self._rows.items() if _rows(session, name) != rows}
        _empty(session, (written - self._rows.keys()) | changed)
        for name in changed:
            into = SQL("COPY {} FROM STDIN").format(Identifier(name))
            session.copy_expert(into, BytesIO(b"".join(self._rows[name])))

    def restore(self, session: Cursor) -> bool:
        """Rows, sequences, and no table more. Whether the schema is as it was; otherwise the rows are left, too."""
        if made := {name for (name,) in _all(session, _TABLES)} - self._tables:
            tables = SQL(", ").join(map(Identifier, sorted(made)))
            session.execute(SQL("DROP TABLE IF EXISTS {} CASCADE").format(tables))
        if _all(session, _SCHEMA) != self._schema:
            return False
        self.restore_rows(session)
        self._restore_sequences(session)
        return True

    def _restore_sequences(self, session: Cursor) -> None:
        moved = {name for name, _, _ in _all(session, _SEQUENCES) - self._sequences}
        back = [
            SQL("setval({}, {}, {})").format(
                Literal(name), Literal(start if last is None else last), Literal(last is not None)
            )
            for name, last, start in self._sequences
            if name in moved
        ]
        if back:
            session.execute(SQL("SELECT ") + SQL(", ").join(back))


def _empty(session: Cursor, tables: set[str]) -> None:
    always = [(table, name) for table, name in _all(session, _ALWAYS) if table in tables]
    statements: list[Composable] = [
        *(_alter(table, "DISABLE TRIGGER {}", name) for table, name in always),
        *(SQL("DELETE FROM {}").format(Identifier(table)) for table in sorted(tables)),
        *(_alter(table, "ENABLE ALWAYS TRIGGER {}", name) for table, name in always),
    ]
    if statements:
        session.execute(SQL("; ").join(statements))


def _alter(table: str, what: LiteralString, trigger: str) -> Composable:
    return SQL("ALTER TABLE {} " + what).format(Identifier(table), Identifier(trigger))


def _all(session: Cursor, query: str) -> set[Any]:
    session.execute(query)
    return set(session.fetchall())


def _rows(session: Cursor, table: str) -> list[bytes]:
    found = BytesIO()
    session.copy_expert(SQL("COPY {} TO STDOUT").format(Identifier(table)), found)
    return sorted(found.getvalue().splitlines(keepends=True))
