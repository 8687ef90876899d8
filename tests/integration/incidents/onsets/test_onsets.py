"""Since when an incident lasts, and its changes tested as causes: on its page, in the API and of the past."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.changes.metrics import Fleet, fleet, rows_of
from incidents import queries
from incidents.domain.suppression.rules import Matcher
from incidents.follower import follower
from incidents.onsets import queries as onsets
from incidents.onsets.sweep import request_onset_runs, window_end
from incidents.suppression.models import MaintenanceWindow
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from ingest.log.read import watermark
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, TOP, Door, healthy, work

pytestmark = pytest.mark.usefixtures("log_database")
MINUTE = timedelta(minutes=1)
HOURS = 3


@pytest.fixture
def key() -> str:
    return keys.create("deployments", ["alerts", "incidents:read"])


def report(key: str, summary: str, service: str, at: datetime) -> None:
    payload = {"summary": summary, "source": service, "timestamp": at.isoformat()}
    payload["custom_details"] = {"service": service}  # type: ignore[assignment]
    body = json.dumps({"routing_key": key, "payload": payload})
    assert Client().post("/v2/change/enqueue", body, content_type="application/json").status_code == 202


def an_incident(service: str) -> int:
    alert = Alert("k", "firing", "Checkout is slow", group="Slow", labels={"service": service})
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    return queries.list_incidents().items[0].incident.number


def about(number: int, key: str, tail: str = "") -> Any:
    address = f"/api/v1/incidents/{number}/changes{tail}"
    return Client().get(address, HTTP_AUTHORIZATION=f"Bearer {key}").json()


def send_metrics(made: Fleet, start: datetime) -> None:
    rows = [row for row in rows_of(made, start) if row["name"] == "cpu_usage"]
    Door().post(rows, kind="metric")


def test_an_incident_says_since_when_and_tests_its_changes(key: str) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start = now - HOURS * 60 * MINUTE
    made = fleet(np.random.default_rng([3, 1]), "step", services=24, hours=HOURS)
    service, onset = made.name(made.at), start + made.onset * MINUTE
    report(key, "Deployed 2.31", service, onset - 3 * MINUTE)
    report(key, "Rolled back 2.31", service, onset + 4 * MINUTE)
    number = an_incident(service)
    before = about(number, key)
    assert (before["onset"]["source"], before["onset"]["low"]) == ("alert", None)
    assert before["onset"]["interval"] == "beginning unknown: the alert was not resolved before"
    assert before["results"][0]["test"]["reasons"][0] == (
        "No metric of the failed component shows the onset: no run of changepoint covers the opening."
    )
    assert [one["test"]["verdict"] for one in before["results"]] == ["cannot be tested"] * 2
    then = watermark()

    send_metrics(made, start)
    end = now + 15 * MINUTE
    request_run(RunRequest("changepoint", start=end - 60 * MINUTE, end=end, report=False), "alice", now)
    (run,) = work()
    assert [one["component"] for one in run.blamed] == [f"service/{service}"]

    found = about(number, key)
    assert (found["onset"]["source"], found["onset"]["run"]) == ("metrics", str(run.id))
    assert found["onset"]["detail"] == f"cpu_usage of service/{service}"
    low, high = (datetime.fromisoformat(found["onset"][name]) for name in ("low", "high"))
    assert low <= onset <= high
    verdicts = {one["summary"]: one["test"] for one in found["results"]}
    assert verdicts["Rolled back 2.31"]["verdict"] == "contradicted"
    assert verdicts["Deployed 2.31"]["verdict"] == "supported"
    assert verdicts["Deployed 2.31"]["changed"] == [1, 1]
    assert verdicts["Deployed 2.31"]["control"] == [0, 23]
    assert about(number, key, f"?as_of={then}")["onset"]["source"] == "alert"

    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    body = alice.get(f"/incidents/{number}/details").content.decode()
    assert 'data-onset="metrics"' in body
    assert body.count('data-test="supported"') == body.count('data-test="contradicted"') == 1
    assert "0 of 23 others" in body


def test_rows_of_change_are_beside_an_incident_and_tested(key: str) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start = now - HOURS * 60 * MINUTE
    made = fleet(np.random.default_rng([3, 1]), "step", services=24, hours=HOURS)
    service, onset = made.name(made.at), start + made.onset * MINUTE
    other = made.name((made.at + 1) % 24)
    planned = {
        "CHG-1": (onset - 3 * MINUTE, [f"service/{service}"]),
        "CHG-2": (onset + 4 * MINUTE, [f"service/{service}", f"service/{other}"]),
        "CHG-3": (onset - 3 * MINUTE, [f"service/{other}"]),
        "CHG-4": (now + 60 * MINUTE, [f"service/{service}"]),
    }
    rows = [
        {"time": at.isoformat(), "change": name, "kind": "deploy", "author": "alice", "targets": targets}
        for name, (at, targets) in planned.items()
    ]
    door = Door()
    door.post(rows[:1], kind="change")
    number = an_incident(service)
    then = watermark()
    door.post(rows[1:], kind="change")
    door.post([row for row in rows_of(made, start) if row["name"] == "cpu_usage"], kind="metric")
    end = now + 15 * MINUTE
    request_run(RunRequest("changepoint", start=end - 60 * MINUTE, end=end, report=False), "alice", now)
    work()

    found = about(number, key)
    assert [(one["id"], one["test"]["verdict"]) for one in found["results"]] == [
        ("CHG-2", "contradicted"),
        ("CHG-1", "supported"),
    ]
    assert found["results"][0]["targets"] == sorted([f"service/{service}", f"service/{other}"])
    assert (found["results"][1]["receipt"], found["results"][1]["received_at"]) == (None, None)
    assert found["results"][1]["details"] == {"kind": "deploy", "author": "alice"}
    assert [one["id"] for one in about(number, key, f"?as_of={then}")["results"]] == ["CHG-1"]
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    body = alice.get(f"/incidents/{number}/details").content.decode()
    assert "CHG-1: deploy" in body
    assert "CHG-3" not in body


def test_an_incident_says_since_when_without_being_asked(key: str) -> None:
    made = fleet(np.random.default_rng([3, 1]), "step", services=24, hours=HOURS)
    service = made.name(made.at)
    number = an_incident(service)
    end = window_end(queries.get(str(number)).incident.opened_at)
    # Moments count from the window, wherever within ten minutes the incident opened.
    start = end - 20 * MINUTE - HOURS * 60 * MINUTE
    onset = start + made.onset * MINUTE
    later = end + 2 * MINUTE
    assert request_onset_runs(later) == 0, "no metrics have arrived"
    send_metrics(made, start)
    assert request_onset_runs(end) == 0, "the last rows of the window may not have arrived"
    assert request_onset_runs(later) == 1
    assert request_onset_runs(later) == 0, "one run serves all incidents of ten minutes"
    (run,) = work()
    found = about(number, key)
    assert (found["onset"]["source"], found["onset"]["run"]) == ("metrics", str(run.id))
    low, high = (datetime.fromisoformat(found["onset"][name]) for name in ("low", "high"))
    assert low <= onset <= high
    assert [one.incident.number for one in queries.list_incidents().items] == [number]
    assert found["maintenance"] == []

    plan("switches", service, onset - 40 * MINUTE, onset - 10 * MINUTE)
    plan("long-over", service, onset - 90 * MINUTE, onset - 60 * MINUTE)
    plan("another", "s00", onset - 10 * MINUTE, onset + 50 * MINUTE)
    (beside,) = about(number, key)["maintenance"]
    assert (beside["slug"], beside["reason"]) == ("switches", "Replace switches")
    assert datetime.fromisoformat(beside["ends_at"]) == onset - 10 * MINUTE
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert 'data-maintenance="switches"' in alice.get(f"/incidents/{number}/details").content.decode()


@pytest.mark.usefixtures("tally")
def test_without_metrics_an_onset_begins_at_the_last_window_without_the_component(key: str) -> None:
    """Not at a later one in which nothing was known of it, and of the past by what had been judged."""
    door = Door()
    rows = [*healthy(TOP, HOUR), *healthy(TOP + HOUR, HOUR, a=9)]
    others = [row for row in healthy(TOP + HOUR / 2, HOUR / 2) if row["components"] != ["tor/a"]]
    door.post([row for row in rows if row["time"] < (TOP + HOUR / 2).isoformat()] + others)
    door.post([row for row in rows if row["time"] >= (TOP + HOUR).isoformat()])
    failed = request_run(
        RunRequest("tally", start=TOP + HOUR, end=TOP + 2 * HOUR), "alice", datetime.now(UTC)
    )
    work()
    follow_to_the_end(follower())
    number = queries.list_incidents().items[0].incident.number
    unknown = about(number, key)["onset"]
    assert unknown["low"] is None
    assert unknown["interval"] == "beginning unknown: no earlier window of tally is known to be without it"
    then = watermark()

    for part in range(2):
        span = RunRequest("tally", start=TOP + part * HOUR / 2, end=TOP + (part + 1) * HOUR / 2)
        request_run(span, "alice", datetime.now(UTC))
    assert [run.status for run in work()] == ["quiet", "quiet"]
    found = about(number, key)["onset"]
    assert datetime.fromisoformat(found["low"]) == TOP + HOUR / 2
    assert datetime.fromisoformat(found["high"]) >= failed.window_end
    assert (found["source"], found["forecast"]) == ("opened", False)
    assert found["interval"] == "from the end of the last window in which tally judged and did not name it"
    assert about(number, key, f"?as_of={then}")["onset"]["low"] is None
    state = queries.get(str(number)).incident
    assert onsets._not_named(state, TOP + HOUR / 2, None).at is None, (
        "the first row that failed tells of before it"
    )
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert found["interval"] in alice.get(f"/incidents/{number}/details").content.decode()


def test_an_alert_that_fires_again_began_after_it_was_resolved(key: str) -> None:
    start = datetime.now(UTC).replace(microsecond=0)
    (first,) = sent("firing", start)
    sent("resolved", start)
    follow_to_the_end(follower())
    assert about(first, key)["onset"]["low"] is None
    (_, again) = sent("firing", start + 2 * HOUR)
    found = about(again, key)["onset"]
    assert (found["source"], found["interval"]) == ("alert", "from the last time that the alert was resolved")
    low, high = (datetime.fromisoformat(found[name]) for name in ("low", "high"))
    assert start <= low < high
    day = queries.get(str(again)).incident.opened_at.date()
    bearer = {"authorization": f"Bearer {key}"}
    report = Client().get(f"/api/v1/reports/daily-{day}", headers=bearer).json()
    since = {one["number"]: one["since"] for one in report["incidents"]["opened"]}[again]
    assert since == {name: found[name] for name in since}
    page = Client().get(f"/api/v1/reports/daily-{day}?format=html", headers=bearer).content.decode()
    assert "(from the last time that the alert was resolved)" in page


def sent(status: Literal["firing", "resolved"], starts_at: datetime) -> list[int]:
    """Deliver the alert; the numbers of all incidents, oldest first."""
    alert = Alert("k", status, "Slow", group="Slow", labels={"service": "web"}, starts_at=starts_at)
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    return [one.incident.number for one in queries.list_incidents(order="oldest").items]


def plan(slug: str, service: str, starts_at: datetime, ends_at: datetime) -> None:
    fits = [Matcher("service", service).as_json()]
    MaintenanceWindow.objects.create(
        slug=slug, reason="Replace switches", matchers=fits, starts_at=starts_at, ends_at=ends_at
    )
