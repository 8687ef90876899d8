"""Appending and reading on a real Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import Error, IntegrityError, connection, transaction

from ingest.log import append, read, types
from ingest.log.append import NewStream, StreamAppend
from ingest.log.types import (
    Context,
    Event,
    EventType,
    Head,
    NewEvent,
    Position,
    StreamVersionError,
    UnknownEventTypeError,
    UnrecordableEventError,
)
from ingest.log.verify import verify

pytestmark = pytest.mark.django_db

ALICE = Context("user:alice", cause="run/7@2", trace="request-1")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SAID = EventType("test.said")


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(SAID)


def said(*words: Any) -> list[NewEvent]:
    return [NewEvent("test.said", {"word": word}, NOON) for word in words]


def say(stream: str, *words: Any) -> list[Event]:
    return append.append(stream, said(*words), read.head(stream), ALICE)


def test_what_is_appended_is_read_back_the_same() -> None:
    events = say("talk/1", "good", {"nested": ["ä", 1.5, None]})
    assert read.read_stream("talk/1") == events


def test_an_event_keeps_actor_cause_trace_and_both_times() -> None:
    (event,) = say("talk/1", "good")
    assert (event.actor, event.cause, event.trace) == ("user:alice", "run/7@2", "request-1")
    assert event.occurred_at == NOON
    assert datetime.now(UTC) - event.recorded_at < timedelta(minutes=1)


def test_versions_count_up_without_a_hole_over_several_appends() -> None:
    events = [*say("talk/1", "a", "b"), *say("talk/1", "c")]
    assert [event.id for event in events] == ["talk/1@1", "talk/1@2", "talk/1@3"]


def test_events_of_one_append_stand_in_order() -> None:
    events = say("talk/1", *range(20))
    assert sorted(events, key=lambda event: event.position) == events


def test_the_head_of_a_stream_is_its_newest_event() -> None:
    assert say("talk/1", "a", "b")[-1].head == read.head("talk/1")


def test_a_stream_without_events_is_new() -> None:
    assert read.head("talk/none") == Head.NEW
    assert read.read_stream("talk/none") == []


def test_a_writer_who_missed_an_event_is_refused() -> None:
    stale = say("talk/1", "a")[-1].head
    say("talk/1", "b")
    with (
        pytest.raises(StreamVersionError, match="talk/1 does not stand at version 1"),
        transaction.atomic(),
    ):
        append.append("talk/1", said("c"), stale, ALICE)


def test_a_stream_cannot_be_created_twice() -> None:
    say("talk/1", "a")
    with pytest.raises(StreamVersionError), transaction.atomic():
        append.append("talk/1", said("b"), Head.NEW, ALICE)


@pytest.mark.parametrize("head", [Head(5, b"\1" * 32), Head(1, b"\1" * 32)])
def test_a_head_that_never_was_is_refused(head: Head) -> None:
    say("talk/1", "a")
    with pytest.raises(StreamVersionError):
        append.append("talk/1", said("b"), head, ALICE)


def test_a_refused_append_leaves_nothing_behind() -> None:
    (first,) = say("talk/1", "a")
    with pytest.raises(StreamVersionError), transaction.atomic():
        append.append("talk/1", said("b", "c"), Head.NEW, ALICE)
    assert read.read_stream("talk/1") == [first]


def test_a_type_that_nobody_registered_cannot_be_appended() -> None:
    with pytest.raises(UnknownEventTypeError):
        append.append("talk/1", [NewEvent("test.unheard", {}, NOON)], Head.NEW, ALICE)


@pytest.mark.parametrize("word", [float("nan"), float("inf"), "nul \0", "\ud800", {"deep": ["\0"]}])
def test_a_body_that_cannot_be_kept_exactly_is_refused(word: object) -> None:
    with pytest.raises(UnrecordableEventError):
        say("talk/1", word)


@pytest.mark.parametrize(
    "context", [Context(""), Context("a", cause=""), Context("a", trace=""), Context("a\0")]
)
def test_empty_or_broken_context_is_refused(context: Context) -> None:
    with pytest.raises(UnrecordableEventError):
        append.append("talk/1", said("a"), Head.NEW, context)


NO_EVENTS = {
    "stream": "''", "version": "-1", "actor": "''", "cause": "''", "trace": "''", "schema": "0",
    "hash": "'\\\\x00'",
}  # fmt: skip
"""Values that no event has, by what is wrong, as SQL; of one that continues a stream the version is that before it."""


OF_NO_EVENT = {
    "0": "SELECT log_append({stream}, {version}, '', {actor}, {cause}, {trace}, now(), ARRAY['test.said'],"
    " ARRAY[{schema}], '{{}}', ARRAY[now()], {hash})",
    "1": "SELECT log_begin(now(), ARRAY[{stream}], ARRAY[{version}], ARRAY[{actor}], ARRAY[{cause}], ARRAY[{trace}],"
    " ARRAY['test.said'], ARRAY[{schema}], '{{}}', ARRAY[now()], {hash})",
}
"""Calls that continue a stream and that begin one, by the version that is right there."""


@pytest.mark.parametrize("wrong", NO_EVENTS)
@pytest.mark.parametrize(("version", "call"), OF_NO_EVENT.items(), ids=["append", "begin"])
def test_the_database_refuses_what_is_no_event(version: str, call: str, wrong: str) -> None:
    good = {"stream": "'talk/1'", "version": version, "actor": "'user:bob'", "cause": "NULL", "trace": "NULL",
            "schema": "1", "hash": "sha256('x')"}  # fmt: skip
    with connection.cursor() as cursor:
        with pytest.raises(IntegrityError, match="this is no event"), transaction.atomic():
            cursor.execute(call.format(**{**good, wrong: NO_EVENTS[wrong]}))
        assert read.read_stream("talk/1") == []
        cursor.execute(call.format(**good))
        assert cursor.fetchone()[0] is not None


def test_the_stored_text_is_the_text_that_was_hashed() -> None:
    say("talk/1", {"b": 1.0, "a": "ü"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM log_event WHERE stream = 'talk/1'")
        assert cursor.fetchone() == ('{"word":{"a":"ü","b":1.0}}',)


def test_an_old_event_is_read_in_the_newest_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    say("talk/1", "good")
    newer = EventType("test.said", schema=2, upcasters={1: lambda body: {"words": [body["word"]]}})
    monkeypatch.setitem(types._types, "test.said", newer)
    (event,) = read.read_stream("talk/1")
    assert (event.schema, event.body) == (2, {"words": ["good"]})


def test_a_stream_can_be_read_from_a_version_on() -> None:
    events = say("talk/1", *"abcd")
    assert read.read_stream("talk/1", after_version=2) == events[2:]


def test_a_stream_can_be_read_as_it_stood_at_a_position() -> None:
    events = say("talk/1", *"abcd")
    assert read.read_stream("talk/1", upto=events[1].position) == events[:2]


@pytest.mark.parametrize("table", ["log_event", "log_epoch"])
@pytest.mark.parametrize("change", ["UPDATE {} SET epoch = 1", "DELETE FROM {}", "TRUNCATE {}"])
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_the_database_refuses_to_change_the_log(table: str, change: str, role: str) -> None:
    say("talk/1", "a")
    with (
        pytest.raises(
            Error, match=f"the event log is append-only: {change.split()[0]} of {table} is refused"
        ),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SET LOCAL session_replication_role = {role}; {change.format(table)}")


def test_the_driver_is_psycopg2() -> None:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    assert not is_psycopg3


@pytest.fixture
def other_cluster(db: None) -> None:  # noqa: ARG001
    """The log as it looks after it was restored from a cluster whose transaction ids were far ahead."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO log_epoch (epoch, system_identifier) VALUES (1, 42)")
        cursor.execute(
            "INSERT INTO log_event (epoch, txid, stream, version, type, schema, body, actor, occurred_at,"
            " recorded_at, hash) SELECT 1, (10 ^ 12 + n)::text::xid8, 'talk/old', n, 'test.said', 1, '{}',"
            " 'user:bob', now(), now(), sha256('x') FROM generate_series(1, 3) AS n"
        )


