"""Old parts of the log lie in files: readers have the same answers, and no step that dies loses or doubles an event."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

from deploy.observability import cures, health
from ingest.db.storage import ColdStorageError, Output, storage
from ingest.log import append, cold, heads, move, parts, read, seals, source, types
from ingest.log.append import NewStream
from ingest.log.move import Moved, move_old
from ingest.log.types import Context, Event, EventType, Head, NewEvent, Position
from ingest.log.verify import LogIntegrityError, expect, verify
from ingest.telemetry.store.receipts import check_receipts
from tests.integration.ingest.locks import until_free
from tests.integration.ingest.telemetry.test_readers import store
from tests.places import ROOT

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ALICE = Context("user:alice")
BOB = Context("user:bob", cause="talk/1@1", trace="00-1")
END = parts.SIZE
STREAMS = ("talk/1", "talk/2", "talk/ä", "talk/last", "log")


@pytest.fixture(autouse=True)
def directory(
    monkeypatch: pytest.MonkeyPatch,
    log_database: str,  # noqa: ARG001
    tmp_path: Path,
    settings: Settings,
) -> Path:
    monkeypatch.setattr(types, "_types", dict(types._types))
    for name in ("test.said", "test.sung"):
        types.register(EventType(name))
    # Small row groups, so that a part has several.
    monkeypatch.setattr(cold, "GROUP", 3)
    monkeypatch.setattr(cold, "STREAMS_GROUP", 2)
    settings.TELEMETRY_COLD, settings.LOG_HOT = str(tmp_path / "cold"), 1
    source.forget()
    return tmp_path / "cold"


def say(stream: str, *words: str, context: Context = ALICE, name: str = "test.said") -> list[Event]:
    events = [NewEvent(name, {"word": word}, NOON) for word in words]
    return append.append(stream, events, read.head(stream), context)


def draw(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('log_event_number', %s, false)", (number,))


@pytest.fixture
def three_parts() -> None:
    """Three full parts and one that is written. Streams and a transaction span them; two parts are due to move."""
    draw(0 + 1)
    say("talk/1", "a", "b")
    say("talk/ä", "tä\u0000\n\\"[:2], context=BOB)
    say("talk/1", "c", name="test.sung")
    seals.seal()
    draw(END - 2)
    append.begin(
        [
            NewStream("talk/2", [NewEvent("test.said", {"word": str(one)}, NOON) for one in range(5)], BOB),
            NewStream("talk/3", [NewEvent("test.sung", {"word": "la"}, NOON)], ALICE),
        ]
    )
    say("talk/1", "d", "e")
    draw(2 * END - 1)
    say("talk/1", "f", "g")
    parts.maintain()
    say("talk/ä", "h")
    draw(3 * END - 1)
    say("talk/2", "i", context=BOB)
    say("talk/1", "j")
    say("talk/last", "k")
    parts.maintain()
    seals.seal()
    source.forget()


def everything() -> list[bytes]:
    """Answers of each reader, about events and places all over the log."""
    events = read.read_all(Position.START, 1000)
    places = [Position.START, *(event.position for event in events)]
    pages: list[Any] = [events]
    for place in places[::2]:
        pages += [read.read_all(place, limit) for limit in (1, 2, 4, 100)]
        pages += [
            read.read_all(place, 3, {"test.sung", "log.sealed"}),
            read.read_all(place, 9, {"test.sung"}),
        ]
        pages += [read.read_all(Position.START, 100, upto=place), read.read_all(places[4], 5, upto=place)]
        pages += [read.read_streams(STREAMS, place), read.read_newest(STREAMS, place)]
        pages += [sorted(read.begun(STREAMS, place)), read.moment_of(place)]
        pages += [read.read_stream(stream, upto=place) for stream in STREAMS]
        pages += [read.read_last(stream) for stream in STREAMS]
        pages += [[str(link) for link in seals.links(place, places[-1], limit)] for limit in (2, 100)]
    for event in events[1::2]:
        pages += [read.read_transaction(event.position.epoch, event.position.txid)]
        pages += [str(read.position_at(event.recorded_at)), read.read_stream(event.stream, event.version - 1)]
        pages += [read.read_versions(event.stream, [1, event.version, 99])]
        if event.type != "log.sealed":
            pages += [seals.prove(event.stream, event.version)]
    pages += [str(read.position_at(events[0].recorded_at - timedelta(days=1))), read.read_stream("talk/none")]
    pages += [verify()]
    return [msgspec.json.encode(page) for page in pages]


def tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM log_event GROUP BY 1 ORDER BY 1")
        return [name for (name,) in cursor.fetchall()]


def states() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT state FROM log_cold ORDER BY first")
        return [state for (state,) in cursor.fetchall()]


def now() -> datetime:
    return datetime.now(UTC)


def later() -> datetime:
    """Time at which no reader is left that does not know what has just been moved."""
    return now() + source.READERS_GONE_AFTER + timedelta(seconds=1)


def on_disk(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.parquet"))


@pytest.mark.usefixtures("three_parts")
def test_every_answer_has_the_same_bytes_over_postgres_files_and_both() -> None:
    before = everything()
    assert len(before) > 150
    assert move_old(now(), keep=2).parts == 1
    assert everything() == before  # the part is in both
    assert move_old(later(), keep=2).dropped == 1
    assert tables() == [f"log_event_p{END}", f"log_event_p{2 * END}", f"log_event_p{3 * END}"]
    assert everything() == before
    move_old(now(), keep=1)
    assert everything() == before
    move_old(later(), keep=1)
    assert tables() == [f"log_event_p{2 * END}", f"log_event_p{3 * END}"]
    assert everything() == before


@pytest.mark.usefixtures("three_parts")
def test_a_part_becomes_two_files_and_leaves_postgres_when_no_reader_needs_it(directory: Path) -> None:
    moved = move_old(now())
    assert (moved.parts, moved.events, moved.dropped) == (2, 14, 0)
    assert moved.bytes == sum(path.stat().st_size for path in on_disk(directory))
    assert (len(on_disk(directory)), states()) == (4, ["cold", "cold"])
    assert "log_event_p0" in tables()
    assert move_old(now()) == Moved()
    assert move_old(later()) == Moved(dropped=2)
    assert (states(), "log_event_p0" in tables()) == (["moved", "moved"], False)


@pytest.mark.usefixtures("three_parts")
def test_a_reader_that_does_not_know_of_the_move_finds_the_part_in_postgres() -> None:
    before = read.read_stream("talk/1")
    known = dict(source._known)
    move_old(now())
    source._known.update(known)
    assert source.hot_from() == 0
    assert read.read_stream("talk/1") == before


@pytest.mark.usefixtures("three_parts")
def test_a_process_that_stood_still_meanwhile_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before, newest = read.read_stream("talk/1"), read.read_newest(["talk/ä", "talk/3"])
    events, moment = read.read_all(Position.START, 100), read.moment_of(before[0].position)
    ((database, known),) = source._known.items()
    move_old(now())
    move_old(later())
    monkeypatch.setattr(source, "REMEMBERED", float("inf"))
    old = replace(known, looked=time.monotonic() - source.READERS_GONE_AFTER.total_seconds())

    def stood_still() -> None:
        source._known[database] = old

    stood_still()
    assert read.read_stream("talk/1") == before
    stood_still()
    assert read.read_newest(["talk/ä", "talk/3"]) == newest
    stood_still()
    assert read.read_all(Position.START, 100) == events
    stood_still()
    assert read.moment_of(before[0].position) == moment


@pytest.mark.usefixtures("three_parts")
def test_appends_go_on_over_streams_that_lie_in_files() -> None:
    move_old(now())
    move_old(later())
    (event,) = say("talk/3", "new")
    assert [one.version for one in read.read_stream("talk/3")] == [1, 2]
    with pytest.raises(types.StreamVersionError):
        append.append("talk/3", [NewEvent("test.said", {}, NOON)], Head.NEW, ALICE)
    assert read.read_all(Position.START, 100)[-1] == event
    assert verify().copies["heads of streams"] == 6


@pytest.mark.usefixtures("three_parts")
def test_a_follower_goes_from_the_files_into_postgres() -> None:
    wanted = read.read_all(Position.START, 100)
    move_old(now())
    move_old(later())
    seen: list[Event] = []
    follower = read.Follower("scribe", frozenset({"test.said", "test.sung", "log.sealed"}), seen.extend)
    read.run_once(follower, 3)
    assert read.lags()["scribe"] == pytest.approx((now() - wanted[0].recorded_at).total_seconds(), abs=5)
    while read.run_once(follower, 3):
        pass
    assert (seen, read.lags()["scribe"]) == (wanted, 0)


STEPS = (
    ("Output", 1), ("_copy", 2), ("_compare", 1), ("_compare", 2), ("_drop", 1), ("_expect_files", 1), ("_detach", 2),
    ("DROP", 1),
)  # fmt: skip
"""Function of a step, and the call at which it dies."""


@pytest.mark.usefixtures("three_parts")
@pytest.mark.parametrize(("step", "at"), STEPS)
def test_a_move_that_dies_at_any_step_is_finished_by_the_next(
    step: str, at: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, left = read.read_all(Position.START, 100), [at]

    def dying(do: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return do(*args, **kwargs)

        return run

    def dies_at_drop(execute: Any, sql: str, values: Any, many: bool, context: Any) -> Any:
        is_it = step == "DROP" and sql.startswith("DROP TABLE")
        return (dying(execute) if is_it else execute)(sql, values, many, context)

    def both() -> None:
        move_old(now())
        move_old(later())

    with monkeypatch.context() as patched, connection.execute_wrapper(dies_at_drop):
        if step != "DROP":
            patched.setattr(move, step, dying(getattr(move, step)))
        with pytest.raises(KeyboardInterrupt):
            both()
        left[0] = 0
        source.forget()
        assert read.read_all(Position.START, 100) == before
    move_old(now())
    move_old(later())
    assert (states(), len(on_disk(directory))) == (["moved", "moved"], 4)
    assert read.read_all(Position.START, 100) == before
    assert verify().events == len(before)


KILLED = """
import os, signal, sys
import django
django.setup()
from datetime import datetime
from ingest.log import move
def dies(*_): os.kill(os.getpid(), signal.SIGKILL)
move._compare = dies
move.move_old(datetime.fromisoformat(sys.argv[1]))
"""


@pytest.mark.usefixtures("three_parts")
def test_a_process_killed_in_the_middle_of_a_move_leaves_all_events(
    directory: Path, log_database: str
) -> None:
    before = read.read_all(Position.START, 100)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "DATABASE_URL": log_database,
        "DOSSIER_HOME": str(directory.parent),
        "DOSSIER_TELEMETRY_COLD": str(directory),
        "DOSSIER_LOG_HOT": "1",
    }
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, now().isoformat()], env=environment, cwd=ROOT, check=False
    )
    assert (ended.returncode, states(), len(on_disk(directory))) == (-signal.SIGKILL, ["writing"], 1)
    source.forget()
    assert read.read_all(Position.START, 100) == before
    until_free("log_cold")
    move_old(now())
    assert (states(), len(on_disk(directory))) == (["cold", "cold"], 4)
    assert read.read_all(Position.START, 100) == before


def test_what_is_not_closed_or_not_sealed_does_not_move(directory: Path) -> None:
    say("talk/1", "a")
    draw(END)
    say("talk/1", "b")
    draw(2 * END)
    parts.maintain()
    move_old(now())
    assert on_disk(directory) == []  # not sealed
    seals.seal()
    move_old(now())
    assert len(on_disk(directory)) == 2


@pytest.mark.usefixtures("three_parts")
def test_a_file_that_does_not_read_as_written_is_not_used(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read.read_all(Position.START, 100)
    real = Output.close

    def damaged(self: Output) -> None:
        real(self)
        rewritten(Path(self.path), "body", 0, '{"word":"x"}')

    with monkeypatch.context() as patched:
        patched.setattr(Output, "close", damaged)
        with pytest.raises(ColdStorageError, match="does not hold what is in Postgres: it is not used"):
            move_old(now())
    assert (states(), len(on_disk(directory))) == (["writing"], 1)
    source.forget()
    assert read.read_all(Position.START, 100) == before


@pytest.mark.usefixtures("three_parts")
def test_a_part_whose_files_are_gone_stays_in_postgres(directory: Path) -> None:
    move_old(now())
    on_disk(directory)[0].unlink()
    with pytest.raises(ColdStorageError, match="cannot be read"):
        move_old(later())
    assert (states(), "log_event_p0" in tables()) == (["cold", "cold"], True)


@pytest.mark.usefixtures("three_parts")
def test_a_file_that_is_gone_is_an_error_and_no_short_answer(directory: Path) -> None:
    move_old(now())
    move_old(later())
    cold._file_in.cache_clear()
    cold._group.cache_clear()
    for path in on_disk(directory):
        path.unlink()
    for reading in (
        lambda: read.read_all(Position.START, 9),
        lambda: read.read_stream("talk/1"),
        lambda: read.read_newest(["talk/3"]),
        verify,
    ):
        with pytest.raises(ColdStorageError, match="cannot be read"):
            reading()
    assert read.read_stream("talk/last")


@pytest.mark.usefixtures("three_parts")
def test_the_newest_seal_is_found_without_a_look_into_older_parts(directory: Path) -> None:
    move_old(now())
    move_old(later())
    shutil.rmtree(directory)
    newest = seals.newest_seal()
    assert newest is not None
    assert newest.version == read.head("log").version
    assert expect(f"{newest.id}:{newest.hash.hex()}") == newest.recorded_at


@pytest.mark.usefixtures("three_parts")
def test_late_versions_of_a_stream_are_read_without_a_look_into_older_parts(directory: Path) -> None:
    before = read.read_stream("talk/1")
    move_old(now())
    move_old(later())
    for path in on_disk(directory)[:2]:
        path.unlink()
    cold._file_in.cache_clear()
    cold._group.cache_clear()
    # In the second part, and in Postgres.
    assert read.read_versions("talk/1", [4, 6]) == [before[3], before[5]]
    assert read.read_stream("talk/1", after_version=3) == before[3:]
    with pytest.raises(ColdStorageError, match="cannot be read"):
        read.read_versions("talk/1", [3])


def test_a_page_within_a_large_transaction_reads_the_row_groups_of_its_events_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say("talk/0", "first", "second")
    events = [NewEvent("test.said", {"word": str(one)}, NOON) for one in range(12)]
    append.begin([NewStream("talk/1", events, ALICE)])
    before = read.read_all(Position.START, 100)
    draw(END)
    say("talk/2", "later")
    draw(2 * END)
    say("talk/2", "last")
    parts.maintain()
    seals.seal()
    source.forget()
    move_old(now())
    reading, groups = cold._read, list[int]()

    def counted(file: Any, group: int, columns: Any) -> Any:
        groups.append(group)
        return reading(file, group, columns)

    monkeypatch.setattr(cold, "_read", counted)
    for place in range(3, 10):  # the row group before it holds another transaction, too
        groups.clear()
        assert read.read_all(before[place].position, 2) == before[place + 1 : place + 3]
        assert groups == sorted({(place + 1) // 3, (place + 2) // 3})


@pytest.mark.usefixtures("three_parts")
def test_a_file_without_bounds_of_its_row_groups_is_refused(directory: Path) -> None:
    import pyarrow.parquet as pq

    move_old(now())
    move_old(later())
    path = on_disk(directory)[0]
    pq.write_table(pq.read_table(path), path, write_statistics=False)
    cold._file_in.cache_clear()
    cold._group.cache_clear()
    with pytest.raises(ColdStorageError, match="has no statistics"):
        read.read_all(Position(1, 1, 1), 9)


@pytest.mark.usefixtures("three_parts")
def test_a_seal_that_was_noted_long_ago_is_found_in_its_file() -> None:
    (oldest, *_) = read.read_stream("log")
    move_old(now())
    move_old(later())
    assert source.hot_from() > 0
    assert expect(f"{oldest.id}:{oldest.hash.hex()}") == oldest.recorded_at


def rewritten(path: Path, column: str, place: int, value: object) -> None:
    """The file with one value changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    values = table.column(column).to_pylist()
    values[place] = value
    at = table.schema.names.index(column)
    changed = table.set_column(
        at, table.schema.field(column), pa.array(values, table.schema.field(column).type)
    )
    pq.write_table(changed, path, row_group_size=3)
    cold._file_in.cache_clear()
    cold._group.cache_clear()


