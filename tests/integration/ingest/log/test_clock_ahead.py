"""A deliverer whose machine is an hour ahead acts, and dates what it records, by Postgres' clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from incidents.worker import sweeps
from ingest.db import database
from ingest.log import append, inclusion
from ingest.log.types import Context, Head, NewEvent

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(database, "local_time", lambda: time.time() + 3600)
    database._measured.clear()
    database.measured(datetime.now(UTC), database.local_time(), database.local_time())
    yield
    database._measured.clear()


def test_sweeps_are_told_the_time_of_the_database(log_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del log_database
    told, stop = list[datetime](), threading.Event()

    def look(now: datetime) -> int:
        told.append(now)
        stop.set()
        return 0

    monkeypatch.setattr(sweeps, "_sweeps", {"test": look})
    sweeps.run_sweeps(stop)
    assert abs(told[0] - datetime.now(UTC)) < HOUR / 2


def test_events_are_not_dated_in_the_future(log_database: str) -> None:
    del log_database
    body = {"from": "0", "upto": "0", "events": 0, "root": "", "heads": {}, "previous": None}
    (event,) = append.append(
        inclusion.STREAM, [NewEvent("log.sealed", body, database.now())], Head.NEW, Context("system:test")
    )
    assert abs(event.recorded_at - datetime.now(UTC)) < HOUR / 2
    assert abs(event.occurred_at - datetime.now(UTC)) < HOUR / 2