@pytest.mark.usefixtures("other_cluster")
def test_events_from_another_cluster_are_all_settled() -> None:
    assert [event.version for event in read.read_all(Position.START, 10)] == [1, 2, 3]


@pytest.mark.usefixtures("other_cluster")
def test_a_new_event_stands_after_those_from_another_cluster() -> None:
    last = read.read_all(Position.START, 10)[-1]
    assert last.position < say("talk/1", "a")[0].position


@pytest.mark.usefixtures("other_cluster")
def test_a_log_that_comes_back_to_a_cluster_begins_another_epoch() -> None:
    first = say("talk/1", "a")[0].position
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO log_epoch (epoch, system_identifier) VALUES (3, 43)")
    assert (first.epoch, say("talk/1", "b")[0].position.epoch) == (2, 4)


def test_appending_again_in_the_same_cluster_stays_in_its_epoch() -> None:
    assert say("talk/1", "a")[0].position.epoch == say("talk/1", "b")[0].position.epoch == 1


def test_several_streams_begin_at_once() -> None:
    one, two = (
        NewStream("talk/1", said("a", "b"), ALICE),
        NewStream("talk/2", said('"c\\'), Context("user:bob")),
    )
    events = append.begin([one, two])
    assert [event.id for event in events] == ["talk/1@1", "talk/1@2", "talk/2@1"]
    assert [*read.read_stream("talk/1"), *read.read_stream("talk/2")] == events
    assert sorted(events, key=lambda event: event.position) == events