@pytest.mark.usefixtures("three_parts")
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("body", '{"word":"forged"}', "talk/1@1: its content does not match its hash"),
        ("version", 7, "talk/1@1: is missing"),
        ("seq", 0, "the order of the|was put among|is the last of its stream|sealed"),
    ],
)
def test_verification_names_what_was_changed_in_a_file(
    column: str, value: object, message: str, directory: Path
) -> None:
    move_old(now())
    move_old(later())
    events = next(path for path in on_disk(directory) if "streams" not in path.name)
    rewritten(events, column, 0, value)
    with pytest.raises(LogIntegrityError, match=message):
        verify()


@pytest.mark.usefixtures("three_parts")
def test_heads_are_compared_with_files_and_written_anew_from_them() -> None:
    move_old(now())
    move_old(later())
    assert not heads.rebuild_heads()
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM log_stream ORDER BY stream")
        before = cursor.fetchall()
        cursor.execute("UPDATE log_stream SET version = 9 WHERE stream = 'talk/3'")
        cursor.execute("UPDATE log_stream SET first_seq = 77 WHERE stream = 'talk/1'")
        cursor.execute("DELETE FROM log_stream WHERE stream = 'talk/2'")
    with pytest.raises(LogIntegrityError, match="talk/1@"):
        heads.check_heads()
    assert heads.rebuild_heads()
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM log_stream ORDER BY stream")
        assert [
            [str(bytes(one)) if isinstance(one, memoryview) else one for one in row] for row in before
        ] == [
            [str(bytes(one)) if isinstance(one, memoryview) else one for one in row]
            for row in cursor.fetchall()
        ]


