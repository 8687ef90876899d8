"""Content of a database from one test to the next: what one wrote is gone when the other begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import connection, connections
from pytest_django import DjangoDbBlocker

from incidents import commands
from incidents.commands import Report
from incidents.teams.models import Team
from ingest.queries import Context
from tests.databases.clones import Databases

SENDER = Context("key:monitoring")


@pytest.fixture
def databases(new_databases: Callable[[], Databases]) -> Databases:
    """Databases of one test: those of the worker are replaced after so many uses, which may be in its middle."""
    return new_databases()


@pytest.fixture(autouse=True)
def unblocked(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


def contents() -> dict[str, object]:
    """By table: its rows; beside them how far the sequences are, and what the session was told."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        found: dict[str, object] = {}
        for (name,) in cursor.fetchall():
            cursor.execute(f'SELECT t::text FROM "{name}" t ORDER BY 1')
            found[name] = cursor.fetchall()
        cursor.execute("SELECT sequencename, last_value FROM pg_sequences")
        found["sequences"] = set(cursor.fetchall())
        cursor.execute("SELECT current_setting('work_mem')")
        return found | {"session": cursor.fetchone()}


def make_a_mess() -> None:
    commands.open_incident(Report("Rack 12 loses packets"), SENDER)
    Team.objects.update(name="Another name")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE one_more (value int)")
        cursor.execute("SET work_mem = '1MB'")
        cursor.execute("SELECT pg_advisory_lock(1)")


def test_rows_tables_sequences_and_settings_are_as_migrated(databases: Databases) -> None:
    with databases.one() as first:
        before = contents()
        make_a_mess()
        assert contents() != before
    with databases.one() as second:
        assert contents() == before
        assert second == first, "it was cloned again"


def test_a_session_that_a_test_leaves_is_ended_and_its_locks_are_free(databases: Databases) -> None:
    left, over = threading.Event(), threading.Event()

    def hold() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(2)")
            left.set()
            over.wait()
        connections.close_all()

    with databases.one():
        thread = threading.Thread(target=hold)
        thread.start()
        left.wait()
    with databases.one(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(2)")
        assert cursor.fetchone() == (True,)
    over.set()
    thread.join()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE teams_team ADD extra int",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$",
        "ALTER TABLE log_event DISABLE TRIGGER log_event_append_only",
        "CREATE OR REPLACE FUNCTION log_refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    ],
)
def test_a_database_whose_schema_a_test_changed_is_not_used_again(databases: Databases, change: str) -> None:
    with databases.one() as first:
        before = contents()
        with connection.cursor() as cursor:
            cursor.execute(change)
    with databases.one() as second:
        assert second != first
        assert contents() == before


def test_a_database_whose_sessions_a_test_ended_is_used_again(databases: Databases) -> None:
    with databases.one() as first:
        pid = connection.connection.info.backend_pid
        databases._administrator.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with databases.one() as second:
        assert second == first
        assert Team.objects.exists()
