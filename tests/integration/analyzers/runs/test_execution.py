"""A run from telemetry at the door to events in the log, and the same again from what it kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from analyzers import runner
from analyzers.commands import InvalidRunError, RunNotRepeatableError, RunRequest, request_rerun, request_run
from analyzers.queries import late_rows, verdict
from analyzers.runs import execution, tasks
from analyzers.runs.models import Run, Schedule, State, StoredVerdict, StoredWindow
from analyzers.runs.scheduler import claim_due
from ingest.commands import lease
from ingest.queries import read_stream
from tests.integration.analyzers.runs.cases import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    TOP,
    Door,
    healthy,
    hourly,
    outcome,
    work,
)
from tests.places import EVENTS

pytestmark = pytest.mark.usefixtures("log_database", "tally")


@pytest.fixture
def door() -> Door:
    return Door()


def by_hand(**changes: object) -> Run:
    wanted = RunRequest(**{"analyzer": "tally", "start": TOP, "end": TOP + HOUR, **changes})  # type: ignore[arg-type]
    request_run(wanted, "user:alice", NOW)
    return work()[-1]


def scheduled(schedule: Schedule) -> Run:
    """The schedule's next run, whether the arrival of telemetry or a tick has asked for it."""
    claim_due([schedule], NOW)
    return work()[-1]


def test_telemetry_at_the_door_becomes_a_finding_in_the_log(door: Door) -> None:
    schedule = hourly()
    door.post(healthy(a=9))
    door.post([outcome("tor/a", TOP + HOUR + MINUTE)])
    run = scheduled(schedule)
    recorded, finding = read_stream(run.stream)
    assert (recorded.type, finding.type) == ("analysis.recorded", "finding.reported")
    assert finding.body["suspect"]["component"] == "tor/a"
    assert finding.body["schedule"] == "hourly@default"
    assert finding.trace == str(run.id)


def test_the_events_have_the_keys_of_their_goldens(door: Door) -> None:
    door.post(healthy(a=9))
    goldens = EVENTS
    for event in read_stream(by_hand().stream):
        golden = json.loads((goldens / f"{event.type}.v1.json").read_text())
        assert event.body.keys() == golden.keys()


def test_a_quiet_window_is_recorded_and_accuses_no_one(door: Door) -> None:
    door.post(healthy())
    run = by_hand()
    assert [event.type for event in read_stream(run.stream)] == ["analysis.recorded"]
    assert (run.status, run.blamed) == ("quiet", [])


def test_a_run_that_is_not_to_report_records_its_verdict_alone(door: Door) -> None:
    door.post(healthy(a=9))
    run = by_hand(report=False)
    assert [event.type for event in read_stream(run.stream)] == ["analysis.recorded"]
    assert run.status == "named"


def test_an_analyzer_that_crashes_is_a_failed_run_and_no_verdict(door: Door) -> None:
    door.post(healthy())
    run = by_hand(params={"crash": True})
    (event,) = read_stream(run.stream)
    assert event.type == "analysis.failed"
    assert "as asked" in event.body["error"]
    assert (run.state, run.verdict_hash) == ("failed", "")


def test_a_run_that_loses_its_workers_is_given_up(door: Door) -> None:
    door.post(healthy())
    run = request_run(RunRequest("tally", start=TOP, end=TOP + HOUR), "user:alice", NOW)
    at = NOW
    for _ in range(execution.MOST_ATTEMPTS):
        assert lease.take_up(Run, run.pk, at) is not None
        at += lease.lease() + SECOND
    execution.execute(run.pk, lambda: at)
    (event,) = read_stream(run.stream)
    assert "workers ended" in event.body["error"]


def test_a_worker_that_was_overtaken_records_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.post(healthy())
    run = request_run(RunRequest("tally", start=TOP, end=TOP + HOUR), "user:alice", NOW)
    judge = runner.judge

    def overtaken(*args: Any, **kwargs: Any) -> Any:
        """While this worker judges, its lease ends and another one does the whole run."""
        monkeypatch.setattr(runner, "judge", judge)
        execution.execute(run.pk, lambda: NOW + lease.lease() + SECOND)
        return judge(*args, **kwargs)

    monkeypatch.setattr(runner, "judge", overtaken)
    execution.execute(run.pk, lambda: NOW)
    assert len(read_stream(run.stream)) == 1
    assert Run.objects.get().attempts == 2


def test_a_done_run_is_not_done_again(door: Door) -> None:
    door.post(healthy())
    run = by_hand()
    assert execution.execute(run.pk, lambda: datetime.now(UTC)) is None


def test_history_reaches_back_into_windows_that_nobody_ran(door: Door) -> None:
    door.post(healthy(length=3 * HOUR))
    run = by_hand(start=TOP + 2 * HOUR, end=TOP + 3 * HOUR)
    found = verdict(run)
    assert found is not None
    assert found["measures"]["history"] == [3, 3]


