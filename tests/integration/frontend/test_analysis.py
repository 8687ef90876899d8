"""Analyzers, their runs, schedules and backtests in the console."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from analyzers.queries import Run, Schedule
from incidents.scorecards import worker
from incidents.scorecards.models import BacktestRow
from incidents.teams.models import Membership, Team
from ingest.queries import configured
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, TOP, Door, healthy, hourly, work

pytestmark = pytest.mark.usefixtures("log_database", "tally")
STAMP = "%Y-%m-%dT%H:%M"
SPAN = {
    "start": TOP.strftime(STAMP),
    "end": (TOP + 2 * HOUR).strftime(STAMP),
    "length": "1 h",
    "every": "30 min",
}


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", is_staff=True)


@pytest.fixture
def telemetry(log_database: str, tally: None) -> None:  # noqa: ARG001
    Door().post([*healthy(TOP, HOUR), *healthy(TOP + HOUR, HOUR, a=9), *healthy(TOP + 2 * HOUR, 3 * MINUTE)])


def signed_in(name: str, **fields: Any) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, **fields))
    return client


def viewer(name: str = "bob") -> Client:
    client = signed_in(name)
    user = get_user_model().objects.get(username=name)
    Membership.objects.create(team=Team.objects.get(slug="storage"), user=user, role="viewer")
    return client


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def finish(row: BacktestRow) -> None:
    while worker.turn(row.pk, lambda: datetime.now(UTC)):
        pass


def asked(client: Client, **changes: str) -> BacktestRow:
    client.post("/analyzers/tally/backtest", {**SPAN, **changes})
    return BacktestRow.objects.latest("created_at")


def test_the_list_has_what_is_installed_with_its_schedule_and_its_last_run(alice: Client) -> None:
    hourly()
    shown = page(alice, "/analyzers")
    assert 'href="/analyzers/tally"' in shown
    assert "never" in shown


def test_an_analyzer_has_a_page_with_parameters_and_record(alice: Client) -> None:
    shown = page(alice, "/analyzers/tally")
    assert "a number from 0 to 1" in shown
    assert "No resolved incidents yet" in shown


def test_there_is_no_page_of_what_is_not_installed(alice: Client) -> None:
    for path in ("/analyzers/weather", "/analyzers/weather/run", "/schedules/new?analyzer=weather"):
        assert alice.get(path).status_code == 404


@pytest.mark.usefixtures("telemetry")
def test_a_run_of_now_is_queued_with_what_differs_from_the_defaults(alice: Client) -> None:
    form = {"region": "default", "length": "1 h", "param-share": "0.25", "param-crash": "no"}
    answer = alice.post("/analyzers/tally/run", form)
    (run,) = work()
    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert (run.params, run.report, run.requested_by, run.state) == (
        {"crash": False, "share": 0.25},
        False,
        "user:alice",
        "done",
    )


@pytest.mark.parametrize(
    ("report", "reason"), [("", "was not chosen for this run"), ("on", "is sure after one window")]
)
@pytest.mark.usefixtures("telemetry")
def test_a_suspect_without_an_incident_has_the_reason(alice: Client, report: str, reason: str) -> None:
    span = {"start": (TOP + HOUR).strftime(STAMP), "end": (TOP + 2 * HOUR).strftime(STAMP)}
    alice.post("/analyzers/tally/run", {"region": "default", **span, "report": report})
    (run,) = work()
    assert reason in page(alice, f"/runs/{run.pk}")


@pytest.mark.usefixtures("telemetry")
def test_what_cannot_be_run_is_said_at_its_field_and_kept_as_typed(alice: Client) -> None:
    form = {"region": "default", "length": "soon", "param-share": "7"}
    answer = alice.post("/analyzers/tally/run", form)
    shown = answer.content.decode()
    assert answer.status_code == 400
    assert "Must be a number from 0 to 1." in shown
    assert "Must be a duration such as" in shown
    assert (Run.objects.count(), 'value="7"' in shown) == (0, True)


def test_a_run_with_changes_begins_as_the_run_was_asked_for(alice: Client) -> None:
    run = Run.objects.create(
        analyzer="tally", region="east", params={"share": 0.75}, created_at=TOP,
        window_start=TOP, window_end=TOP + HOUR, requested_by="user:bob",
    )  # fmt: skip
    shown = page(alice, f"/analyzers/tally/run?like={run.pk}")
    assert 'value="0.75"' in shown
    assert f'value="{TOP:%Y-%m-%dT%H:%M}"' in shown


@pytest.mark.parametrize("path", ["/analyzers/tally/run", "/analyzers/tally/backtest"])
def test_having_an_analyzer_look_takes_a_responder(path: str) -> None:
    answer = viewer().post(path, SPAN)
    assert answer.status_code == 403
    assert (Run.objects.count(), BacktestRow.objects.count()) == (0, 0)


def test_the_api_asks_for_the_role_too() -> None:
    bob = viewer()
    body = {"analyzer": "tally", "length": "1h"}
    answer = bob.post("/api/v1/runs", body, content_type="application/json")
    assert answer.status_code == 403
    assert "analyze requires the role responder of any team" in answer.json()["detail"]
    assert bob.get("/api/v1/runs").status_code == 200


def test_staff_make_change_pause_and_remove_a_schedule(alice: Client) -> None:
    form = {
        "name": "nightly",
        "length": "1 h",
        "every": "1 h",
        "grace": "30 s",
        "region": "",
        "param-share": "0.3",
    }
    alice.post("/schedules/new?analyzer=tally", {**form, "enabled": "on"})
    assert Schedule.objects.get(name="nightly").params == {"share": 0.3}
    alice.post("/schedules/nightly", {**form, "every": "2 h", "enabled": "on"})
    alice.post("/schedules/nightly/pause", {"pause": "1"})
    row = Schedule.objects.get(name="nightly")
    assert (row.every, row.enabled) == (2 * HOUR, False)
    alice.post("/schedules/nightly/remove")
    changes = [(one.actor, one.body) for one in configured("analysis_schedule", "nightly")]
    assert [body["after"] and (body["after"]["every"], body["after"]["enabled"]) for _, body in changes] == [
        ("1h", True),
        ("2h", True),
        ("2h", False),
        None,
    ]
    assert {who for who, _ in changes} == {"user:alice"}
    assert not Schedule.objects.filter(name="nightly").exists()


def test_a_schedule_that_makes_no_sense_is_refused_by_field(alice: Client) -> None:
    form = {"name": "Nightly!", "length": "1 h", "every": "soon", "grace": "30 s", "param-share": "x"}
    answer = alice.post("/schedules/new?analyzer=tally", form)
    assert answer.status_code == 400
    assert "Must be a duration" in answer.content.decode()
    again = alice.post("/schedules/new?analyzer=tally", {**form, "every": "1 h", "param-share": ""})
    assert "ower case letters" in again.content.decode()


@pytest.mark.parametrize("path", ["new?analyzer=tally", "hourly", "hourly/pause", "hourly/remove"])
def test_schedules_are_changed_by_staff(path: str) -> None:
    hourly()
    assert signed_in("charlie").post(f"/schedules/{path}", {"name": "x"}).status_code == 403


@pytest.mark.usefixtures("telemetry")
def test_a_backtest_shows_how_far_it_is_and_then_what_it_found(alice: Client) -> None:
    row = asked(alice)
    assert "Waiting for a worker" in page(alice, f"/backtests/{row.pk}")
    worker.turn(row.pk, lambda: datetime.now(UTC), seconds=0)
    assert "1 of 3 windows done" in page(alice, f"/backtests/{row.pk}")
    finish(row)
    shown = page(alice, f"/backtests/{row.pk}")
    assert "hx-trigger" not in shown.split('id="backtest"')[1][:200]
    assert "tor/a" in shown
    assert "Named over time" in shown


@pytest.mark.usefixtures("telemetry")
def test_a_backtest_whose_findings_nobody_resolved_is_not_scored_instead_of_wrong(alice: Client) -> None:
    row = asked(alice)
    finish(row)
    row.refresh_from_db()
    assert row.result is not None
    # Resolved incidents of the same time that are about other things say nothing about it.
    BacktestRow.objects.update(result={**row.result, "resolved_incidents": 4})
    shown = page(alice, f"/backtests/{row.pk}")
    assert "Right about 0" not in shown
    assert "not scored: no resolved incident about it" in shown


@pytest.mark.usefixtures("telemetry")
def test_the_page_of_a_backtest_is_covered_by_no_message(alice: Client) -> None:
    answer = alice.post("/analyzers/tally/backtest", SPAN)
    assert "Queued." not in page(alice, answer.headers["Location"])


@pytest.mark.usefixtures("telemetry")
def test_a_backtest_can_be_taken_along(alice: Client) -> None:
    row = asked(alice, **{"param-share": "0.3"})
    finish(row)
    told = json.loads(page(alice, f"/backtests/{row.pk}?format=json"))
    lines = page(alice, f"/backtests/{row.pk}?format=csv").splitlines()
    assert told["result"]["params"]["share"] == 0.3
    assert (len(told["windows"]), len(lines)) == (3, 4)


@pytest.mark.usefixtures("telemetry")
def test_two_backtests_are_compared_over_the_same_windows(alice: Client) -> None:
    first = asked(alice)
    finish(first)
    answer = alice.post(f"/analyzers/tally/backtest?against={first.pk}", {"param-share": "0.95"})
    second = BacktestRow.objects.latest("created_at")
    assert answer.headers["Location"] == f"/backtests/compare?a={first.pk}&b={second.pk}"
    finish(second)
    shown = page(alice, answer.headers["Location"])
    alone = shown.split("Found by 1 only")[1].split("Found by 2 only")[0]
    assert "tor/a" in alone


@pytest.mark.usefixtures("telemetry")
def test_a_backtest_is_cancelled_once(alice: Client) -> None:
    row = asked(alice)
    alice.post(f"/backtests/{row.pk}/cancel")
    shown = alice.post(f"/backtests/{row.pk}/cancel", follow=True).content.decode()
    assert "Cancelled after 0 windows" in shown
    assert "Already finished." in shown


@pytest.mark.usefixtures("telemetry")
def test_a_backtest_of_nothing_is_refused_in_words(alice: Client) -> None:
    for changes in ({"start": "soon"}, {"end": SPAN["start"]}, {"every": "0 s"}, {"param-share": "-1"}):
        assert alice.post("/analyzers/tally/backtest", {**SPAN, **changes}).status_code == 400
    assert BacktestRow.objects.count() == 0


@pytest.mark.parametrize("path", ["compare", "compare?a=x&b=y", "compare?a=%00"])
def test_an_address_that_names_no_two_backtests_is_refused(alice: Client, path: str) -> None:
    assert alice.get(f"/backtests/{path}").status_code == 400


def test_there_is_no_backtest_of_another_id(alice: Client) -> None:
    assert alice.get(f"/backtests/{uuid4()}").status_code == 404


def test_runs_are_found_by_region_schedule_and_outcome(alice: Client) -> None:
    for region in ("east", "west"):
        Run.objects.create(
            analyzer="tally", region=region, created_at=TOP, window_start=TOP, window_end=TOP + HOUR,
            requested_by="user:bob", state="failed", error=f"{region} is broken",
        )  # fmt: skip
    shown = page(alice, "/runs?region=east&status=failed")
    assert "east is broken" in shown
    assert "west is broken" not in shown
    assert alice.get("/runs?region=%00").status_code == 400
