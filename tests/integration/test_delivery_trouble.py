"""Receivers that never answer, processes that die, many at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from incidents.delivery.claiming import Outgoing, claim
from incidents.delivery.lanes import THREADS, Lanes
from incidents.delivery.models import Notification, Sending
from incidents.delivery.planning import plan_new
from incidents.delivery.recording import Result, record_results
from incidents.delivery.running import Deliverer, run
from incidents.domain.replies import Reply
from tests.integration.delivery_cases import (
    HookSink,
    MailSink,
    call,
    deliver,
    ended,
    hook,
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
    assert hooks.asked.wait(10)
    person("alice")
    call(incident, "alice")
    until(lambda: deliverer.round(later(1)) >= 0 and len(mails.mails) == 1)
    assert len(deliverer.lanes.full()) == 1
    hooks.silent.set()
    until(lambda: not deliverer.lanes.busy)


def test_a_lane_that_was_slow_to_fail_gets_one_message_at_a_time() -> None:
    def slow(_: Outgoing) -> Reply:
        time.sleep(1.05)
        return Reply("passing", "no answer")

    lanes = Lanes(slow)
    person()
    call(ticket())
    plan_new(later(0))
    (outgoing,) = claim(later(0), (), plenty)
    lanes.submit(outgoing)
    until(lambda: not lanes.busy)
    assert lanes.room(outgoing.lane) == 1


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
    assert record_results([Result(lost.sendings, Reply("taken"), 0.5)], later(121)) == 0
    assert record_results([Result(again.sendings, Reply("taken"), 0.5)], later(121)) == 1
    assert outcomes(incident) == ["sent"]


def test_a_lease_of_a_clock_that_was_set_back_ends() -> None:
    person()
    call(ticket())
    plan_new(later(0))
    (lost,) = claim(later(3600), (), plenty)
    assert claim(later(3600 - 60), (), plenty) == []
    (again,) = claim(later(0), (), plenty)
    assert again.id == lost.id


def test_an_answer_is_recorded_once() -> None:
    person()
    incident = ticket()
    call(incident)
    plan_new(later(0))
    (sent,) = claim(later(0), (), plenty)
    result = Result(sent.sendings, Reply("taken"), 0.5)
    assert [record_results([result], later(1)) for _ in range(2)] == [1, 0]
    assert outcomes(incident) == ["sent"]


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


@contextmanager
def deliverer(database: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "DATABASE_URL": database,
        "DOSSIER_SECRET_KEY": "tests",
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
        "OUTGOING_ALLOW": "127.0.0.0/8",
    }
    command = [sys.executable, "manage.py", "deliver"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()  # else a test that fails waits for it


def test_killed_in_the_middle_nothing_is_lost_and_each_ticket_is_told(
    log_database: str, hooks: HookSink, settings: Any
) -> None:
    incident = ticket()
    people = [f"bob{number}" for number in range(12)]
    for name in people:
        hook(person(name), hooks.url)
        call(incident, name)
    hooks.silent = threading.Event()
    with deliverer(log_database, settings.EMAIL_PORT) as first:
        assert hooks.asked.wait(90)
        first.send_signal(signal.SIGKILL)
    silent, hooks.silent = hooks.silent, None
    silent.set()
    assert Sending.objects.filter(lease_until__isnull=False).exists()
    with deliverer(log_database, settings.EMAIL_PORT) as second:
        until(lambda: len(hooks.taken) >= len(people) - THREADS, patience=30)
        # Those that the dead one had are due when their lease is over, of which the test makes the end.
        until(lambda: Sending.objects.filter(state="sent").count() >= len(people) - THREADS)
        Sending.objects.filter(state="waiting").update(lease_until=datetime.now(UTC))
        until(lambda: not Notification.objects.exclude(state="done").exists(), patience=30)
        second.send_signal(signal.SIGTERM)
        assert second.wait(15) == 0
    ids = [body["id"] for _, body in hooks.taken]
    assert len(ids) == len(set(ids)) == len(people)
    assert outcomes(incident) == ["sent"] * len(people)
