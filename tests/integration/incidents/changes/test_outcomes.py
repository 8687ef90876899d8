"""Outcomes of changes: recorded by people, learned from incidents, shown with the risk; wrong ones are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analyzers.runs.requests import RunRequest, request_run
from analyzers.runs.scheduler import catch_up, telemetry_span
from analyzers.simulators.changes.metrics import fleet, rows_of
from analyzers.simulators.changes.risk import EPOCH, Rates, history
from incidents.changes.outcomes import learn_from_incidents
from incidents.changes.risk import AHEAD, stored
from ingest.api import keys
from ingest.queries import data_clock, now_utc
from tests.integration.analyzers.runs.cases import Door, work
from tests.integration.incidents.onsets.test_onsets import HOURS, MINUTE, an_incident

pytestmark = pytest.mark.usefixtures("log_database")


def a_change(name: str, at: datetime, **other: Any) -> dict[str, Any]:
    return {"time": at.isoformat(), "change": name, "kind": "config", **other}


def call(key: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    client, headers = Client(), {"authorization": f"Bearer {key}"}
    address = f"/api/v1/changes/{path}"
    if body is None:
        answer = client.get(address, headers=headers)
    else:
        answer = client.post(address, json.dumps(body), content_type="application/json", headers=headers)
    return answer.status_code, answer.json()


def outcomes(region: str = "default") -> dict[str, str]:
    return {one.name: one.outcome for one in stored(region, now_utc() + timedelta(seconds=2), ahead=AHEAD)}


def test_an_outcome_is_recorded_and_withdrawn() -> None:
    key, at = keys.create("test", ["incidents:read", "incidents:write"]), now_utc() - timedelta(hours=1)
    Door().post([a_change("CHG-1", at), a_change("CHG-2", at + timedelta(days=3))], kind="change")
    status, body = call(key, "outcomes", {"change": "CHG-1", "outcome": "incident"})
    assert (status, body["outcome"]) == (200, "incident")
    assert outcomes() == {"CHG-1": "incident", "CHG-2": ""}
    assert call(key, "outcomes", {"change": "CHG-1", "outcome": "harmless"})[1]["outcome"] == "good"
    assert outcomes()["CHG-1"] == "good"
    assert call(key, "outcomes", {"change": "CHG-1", "outcome": "rolled_back"})[1]["outcome"] == "rolled_back"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"change": "CHG-9", "outcome": "incident"}, 409, "There is no change 'CHG-9' in region default"),
        ({"change": "CHG-2", "outcome": "incident"}, 400, "goes out on"),
        ({"change": "CHG-1", "outcome": "bad"}, 400, "is not a valid choice"),
        ({"change": "CHG-1", "outcome": "incident", "incident": "77"}, 404, "77"),
        ({"change": "CHG-1", "outcome": "harmless", "incident": "1"}, 400, "of no use"),
        ({"change": "CHG-1", "outcome": "incident", "why": "x"}, 400, "not a field of an outcome"),
    ],
)
def test_a_wrong_outcome_is_refused_and_nothing_stored(body: dict[str, str], status: int, says: str) -> None:
    key, at = keys.create("test", ["incidents:read", "incidents:write"]), now_utc() - timedelta(hours=1)
    Door().post([a_change("CHG-1", at), a_change("CHG-2", at + timedelta(days=3))], kind="change")
    answered = call(key, "outcomes", body)
    assert answered[0] == status, answered
    assert says in json.dumps(answered[1], ensure_ascii=False)
    assert set(outcomes().values()) == {""}


def test_a_planned_change_does_not_move_the_clock_of_the_data() -> None:
    now = now_utc()
    Door().post([a_change("CHG-1", now + timedelta(days=59))], kind="change")
    catch_up()
    latest, span = data_clock("default", ["change"]).latest, telemetry_span(["change"], "default")
    assert latest is not None
    assert now <= latest <= now_utc()
    assert span is not None
    assert span.latest <= now_utc()


def test_a_change_that_an_incident_supports_as_its_cause_is_bad() -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start = now - HOURS * 60 * MINUTE
    made = fleet(np.random.default_rng([3, 1]), "step", services=24, hours=HOURS)
    failed, other = made.name(made.at), made.name((made.at + 1) % 24)
    before = start + (made.onset - 3) * MINUTE
    door = Door()
    door.post(
        [
            a_change("CHG-cause", before, targets=[f"service/{failed}"]),
            a_change("CHG-elsewhere", before, targets=[f"service/{other}"]),
            a_change("CHG-after", before + 7 * MINUTE, targets=[f"service/{failed}"]),
        ],
        kind="change",
    )
    number = an_incident(failed)
    assert learn_from_incidents(now_utc()) == 0
    door.post([row for row in rows_of(made, start) if row["name"] == "cpu_usage"], kind="metric")
    end = now + 15 * MINUTE
    request_run(RunRequest("changepoint", start=end - 60 * MINUTE, end=end, report=False), "alice", now)
    work()
    assert learn_from_incidents(now_utc()) == 1
    assert learn_from_incidents(now_utc()) == 0
    assert outcomes() == {"CHG-cause": "incident", "CHG-elsewhere": "", "CHG-after": ""}

    bob = Client()
    bob.force_login(get_user_model().objects.create(username="bob"))
    page = bob.get("/changes").content.decode()
    assert f'<span class="pill named">Incident</span> <a href="/incidents/{number}">#{number}</a>' in page
    form = {"change": "CHG-cause", "region": "default", "outcome": "harmless", "next": "/changes"}
    assert (
        "CHG-cause: harmless. Recorded." in bob.post("/changes/outcome", form, follow=True).content.decode()
    )
    assert learn_from_incidents(now_utc()) == 0
    assert outcomes()["CHG-cause"] == "good"


def test_incidents_are_not_read_where_no_change_is_known() -> None:
    an_incident("service/a")
    with CaptureQueriesContext(connection) as seen:
        assert learn_from_incidents(now_utc()) == 0
    assert len(seen) > 1
    assert not [one["sql"] for one in seen if '"incident"."title"' in one["sql"]]


def test_the_list_shows_risk_path_and_how_true_earlier_risks_were() -> None:
    key = keys.create("test", ["incidents:read"])
    assert call(key, "risks")[1] == {
        "past": 0,
        "bad": 0,
        "usual": None,
        "reason": "No probability: 0 changes with a known outcome, of which 0 were bad; 60 and 8 are needed.",
        "reliability": [],
        "results": [],
    }
    bob = Client()
    bob.force_login(get_user_model().objects.create(username="bob"))
    assert "No changes yet." in bob.get("/changes").content.decode()

    rows, _ = history(1, True, Rates(changes=400, usual=0.02, wide=0.95, evening=0.02, noise=0.0))
    last = datetime.fromisoformat(rows["change"][-1]["time"])
    shift = now_utc() + timedelta(days=1) - last
    door = Door()
    for kind, of_kind in rows.items():
        moved = [
            {**row, "time": (datetime.fromisoformat(row["time"]) + shift).isoformat()} for row in of_kind
        ]
        door.post(moved, kind=kind)
    assert last > EPOCH
    status, found = call(key, "risks?limit=200")
    assert status == 200
    first = found["results"][0]
    assert (first["change"], first["ahead"], first["outcome"]) == ("CHG-planned", True, None)
    assert first["low"] < first["probability"] < first["high"]
    assert "sets network.*" in {step["condition"] for step in first["path"]}
    assert [one["at"] for one in found["results"][1:]] == sorted(
        (one["at"] for one in found["results"][1:]), reverse=True
    )
    assert sum(one["changes"] for one in found["reliability"]) > 100

    page = bob.get("/changes?outcome=ahead").content.decode()
    assert 'data-change="CHG-planned"' in page
    assert "sets network.*" in page
    assert page.count("data-change=") == 1
    assert "Stated and happened" in page
    whole = bob.get("/changes").content.decode()
    assert whole.count("data-change=") == 20
    assert "cursor=20" in whole
    assert bob.get("/changes?outcome=never").status_code == 400
    assert bob.get("/changes?region=nowhere").status_code == 400
