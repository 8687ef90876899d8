"""A server that stands still, and a process that is cut off from it: nobody waits for either."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.db import InterfaceError, OperationalError, connection, connections
from pytest_django import Settings

from deploy.postgres import base
from deploy.supervisor.programs import programs
from ingest.db import database, server_watch
from ingest.db.server_watch import ServerWatch
from ingest.log import append, takeover
from ingest.log.leader import Leader
from ingest.log.read import Follower, run_followers
from ingest.log.types import Context, Event, Head, NewEvent

PATIENCE = 1.0


class Stallable:
    """A Unix socket in front of the server's that can be stalled: it takes bytes and passes none on."""

    def __init__(self, directory: Path, goal: str) -> None:
        self.goal, self.flows, self.ends = goal, threading.Event(), list[socket.socket]()
        self.flows.set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(directory / ".s.PGSQL.5432"))
        self.listener.listen(20)
        self.accepting = threading.Thread(target=self._accept, daemon=True)
        self.accepting.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                self.ends += (near, far)
                far.connect(self.goal)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def close(self) -> None:
        self.flows.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepting.join()
        for one in self.ends:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.listener.close()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.flows.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def path(log_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stallable]:
    del log_database
    connection.close()
    known = connections.settings["default"]
    made = Stallable(tmp_path, f"{known['HOST']}/.s.PGSQL.5432")
    monkeypatch.setitem(known, "HOST", str(tmp_path))
    monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
    yield made
    made.flows.set()
    connection.close()
    made.close()


@pytest.fixture
def watched(path: Stallable) -> Iterator[ServerWatch]:
    del path
    watch = ServerWatch(every=0.05, patience=PATIENCE)
    server_watch._watches.append(watch)
    watch.start()
    assert watch.first.wait(10)
    yield watch
    watch.close()
    database._measured.clear()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_statement_does_not_wait_for_a_server_that_stands_still(
    path: Stallable, watched: ServerWatch
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        path.flows.clear()
        with pytest.raises((OperationalError, InterfaceError)):
            cursor.execute("SELECT 2")
    assert not watched.answers
    connection.close()
    with pytest.raises(OperationalError, match="does not answer"):
        connection.ensure_connection()
    path.flows.set()
    wait_for(lambda: watched.answers)
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 3")


def test_the_watch_reads_the_clock_of_the_server(watched: ServerWatch) -> None:
    del watched
    assert database.skew() is not None
    assert not database.is_wrong()


@pytest.mark.parametrize("process", sorted(base.LIMITS))
def test_sessions_have_the_limits_of_their_process(
    log_database: str, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    del log_database
    monkeypatch.setenv(base.VARIABLE, process)
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('application_name'), current_setting('statement_timeout'),"
            " current_setting('lock_timeout')"
        )
        name, *limits = cursor.fetchone()
    connection.close()
    assert (name, tuple(limits)) == (f"dossier {process}", base.LIMITS[process])


def test_every_process_of_a_node_has_limits(settings: Settings) -> None:
    settings.INBOUND_EMAIL_PORT, settings.OTLP_GRPC_PORT = 2525, 4317
    assert {program.kind for program in programs()} == set(base.LIMITS)


Session = Callable[..., Any]


@pytest.fixture
def session(log_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Opens sessions in the middle of a transaction whose process says nothing more."""
    del log_database
    monkeypatch.setattr(takeover, "PATIENCE", 0.2)
    opened = list[Any]()

    def begin(name: str, statement: str) -> Any:
        parameters = connection.get_connection_params()
        wanted = {key: parameters[key] for key in ("dbname", "user", "host") if key in parameters}
        one = psycopg2.connect(**wanted, application_name=name)
        opened.append(one)
        one.cursor().execute(statement)
        return one

    yield begin
    for one in opened:
        one.close()


LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('follower test', 0))"
WRITE = "SELECT pg_current_xact_id()"


@pytest.mark.parametrize("statement", [LOCK, WRITE])
def test_the_transaction_of_a_process_that_was_cut_off_is_ended(session: Session, statement: str) -> None:
    session("dossier followers", statement)
    wait_for(lambda: takeover.end_forsaken() == 1)


@pytest.mark.parametrize(("name", "statement"), [("psql", WRITE), ("dossier web", "SELECT 1")])
def test_other_transactions_are_left_alone(session: Session, name: str, statement: str) -> None:
    one = session(name, statement)
    time.sleep(0.3)
    assert takeover.end_forsaken() == 0
    one.cursor().execute("SELECT 1")


class Reader:
    """The client of a COPY: takes rows at leisure until it stands still."""

    def __init__(self) -> None:
        self.taken, self.stands, self.goes_on = 0, threading.Event(), threading.Event()

    def write(self, row: bytes) -> int:
        self.taken += 1
        if self.stands.is_set():
            self.goes_on.wait()
        time.sleep(0.01)
        return len(row)


def test_a_copy_is_ended_when_its_client_stands_still_and_not_while_it_takes_rows(session: Session) -> None:
    one, reader = session("dossier worker", LOCK), Reader()
    rows = "COPY (SELECT repeat('x', 100000) FROM generate_series(1, 2000)) TO STDOUT"

    def read() -> None:
        with suppress(psycopg2.Error):
            one.cursor().copy_expert(rows, reader)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        while reader.taken < 100:
            assert takeover.end_forsaken() == 0
        reader.stands.set()
        wait_for(lambda: takeover.end_forsaken() == 1)
    finally:
        reader.stands.clear()
        reader.goes_on.set()
        reading.join()


HOLD = "SELECT pg_try_advisory_lock(hashtextextended('lead test', 0))"


def test_another_process_leads_when_the_leader_stands_still(session: Session) -> None:
    frozen, worker = session("dossier scheduler", "SELECT 1"), session("dossier worker", "SELECT 1")
    for one, lock in ((frozen, HOLD), (worker, HOLD.replace("test", "other"))):
        one.rollback()
        one.autocommit = True
        one.cursor().execute(lock)
    first, second = Leader("test", 0.05), Leader("test", 0.05)
    first.start()
    try:
        wait_for(lambda: first.leads)
        worker.cursor().execute("SELECT 1")  # silent, too, as workers are
        second.start()
        time.sleep(0.3)
        assert first.leads
        assert not second.leads
        first.close()
        wait_for(lambda: second.leads)
        assert not first.leads
    finally:
        for leader in (first, second):
            if leader.is_alive():
                leader.close()


def test_another_follower_takes_over_from_one_that_was_cut_off(session: Session) -> None:
    seen, stop = list[Event](), threading.Event()
    follower = Follower("test", frozenset({"log.sealed"}), seen.extend)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO log_follower (name) VALUES ('test')")
    before = moved_at()
    session("dossier followers", f"{WRITE}; {LOCK}")
    other = threading.Thread(target=run_followers, args=(stop, [follower]), kwargs={"poll": 0.05})
    other.start()
    body = {"from": "0", "upto": "0", "events": 0, "root": "", "heads": {}, "previous": None}
    append.append(
        "test/1", [NewEvent("log.sealed", body, datetime.now(UTC))], Head.NEW, Context("system:test")
    )
    try:
        wait_for(lambda: len(seen) == 1)
    finally:
        stop.set()
        other.join(10)
    assert moved_at() > before


def moved_at() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT moved_at FROM log_follower WHERE name = 'test'")
        return cursor.fetchone()[0]
