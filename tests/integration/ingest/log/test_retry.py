"""Two transactions that wait for each other: the server ends one, which is done again."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, transaction

from ingest.log.append import retrying

pytestmark = pytest.mark.usefixtures("log_database")


class Crossing:
    """Locks one and then the other; the first time it waits until somebody else has the other."""

    def __init__(self, first: int, then: int, both: threading.Barrier) -> None:
        self.keys, self.both, self.times = (first, then), both, 0

    @transaction.atomic
    def __call__(self) -> int:
        self.times += 1
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '20ms'")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (self.keys[0],))
            if self.times == 1:
                self.both.wait(30)
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (self.keys[1],))
        return self.times

    def carry_out(self, attempts: int) -> int:
        try:
            return retrying(self, attempts)
        finally:
            connection.close()


def crossing(attempts: int) -> list[int]:
    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        two = [pool.submit(Crossing(*keys, both).carry_out, attempts) for keys in ((71, 72), (72, 71))]
        return sorted(one.result() for one in two)


def test_the_victim_of_a_deadlock_is_done_again() -> None:
    assert crossing(attempts=8) == [1, 2]


def test_it_is_raised_where_no_attempt_is_left() -> None:
    with pytest.raises(OperationalError, match="deadlock"):
        crossing(attempts=1)
