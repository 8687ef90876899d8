"""Eight writers whose transactions commit out of order, and a reader at their heels."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from ingest.log import append, read, types
from ingest.log.types import Context, Event, EventType, Head, NewEvent, Position

WRITERS = 8
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch, log_database: str) -> str:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(EventType("test.said"))
    return log_database


class Race:
    """Writers in threads with connections of their own; `committed` holds events in the order of their
    commits."""

    def __init__(self) -> None:
        self.committed: list[Event] = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(n,)) for n in range(WRITERS)]

    def write(self, number: int) -> None:
        chance, head = random.Random(number), Head.NEW
        try:
            while not self.stop.is_set():
                with transaction.atomic():
                    events: list[Event] = []
                    for _ in range(chance.randint(1, 3)):
                        new = [NewEvent("test.said", {"n": n}, NOON) for n in range(chance.randint(1, 2))]
                        events += append.append(
                            f"talk/{number}", new, events[-1].head if events else head, Context("a")
                        )
                        time.sleep(chance.random() * 0.004)
                    abandoned = chance.random() < 0.1
                    transaction.set_rollback(abandoned)
                if not abandoned:
                    head = events[-1].head
                    self.committed += events
        finally:
            connection.close()

    def run(self, enough: Callable[[Race], bool]) -> list[Event]:
        """Events that a reader got who went on from the last position each time, a few events at a time."""
        delivered: list[Event] = []
        for thread in self.threads:
            thread.start()
        while True:
            if enough(self):
                self.stop.set()
            over = not any(thread.is_alive() for thread in self.threads)
            batch = read.read_all(delivered[-1].position if delivered else Position.START, limit=7)
            delivered += batch
            if over and not batch:
                return delivered


def burn_up_to(txid: int) -> None:
    """Use up transaction ids until the next one is `txid`."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"DO $$ BEGIN WHILE pg_current_xact_id()::text::bigint < {txid - 1} LOOP COMMIT; END LOOP; END $$"
        )


def next_boundary() -> int:
    """The next power of ten that transaction ids will reach."""
    boundary: int = 10 ** len(str(read.watermark().txid + 300))
    return boundary


def check(race: Race, delivered: list[Event]) -> None:
    ids = [event.id for event in delivered]
    assert len(ids) == len(set(ids)), "delivered twice"
    assert set(ids) == {event.id for event in race.committed}, "skipped"
    assert delivered == sorted(delivered, key=lambda event: event.position)
    assert race.committed != delivered, "the transactions were meant to commit out of order"


def test_no_event_is_skipped_or_repeated_while_writers_race_across_a_digit_boundary() -> None:
    boundary = next_boundary()
    burn_up_to(boundary - 200)
    race = Race()
    delivered = race.run(
        lambda race: bool(race.committed) and race.committed[-1].position.txid > boundary + 200
    )
    assert delivered[0].position.txid < boundary < delivered[-1].position.txid
    check(race, delivered)


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_no_event_is_skipped_or_repeated_in_two_minutes_of_racing() -> None:
    until = time.monotonic() + 120
    race = Race()
    check(race, race.run(lambda _: time.monotonic() > until))
