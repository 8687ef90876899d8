"""Reports, made of what the log and the runs say."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.test import Client

from analyzers.commands import record_past_run
from analyzers.runs.models import Run, State
from incidents import commands
from incidents.commands import Report
from incidents.reports.compose import compose
from incidents.reports.models import ProducedReport, ReportSchedule
from incidents.reports.periods import Period, period_at
from incidents.reports.produce import produce, produce_missing, reproduce
from ingest.api import keys
from ingest.commands import append
from ingest.queries import Context, Head, NewEvent, read_stream, watermark

NOW = datetime.now(UTC)
TODAY = NOW.date()
TOMORROW = datetime.combine(TODAY + timedelta(days=1), time(2), UTC)
ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


def run(end: datetime, **fields: object) -> Run:
    values = {
        "analyzer": "deepview",
        "region": "default",
        "schedule_key": "deepview-1h@default",
        "requested_by": "system:schedule",
        "window_start": end - timedelta(hours=1),
        "window_end": end,
        "created_at": NOW,
        "state": State.DONE,
        "status": "quiet",
        **fields,
    }
    row = Run.objects.create(**values)
    if row.state != State.QUEUED:
        said = NewEvent("analysis.recorded", {"run": str(row.pk)}, NOW)
        append(row.stream, [said], Head.NEW, ALICE)
    return row


def noon(days_ago: int = 0) -> datetime:
    return datetime(TODAY.year, TODAY.month, TODAY.day, 12, tzinfo=UTC) - timedelta(days=days_ago)


def ticket() -> str:
    return commands.open_incident(
        Report(title="Disks fail", component="storage_cluster/s7"), ALICE
    ).incident.id


DAY = Period("daily", TODAY)


@pytest.fixture(autouse=True)
def begun_long_ago(log_database: str) -> None:  # noqa: ARG001
    ReportSchedule.objects.update(since=NOW - timedelta(days=400))
    ReportSchedule.objects.exclude(name="daily").update(enabled=False)


def daily() -> ReportSchedule:
    return ReportSchedule.objects.get(name="daily")


def report_of(period: Period, schedule: ReportSchedule | None = None) -> dict[str, Any]:
    return compose(schedule or daily(), period, watermark())


def test_runs_count_on_the_day_on_which_their_window_ends() -> None:
    run(noon())
    run(noon(), status="named", blamed=[{"component": "tor/t1", "score": 0.9}])
    run(noon(), status="", state=State.FAILED)
    run(noon(), status="", state=State.QUEUED)
    run(noon(days_ago=1))
    found = report_of(DAY)["runs"]
    assert {name: found[name] for name in ("total", "named", "quiet", "inconclusive", "failed")} == {
        "total": 3, "named": 1, "quiet": 1, "inconclusive": 0, "failed": 1
    }  # fmt: skip


def test_a_repetition_is_no_run_of_the_day() -> None:
    run(noon(), repeats=run(noon()), schedule_key=None)
    assert report_of(DAY)["runs"]["total"] == 1


def test_tickets_stand_in_the_report_of_the_day_they_were_opened_and_resolved() -> None:
    commands.resolve(ticket(), "storage_cluster/s7", "", ALICE)
    found = report_of(DAY)["incidents"]
    assert [one["title"] for one in found["opened"]] == ["Disks fail"]
    assert found["resolved"][0]["confirmed_cause"] == "storage_cluster/s7"
    assert report_of(DAY.previous())["incidents"]["opened"] == []


def test_a_hand_over_is_a_hop_and_ends_the_way_to_the_right_team() -> None:
    moved = ticket()
    commands.hand_over(moved, "network", "theirs", ALICE)
    commands.acknowledge(moved, ALICE)
    commands.resolve(moved, "tor/t1", "", ALICE)
    found = report_of(DAY)["response"]
    assert (found["hops"]["total"], found["right_team"]["n"], found["acknowledged"]["n"]) == (1, 1, 1)
    assert found["right_team"]["median"] <= found["resolution"]["median"]


def test_a_team_gets_its_own_tickets() -> None:
    ticket()
    for team, count in (("storage", 1), ("network", 0)):
        schedule = ReportSchedule(name=team, title=team, cadence="daily", team=team)
        assert len(report_of(DAY, schedule)["incidents"]["opened"]) == count


def test_a_report_is_produced_once_after_its_day() -> None:
    ticket()
    assert produce_missing(NOW) == []
    assert produce_missing(TOMORROW) == [f"daily-{TODAY}"]
    assert produce_missing(TOMORROW) == []
    (event,) = read_stream(f"report/daily-{TODAY}")
    assert event.body == ProducedReport.objects.get().body


def test_two_at_once_produce_one() -> None:
    assert produce(daily(), DAY, NOW)
    ProducedReport.objects.all().delete()  # as if the other one had not committed when this one looked
    assert not produce(daily(), DAY, NOW)


def test_missed_days_are_made_up() -> None:
    ticket()
    wanted = [f"daily-{TODAY + timedelta(days=n)}" for n in range(3)]
    assert produce_missing(noon(days_ago=-3)) == wanted


def test_a_week_of_a_team_in_its_own_time_zone_is_made_when_it_is_over() -> None:
    ticket()
    ReportSchedule.objects.create(
        name="berlin", title="Berlin", cadence="weekly", team="storage", zone="Europe/Berlin", since=NOW
    )
    week = period_at("weekly", NOW, "Europe/Berlin")
    assert f"berlin-{week.name}" not in produce_missing(week.end)
    assert f"berlin-{week.name}" in produce_missing(week.end + timedelta(minutes=20))
    body = ProducedReport.objects.get(schedule="berlin").body
    assert [one["title"] for one in body["incidents"]["opened"]] == ["Disks fail"]


def test_a_report_made_again_is_the_same_whatever_happened_since() -> None:
    opened = ticket()
    produce(daily(), DAY, NOW)
    commands.resolve(opened, "storage_cluster/s7", "", ALICE)
    row = {"time": DAY.start.isoformat(), "components": ["tor/t1"], "attempts": 9, "failures": 0}
    end = DAY.start + timedelta(hours=1)
    record_past_run("deepview", "path_outcome", [row], DAY.start, end, "default", ALICE.actor)
    produce(daily(), DAY.previous(), NOW)
    kept = ProducedReport.objects.get(pk=f"daily-{DAY.name}").body
    assert reproduce(kept["id"]) == kept
    assert report_of(DAY)["incidents"]["resolved"]
    assert report_of(DAY)["runs"]["total"] == kept["runs"]["total"] + 1


def test_a_report_says_what_changed_since_the_one_before() -> None:
    produce(daily(), DAY.previous(), NOW)
    ticket()
    produce(daily(), DAY, NOW)
    found = ProducedReport.objects.get(pk=f"daily-{TODAY}").body["changes"]
    assert found["since"] == f"daily-{TODAY - timedelta(days=1)}"
    assert "incidents opened: 1, before 0" in [line["sentence"] for line in found["lines"]]


def test_an_installation_without_events_has_no_reports() -> None:
    assert produce_missing(NOW + timedelta(days=3)) == []


@pytest.fixture
def reader() -> Client:
    return Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})


def test_a_report_is_read_as_json_csv_and_html(reader: Client) -> None:
    ticket()
    produce(daily(), DAY, NOW)
    address = f"/api/v1/reports/daily-{TODAY}"
    assert reader.get(address).json()["final"] is True
    text = reader.get(address, {"format": "csv"})
    assert text["Content-Type"].startswith("text/csv")
    assert "Disks fail" in [line["title"] for line in csv.DictReader(io.StringIO(text.content.decode()))]
    page = reader.get(address, headers={"Accept": "text/html"})
    assert b"Disks fail" in page.content


def test_a_day_without_a_report_is_shown_as_it_stands(reader: Client) -> None:
    assert reader.get(f"/api/v1/reports/daily-{TODAY}").json()["final"] is False


def test_reports_are_listed_newest_first(reader: Client) -> None:
    for days in (2, 1):
        produce(daily(), Period("daily", TODAY - timedelta(days=days)), NOW)
    found = reader.get("/api/v1/reports").json()["results"]
    assert [one["id"] for one in found] == [f"daily-{TODAY - timedelta(days=days)}" for days in (1, 2)]


@pytest.mark.parametrize(
    "id_", ["tomorrow", "daily-2026-13-01", "daily-9999-12-31", "weekly-2026-05-04", "no-2026"]
)
def test_a_period_that_has_no_report_is_a_404(reader: Client, id_: str) -> None:
    for accepted in ("json", "csv", "html"):
        assert reader.get(f"/api/v1/reports/{id_}", {"format": accepted}).status_code == 404


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("zone", "Europe/Atlantis", "is no time zone"),
        ("team", "nobody", "no team"),
        ("cadence", "hourly", "not a valid choice"),
        ("hour", 24, "less than or equal to 23"),
        ("analyses", [{"analyzer": "crystal_ball"}], "is not installed"),
        ("analyses", [{"analyzer": ["availability"]}], "is not installed"),
        ("analyses", [{"analyzer": "metric_blame", "params": {"min_evidence": -3}}], "min_evidence"),
        ("analyses", [{"analyzer": "metric_blame", "params": {"crystal_ball": 1}}], "no parameter"),
        ("colour", "red", "is not a field here"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(field: str, value: Any, reason: str) -> None:
    admin = Client(headers={"Authorization": f"Bearer {keys.create('admin', ['admin'])}"})
    asked = {"name": "mine", "title": "Mine", "cadence": "weekly", field: value}
    answer = admin.post("/api/v1/report_schedules", asked, content_type="application/json")
    assert answer.status_code == 400
    assert reason in answer.content.decode()