def test_streams_begun_at_once_are_chained_as_if_alone() -> None:
    append.begin([NewStream("talk/1", said("a", "b"), ALICE), NewStream("talk/2", said("c"), ALICE)])
    say("talk/1", "d")
    assert verify().events == 4


def test_no_stream_begins_when_one_of_them_exists() -> None:
    say("talk/2", "a")
    with pytest.raises(StreamVersionError, match="talk/2 does not stand"), transaction.atomic():
        append.begin([NewStream("talk/1", said("b"), ALICE), NewStream("talk/2", said("c"), ALICE)])
    assert read.read_stream("talk/1") == []


def extend(extensions: Sequence[StreamAppend]) -> list[Head]:
    with append.extend_through(extensions) as (heads, sql, values), connection.cursor() as cursor:
        cursor.execute(sql, values)
    return heads


def test_several_streams_grow_at_once() -> None:
    first = say("talk/1", "a")[-1].head
    heads = extend(
        [
            StreamAppend("talk/1", said("b", "c"), first, ALICE),
            StreamAppend("talk/2", said("d"), Head.NEW, ALICE),
        ]
    )
    assert heads == [read.head("talk/1"), read.head("talk/2")]
    assert [event.body["word"] for event in read.read_stream("talk/1")] == ["a", "b", "c"]
    assert verify().events == 4


@pytest.mark.parametrize("after", [Head.NEW, Head(1, bytes(32)), Head(2, bytes(32))])
def test_no_stream_grows_when_one_stands_elsewhere(after: Head) -> None:
    say("talk/1", "a")
    with pytest.raises(StreamVersionError), transaction.atomic():
        extend(
            [
                StreamAppend("talk/1", said("b"), after, ALICE),
                StreamAppend("talk/2", said("d"), Head.NEW, ALICE),
            ]
        )
    assert not read.read_stream("talk/2")


def test_several_streams_grow_with_one_statement_that_answers_with_the_events() -> None:
    say("talk/1", "a")
    heads = read.heads(["talk/2", "talk/1"])
    grown = [StreamAppend(stream, said(stream, "z"), heads[stream], ALICE) for stream in ("talk/2", "talk/1")]
    events = append.extend(grown)
    assert [event.id for event in events] == ["talk/2@1", "talk/2@2", "talk/1@2", "talk/1@3"]
    assert read.read_streams(["talk/1", "talk/2"]) == {
        "talk/1": [*read.read_stream("talk/1")[:1], *events[2:]],
        "talk/2": events[:2],
    }
    assert verify().events == 5


def test_one_statement_grows_no_stream_when_one_stands_elsewhere() -> None:
    say("talk/1", "a")
    stale = [StreamAppend(name, said("b"), Head.NEW, ALICE) for name in ("talk/2", "talk/1")]
    with pytest.raises(StreamVersionError), transaction.atomic():
        append.extend(stale)
    assert read.heads(["talk/2"]) == {"talk/2": Head.NEW}
