"""The log in parts: nobody who appends or reads notices where one ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from ingest.log import append, heads, parts, read, source, types
from ingest.log.append import NewStream, StreamAppend
from ingest.log.types import Context, Event, EventType, Head, NewEvent, Position, StreamVersionError
from ingest.log.verify import LogIntegrityError, verify

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ALICE = Context("user:alice")
END = parts.SIZE
"""The first number of the second part."""


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch, log_database: str) -> str:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(EventType("test.said"))
    source.forget()
    return log_database


def said(*words: str) -> list[NewEvent]:
    return [NewEvent("test.said", {"word": word}, NOON) for word in words]


def say(stream: str, *words: str) -> list[Event]:
    return append.append(stream, said(*words), read.head(stream), ALICE)


def draw(number: int) -> None:
    """The next event gets this number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('log_event_number', %s, false)", (number,))


@contextmanager
def elsewhere(first: Callable[[], object]) -> Iterator[None]:
    """A transaction in another session, open until the block ends; `first` has been done in it."""
    begun, ending = threading.Event(), threading.Event()

    def run() -> None:
        try:
            with transaction.atomic():
                first()
                begun.set()
                ending.wait(20)
        finally:
            begun.set()
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert begun.wait(20)
        yield
    finally:
        ending.set()
        thread.join()


