"""Followers on a database in which transactions really commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg2
import pytest
from django.db import connection, transaction

from ingest.log import append, read, types
from ingest.log.read import Follower, run_once
from ingest.log.types import Context, Event, EventType, NewEvent, Position, register

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ALICE = Context("user:alice")


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch, log_database: str) -> str:
    monkeypatch.setattr(types, "_types", dict(types._types))
    for name in ("test.said", "test.sung"):
        register(EventType(name))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE heard (id bigint GENERATED ALWAYS AS IDENTITY, word text)")
    return log_database


def say(*words: Any, stream: str = "talk/1", name: str = "test.said") -> list[Event]:
    return append.append(
        stream, [NewEvent(name, {"word": word}, NOON) for word in words], read.head(stream), ALICE
    )


def write_down(events: list[Event]) -> None:
    with connection.cursor() as cursor:
        for event in events:
            cursor.execute("INSERT INTO heard (word) VALUES (%s)", (event.body["word"],))
            if event.body["word"] == "poison":
                raise ValueError("cannot swallow this")


def heard() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word FROM heard ORDER BY id")
        return [word for (word,) in cursor.fetchall()]


SCRIBE = Follower("scribe", frozenset({"test.said"}), write_down)


def settle(follower: Follower = SCRIBE, limit: int = 500) -> None:
    while run_once(follower, limit):
        pass


def place(name: str = "scribe") -> read.Place:
    return next(place for place in read.places() if place.name == name)


def due_now() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE log_follower SET retry_at = now()")


@contextmanager
def elsewhere(url: str) -> Iterator[Any]:
    """A cursor on a second connection, in a transaction that the test ends."""
    other = psycopg2.connect(url)
    try:
        yield other
    finally:
        other.rollback()  # waits for the server, which closing does not
        other.close()


def eventually(true: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.01)
    return False


def test_a_follower_gets_every_event_once_and_in_order() -> None:
    say(*"abcdefg")
    settle(limit=3)
    assert heard() == list("abcdefg")


def test_a_follower_goes_on_where_it_stopped() -> None:
    say("a", "b")
    settle()
    say("c")
    settle()
    assert heard() == ["a", "b", "c"]


def in_batches(monkeypatch: pytest.MonkeyPatch, handled: Callable[[list[Event]], None]) -> Follower:
    """Handles songs together, six at a time, and words one by one, two at a time."""
    monkeypatch.setattr(read, "BATCH", 2)
    monkeypatch.setattr(read, "MOST_TOGETHER", 6)
    return Follower("scribe", frozenset({"test.said", "test.sung"}), handled, frozenset({"test.sung"}))


def test_a_batch_is_larger_where_events_are_handled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[str] = []
    follower = in_batches(monkeypatch, lambda events: batches.append("".join(e.body["word"] for e in events)))
    say(*"aaaaaaaa", name="test.sung")
    say("b")
    say("c", name="test.sung")
    say("d", "e", "f", "g")
    say(*"hi", name="test.sung")
    while run_once(follower):
        pass
    assert batches == ["aaaaaa", "aabcd", "ef", "ghi"]


def test_a_large_batch_that_fails_is_cut_until_the_culprit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = in_batches(monkeypatch, write_down)
    say("a", "b", "c", "poison", "d", name="test.sung")
    while run_once(follower):
        pass
    assert heard() == ["a", "b", "c"]
    assert "talk/1@4" in str(place().error)


def test_a_follower_sees_only_the_types_it_asked_for() -> None:
    say("a")
    say("la", name="test.sung")
    say("b")
    settle()
    assert heard() == ["a", "b"]


def test_a_follower_of_rare_types_passes_over_the_others_once() -> None:
    (event,) = say("la", name="test.sung")
    settle()
    assert place().position > event.position


def test_a_follower_without_news_writes_nothing() -> None:
    say("a")
    settle()
    before = read.watermark()
    settle()
    assert read.watermark() == before


def test_effects_of_a_failed_handler_are_rolled_back_and_its_place_is_kept() -> None:
    say("a", "poison", "b")
    settle()
    assert heard() == ["a"]


def test_a_failure_is_recorded_with_the_event_and_the_reason() -> None:
    say("a", "poison")
    settle()
    assert place().error == "talk/1@2: ValueError: cannot swallow this"
    assert place().attempts == 1


def test_each_failure_doubles_the_wait() -> None:
    say("poison")
    waits = []
    for _ in range(3):
        settle()
        retry_at = place().retry_at
        assert retry_at is not None
        waits.append(round((retry_at - datetime.now(UTC)).total_seconds()))
        due_now()
    assert waits == [1, 2, 4]


def test_a_failed_follower_waits_for_its_time() -> None:
    say("poison")
    settle()
    settle()
    assert place().attempts == 1


def test_a_failed_follower_does_not_wait_for_a_clock_that_was_set_back() -> None:
    say("poison")
    settle()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE log_follower SET retry_at = now() + interval '8 hours'")
    settle()
    assert place().attempts == 2


def test_a_follower_that_recovers_goes_on_and_forgets_the_failure() -> None:
    say("a", "poison", "b")
    settle()
    healed = Follower(
        "scribe", SCRIBE.types, lambda events: write_down([e for e in events if e.version != 2])
    )
    due_now()
    settle(healed)
    assert heard() == ["a", "b"]
    assert (place().attempts, place().error) == (0, None)


def test_a_failing_follower_does_not_stop_another() -> None:
    say("poison", "b")
    seen: list[Event] = []
    stop = threading.Event()

    def collect(events: list[Event]) -> None:
        seen.extend(events)
        stop.set()

    read.run_followers(stop, [SCRIBE, Follower("calm", frozenset({"test.said"}), collect)], poll=0.05)
    assert [event.body["word"] for event in seen] == ["poison", "b"]


def test_what_the_database_refuses_one_follower_does_not_stop_another() -> None:
    say("poison", "b")
    seen: list[Event] = []
    stop = threading.Event()

    def too_slow(_: list[Event]) -> None:  # an OperationalError, as a lost connection is
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 10")
            cursor.execute("SELECT pg_sleep(5)")

    def collect(events: list[Event]) -> None:
        seen.extend(events)
        stop.set()

    types = frozenset({"test.said"})
    followers = [Follower("a", types, too_slow), Follower("b", types, collect)]
    late = threading.Timer(8, stop.set)
    late.start()
    read.run_followers(stop, followers, poll=0.05)
    late.cancel()
    assert [event.body["word"] for event in seen] == ["poison", "b"]
    assert "statement timeout" in (place("a").error or "")


def test_a_database_that_takes_nothing_is_waited_for() -> None:
    run_once(SCRIBE)
    say("a")
    stop = threading.Event()

    def handle(events: list[Event]) -> None:
        write_down(events)
        stop.set()

    with connection.cursor() as cursor:  # of this connection, so that the next one finds it over
        cursor.execute("SET default_transaction_read_only = on")
    read.run_followers(stop, [Follower("scribe", SCRIBE.types, handle)], poll=0.05)
    assert (heard(), place().error) == (["a"], None)


def test_an_event_that_this_version_cannot_read_stops_its_followers_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say("a")
    newer = EventType("test.said", 2, {1: lambda body: body})
    with monkeypatch.context() as upgraded:
        upgraded.setitem(types._types, "test.said", newer)
        say("b")
    say("c", stream="song/1", name="test.sung")
    settle()
    settle(Follower("singer", frozenset({"test.sung"}), write_down))
    assert heard() == ["a", "c"]
    assert "stored in schema 2" in (place().error or "")


def test_a_follower_that_another_process_runs_is_passed_by(log_database: str) -> None:
    run_once(SCRIBE)
    with elsewhere(log_database) as other, other.cursor() as cursor:
        cursor.execute("SELECT 1 FROM log_follower WHERE name = 'scribe' FOR SHARE")
        say("a")
        assert run_once(SCRIBE) == 0


def test_nothing_above_an_open_writing_transaction_is_read(log_database: str) -> None:
    with elsewhere(log_database) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
        say("a")
        assert read.read_all(Position.START, 10) == []
    assert [event.body["word"] for event in read.read_all(Position.START, 10)] == ["a"]


def test_a_transaction_that_somebody_forgot_ends_also_where_the_server_lets_it_be() -> None:
    name = connection.get_connection_params()["dbname"]
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = 0")
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("1min",)


def test_the_age_of_the_watermark_grows_while_a_writer_dawdles(log_database: str) -> None:
    with elsewhere(log_database) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
        time.sleep(0.2)
        assert 0.2 <= read.watermark_age() < 5


def test_a_settled_log_has_no_age() -> None:
    say("a")
    assert read.watermark_age() == 0


def test_a_reader_in_a_read_only_transaction_does_not_hold_the_watermark(log_database: str) -> None:
    with elsewhere(log_database) as other, other.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_event")
        say("a")
        assert len(read.read_all(Position.START, 10)) == 1


def test_the_position_at_a_time_is_that_of_the_last_event_recorded_by_then() -> None:
    (first,), (second,) = say("a"), say("b")
    assert read.position_at(first.recorded_at) == first.position
    assert read.position_at(datetime.now(UTC)) == second.position
    assert read.position_at(NOON) == Position.START


@pytest.fixture
def running() -> Iterator[threading.Event]:
    """The scribe at work in a thread, as `manage.py follow` runs it, polling too rarely to matter."""
    stop = threading.Event()

    def work() -> None:
        try:
            read.run_followers(stop, [SCRIBE], poll=60)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert eventually(lambda: bool(read.places()))
    time.sleep(read.ALERT + 0.1)
    yield stop
    stop.set()
    append._last.clear()
    append.notify()
    thread.join()


@pytest.mark.usefixtures("running")
def test_a_commit_wakes_a_waiting_follower() -> None:
    say("a")
    assert eventually(lambda: heard() == ["a"])


@pytest.mark.usefixtures("running")
def test_events_in_quick_succession_are_all_seen_at_once() -> None:
    for number in range(30):
        say(str(number))
    assert eventually(lambda: len(heard()) == 30)


@pytest.mark.usefixtures("running")
def test_a_follower_survives_losing_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "FIRST_RETRY", 0.05)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    say("a")
    assert eventually(lambda: heard() == ["a"])


def test_no_notification_is_sent_from_within_the_transaction(log_database: str) -> None:
    append._last.clear()
    with elsewhere(log_database) as other, other.cursor() as cursor:
        other.autocommit = True
        cursor.execute(f"LISTEN {append.CHANNEL}")
        with connection.execute_wrapper(_no_notify_in_transaction), transaction.atomic():
            say("a")
        assert eventually(lambda: (other.poll(), bool(other.notifies))[1], 2)


def _no_notify_in_transaction(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    assert not (sql.startswith("NOTIFY") and connection.in_atomic_block)
    return execute(sql, params, many, context)


def test_appending_counts_committed_events_only() -> None:
    counter = append.APPENDED.labels("test.said")
    before = counter._value.get()
    say("a", "b")
    with transaction.atomic():
        say("c")
        transaction.set_rollback(True)
    assert counter._value.get() - before == 2


def test_the_command_runs_until_sigterm_and_ends_cleanly(log_database: str) -> None:
    environment = {**os.environ, "DATABASE_URL": log_database, "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "follow"], env=environment, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Following with ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
