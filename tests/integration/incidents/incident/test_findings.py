"""Findings in the log become incidents. Each test appends what runs record and lets the follower run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction

from analyzers.runs.models import TelemetryCursor
from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.values import rfc3339
from incidents.follower import follower
from incidents.incident import rebuild as rebuilding
from incidents.incident.models import ScheduleWindowRow
from incidents.incident.rebuild import rebuild
from ingest.commands import append
from ingest.queries import Context, Head, NewEvent, ordered_id, read_all, read_stream
from tests.following import follow_to_the_end

ALICE = Context("user:alice")
START = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
S7, T12 = "storage_cluster/s7", "tor/t12"
pytestmark = pytest.mark.usefixtures("log_database")


def suspect(component: str = S7, *others: str, score: float = 0.93, sure: bool = False) -> dict[str, Any]:
    return {
        "component": component,
        "ambiguous_with": list(others),
        "score": score,
        "sure": sure,
        "estimate": {"failure_rate": 0.021, "low": 0.018, "high": 0.024},
        "summary": "It fails.",
        "first_failure": None,
        "last_failure": None,
    }


def run(
    minutes: int,
    *suspects: dict[str, Any],
    schedule: str | None = "every-5m",
    status: str | None = None,
    analyzer: str = "deepview",
) -> str:
    """Records a run over the hour that ends so many minutes after the start; returns its id."""
    run_id, end = str(uuid4()), START + timedelta(minutes=minutes)
    common = {
        "run": run_id,
        "schedule": schedule,
        "analyzer": analyzer,
        "version": "1.0.0",
        "params": {"method": "binomial"},
        "region": "default",
        "window": {"start": rfc3339(end - timedelta(hours=1)), "end": rfc3339(end)},
    }
    recorded = {**common, "status": status or ("named" if suspects else "quiet"), "suspects": list(suspects)}
    events = [NewEvent("analysis.recorded", recorded, end)]
    events += [
        NewEvent("finding.reported", {**common, "suspect": s, "evidence": EVIDENCE}, end) for s in suspects
    ]
    append(f"run/{run_id}", events, Head.NEW, Context("system:runs"))
    follow_to_the_end(follower())
    return run_id


EVIDENCE: Sequence[dict[str, Any]] = (
    {"kind": "table", "title": "Blamed", "columns": ["component"], "rows": [["storage_cluster/s7"]]},
)


def numbers() -> list[int]:
    return [view.incident.number for view in queries.list_incidents(order="oldest").items]


def test_a_sure_finding_opens_a_routed_ticket_with_its_evidence() -> None:
    run_id = run(0, suspect(sure=True))
    incident = queries.get("1").incident
    assert (incident.component, incident.team, incident.confidence) == (S7, "storage", 0.93)
    piece = queries.evidence("1")[0]
    assert piece.finding is not None
    assert (piece.analyzer, piece.finding["run"], piece.params) == (
        "deepview",
        run_id,
        {"method": "binomial"},
    )


def test_the_ticket_says_which_event_led_to_it() -> None:
    run_id = run(0, suspect(sure=True))
    opened = queries.incident_events("1")[0]
    assert (opened.actor, opened.cause, opened.trace) == ("system:incidents", f"run/{run_id}@2", run_id)


def test_the_id_of_its_ticket_follows_from_the_finding_and_begins_with_its_time() -> None:
    run_id = run(0, suspect(sure=True))
    (finding,) = [event for event in read_stream(f"run/{run_id}") if event.type == "finding.reported"]
    expected = ordered_id(finding.recorded_at, f"finding:{run_id}:{S7}")
    assert queries.get("1").incident.id == str(expected)


def test_a_weak_finding_opens_in_its_second_window() -> None:
    run(0, suspect())
    assert numbers() == []
    run(5, suspect())
    assert numbers() == [1]


def test_a_quiet_window_between_two_weak_ones_does_not_hide_them() -> None:
    run(0, suspect())
    run(5)
    run(10, suspect())
    assert numbers() == [1]


def test_an_inconclusive_window_is_not_counted() -> None:
    for minutes, *suspects in ((0, suspect()), (5,), (10,)):
        run(minutes, *suspects, status=None if suspects else "inconclusive")
    run(15, suspect())
    assert numbers() == [1]


def test_windows_of_a_clock_that_was_ahead_keep_no_weak_finding_from_its_ticket() -> None:
    for ahead in range(10):
        run(480 + 5 * ahead)
    run(0, suspect())
    run(5, suspect())
    assert numbers() == [1]


def test_weak_findings_of_different_schedules_do_not_add_up() -> None:
    run(0, suspect(), schedule="a")
    run(5, suspect(), schedule="b")
    assert numbers() == []


def test_a_weak_finding_of_a_single_run_opens_nothing() -> None:
    run(0, suspect(), schedule=None)
    run(0, suspect(), schedule=None)
    assert numbers() == []


def test_two_causes_in_one_run_are_two_tickets() -> None:
    run(0, suspect(S7, sure=True), suspect(T12, sure=True))
    assert [queries.get(n).incident.team for n in ("1", "2")] == ["storage", "network"]


def test_ambiguous_groups_that_meet_are_one_ticket() -> None:
    run(0, suspect(S7, T12, sure=True))
    run(5, suspect(T12, S7, sure=True))
    assert numbers() == [1]


def test_what_another_ticket_was_narrowed_away_from_opens_one_of_its_own() -> None:
    run(0, suspect(S7, T12, sure=True))
    run(5, suspect(T12, sure=True))  # the incident is about the switch alone from now on; it keeps its key
    run(10, suspect(S7, sure=True))
    assert [queries.get(str(number)).incident.component for number in numbers()] == [T12, S7]


def test_a_report_that_took_the_key_of_a_finding_does_not_keep_it_from_its_ticket() -> None:
    commands.open_incident(Report(title="mine", dedup_key=f"finding:default:{S7}"), ALICE)
    run(0, suspect(sure=True))
    assert numbers() == [1, 2]


def test_a_finding_joins_the_ticket_that_a_person_opened_on_the_component() -> None:
    commands.open_incident(Report("Disks are slow", component=S7), ALICE)
    run(0, suspect())
    assert (numbers(), queries.get("1").incident.findings) == ([1], 1)


def test_an_hour_of_findings_is_two_lines_and_two_sets_of_evidence() -> None:
    for minutes in range(0, 60, 5):
        run(minutes, suspect(sure=True))
    assert [e.count for e in queries.timeline("1") if e.type == "incident.finding_joined"] == [11]
    assert len(queries.evidence("1", everything=True)) == 1
    run(60, suspect(sure=True))
    assert len(queries.evidence("1")) == 2


def test_evidence_that_changes_with_each_run_does_not_end_the_line_that_counts_them() -> None:
    for place, score in enumerate((0.99, 0.8, 0.95, 0.75)):
        run(5 * place, suspect(score=score, sure=True))
    assert len(queries.evidence("1", everything=True)) == 4
    lines = [(one.type, one.count) for one in queries.timeline("1")]
    assert lines[-2:] == [("incident.evidence_attached", 1), ("incident.finding_joined", 3)]


def test_the_same_finding_delivered_twice_takes_effect_once() -> None:
    run_id = run(0, suspect(sure=True))
    with transaction.atomic():
        follower().handle(read_stream(f"run/{run_id}"))
    assert queries.get("1").incident.findings == 1


def test_no_longer_blamed_is_noted_once_and_closes_nothing() -> None:
    run(0, suspect(sure=True))
    run(5)
    run(10)
    assert [e.type for e in queries.timeline("1")].count("incident.finding_cleared") == 1
    assert queries.get("1").incident.state == "open"


def test_another_schedule_that_sees_nothing_notes_nothing() -> None:
    run(0, suspect(sure=True))
    run(5, schedule="daily")
    assert queries.get("1").incident.blamed_by == ("every-5m",)


def test_failures_before_the_resolution_open_nothing() -> None:
    run(0, suspect(sure=True))
    commands.resolve(queries.get("1").incident.id, S7, "", ALICE)
    run_id = run(5, suspect(sure=True))
    assert numbers() == [1]
    assert [(p.outcome, p.number) for p in queries.placed_findings(run_id)] == [("recorded", 1)]


def test_a_failure_after_the_resolution_opens_a_new_ticket() -> None:
    run(0, suspect(sure=True))
    commands.resolve(queries.get("1").incident.id, S7, "", ALICE)
    resolved_at = queries.get("1").incident.resolved_at
    assert resolved_at is not None
    run(int((resolved_at - START).total_seconds() // 60) + 10, suspect(sure=True))
    assert numbers() == [1, 2]


def arrived(kind: str, latest: datetime, at: datetime) -> None:
    """Telemetry of a kind whose newest row, of `latest`, came `at` that time."""
    seen = {
        "first": latest - timedelta(days=1),
        "latest": latest,
        "first_arrived_at": at,
        "last_received_at": at,
    }
    TelemetryCursor.objects.create(region="default", kind=kind, arrived_at=at, **seen)


def test_a_failure_that_the_data_had_not_reached_at_the_resolution_opens_a_new_ticket() -> None:
    arrived("path_outcome", START, datetime.now(UTC))
    run(0, suspect(sure=True))
    commands.resolve(queries.get("1").incident.id, S7, "", ALICE)
    run(30, suspect(sure=True))
    assert numbers() == [1, 2]


def test_a_resolution_of_a_ticket_without_a_region_remembers_every_region_that_is_behind() -> None:
    arrived("path_outcome", START, datetime.now(UTC))
    commands.open_incident(Report("Disks are slow", component=S7), ALICE)
    commands.resolve(queries.get("1").incident.id, S7, "", ALICE)
    assert list(queries.get("1").incident.known_until) == ["path_outcome@default"]


@pytest.mark.parametrize("kind", ["path_outcome", "placement"])
def test_live_telemetry_and_states_leave_the_resolution_its_own_time(kind: str) -> None:
    now = datetime.now(UTC)
    arrived(kind, now - timedelta(days=400 if kind == "placement" else 0, minutes=1), now)
    run(0, suspect(sure=True))
    commands.resolve(queries.get("1").incident.id, S7, "", ALICE)
    assert queries.get("1").incident.known_until == {}


def test_a_rebuild_gives_the_same_windows_and_tickets() -> None:
    for minutes in (0, 5, 10, 15, 20, 25, 30, 35):
        run(minutes, suspect(sure=minutes == 5))
    assert ScheduleWindowRow.objects.count() == 6
    assert rebuild().differed == ()


def test_a_rebuild_reads_the_past_before_it_holds_up_those_who_follow_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(0, suspect())
    held: list[bool] = []

    def reading(*args: Any, **more: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
            held.append(cursor.fetchone()[0])
        return read_all(*args, **more)

    monkeypatch.setattr(rebuilding, "read_all", reading)
    assert rebuild().differed == ()
    assert len(held) >= 4
    assert not any(held)


def test_a_rebuild_mends_the_windows() -> None:
    run(0, suspect())
    ScheduleWindowRow.objects.update(causes=[])
    assert rebuild().differed == ("schedule windows",)
    run(5, suspect())
    assert numbers() == [1]


def test_a_person_who_writes_while_findings_come_in_loses_nothing() -> None:
    run(0, suspect(sure=True))
    id_, stop = queries.get("1").incident.id, threading.Event()

    def comment() -> None:
        try:
            while not stop.is_set():
                commands.comment(id_, "looking", ALICE)
        finally:
            connections.close_all()

    writer = threading.Thread(target=comment)
    writer.start()
    for minutes in range(5, 55, 5):
        run(minutes, suspect(sure=True))
    stop.set()
    writer.join()
    follow_to_the_end(follower())
    events = read_stream(f"incident/{id_}")
    assert [e.position for e in events] == sorted(e.position for e in events)
    assert queries.get("1").incident.findings == 11
