"""From metrics, errors and attempts over HTTP to a forecast and its incident: one node of sixty shows what came before
failures."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from analyzers.queries import Run, verdict
from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.forecasts.nodes import AT_RISK, EPOCH, Rates, fleet, rows_of
from incidents import queries
from incidents.follower import follower
from incidents.remediation.mitigation import advice
from ingest.api import keys
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import NOW, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

DAYS = 24


def test_a_run_names_the_node_at_risk_as_a_forecast() -> None:
    rates = Rates(nodes=60, days=DAYS, rate=0.03, benign=0.0)
    made = rows_of(fleet(rates, np.random.default_rng([1, 47]), AT_RISK))
    end = NOW.replace(hour=0, minute=0, second=0)
    shift = end - timedelta(days=DAYS) - EPOCH
    door = Door()
    for kind, rows in made.items():
        times = [name for name in ("time", "start", "end") if name in rows[0]]
        moved = [
            {**row, **{name: (datetime.fromisoformat(row[name]) + shift).isoformat() for name in times}}
            for row in rows
        ]
        door.post(moved, kind=kind)
    asked = RunRequest(
        "failure_forecast", start=end - timedelta(days=DAYS), end=end, params={"alarms": 40.0}, history=0
    )
    request_run(asked, "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", [f"node/gpu-{AT_RISK}"])
    found = verdict(run)
    assert found is not None
    assert found["evidence"][0]["title"] == "Nodes at risk"
    assert found["suspects"][0]["forecast"]

    follow_to_the_end(follower())
    (row,) = queries.list_incidents().items
    assert (row.incident.component, row.incident.severity) == (f"node/gpu-{AT_RISK}", "info")
    assert queries.timeline(str(row.incident.number))[0].body["why"] == "opened immediately (forecast)"
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    for address in ("/analyzers/failure_forecast/run", "/schedules/new?analyzer=failure_forecast"):
        form = alice.get(address).content.decode()
        assert re.search(r'name="length"[^>]*value="1 ?d"', form), address
    _is_read_as_a_list(alice, run, row.incident.number)
    _is_weighed_with_its_probability(alice, found, row.incident.number)


def _is_weighed_with_its_probability(alice: Client, found: dict[str, Any], number: int) -> None:
    """By the comparison of mitigations: the forecast is no confidence in a cause."""
    probability = found["evidence"][0]["rows"][0][1]
    assert probability > 0.6
    key = keys.create("mitigation", ["incidents:read"])
    address, bearer = f"/api/v1/incidents/{number}/mitigation", {"authorization": f"Bearer {key}"}
    inputs = Client().get(address, headers=bearer).json()["inputs"]
    assert inputs["probability"] == {
        "value": round(probability, 3),
        "origin": "data: forecast of a failure within 48 hours",
    }
    assert inputs["slowdown"] == {"value": 0.0, "origin": "data: a forecast, nothing has failed yet"}
    assert inputs["crash_hours"]["value"] == 24.0
    assert Client().get(f"{address}?probability=.2", headers=bearer).json()["inputs"]["probability"] == {
        "value": 0.2,
        "origin": "given",
    }
    shown = alice.get(f"/incidents/{number}").content.decode()
    assert "<strong>Forecast</strong>" in shown
    assert "Not measured" not in shown
    onset = Client().get(f"/api/v1/incidents/{number}/changes", headers=bearer).json()["onset"]
    assert (onset["forecast"], onset["low"]) == (True, None)
    assert onset["interval"] == "nothing has failed yet"
    details = alice.get(f"/incidents/{number}/details").content.decode()
    assert "Nothing has failed yet: this is a forecast." in details
    reported = {one.field.name: one.value for one in advice(queries.get(str(number)).incident).values}
    assert (reported["probability"], reported["slowdown"]) == (round(probability, 3), 0.0)
    assert (
        "forecast of a failure within 48 hours"
        in alice.get(f"/incidents/{number}/mitigation").content.decode()
    )


def _is_read_as_a_list(alice: Client, run: Run, number: int) -> None:
    """Over the API, on the page of nodes at risk, and on the page of the node while the horizon lasts."""
    key = keys.create("reader", ["incidents:read"])

    def asked(query: str = "") -> tuple[int, Any]:
        answer = Client().get(f"/api/v1/nodes_at_risk{query}", headers={"authorization": f"Bearer {key}"})
        return answer.status_code, answer.json()

    node = run.blamed[0]["component"]
    status, body = asked()
    assert (status, body["run"], body["status"], body["horizon_hours"]) == (200, str(run.pk), "named", 48.0)
    assert (body["judged"], len(body["results"])) == (60, 60)
    first = body["results"][0]
    assert (first["component"], first["named"]) == (node, True)
    assert first["probability"] > body["results"][1]["probability"]
    assert "xid" in first["reasons"]
    assert asked(f"?component={node}")[1]["results"] == [first]
    assert asked("?component=node/other")[1]["results"] == []
    assert (asked("?region=nowhere")[0], asked("?node=x")[0]) == (400, 400)

    def shown(address: str) -> str:
        return alice.get(address).content.decode()

    listed = shown("/nodes-at-risk")
    (line,) = re.findall(rf'<tr data-node="{node}">.*?</tr>', listed, re.S)
    assert f">#{number}</a>" in line
    assert len(re.findall("<tr data-node=", listed)) > 20
    over = run.window_end + timedelta(hours=48)
    for at, there in ((over - timedelta(minutes=1), True), (over, False)):
        page = shown(f"/components/{node}?at={at.strftime('%Y-%m-%dT%H:%M:%SZ')}")
        assert ("Risk of failure" in page) is (
            there and run.finished_at is not None and run.finished_at <= at
        )


def test_without_a_run_the_list_says_what_makes_one() -> None:
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert "No forecast yet" in alice.get("/nodes-at-risk").content.decode()
    key = keys.create("reader", ["incidents:read"])
    body = Client().get("/api/v1/nodes_at_risk", headers={"authorization": f"Bearer {key}"}).json()
    assert (body["run"], body["results"]) == (None, [])
    assert "No run of failure_forecast" in body["reason"]
