"""A stream's versions and the log's total order never disagree."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from ingest.log import append, read, types
from ingest.log.types import Context, EventType, NewEvent, StreamVersionError

ALICE = Context("user:alice")


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(EventType("test.said"))


def say(stream: str, word: str) -> None:
    event = NewEvent("test.said", {"word": word}, datetime.now(UTC))
    append.append(stream, [event], read.head(stream), ALICE)


def elsewhere(stream: str, word: str) -> None:
    """Append and commit in a transaction of another connection."""

    def run() -> None:
        say(stream, word)
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.mark.usefixtures("log_database")
def test_who_got_its_id_first_cannot_append_after_a_later_one() -> None:
    say("talk/1", "first")
    with transaction.atomic():
        say("talk/other", "takes an id")
        elsewhere("talk/1", "second")
        with pytest.raises(StreamVersionError):
            say("talk/1", "third")


@pytest.mark.usefixtures("log_database")
def test_a_new_transaction_can() -> None:
    say("talk/1", "first")
    elsewhere("talk/1", "second")
    say("talk/1", "third")
    events = read.read_stream("talk/1")
    assert sorted(events, key=lambda event: event.position) == events