@pytest.mark.usefixtures("three_parts")
def test_an_event_that_was_dated_back_is_shown_though_it_lies_in_a_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingest.log import dating

    monkeypatch.setattr(dating, "SLACK", 0.0)
    move_old(now())
    move_old(later())
    assert not [remark for remark in dating.remarks() if "dated" in remark]
    events = next(path for path in on_disk(directory) if "streams" not in path.name)
    rewritten(events, "recorded_at", 0, now() + timedelta(days=2))
    assert [remark for remark in dating.remarks() if remark.startswith("talk/1@1 says")]


def moved(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("move_log", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.usefixtures("three_parts")
def test_the_command_moves_what_is_due_and_counts_it(directory: Path) -> None:
    assert moved("--status") == ["In files: 0 events in 0 parts, 0 bytes; 2 parts to move"]
    done, counted = moved("--keep", "2")
    size = sum(path.stat().st_size for path in on_disk(directory))
    assert done.startswith("7 events in 1 parts moved into files of")
    assert counted.startswith(f"In files: 7 events in 1 parts, {size:,} bytes")


@pytest.mark.parametrize(
    ("hot", "where", "arguments", "message"),
    [
        (1, "", (), "DOSSIER_TELEMETRY_COLD is not set"),
        (0, "cold", (), "DOSSIER_LOG_HOT is 0"),
        (1, "cold", ("--keep", "0"), "--keep 0 is not a number of parts above 0"),
    ],
)
def test_the_command_says_what_is_missing(
    hot: int, where: str, arguments: tuple[str, ...], message: str, settings: Settings
) -> None:
    settings.LOG_HOT, settings.TELEMETRY_COLD = hot, where
    with pytest.raises(CommandError, match=message):
        moved(*arguments)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[None]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    settings.TELEMETRY_COLD = f"s3://events/of/dossier?{options}"
    storage()[0].create_dir("events")
    yield
    server.stop()


@pytest.mark.usefixtures("bucket", "three_parts")
def test_a_bucket_takes_parts_like_a_directory() -> None:
    before = read.read_all(Position.START, 100), read.read_stream("talk/1"), verify()
    move_old(now())
    move_old(later())
    assert (read.read_all(Position.START, 100), read.read_stream("talk/1"), verify()) == before


@pytest.mark.usefixtures("three_parts")
def test_receipts_of_telemetry_are_compared_with_files() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM log_event_number")
        (reached,) = cursor.fetchone()
    at = now() - timedelta(minutes=5)
    store("unit_failure", [{"time": at, "unit": "vm/1", "symptom": "disk"}], "default")
    draw(4 * END)
    parts.maintain()
    say("talk/1", "z")
    draw(5 * END)
    parts.maintain()
    seals.seal()
    move_old(now())
    move_old(later())
    assert source.hot_from() > reached
    assert check_receipts() == 1
    with connection.cursor() as cursor:
        cursor.execute("UPDATE telemetry_receipt SET rows = rows + 1")
        with pytest.raises(LogIntegrityError, match="says something else"):
            check_receipts()
        cursor.execute("UPDATE telemetry_receipt SET rows = rows - 1, seq = seq - 1")
        with pytest.raises(LogIntegrityError, match="stands for no event of the log"):
            check_receipts()
        cursor.execute("DELETE FROM telemetry_receipt")
        with pytest.raises(LogIntegrityError, match="has no telemetry receipt"):
            check_receipts()


@pytest.mark.usefixtures("three_parts")
def test_doctor_and_the_metrics_tell_of_parts_that_should_have_moved() -> None:
    assert "old log: 2 parts should have moved into files" in health.advice()
    move_old(now())
    assert not [line for line in health.advice() if line.startswith("old log")]
    answer = Client().get("/metrics").content.decode()
    assert "dossier_log_cold_events 14.0" in answer
    assert "dossier_log_cold_overdue_parts 0.0" in answer


def test_doctor_tells_of_parts_that_cannot_move_for_want_of_a_seal() -> None:
    for number in (1, END, 2 * END, 3 * END):
        draw(number)
        say("talk/1", "a")
        parts.maintain()
    assert "old log: 2 parts should have moved into files; no seal covers 2 of them" in health.advice()
    assert moved("--status")[0].endswith("2 parts to move, 2 of them without a seal")
    seals.seal()
    assert "old log: 2 parts should have moved into files" in health.advice()


@pytest.mark.usefixtures("three_parts")
def test_doctor_tells_of_files_that_this_machine_cannot_read(directory: Path, settings: Settings) -> None:
    assert cures.files() == []
    move_old(now())
    assert cures.files() == []
    elsewhere = directory.rename(directory.with_name("unmounted"))
    (line,) = cures.files()
    assert line.startswith("files: log/000000000000000-")
    assert "cannot be read" in line
    assert (
        cures.cure(line)
        == "mount or restore that directory on this machine, or correct DOSSIER_TELEMETRY_COLD"
    )
    elsewhere.rename(directory)
    settings.TELEMETRY_COLD = ""
    hot, file = cures.files()
    assert hot == "files: DOSSIER_LOG_HOT is set without DOSSIER_TELEMETRY_COLD; no part of the log moves"
    assert (
        cures.cure(hot) == "set DOSSIER_TELEMETRY_COLD to a directory that all machines share, or to a bucket"
    )
    assert "DOSSIER_TELEMETRY_COLD is not set" in file


@pytest.mark.usefixtures("three_parts")
def test_doctor_tells_of_parts_in_files_that_do_not_leave_postgres() -> None:
    move_old(now())
    assert cures.files() == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE log_cold SET changed_at = changed_at - interval '2 hours'")
    assert cures.files() == ["log: parts in files that stay in Postgres for more than an hour: 2"]
    move_old(later())
    assert cures.files() == []
