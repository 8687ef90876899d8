"""Lemons of a recorded fleet: telemetry and incidents in, report, API, CSV and command out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

from incidents import commands
from incidents.commands import Report
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import period_at
from incidents.reports.produce import current, produce, report, reproduce
from ingest.api import keys
from ingest.queries import Context

NOW = datetime.now(UTC)
ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


def send(kind: str, rows: Iterable[Mapping[str, Any]], key: str) -> None:
    answer = Client().post(
        f"/api/v1/telemetry/{kind}",
        "\n".join(map(json.dumps, rows)),
        content_type="application/x-ndjson",
        headers={"authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 202, answer.content


def fleet(key: str, end: datetime) -> None:
    """30 nodes of three batches with a GPU each and jobs of one or two nodes; node/7 fails half of them, gpu/s4 fails
    itself."""
    random = np.random.default_rng(2)
    start = (end - timedelta(days=14)).isoformat()
    send(
        "topology",
        [
            {"time": start, "component": f"node/{n}", "labels": {"batch": f"b{n % 3}", "sku": "h100"}}
            for n in range(30)
        ],
        key,
    )
    slots = [{"time": start, "unit": f"slot/{n}:0", "components": [f"gpu/s{n}"]} for n in range(30)]
    send("placement", slots, key)
    failing = [*range(30), *[4] * 14]
    when = (end - timedelta(days=3)).isoformat()
    send("unit_failure", [{"time": when, "unit": f"gpu/s{n}"} for n in failing], key)
    rows = []
    for job in range(1500):
        first = int(random.integers(0, 30))
        nodes = sorted({first, (first + int(random.integers(0, 2))) % 30})
        failed = random.random() < (0.5 if 7 in nodes else 0.04)
        at = end - timedelta(minutes=int(random.integers(60, 13 * 1440)))
        rows.append(
            {
                "job": f"j{job}",
                "nodes": [f"node/{n}" for n in nodes],
                "start": (at - timedelta(hours=3)).isoformat(),
                "end": at.isoformat(),
                "outcome": "failed" if failed else "completed",
            }
        )
    send("job_attempt", rows, key)


def test_a_lemon_node_is_in_the_weekly_report_the_api_and_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ReportSchedule.objects.update(since=NOW - timedelta(days=400), region="")
    weekly = ReportSchedule.objects.get(name="weekly")
    week = period_at("weekly", NOW, "UTC").previous()
    key = keys.create("test", ["telemetry", "incidents:read"])
    fleet(key, week.end)
    found = commands.open_incident(Report(title="slow", component="node/3"), ALICE).incident
    commands.resolve(found.id, "none", "", ALICE)
    bearer = {"authorization": f"Bearer {key}"}

    assert produce(weekly, week, NOW)
    made = report(f"weekly-{week.name}", NOW)
    (lemons,) = made["lemons"]
    gpus, nodes = lemons["fleets"]
    assert (gpus["kind"], [one["name"] for one in gpus["lemons"]]) == ("gpu", ["gpu/s4"])
    assert [one["name"] for one in nodes["lemons"]] == ["node/7"]
    assert (nodes["kind"], nodes["parts"], nodes["judged"], nodes["groups"]) == ("node h100", 30, 30, [])
    assert nodes["lemons"][0]["ratio"] > 3
    assert reproduce(f"weekly-{week.name}")["lemons"] == made["lemons"]
    text = Client().get(f"/api/v1/reports/weekly-{week.name}?format=csv", headers=bearer).content.decode()
    assert [row["name"] for row in csv.DictReader(io.StringIO(text)) if row["section"] == "lemons"] == [
        "gpu/s4",
        "node/7",
    ]
    page = Client().get(f"/api/v1/reports/weekly-{week.name}?format=html", headers=bearer).content.decode()
    assert "node/7" in page
    assert "Lemons, default" in page

    answer = Client().get("/api/v1/lemons?days=60", headers=bearer)
    (region,) = answer.json()["regions"]
    assert [one["name"] for one in region["fleets"][1]["lemons"]] == ["node/7"]
    assert {one["name"]: one["no_fault_found"] for one in region["repairs"]} == {
        "all of kind node": 1,
        "batch b0": 1,
        "sku h100": 1,
    }
    refused = Client().get("/api/v1/lemons?days=0", headers=bearer)
    assert (refused.status_code, "from 1 to 400" in refused.content.decode()) == (400, True)

    number = commands.open_incident(Report(title="hot", component="gpu/1652"), ALICE).incident.number
    (advice,) = report(current(weekly, NOW), datetime.now(UTC))["mitigations"]
    assert (advice["number"], advice["component"]) == (number, "gpu/1652")
    assert set(advice["gpu_hours"]) == {"wait", "restart", "restart_at_checkpoint", "migrate"}
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert "Open at the end" in (shown := alice.get(f"/reports/{current(weekly, NOW)}").content.decode())
    assert "node/7" in shown

    call_command("lemons", "--days", "60")
    assert "node/7: " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        call_command("lemons", "--region", "mars")
    assert "no telemetry of region mars" in capsys.readouterr().err


def test_a_fleet_without_data_has_no_lemons_and_says_nothing_of_them() -> None:
    key = keys.create("test", ["incidents:read"])
    answer = Client().get("/api/v1/lemons", headers={"authorization": f"Bearer {key}"})
    assert answer.json() == {"regions": []}
