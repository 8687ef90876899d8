"""Mitigation of a recorded incident: inputs from data, over the API and on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import commands, queries
from incidents.commands import Report
from incidents.remediation.mitigation import mitigation_of
from ingest.api import keys
from ingest.queries import Context

NOW = datetime.now(UTC)
ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


def attempt(job: str, hours_ago: float, outcome: str, minutes: float = 60) -> dict[str, Any]:
    end = NOW - timedelta(hours=hours_ago)
    return {
        "job": job,
        "nodes": [f"node/n{n}" for n in range(64)],
        "start": (end - timedelta(minutes=minutes)).isoformat(),
        "end": end.isoformat(),
        "outcome": outcome,
    }


def test_the_expected_loss_is_shown_with_inputs_from_recorded_data_and_can_be_changed() -> None:
    key = keys.create("test", ["telemetry", "incidents:read"])
    bearer = {"authorization": f"Bearer {key}"}
    # Four failed attempts of a job on 64 nodes; 40 minutes between each and the next.
    rows = [attempt("llm", 20 - n * 100 / 60, "failed") for n in range(4)] + [
        attempt("llm", 1, "completed", 800)
    ]
    answer = Client().post(
        "/api/v1/telemetry/job_attempt", json.dumps(rows), "application/json", headers=bearer
    )
    assert answer.status_code == 202, answer.content
    number = commands.open_incident(Report(title="slow", component="node/n7"), ALICE).incident.number
    disk = commands.open_incident(Report(title="full", component="storage_cluster/s7"), ALICE).incident.number
    address = f"/api/v1/incidents/{number}/mitigation"

    found = Client().get(address, headers=bearer).json()
    assert found["inputs"]["gpus"] == {
        "value": 512.0,
        "origin": "data: 64 nodes of llm, setting: 8 GPUs each",
    }
    assert found["inputs"]["restart_minutes"]["value"] == pytest.approx(40, abs=0.2)
    assert found["inputs"]["crash_hours"]["origin"] == "data: 4 failed attempts on the node in 7 days"
    assert found["inputs"]["checkpoint_minutes"] == {"value": 60.0, "origin": "setting"}
    assert {one["name"] for one in found["options"]} == {
        "wait",
        "restart",
        "restart_at_checkpoint",
        "migrate",
    }
    assert found["recommended"] == found["options"][0]["name"]

    sure = "probability=1&slowdown=1&since_checkpoint_minutes=15&restart_minutes=15"
    hung = Client().get(f"{address}?{sure}", headers=bearer).json()
    assert hung["options"][0] == {"name": "restart", "gpu_hours": 256.0, "reason": None}
    assert hung["inputs"]["slowdown"] == {"value": 1.0, "origin": "given"}
    network = "gigabytes=1.4&iteration_seconds=2&gigabits_now=25&gigabits_then=400"
    assert Client().get(f"{address}?{network}", headers=bearer).json()["network"]["helps"] is True
    for query, reason in (
        ("probability=2", "from 0 to 1"),
        ("gpus=many", "from 1 to"),
        ("gigabytes=3", "required with the other inputs"),
        ("since_checkpoint_minutes=90", "longer than the checkpoint interval"),
        ("colour=red", "is not a parameter"),
    ):
        refused = Client().get(f"{address}?{query}", headers=bearer)
        assert (refused.status_code, reason in refused.content.decode()) == (400, True), refused.content
    assert Client().get(f"/api/v1/incidents/{disk}/mitigation", headers=bearer).status_code == 409

    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    block = f"/incidents/{number}/mitigation"
    assert block in alice.get(f"/incidents/{number}").content.decode()
    assert f"/incidents/{disk}/mitigation" not in alice.get(f"/incidents/{disk}").content.decode()
    page = alice.get(f"{block}?{sure}").content.decode()
    assert "256.0" in page
    assert "Restart from the last checkpoint" in page
    wrong = alice.get(f"{block}?gpus=many").content.decode()
    assert "Not calculated. Gpus: must be a number from 1 to 1e+06." in wrong
    assert alice.get(f"/incidents/{disk}/mitigation").status_code == 404

    small = {**attempt("eval", 0, "completed", 10), "nodes": ["node/n7"]}
    Client().post("/api/v1/telemetry/job_attempt", json.dumps([small]), "application/json", headers=bearer)
    state = queries.get(str(number)).incident
    blamed = replace(state, last_blamed=NOW - timedelta(hours=2))
    sizes = [
        mitigation_of(one, {}, "default", NOW + timedelta(seconds=1)).values[0].value
        for one in (state, blamed)
    ]
    assert sizes == [8.0, 512.0], "the job that ran when the node was blamed, not the newest"
    one = mitigation_of(state, {}, "default", NOW + timedelta(seconds=1)).values[0]
    assert one.source == "data: 1 node of eval, setting: 8 GPUs each"
