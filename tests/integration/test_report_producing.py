"""Daily reports, made of what the log and the runs say."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import Client

from analyzers.runs.models import Run, State
from incidents import commands
from incidents.commands import Report
from incidents.reports.daily import report_of
from incidents.reports.models import DailyReport
from incidents.reports.producing import produce, produce_missing
from ingest.api import keys
from ingest.queries import Context, read_stream

NOW = datetime.now(UTC)
TODAY = NOW.date()
TOMORROW = NOW + timedelta(days=1)
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
    return Run.objects.create(**values)


def noon(days_ago: int = 0) -> datetime:
    return datetime(TODAY.year, TODAY.month, TODAY.day, 12, tzinfo=UTC) - timedelta(days=days_ago)


def ticket() -> str:
    return commands.open_incident(
        Report(title="Disks fail", component="storage_cluster/s7"), ALICE
    ).incident.id


def test_runs_count_on_the_day_on_which_their_window_ends() -> None:
    run(noon())
    run(noon(), status="named", blamed=[{"component": "tor/t1", "score": 0.9}])
    run(noon(), status="", state=State.FAILED)
    run(noon(), status="", state=State.QUEUED)
    run(noon(days_ago=1))
    found = report_of(TODAY)["runs"]
    assert found == {"total": 3, "named": 1, "quiet": 1, "inconclusive": 0, "failed": 1}


def test_a_repetition_is_no_run_of_the_day() -> None:
    run(noon(), repeats=run(noon()), schedule_key=None)
    assert report_of(TODAY)["runs"]["total"] == 1


def test_tickets_stand_in_the_report_of_the_day_they_were_opened_and_resolved() -> None:
    commands.resolve(ticket(), "storage_cluster/s7", "", ALICE)
    found = report_of(TODAY)
    assert [one["title"] for one in found["opened"]] == ["Disks fail"]
    assert found["resolved"][0]["confirmed_cause"] == "storage_cluster/s7"
    assert report_of(TODAY - timedelta(days=1))["opened"] == []


def test_a_report_is_produced_once_after_its_day() -> None:
    ticket()
    assert produce_missing(NOW) == []
    assert produce_missing(TOMORROW + timedelta(hours=1)) == [TODAY]
    assert produce_missing(TOMORROW + timedelta(hours=1)) == []
    (event,) = read_stream(f"report/{TODAY}")
    assert event.body == DailyReport.objects.get().body


def test_two_at_once_produce_one() -> None:
    assert produce(TODAY, NOW)
    DailyReport.objects.all().delete()  # as if the other one had not committed when this one looked
    assert not produce(TODAY, NOW)


def test_missed_days_are_made_up() -> None:
    ticket()
    assert produce_missing(noon(days_ago=-3)) == [TODAY + timedelta(days=n) for n in range(3)]


def test_an_installation_without_events_has_no_reports() -> None:
    assert produce_missing(NOW + timedelta(days=3)) == []


@pytest.fixture
def reader() -> Client:
    return Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})


def test_a_report_is_read_as_json_csv_and_html(reader: Client) -> None:
    ticket()
    produce(TODAY, NOW)
    address = f"/api/v1/reports/{TODAY}"
    assert reader.get(address).json()["final"] is True
    text = reader.get(address, {"format": "csv"})
    assert text["Content-Type"].startswith("text/csv")
    assert next(csv.DictReader(io.StringIO(text.content.decode())))["title"] == "Disks fail"
    page = reader.get(address, headers={"Accept": "text/html"})
    assert b"Disks fail" in page.content


def test_a_day_without_a_report_is_shown_as_it_stands(reader: Client) -> None:
    assert reader.get(f"/api/v1/reports/{TODAY}").json()["final"] is False


def test_reports_are_listed_newest_first(reader: Client) -> None:
    for days in (2, 1):
        produce(TODAY - timedelta(days=days), NOW)
    found = reader.get("/api/v1/reports").json()["results"]
    assert [one["id"] for one in found] == [str(TODAY - timedelta(days=days)) for days in (1, 2)]


@pytest.mark.parametrize("day", ["tomorrow", "2026-13-01", str(date.max), str(date.min)])
def test_a_day_that_has_no_report_is_a_404(reader: Client, day: str) -> None:
    for accepted in ("json", "csv", "html"):
        assert reader.get(f"/api/v1/reports/{day}", {"format": accepted}).status_code == 404