def test_history_does_not_reach_back_before_the_telemetry(door: Door) -> None:
    door.post(healthy(length=2 * HOUR))
    assert len(by_hand(start=TOP + HOUR, end=TOP + 2 * HOUR).history) == 1


def test_history_is_the_windows_that_were_kept(door: Door) -> None:
    door.post(healthy(length=2 * HOUR))
    first = by_hand()
    door.post([outcome("tor/late", TOP + MINUTE)])
    second = by_hand(start=TOP + HOUR, end=TOP + 2 * HOUR)
    assert [past["hash"] for past in second.history] == [first.window_hash]


def test_equal_windows_are_kept_once(door: Door) -> None:
    door.post(healthy())
    assert by_hand().window_hash == by_hand().window_hash
    assert StoredWindow.objects.count() == 1
    assert StoredVerdict.objects.count() == 1


def test_the_input_named_is_used_though_another_has_rows(door: Door) -> None:
    door.post(healthy())
    assert by_hand(input="units").input == "units"


def test_the_first_input_that_has_rows_is_used(door: Door) -> None:
    unit = {"time": TOP.isoformat(), "unit": "vm/1", "components": ["tor/a"]}
    door.post([unit], kind="placement")
    assert by_hand().input == "units"


def test_a_re_run_is_the_same_byte_by_byte(door: Door) -> None:
    door.post(healthy(a=9))
    first = by_hand()
    request_rerun(first.pk, "user:alice", NOW)
    (again,) = work()
    assert again.identical is True
    assert again.verdict_hash == first.verdict_hash
    assert [event.type for event in read_stream(again.stream)] == ["analysis.repeated"]


def test_a_re_run_is_the_same_after_late_rows_and_after_the_telemetry_is_gone(door: Door) -> None:
    door.post(healthy(length=2 * HOUR, a=9))
    first = by_hand(start=TOP + HOUR, end=TOP + 2 * HOUR)
    door.post([outcome("tor/b", TOP + HOUR + MINUTE, failures=10, attempts=1000)])
    (late,) = late_rows(first)
    assert (late["kind"], late["rows"]) == ("path_outcome", 1)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE telemetry_path_outcome")
    request_rerun(first.pk, "user:alice", NOW)
    (again,) = work()
    assert again.identical is True


def test_a_run_that_failed_cannot_be_repeated(door: Door) -> None:
    door.post(healthy())
    failed = by_hand(params={"crash": True})
    with pytest.raises(RunNotRepeatableError, match="failed"):
        request_rerun(failed.pk, "user:alice", NOW)


def test_a_re_run_by_another_version_is_refused(door: Door) -> None:
    door.post(healthy())
    first = by_hand()
    Run.objects.update(version="0.9.0")
    with pytest.raises(RunNotRepeatableError, match=r"0\.9\.0, which is installed as 1\.0\.0"):
        request_rerun(first.pk, "user:alice", NOW)


def test_a_length_alone_means_up_to_the_newest_telemetry(door: Door) -> None:
    door.post(healthy())
    run = by_hand(start=None, end=None, length=HOUR)
    assert run.window_end == TOP + 59 * MINUTE + SECOND


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("analyzer", {"analyzer": "tallly"}),
        ("params", {"params": {"share": 2}}),
        ("input", {"input": "nothing"}),
        ("window", {"end": TOP}),
        ("window", {"start": None, "end": None, "length": HOUR}),
        ("history", {"history": 1000}),
    ],
)
def test_a_run_that_cannot_be_is_refused_with_the_field(field: str, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidRunError) as refusal:
        by_hand(**wrong)
    assert refusal.value.field == field


def test_catching_up_takes_the_windows_one_after_the_other(door: Door) -> None:
    schedule = hourly()
    door.post(healthy(length=HOUR + 17 * MINUTE))
    ends = [scheduled(schedule).window_end for _ in range(4)]
    assert ends == [TOP + HOUR + n * 5 * MINUTE for n in range(4)]


def test_telemetry_that_arrives_asks_for_its_run_at_once(door: Door) -> None:
    hourly()
    door.post(healthy(length=HOUR + 2 * MINUTE))
    (run,) = Run.objects.all()
    assert (run.state, run.window_end) == (State.QUEUED, TOP + HOUR)


def test_a_worker_goes_straight_on_to_the_next_window(door: Door) -> None:
    hourly()
    door.post(healthy(length=HOUR + 12 * MINUTE))
    for _ in range(3):
        (run,) = Run.objects.filter(state=State.QUEUED)
        tasks.execute(str(run.pk))
    assert Run.objects.filter(state=State.DONE).count() == 3
    assert not Run.objects.filter(state=State.QUEUED).exists()


def test_a_schedule_deleted_while_its_run_is_under_way_leaves_the_run(door: Door) -> None:
    schedule = hourly()
    door.post(healthy(length=HOUR + 12 * MINUTE))
    (run,) = Run.objects.all()
    schedule.delete()
    tasks.execute(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.schedule, run.schedule_key) == (State.DONE, None, "hourly@default")
    assert Run.objects.count() == 1
