"""Claims of windows and runs: once, one at a time, in order, whoever tries."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from celery import current_app
from django.db import connection
from django.db.models import F
from kombu.exceptions import OperationalError

from analyzers.runs import execution
from analyzers.runs.models import Run, Schedule, State, TelemetryCursor
from analyzers.runs.scheduler import claim_due, send
from ingest.commands import lease
from tests.integration.incidents.notifications.cases import is_there, until

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
pytestmark = pytest.mark.usefixtures("log_database")


def feed(until: datetime, region: str = "default", kind: str = "path_outcome") -> None:
    """Three hours of telemetry up to `until`."""
    TelemetryCursor.objects.update_or_create(
        region=region,
        kind=kind,
        defaults={
            "first": until - 3 * HOUR,
            "latest": until,
            "first_arrived_at": NOON,
            "arrived_at": NOON,
            "last_received_at": NOON,
        },
    )


def hourly(**changes: object) -> Schedule:
    Schedule.objects.all().delete()
    values = {"name": "hourly", "analyzer": "deepview", "length": HOUR, "every": 5 * MINUTE, **changes}
    return Schedule.objects.create(**values)


def at_once(work: Callable[[], object], times: int = 8) -> None:
    """Do the same in so many threads, each with a connection of its own, begun together; what a session locks stays
    locked until all are done. Returns when the server has ended the sessions, too: a busy one does so a moment later.
    """
    gate, sessions = threading.Barrier(times), []

    def one() -> None:
        try:
            connection.ensure_connection()
            sessions.append(connection.connection.info.backend_pid)
            gate.wait()
            work()
        finally:
            gate.wait()
            connection.close()

    name = connection.settings_dict["NAME"]

    def with_database() -> None:
        connection.settings_dict["NAME"] = name
        one()

    threads = [threading.Thread(target=with_database) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: not is_there(sessions))


def test_eight_ticks_at_once_claim_one_window() -> None:
    schedule = hourly()
    feed(NOON)
    at_once(lambda: claim_due([schedule], NOON))
    assert Run.objects.count() == 1


def test_the_next_window_waits_until_the_one_before_is_done() -> None:
    schedule = hourly()
    feed(NOON)
    assert claim_due([schedule], NOON) == 1
    assert claim_due([schedule], NOON) == 0
    Run.objects.update(state=State.DONE)
    assert claim_due([schedule], NOON) == 1
    first, second = Run.objects.order_by("window_end")
    assert second.window_end - first.window_end == 5 * MINUTE


def test_windows_that_a_wrong_clock_ran_ahead_of_time_are_run_again_in_their_time() -> None:
    schedule = hourly()
    feed(NOON)
    for now in (NOON + 8 * HOUR, NOON + 8 * HOUR):
        claim_due([schedule], now)
        Run.objects.update(state=State.DONE)
    Run.objects.update(window_end=F("window_end") + 3 * HOUR, window_start=F("window_start") + 3 * HOUR)
    assert claim_due([schedule], NOON + 5 * MINUTE) == 1
    assert Run.objects.get(schedule=schedule).window_end <= NOON + 5 * MINUTE


def test_a_run_that_was_taken_up_or_told_of_by_a_clock_that_was_set_back_waits_for_nobody() -> None:
    schedule = hourly()
    feed(NOON)
    claim_due([schedule], NOON)
    (queued,) = lease.waiting(Run, NOON)
    lease.note_sent(Run, [queued], NOON + 8 * HOUR)
    assert lease.waiting(Run, NOON) == [queued]
    assert lease.take_up(Run, queued, NOON + 8 * HOUR) is not None
    assert lease.waiting(Run, NOON) == [queued]
    assert lease.take_up(Run, queued, NOON) is not None


def test_every_region_has_windows_of_its_own() -> None:
    schedule = hourly()
    feed(NOON, "east")
    feed(NOON, "west")
    assert claim_due([schedule], NOON) == 2
    assert set(Run.objects.values_list("schedule_key", flat=True)) == {"hourly@east", "hourly@west"}


def test_a_schedule_of_one_region_leaves_the_others_alone() -> None:
    schedule = hourly(region="west")
    feed(NOON, "east")
    feed(NOON, "west")
    claim_due([schedule], NOON)
    assert [run.region for run in Run.objects.all()] == ["west"]


def test_a_schedule_whose_analyzer_is_gone_does_not_stop_the_others() -> None:
    gone = hourly(name="gone", analyzer="uninstalled")
    there = Schedule.objects.create(name="there", analyzer="deepview", length=HOUR, every=MINUTE)
    feed(NOON)
    assert claim_due([gone, there], NOON) == 1


def test_an_old_inventory_alone_is_not_a_reason_to_run_its_past() -> None:
    schedule = hourly()
    feed(NOON - timedelta(days=300), kind="placement")
    assert claim_due([schedule], NOON) == 0


def test_eight_workers_at_once_take_a_run_up_once() -> None:
    schedule = hourly()
    feed(NOON)
    claim_due([schedule], NOON)
    (run,) = Run.objects.all()
    taken: list[Run | None] = []
    at_once(lambda: taken.append(lease.take_up(Run, run.pk, NOON)))
    assert sum(one is not None for one in taken) == 1


def test_a_run_whose_worker_is_lost_is_taken_up_again_and_the_late_worker_may_not_finish() -> None:
    schedule = hourly()
    feed(NOON)
    claim_due([schedule], NOON)
    (run,) = Run.objects.all()
    lost = lease.take_up(Run, run.pk, NOON)
    assert lost is not None
    assert lease.take_up(Run, run.pk, NOON + lease.lease()) is None
    second = lease.take_up(Run, run.pk, NOON + lease.lease() + MINUTE)
    assert second is not None
    assert second.attempts == 2
    assert not execution.finish(lost, State.DONE, NOON)
    assert execution.finish(second, State.DONE, NOON)


def test_a_run_is_free_as_soon_as_the_session_of_its_worker_has_ended() -> None:
    schedule = hourly()
    feed(NOON)
    claim_due([schedule], NOON)
    (run,) = Run.objects.all()
    at_once(lambda: lease.take_up(Run, run.pk, NOON), times=1)
    lease.note_sent(Run, [run.pk], NOON)
    assert lease.waiting(Run, NOON) == [run.pk]
    second = lease.take_up(Run, run.pk, NOON)
    assert second is not None
    assert second.attempts == 2
    assert lease.waiting(Run, NOON) == []
    lease.let_go(second)
    assert lease.waiting(Run, NOON) == [run.pk]


def test_a_run_is_sent_once_and_again_only_when_nobody_took_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule = hourly()
    feed(NOON)
    claim_due([schedule], NOON)
    sent: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda _task, args, **_: sent.append(args[0]))
    assert [send(NOON + minutes * MINUTE) for minutes in (0, 0, 1)] == [1, 0, 1]
    lease.take_up(Run, uuid.UUID(sent[0]), NOON + MINUTE)
    assert send(NOON + 2 * MINUTE) == 0


def test_a_broker_that_is_away_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = hourly()
    feed(NOON)
    claim_due([schedule], NOON)

    def away(*_: object, **__: object) -> None:
        raise OperationalError("no broker")

    with monkeypatch.context() as patched:
        patched.setattr(current_app, "send_task", away)
        assert send(NOON) == 0
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)
    assert send(NOON) == 1
