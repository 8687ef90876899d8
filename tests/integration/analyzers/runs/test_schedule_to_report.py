"""Rows through windows of a schedule to an incident, its pages, answers and reports, where two windows open one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from analyzers.runs.models import Schedule
from analyzers.runs.scheduler import claim_due, claim_window
from analyzers.simulators.changes import risk
from incidents import queries
from incidents.follower import follower
from incidents.reports.models import ReportSchedule
from incidents.reports.produce import current
from ingest.api import keys
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs import test_rows_to_report as by_hand
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, Door, work

pytestmark = pytest.mark.usefixtures("log_database")
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Case:
    """Rows to send, the end of the window before the first that is due, and how many windows name the component."""

    sent: by_hand.Case
    length: timedelta
    every: timedelta
    ran_until: datetime
    naming: int


def changepoint() -> Case:
    """Each service stays at its last level for a quarter of an hour."""
    sent = by_hand.changepoint()
    rows = list(sent.rows["metric"])
    last = {one["labels"]["service"]: one for one in sorted(rows, key=lambda one: str(one["time"]))}
    rows += [
        {**one, "time": (sent.end + minute * MINUTE).isoformat()}
        for minute in range(15)
        for one in last.values()
    ]
    return Case(replace(sent, rows={"metric": rows}), HOUR, 10 * MINUTE, sent.end - 30 * MINUTE, 2)


def config_risk() -> Case:
    """The change goes out six hours before the end of the first window; one without risk later moves the data clock."""
    sent = by_hand.config_risk()
    midnight = (NOW - HOUR).replace(hour=0, minute=0, second=0)
    (planned,) = [one for one in sent.rows["change"] if one["change"] == risk.PLANNED]
    by = midnight - 30 * HOUR - datetime.fromisoformat(planned["time"])
    rows: dict[str, list[dict[str, Any]]] = {
        kind: [{**one, "time": (datetime.fromisoformat(one["time"]) + by).isoformat()} for one in of_kind]
        for kind, of_kind in sent.rows.items()
    }
    later = {
        "time": (NOW - MINUTE).isoformat(),
        "change": "later",
        "kind": "deploy",
        "targets": ["service/z"],
    }
    rows["change"].append(later)
    return Case(replace(sent, rows=rows), 7 * DAY, DAY, midnight - 2 * DAY, 2)


@pytest.mark.parametrize("make", [changepoint, config_risk])
def test_windows_of_a_schedule_open_an_incident_that_pages_answers_and_reports_have(
    make: Callable[[], Case],
) -> None:
    name, case = make.__name__, make()
    door = Door()
    for kind, rows in case.sent.rows.items():
        door.post(rows, kind=kind)
    schedule = Schedule.objects.create(name="watch", analyzer=name, length=case.length, every=case.every)
    assert claim_window(schedule, "default", case.ran_until, NOW)
    runs = work()
    while claim_due([schedule], NOW):
        runs += work()
        follow_to_the_end(follower())
    naming = [run for run in runs if case.sent.named in [one["component"] for one in run.blamed]]
    assert len(naming) >= case.naming, [(run.window_end, run.status) for run in runs]
    (opened,) = [one.incident for one in queries.list_incidents().items]
    assert opened.component == case.sent.named
    assert "of the last" in queries.timeline(str(opened.number))[0].body["why"]

    key = keys.create("reader", ["incidents:read"])

    def read(path: str) -> Any:
        return Client().get(f"/api/v1/{path}", headers={"authorization": f"Bearer {key}"}).json()

    pieces = read(f"incidents/{opened.number}/evidence")["results"]
    assert {one["run"] for one in pieces} <= {str(run.pk) for run in naming}
    assert {one["analyzer"] for one in pieces} == {name}
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice", is_staff=True))

    def shown(path: str) -> str:
        page = alice.get(path)
        assert page.status_code == 200, path
        return page.content.decode()

    for path in (f"/incidents/{opened.number}", f"/runs/{naming[-1].pk}"):
        assert case.sent.named in shown(path)
    assert "watch" in shown("/schedules")

    analyses = [{"analyzer": name}]
    ReportSchedule.objects.update(since=NOW - 400 * DAY, region="", analyses=analyses)
    weekly = ReportSchedule.objects.get(name="weekly")
    of_window = read(f"reports/{current(weekly, naming[-1].window_end - MINUTE)}")
    assert case.sent.named in [one["component"] for one in of_window["blamed"]]
    assert [one["analyzer"] for one in of_window["analyses"]] == [name]
    of_now = current(weekly, datetime.now(UTC))
    assert opened.number in [one["number"] for one in read(f"reports/{of_now}")["incidents"]["opened"]]
    assert f"#{opened.number}" in shown(f"/reports/{of_now}")