def tables() -> list[str]:
    """The table of each event, in order of number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM log_event ORDER BY seq")
        return [name for (name,) in cursor.fetchall()]


def plan(statement: Callable[[], object]) -> str:
    """The plans of the queries of the log that it makes."""
    queries: list[tuple[str, Any]] = []

    def keep(execute: Callable[..., object], sql: str, values: Any, many: bool, context: object) -> object:
        queries.append((sql, values))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(keep):
        statement()
    found = []
    with connection.cursor() as cursor:
        for sql, values in queries:
            if "log_event" in sql:
                cursor.execute(f"EXPLAIN {sql}", values)
                found += [line for (line,) in cursor.fetchall()]
    return "\n".join(found)


@pytest.fixture
def across() -> list[Event]:
    """A stream of four events, two in the first part and two in the second."""
    draw(END - 2)
    return [*say("talk/1", "a"), *say("talk/1", "b", "c"), *say("talk/1", "d")]


def test_events_of_one_append_may_lie_in_two_parts(across: list[Event]) -> None:
    assert tables() == ["log_event_p0"] * 2 + [f"log_event_p{END}"] * 2
    assert read.read_stream("talk/1") == across


def test_the_order_goes_on_over_the_end_of_a_part(across: list[Event]) -> None:
    assert read.read_all(Position.START, 10) == across
    assert read.read_all(across[1].position, 10) == across[2:]
    assert verify().events == 4


def test_a_stream_begins_once_however_many_parts_there_are() -> None:
    say("talk/1", "a")
    draw(END)
    with pytest.raises(StreamVersionError, match="talk/1"):
        append.append("talk/1", said("again"), Head.NEW, ALICE)
    with pytest.raises(StreamVersionError, match="talk/1"):
        append.begin([NewStream("talk/2", said("x"), ALICE), NewStream("talk/1", said("again"), ALICE)])
    assert len(read.read_all(Position.START, 10)) == 1


@pytest.mark.parametrize("alone", [True, False], ids=["append", "extend"])
def test_a_version_is_given_once_though_two_writers_draw_numbers_of_two_parts(alone: bool) -> None:
    (first,) = say("talk/1", "a")
    draw(END - 1)
    results: list[str] = []

    def second() -> None:
        try:
            if alone:
                append.append("talk/1", said("theirs"), first.head, ALICE)
            else:
                append.extend([StreamAppend("talk/1", said("theirs"), first.head, ALICE)])
        except StreamVersionError:
            results.append("refused")
        finally:
            connection.close()

    with elsewhere(lambda: append.append("talk/1", said("ours"), first.head, ALICE)):
        waits = threading.Thread(target=second)
        waits.start()
        waits.join(0.2)
        assert waits.is_alive()
    waits.join()
    assert results == ["refused"]
    assert [event.body["word"] for event in read.read_stream("talk/1")] == ["a", "ours"]


def test_streams_that_stand_elsewhere_are_refused_as_a_whole() -> None:
    (one,), (two,) = say("talk/1", "a"), say("talk/2", "a")
    say("talk/2", "b")
    new = [StreamAppend(event.stream, said("c"), event.head, ALICE) for event in (one, two)]
    with pytest.raises(StreamVersionError):
        append.extend(new)
    assert (read.head("talk/1").version, read.head("talk/2").version) == (1, 2)
    assert len(read.read_all(Position.START, 10)) == 3


def test_a_stream_that_begins_and_one_that_goes_on_are_recorded_together() -> None:
    (old,) = say("talk/1", "a")
    append.extend(
        [
            StreamAppend("talk/2", said("x", "y"), Head.NEW, ALICE),
            StreamAppend("talk/1", said("b", "c"), old.head, ALICE),
        ]
    )
    assert verify().copies["heads of streams"] == 2
    assert (read.head("talk/1").version, read.head("talk/2").version) == (3, 2)


def test_parts_are_made_ahead_once() -> None:
    draw(END)
    assert (parts.maintain(), parts.maintain()) == (1, 0)
    assert [part.first for part in source.parts()] == [0, END, 2 * END, 3 * END]


def test_parts_of_another_size_go_on_where_the_last_one_ends(settings: Settings) -> None:
    settings.LOG_PART = 1000
    draw(END)
    parts.maintain()
    assert [(part.first, part.until) for part in source.parts()][-1] == (3 * END, 3 * END + 1000)


def test_the_first_parts_have_the_size_that_is_set(settings: Settings) -> None:
    settings.LOG_PART = 1000
    draw(1)
    migration = import_module("ingest.log.migrations.0001_initial")
    with connection.cursor() as cursor:
        names = ", ".join(part.table for part in source.parts())
        cursor.execute(f"DROP TABLE {names}; DELETE FROM log_part")
    with connection.schema_editor() as editor:
        migration.make_first_parts(None, editor)
    say("talk/1", "a")
    assert [(part.first, part.until) for part in source.parts()] == [(0, 1000), (1000, 2000), (2000, 3000)]


def test_an_event_without_a_part_makes_one() -> None:
    draw(3 * END)
    (event,) = append.retrying(lambda: say("talk/1", "a"))
    assert tables() == [f"log_event_p{3 * END}"]
    assert read.read_stream("talk/1") == [event]


def test_one_part_takes_the_numbers_that_a_jump_left_out(settings: Settings) -> None:
    settings.LOG_PART = 10
    draw(5 * END + 5)
    (event,) = append.retrying(lambda: say("talk/1", "a"))
    assert [(part.first, part.until) for part in source.parts()][3:] == [
        (3 * END, 5 * END),
        *((first, first + 10) for first in range(5 * END, 5 * END + 30, 10)),
    ]
    assert read.read_stream("talk/1") == [event]
    assert parts.maintain() == 0


def test_a_full_part_is_closed_with_its_last_position(across: list[Event]) -> None:
    parts.maintain()
    assert [part.last for part in source.parts()] == [across[1].position, None, None, None]


def test_a_part_without_an_event_is_closed() -> None:
    draw(END)
    say("talk/1", "a")
    parts.maintain()
    assert source.parts()[0].last == Position(0, 0, 0)


def test_a_part_is_not_closed_while_an_event_may_still_come() -> None:
    draw(END - 2)
    say("talk/0", "a")
    with elsewhere(lambda: say("talk/late", "a")):
        say("talk/1", "b")
        parts.maintain()
        assert source.parts()[0].last is None
    parts.maintain()
    assert source.parts()[0].last == read.read_stream("talk/late")[0].position


def test_a_reader_sees_what_commits_late_into_an_old_part() -> None:
    draw(END - 2)
    say("talk/0", "a")
    with elsewhere(lambda: say("talk/late", "b")):
        say("talk/1", "c")
        parts.maintain()
        seen = read.read_all(Position.START, 10)
        place = seen[-1].position
        assert [event.stream for event in seen] == ["talk/0"]
    parts.maintain()
    source.forget()
    assert [event.stream for event in read.read_all(place, 10)] == ["talk/late", "talk/1"]


def test_numbers_are_passed_by_only_where_the_reader_is_past_the_part(across: list[Event]) -> None:
    parts.maintain()
    assert [source.floor(event.position) for event in across] == [0, END, END, END]


def test_who_reads_on_does_not_look_at_closed_parts(across: list[Event]) -> None:
    parts.maintain()
    text = plan(lambda: read.read_all(across[2].position, 10))
    assert f"log_event_p{END}" in text
    assert "log_event_p0" not in text


def test_who_reads_an_old_part_does_not_look_at_later_ones(across: list[Event]) -> None:
    parts.maintain()
    text = plan(lambda: read.read_all(Position.START, 2))
    assert "log_event_p0" in text
    assert f"log_event_p{END}" not in text
    assert read.read_all(Position.START, 2) == across[:2]


def test_a_stretch_reaches_as_far_as_its_transactions_drew_numbers() -> None:
    draw(END - 3)
    say("talk/0", "a")
    with transaction.atomic():
        say("talk/early", "b")
        with elsewhere(lambda: say("talk/later", "c")):
            pass
        say(
            "talk/early", "d"
        )  # in the second part, with the id of a transaction before that of the last in the first
    say("talk/1", "e")
    parts.maintain()
    source.forget()
    assert source.stretch(Position.START).high == END
    found = read.read_all(Position.START, 10)
    assert [event.body["word"] for event in found] == ["a", "b", "d", "c", "e"]
    assert [event.position.seq for event in found] == [END - 3, END - 2, END, END - 1, END + 1]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kept", [None, 0, 1, 2, 3])
def test_a_page_may_span_stretches(across: list[Event], limit: int, kept: int | None) -> None:
    parts.maintain()
    upto = None if kept is None else across[kept].position
    wanted = across if kept is None else across[: kept + 1]
    assert read.read_all(Position.START, limit, upto=upto) == wanted[:limit]
    assert read.read_all(Position.START, limit, {"test.said"}, upto) == wanted[:limit]
    assert read.read_all(Position.START, limit, {"test.sung"}, upto) == []


def test_a_follower_does_not_look_at_closed_parts(across: list[Event]) -> None:
    follower = read.Follower("scribe", frozenset({"test.said"}), lambda _: None)
    parts.maintain()
    while read.run_once(follower) or not read.places():
        pass
    assert read.places()[0].position > across[2].position
    text = plan(lambda: read.run_once(follower))
    assert f"log_event_p{END}" in text
    assert "log_event_p0" not in text


def test_a_stream_is_read_from_its_own_parts_alone(across: list[Event]) -> None:
    say("talk/2", "new")
    text = plan(lambda: read.read_streams(["talk/2"], across[-1].position))
    assert f"log_event_p{END}" in text
    assert "log_event_p0" not in text


@pytest.mark.usefixtures("across")
@pytest.mark.parametrize("change", ["UPDATE {} SET epoch = 1", "DELETE FROM {}", "TRUNCATE {}"])
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_a_part_is_append_only_by_its_own_name(change: str, role: str) -> None:
    with pytest.raises(Error, match="the event log is append-only"), connection.cursor() as cursor:
        cursor.execute(f"SET session_replication_role = {role}; {change.format('log_event_p0')}")


TAMPERED = {
    "UPDATE log_stream SET version = 3 WHERE stream = 'talk/1'": "talk/1@4: is the last of its stream, but not",
    "UPDATE log_stream SET first_seq = first_seq + 1": "talk/1@4: is the last of its stream, but not its head",
    "DELETE FROM log_stream": "talk/1@4: is the last of its stream, but not its head",
    "INSERT INTO log_stream VALUES ('talk/0', 2, sha256('x'), 1, '1', 1, 1)": "talk/0@2: is missing",
}


@pytest.mark.usefixtures("across")
@pytest.mark.parametrize("statement", TAMPERED)
def test_a_head_that_says_something_else_is_named_and_written_anew(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
    with pytest.raises(LogIntegrityError, match=TAMPERED[statement]):
        verify()
    assert heads.rebuild_heads()
    assert verify().copies["heads of streams"] == 1
    assert not heads.rebuild_heads()
    say("talk/1", "e")


def most_rows(plan: Any) -> int:
    """The most rows that any node of a plan gave."""
    return max([int(plan["Actual Rows"]), *(most_rows(one) for one in plan.get("Plans", []))])


def test_a_page_costs_its_own_events_and_not_all_that_follow() -> None:
    say("talk/1", *["word"] * 3_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE log_event")
    with CaptureQueriesContext(connection) as asked:
        assert len(read.read_all(Position.START, 10)) == 10
    (statement,) = (
        one["sql"] for one in asked.captured_queries if "ORDER BY" in one["sql"] and "body" in one["sql"]
    )
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        ((plan,),) = cursor.fetchone()
    assert most_rows(plan["Plan"]) == 10
