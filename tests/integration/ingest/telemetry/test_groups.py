"""Small bodies that share a transaction: each is stored or refused as if it were alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import Error, IntegrityError, OperationalError, connection, connections

from ingest.log.read import read_stream
from ingest.log.types import Event
from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import write
from ingest.telemetry.store.write import (
    Delivery,
    IdempotencyConflictError,
    PendingBody,
    Receipt,
    receive,
    store,
)

pytestmark = pytest.mark.usefixtures("log_database")

NOW = datetime.now(UTC).replace(microsecond=0)
Outcome = Receipt | Error | IdempotencyConflictError


def failures(*units: str, at: datetime = NOW) -> Rows:
    assembly = Assembly(KINDS["unit_failure"], "default")
    values = {field.name: [None] * len(units) for field in assembly.kind.all_fields}
    assembly.add({**values, "time": [at] * len(units), "unit": units}, np.arange(1, len(units) + 1))
    return assembly.rows(Bounds())


def delivery(name: str, again: str | None = None) -> Delivery:
    return Delivery("bob", name.encode().ljust(32, b"\0"), 1, trace=name, idempotency_key=again)


class Crowd:
    """Bodies that all wait behind one that is at work, so that they are stored together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[list[str | None]] = []
        self.may_go_on = threading.Event()
        monkeypatch.setattr(write, "store", self.store)
        receive(failures("vm/first"), delivery("makes partitions and names"))
        self.groups.clear()

    def store(self, bodies: Sequence[PendingBody]) -> list[bool]:
        self.groups.append([body.delivery.trace for body in bodies])
        if bodies[0].delivery.trace == "leader":
            assert self.may_go_on.wait(20)
        return store(bodies)

    def receive(self, *bodies: tuple[Rows, Delivery]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}

        def run(place: int, rows: Rows, delivery: Delivery) -> None:
            try:
                outcomes[place] = receive(rows, delivery)
            except (Error, IdempotencyConflictError) as error:
                outcomes[place] = error
            connections.close_all()

        crowd = [(failures("vm/leader"), delivery("leader")), *bodies]
        threads = [threading.Thread(target=run, args=(place, *body)) for place, body in enumerate(crowd)]
        for waiting, thread in enumerate(threads):
            thread.start()
            self._until(lambda wanted=waiting: self._waits(wanted))  # type: ignore[misc]
        self.may_go_on.set()
        for thread in threads:
            thread.join(30)
        return [outcomes[place] for place in range(1, len(crowd))]

    def _waits(self, wanted: int) -> bool:
        (group,) = (g for name, g in write._groups.items() if name == connection.settings_dict["NAME"])
        return ["leader"] in self.groups and len(group._waiting) == wanted

    def _until(self, happened: Callable[[], bool]) -> None:
        done = threading.Event()
        deadline = datetime.now(UTC) + timedelta(seconds=20)
        while not happened():
            assert datetime.now(UTC) < deadline
            done.wait(0.001)


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Crowd:
    return Crowd(monkeypatch)


def ids(outcomes: Sequence[Outcome]) -> list[str]:
    assert all(isinstance(outcome, Receipt) for outcome in outcomes), outcomes
    return [outcome.id for outcome in outcomes if isinstance(outcome, Receipt)]


def stored_units() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM telemetry_unit_failure JOIN telemetry_name ON id = unit"
            " WHERE name NOT IN ('vm/first', 'vm/leader') ORDER BY name"
        )
        return [name for (name,) in cursor.fetchall()]


def event_of(receipt: str) -> Event:
    (event,) = read_stream(f"receipt/{receipt}")
    return event


def test_bodies_that_wait_are_stored_in_one_transaction(crowd: Crowd) -> None:
    outcomes = crowd.receive(*[(failures(f"vm/{n}"), delivery(f"n{n}")) for n in range(5)])
    events = [event_of(receipt) for receipt in ids(outcomes)]
    assert crowd.groups == [["leader"], ["n0", "n1", "n2", "n3", "n4"]]
    assert len({event.position.txid for event in events}) == 1


def test_rows_and_event_are_of_one_transaction() -> None:
    receipt = receive(failures("vm/1"), delivery("alone"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin::text::bigint FROM telemetry_unit_failure")
        assert cursor.fetchall() == [(event_of(receipt.id).position.txid % 2**32,)]


def test_each_of_them_has_a_receipt_and_rows_of_its_own(crowd: Crowd) -> None:
    bodies = [(failures(*[f"vm/{n}-{i}" for i in range(n + 1)]), delivery(f"n{n}")) for n in range(5)]
    receipts = ids(crowd.receive(*bodies))
    assert len(set(receipts)) == 5
    assert [event_of(receipt).trace for receipt in receipts] == [f"n{n}" for n in range(5)]
    assert [event_of(receipt).body["rows"] for receipt in receipts] == [1, 2, 3, 4, 5]
    assert stored_units() == sorted(f"vm/{n}-{i}" for n in range(5) for i in range(n + 1))


def test_rows_carry_the_number_of_their_own_receipt(crowd: Crowd) -> None:
    receipts = ids(crowd.receive(*[(failures(f"vm/{n}"), delivery(f"n{n}")) for n in range(3)]))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, r.receipt::text FROM telemetry_unit_failure AS t JOIN telemetry_name AS n ON n.id = unit"
            " JOIN telemetry_receipt AS r ON r.number = t.receipt WHERE name ~ '[0-9]' ORDER BY name"
        )
        assert cursor.fetchall() == [(f"vm/{n}", receipt) for n, receipt in enumerate(receipts)]


def test_their_receipts_say_where_their_events_stand(crowd: Crowd) -> None:
    receipts = ids(crowd.receive(*[(failures(f"vm/{n}"), delivery(f"n{n}")) for n in range(3)]))
    for receipt in receipts:
        place = event_of(receipt).position
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT epoch, txid::text::bigint, seq FROM telemetry_receipt WHERE receipt = %s", (receipt,)
            )
            assert cursor.fetchone() == (place.epoch, place.txid, place.seq)


