"""Receivers that never answer, processes that die, many at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext

from incidents.domain.notifications.delivery import LONGEST_WAIT, Reply
from incidents.notifications.dispatcher import THREADS, Deliverer, WorkerPool, run
from incidents.notifications.models import NotificationDelivery
from incidents.notifications.queue import Outgoing, catch_up, claim, plan_new
from incidents.notifications.results import Result, record_results
from incidents.worker import leader
from incidents.worker.leader import Presence
from tests.integration.incidents.notifications.cases import (
    HookSink,
    MailSink,
    call,
    deliver,
    ended,
    hook,
    is_there,
    later,
    outcomes,
    person,
    ticket,
    until,
)

pytestmark = pytest.mark.usefixtures("log_database")


def plenty(_: str) -> int:
    return 100


def test_a_receiver_that_never_answers_keeps_nobody_else_waiting(mails: MailSink, hooks: HookSink) -> None:
    hooks.silent = threading.Event()
    incident = ticket()
    for number in range(2 * THREADS):
        hook(person(f"bob{number}"), hooks.url)
        call(incident, f"bob{number}")
    deliverer = Deliverer()
    deliverer.round(later(0))
    assert hooks.asked.wait(60)
    person("alice")
    call(incident, "alice")
    until(lambda: deliverer.round(later(1)) >= 0 and len(mails.mails) == 1)
    assert len(deliverer.pool.full()) == 1
    hooks.silent.set()
    until(lambda: not deliverer.pool.busy)


def test_a_round_without_anything_waiting_is_one_statement() -> None:
    deliverer = Deliverer()
    deliverer.round(later(0))
    with CaptureQueriesContext(connection) as idle:
        deliverer.round(later(1))
    person()
    call(ticket())
    with CaptureQueriesContext(connection) as busy:
        assert deliverer.round(later(2)) == 2
    assert len(idle) == 1 < len(busy)


def test_a_lane_that_was_slow_to_fail_gets_one_message_at_a_time() -> None:
    def slow(_: Outgoing) -> Reply:
        time.sleep(1.05)
        return Reply("passing", "no answer")

    lanes = WorkerPool(slow)
    person()
    call(ticket())
    plan_new(later(0))
    (outgoing,) = claim(later(0), (), plenty)
    lanes.submit(outgoing)
    until(lambda: not lanes.busy)
    assert lanes.room(outgoing.queue) == 1


def test_two_processes_never_claim_the_same_message() -> None:
    person()
    call(ticket())
    plan_new(later(0))
    assert [len(claim(later(0), (), plenty)) for _ in range(3)] == [1, 0, 0]


def test_a_message_whose_process_died_is_sent_again_under_the_same_id(mails: MailSink) -> None:
    person()
    incident = ticket()
    call(incident)
    plan_new(later(0))
    (lost,) = claim(later(0), (), plenty)
    deliver(30)
    assert mails.mails == []
    deliver(120)
    assert [mail["Message-ID"] for mail in mails.mails] == [f"<{lost.id}@localhost>"]
    assert outcomes(incident) == ["sent"]


def test_an_answer_that_comes_after_the_lease_counts_for_nothing() -> None:
    person()
    incident = ticket()
    call(incident)
    plan_new(later(0))
    (lost,) = claim(later(0), (), plenty)
    (again,) = claim(later(120), (), plenty)
    assert record_results([Result(lost.deliveries, Reply("taken"), 0.5)], later(121)) == 0
    assert record_results([Result(again.deliveries, Reply("taken"), 0.5)], later(121)) == 1
    assert outcomes(incident) == ["sent"]


def test_a_lease_of_a_clock_that_was_set_back_ends() -> None:
    person()
    call(ticket())
    plan_new(later(0))
    (lost,) = claim(later(3600), (), plenty)
    assert claim(later(3600 - 60), (), plenty) == []
    (again,) = claim(later(0), (), plenty)
    assert again.id == lost.id


@contextmanager
def session() -> Iterator[BaseDatabaseWrapper]:
    one = connection.copy()
    with one.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (process,) = cursor.fetchone()
    yield one
    one.close()
    until(lambda: not is_there([process]))


def test_what_a_process_claimed_whose_session_ended_is_taken_over_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person()
    call(ticket())
    plan_new(later(0))
    dead, other = Presence(), Presence()
    with session() as its:
        dead.look(its)
        (lost,) = claim(later(0), (), plenty, dead.number)
    with session() as another:
        other.look(another)
        assert claim(later(1), (), plenty, other.number) == []
        monkeypatch.setattr(leader, "GRACE", 0.0)
        other.look(another)
        (again,) = claim(later(2), (), plenty, other.number)
    assert again.id == lost.id
    with session() as its:  # it was alive after all, and may not go on with what it had claimed
        dead.look(its)
    assert not dead.holds(lost.holder, 0.0)


def test_a_process_that_lost_its_session_keeps_what_it_claimed_if_it_is_back_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person()
    call(ticket())
    plan_new(later(0))
    alive, other = Presence(), Presence()
    with session() as its:
        alive.look(its)
        (mine,) = claim(later(0), (), plenty, alive.number)
    with session() as another, session() as its:
        other.look(another)
        alive.look(its)
        monkeypatch.setattr(leader, "GRACE", 0.0)
        other.look(another)
        assert claim(later(1), (), plenty, other.number) == []
    assert alive.holds(mine.holder, 0.0)


def test_what_was_called_before_the_clock_was_set_back_does_not_wait_for_it() -> None:
    person()
    call(ticket(), when=later(7200))
    plan_new(later(7200))
    assert claim(later(0), (), plenty) == []
    assert (catch_up(later(7200 - 30)), catch_up(later(0))) == (0, 1)
    assert len(claim(later(0), (), plenty)) == 1


def test_what_was_to_be_tried_again_by_a_clock_that_was_set_back_is_tried_now() -> None:
    person()
    call(ticket())
    plan_new(later(0))
    NotificationDelivery.objects.update(attempts=1, next_at=later(86_400))
    at = 86_400 - LONGEST_WAIT.total_seconds() - 61
    assert [catch_up(later(at + 2)), catch_up(later(at - 2))] == [0, 1]


def test_an_answer_is_recorded_once() -> None:
    person()
    incident = ticket()
    call(incident)
    plan_new(later(0))
    (sent,) = claim(later(0), (), plenty)
    result = Result(sent.deliveries, Reply("taken"), 0.5)
    assert [record_results([result], later(1)) for _ in range(2)] == [1, 0]
    assert outcomes(incident) == ["sent"]


def test_an_answer_that_cannot_be_kept_costs_neither_itself_nor_the_others() -> None:
    tickets = [ticket(), ticket(), ticket()]
    for one, name in zip(tickets, ("alice", "bob", "charlie"), strict=True):
        person(name)
        call(one, name)
    plan_new(later(0))
    sent = claim(later(0), (), plenty)
    whys = ("fine", "no text of a database: \0", "fine")
    results = [Result(one.deliveries, Reply("taken", why), 0.5) for one, why in zip(sent, whys, strict=True)]
    assert record_results(results, later(1)) == 3
    assert [outcomes(one) for one in tickets] == [["sent"]] * 3


def test_the_process_delivers_what_is_called_while_it_runs(mails: MailSink) -> None:
    person()
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(stop, 0.05))
    thread.start()
    key = call(ticket())
    until(lambda: ended(key) == ("done", "sent"))
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert len(mails.mails) == 1
