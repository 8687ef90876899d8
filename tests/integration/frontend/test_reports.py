"""Reports in the console: made on demand with progress, and which there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from incidents import commands
from incidents.commands import Report
from incidents.reports import compose as composing
from incidents.reports import on_demand
from incidents.reports.models import ProducedReport, ReportEmail, ReportJob, ReportSchedule, Subscription
from incidents.reports.on_demand import InvalidPeriodError, demand
from incidents.reports.periods import period_of
from ingest.commands import lease
from ingest.queries import Context, configured
from tests.integration.analyzers.runs.cases import Door

pytestmark = pytest.mark.usefixtures("log_database")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FORM = {"name": "ours", "title": "Ours", "cadence": "daily", "zone": "UTC", "hour": "0", "enabled": "on"}


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", is_staff=True)


@pytest.fixture
def daily(log_database: str) -> ReportSchedule:  # noqa: ARG001
    """A daily report that is not made by itself, and something to report today."""
    commands.open_incident(Report("Fans are loud"), Context("user:alice"))
    return ReportSchedule.objects.create(name="mine", title="Mine", cadence="daily", enabled=False)


def signed_in(name: str, **fields: Any) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, **fields))
    return client


def today() -> datetime:
    return datetime.now(UTC)


def later() -> datetime:
    """Time at which today is over, and its report is due."""
    return today() + 2 * DAY


def actors() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT actor FROM log_event WHERE type = 'report.produced'")
        return [str(row[0]) for row in cursor.fetchall()]


def test_a_past_report_is_made_by_a_worker_and_recorded_in_the_name_of_who_asked(
    daily: ReportSchedule,
) -> None:
    id = demand(daily, today().date(), "user:alice", later())
    assert lease.waiting(ReportJob, later()) == [id]
    assert on_demand.make(id, later) is True
    assert ProducedReport.objects.get(pk=id).body["incidents"]["opened"]
    assert actors() == ["user:alice"]


def test_what_an_analyzer_says_of_the_period_is_shown_with_its_tables(alice: Client) -> None:
    begin, end = today() - timedelta(seconds=1), today()
    endpoint = Door()
    endpoint.post([{"time": begin.isoformat(), "component": f"tor/t{i}"} for i in range(8)], kind="topology")
    outage = {"device": "tor/t1", "start": begin.isoformat(), "end": end.isoformat()}
    endpoint.post([{**outage, "cause": "soft"}], kind="outage")
    asked = [{"analyzer": "tor_availability", "params": {}}]
    daily = ReportSchedule.objects.create(name="mine", title="Mine", cadence="daily", analyses=asked)
    id = demand(daily, end.date(), "user:alice", later())
    assert on_demand.make(id, later) is True
    assert "Devices that lost most" in alice.get(f"/reports/{id}").content.decode()


def test_asked_for_twice_it_is_made_once(daily: ReportSchedule) -> None:
    ids = [demand(daily, today().date(), "user:alice", later()) for _ in range(2)]
    assert [on_demand.make(id, later) for id in ids] == [True, False]
    demand(daily, today().date(), "user:bob", later())
    assert (len(actors()), lease.waiting(ReportJob, later())) == (1, [])


def test_what_is_made_up_is_not_mailed_and_what_was_due_is(daily: ReportSchedule) -> None:
    Subscription.objects.create(schedule=daily, address="alice@example.com")
    on_demand.make(demand(daily, today().date(), "user:alice", later()), later)
    assert not ReportEmail.objects.exists()
    ReportSchedule.objects.filter(pk=daily.pk).update(enabled=True, name="due")
    due = ReportSchedule.objects.get(name="due")
    on_demand.make(demand(due, today().date(), "user:alice", later()), later)
    assert ReportEmail.objects.get().address == "alice@example.com"


def test_a_period_that_cannot_be_reported_is_refused(daily: ReportSchedule) -> None:
    for day in (today(), today() - 900 * DAY, datetime(1900, 1, 1, tzinfo=UTC)):
        with pytest.raises(InvalidPeriodError):
            demand(daily, day.date(), "user:alice", today())
    assert not ReportJob.objects.exists()


def test_a_report_that_is_made_by_itself_soon_is_not_made_before(daily: ReportSchedule) -> None:
    ReportSchedule.objects.filter(pk=daily.pk).update(enabled=True, hour=8)
    daily.refresh_from_db()
    with pytest.raises(InvalidPeriodError, match="is generated at"):
        demand(daily, today().date(), "user:alice", period_of("daily", today().date(), "UTC").end + HOUR)


def test_a_killed_worker_is_followed_by_another(
    daily: ReportSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = demand(daily, today().date(), "user:alice", later())
    monkeypatch.setattr(on_demand, "produce", killed)
    with pytest.raises(KeyboardInterrupt):
        on_demand.make(id, later)
    monkeypatch.undo()
    assert on_demand.make(id, later) is False  # its lease still runs
    assert lease.waiting(ReportJob, later() + HOUR) == [id]
    assert on_demand.make(id, lambda: later() + HOUR) is True


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_progress_is_told_step_by_step(
    daily: ReportSchedule, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = demand(daily, today().date(), "user:alice", later())
    assert "Waiting for a worker" in alice.get(f"/reports/{id}").content.decode()
    seen = []
    compose: Any = composing.compose

    def looked(*args: Any) -> Any:
        told = args[-1]

        def tell(step: str) -> None:
            told(step)
            seen.append(alice.get(f"/reports/{id}").content.decode())

        return compose(*args[:-1], tell)

    monkeypatch.setattr("incidents.reports.produce.compose", looked)
    on_demand.make(id, later)
    assert ["Step 1 of 2: runs" in seen[0], "Step 2 of 2: incidents" in seen[1]] == [True, True]
    assert "Fans are loud" in alice.get(f"/reports/{id}").content.decode()


def test_only_staff_have_reports_made_and_change_them(daily: ReportSchedule) -> None:
    bob = signed_in("bob")
    for path in ("produce", "schedules/new", "schedules/mine", "schedules/mine/remove"):
        assert bob.post(f"/reports/{path}", {"schedule": daily.name, "day": "2026-11-20"}).status_code == 403
    assert ReportSchedule.objects.filter(name="mine").exists()


def test_a_day_that_is_none_is_refused_in_words(alice: Client, daily: ReportSchedule) -> None:
    shown = alice.post("/reports/produce", {"schedule": daily.name, "day": "soon"}, follow=True)
    assert "must be a date such as" in shown.content.decode()


def test_a_report_is_set_up_changed_and_removed(alice: Client) -> None:
    alice.post("/reports/schedules/new", {**FORM, "team": "storage", "analyses": ["availability"]})
    row = ReportSchedule.objects.get(name="ours")
    assert (row.team, row.analyses) == ("storage", [{"analyzer": "availability", "params": {}}])
    alice.post("/reports/schedules/ours", {**FORM, "title": "All of ours", "zone": "Europe/Berlin"})
    row.refresh_from_db()
    assert (row.title, row.zone, row.team, row.analyses) == ("All of ours", "Europe/Berlin", "", [])
    alice.post("/reports/schedules/ours/remove")
    kept = [one.body["after"] for one in configured("report_schedule", "ours")]
    assert [one and one["title"] for one in kept] == ["Ours", "All of ours", None]
    assert not ReportSchedule.objects.filter(name="ours").exists()


def test_parameters_of_an_analysis_outlive_a_change_of_the_title(alice: Client) -> None:
    kept = [{"analyzer": "availability", "params": {"target_nines": 4}}]
    ReportSchedule.objects.create(name="ours", title="Ours", cadence="daily", analyses=kept)
    alice.post("/reports/schedules/ours", {**FORM, "title": "New", "analyses": ["availability"]})
    assert ReportSchedule.objects.get(name="ours").analyses == kept


def test_a_report_that_makes_no_sense_is_refused_by_field(alice: Client) -> None:
    answer = alice.post(
        "/reports/schedules/new", {**FORM, "zone": "Mars/Base", "hour": "25", "name": "ours!"}
    )
    shown = answer.content.decode()
    assert answer.status_code == 400
    assert "is no time zone" in shown
    assert "less than or equal to 23" in shown