def test_a_key_that_was_used_for_another_body_harms_no_other(crowd: Crowd) -> None:
    receive(failures("vm/before"), delivery("before", again="once"))
    good, conflict, also_good = crowd.receive(
        (failures("vm/1"), delivery("n1", again="one")),
        (failures("vm/2"), delivery("n2", again="once")),
        (failures("vm/3"), delivery("n3")),
    )
    assert isinstance(conflict, IdempotencyConflictError)
    assert len(ids([good, also_good])) == 2
    assert stored_units() == ["vm/1", "vm/3", "vm/before"]


def test_a_body_and_its_re_send_are_stored_once_also_side_by_side(crowd: Crowd) -> None:
    bodies = [(failures("vm/1"), delivery("same", again="once")) for _ in range(3)]
    first, second, third = crowd.receive(*bodies)
    assert ids([first]) == ids([second]) == ids([third])
    assert stored_units() == ["vm/1"]


def test_two_bodies_of_one_key_side_by_side_are_one_stored_and_one_refused(crowd: Crowd) -> None:
    first, second = crowd.receive(
        (failures("vm/1"), delivery("one", again="once")), (failures("vm/2"), delivery("two", again="once"))
    )
    assert ids([first])
    assert isinstance(second, IdempotencyConflictError)
    assert stored_units() == ["vm/1"]


def test_a_body_that_the_database_refuses_harms_no_other(crowd: Crowd) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE telemetry_receipt ADD CONSTRAINT small CHECK (rows < 3 OR receipt IS NULL)"
        )
    good, bad, also_good = crowd.receive(
        (failures("vm/1"), delivery("n1")),
        (failures("vm/2", "vm/3", "vm/4"), delivery("n2")),
        (failures("vm/5"), delivery("n3")),
    )
    assert isinstance(bad, IntegrityError)
    assert len(ids([good, also_good])) == 2
    assert stored_units() == ["vm/1", "vm/5"]


def test_a_partition_that_was_dropped_is_made_again_for_the_one_that_needs_it(crowd: Crowd) -> None:
    long_ago = NOW - timedelta(days=2)
    receive(failures("vm/before", at=long_ago), delivery("before"))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM telemetry_unit_failure WHERE time = %s", (long_ago,)
        )
        cursor.execute(f"DROP TABLE {cursor.fetchone()[0]}")
    assert ids(
        crowd.receive((failures("vm/1"), delivery("n1")), (failures("vm/2", at=long_ago), delivery("n2")))
    )
    assert stored_units() == ["vm/1", "vm/2"]


def test_when_the_connection_breaks_nobody_is_told_that_it_was_stored(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(bodies: Sequence[PendingBody]) -> list[bool]:
        if bodies[0].delivery.trace == "leader":
            return crowd.store(bodies)
        crowd.groups.append([body.delivery.trace for body in bodies])
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        raise AssertionError("unreachable")

    monkeypatch.setattr(write, "store", breaks)
    outcomes = crowd.receive((failures("vm/1"), delivery("n1")), (failures("vm/2"), delivery("n2")))
    assert [type(outcome) for outcome in outcomes] == [OperationalError, OperationalError]
    assert crowd.groups == [["leader"], ["n1", "n2"]], "a lost connection must not be tried again"
    assert stored_units() == []


def test_a_large_body_has_its_transaction_to_itself(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "MOST_ROWS", 1)
    crowd.may_go_on.set()
    receive(failures("vm/1", "vm/2"), delivery("large"))
    assert crowd.groups == [["large"]]
    assert write._groups[str(connection.settings_dict["NAME"])]._waiting == []


def test_bodies_of_several_kinds_are_stored_together(crowd: Crowd) -> None:
    assembly = Assembly(KINDS["placement"], "default")
    values = {field.name: [None] for field in assembly.kind.all_fields}
    assembly.add({**values, "time": [NOW], "unit": ["vm/1"], "components": [["host/1"]]}, np.arange(1, 2))
    outcomes = crowd.receive((failures("vm/1"), delivery("n1")), (assembly.rows(Bounds()), delivery("n2")))
    assert [event_of(receipt).body["kind"] for receipt in ids(outcomes)] == ["unit_failure", "placement"]
    assert crowd.groups == [["leader"], ["n1", "n2"]]


def test_receipts_are_neighbours_in_the_index_of_streams() -> None:
    receipts = [receive(failures("vm/a"), delivery(f"body {number}")).id for number in range(20)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO log_stream SELECT 'receipt/' || gen_random_uuid(), 1, sha256(''), 1, '1', 1, 1"
            " FROM generate_series(1, 10000)"
        )
        cursor.execute(
            "SELECT count(*) FROM log_stream WHERE stream BETWEEN 'receipt/' || %s AND 'receipt/' || %s",
            (min(receipts), max(receipts)),
        )
        (between,) = cursor.fetchone()
    assert between == 20
