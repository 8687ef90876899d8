"""Faults that others injected into real applications: offline, and through the endpoint to an incident.

The recorded spans are read through `TRACES_DIR` and are no part of the project. What the method reaches on
all of them is a benchmark (`tests/benchmarks/real_traces.py`), no test; here, one fault goes the whole way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client

from analyzers.runs.execution import execute
from analyzers.runs.models import Run, Schedule, State
from analyzers.runs.scheduler import catch_up, claim_due
from incidents.follower import follower
from ingest.api import keys
from ingest.integrations.spans import instant
from tests.benchmarks.real_traces import Fault, directory, faults_of, split
from tests.following import follow_to_the_end
from tests.places import ROOT

TRACES = directory()
HALF_MINUTE = timedelta(seconds=30)
CULPRIT = "instance/recommendationservice-6cfdd55578-gfj6q"

pytestmark = pytest.mark.skipif(
    TRACES is None, reason="TRACES_DIR is not set: the recorded traces are not here"
)


@pytest.fixture(scope="module")
def fault() -> Fault:
    """CPU consumed in the one instance of a recommendation service; the recording begins before it."""
    assert TRACES is not None
    found = (one for one in faults_of(TRACES, "online-boutique") if one.kind == "cpu_consumed")
    return next(one for one in found if one.instance == CULPRIT)


def manage(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        capture_output=True,
        env=environment,
        timeout=100,
        check=False,
    )


def convert(fault: Fault, out: Path, *more: str) -> None:
    assert TRACES is not None
    normal = [f"--normal={path}" for path in (TRACES / fault.app / "normal").glob("*.csv.gz")]
    done = manage(
        "convert", "spans", *normal, *(f"--input={path}" for path in fault.files), f"--out={out}", *more
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_instance_is_named_from_files_as_soon_as_its_fault_begins(fault: Fault, tmp_path: Path) -> None:
    rows = tmp_path / "mine.ndjson"
    convert(fault, rows)
    done = manage("analyze", "deepview", f"--input=path_outcome={rows}", "--every=30s", "--json")
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    named = [one for one in verdicts if one["status"] == "named"]
    assert verdicts[0]["status"] == "quiet"
    assert named[0]["suspects"][0]["component"] == CULPRIT
    assert datetime.fromisoformat(named[0]["window"]["start"]) >= instant(fault.epoch * 10**9) - HALF_MINUTE


def shifted_by_whole_hours(fault: Fault) -> datetime:
    """Time of the last row: within the past hour, at the minute and second of the recording."""
    before, after = split(fault)
    last = instant(max(trace.root.start for trace in (*before, *after)))
    return last + (datetime.now(UTC) - last) // timedelta(hours=1) * timedelta(hours=1)


def client() -> Client:
    key = keys.create("collector", ["telemetry", "incidents:read"])
    return Client(headers={"Authorization": f"Bearer {key}"})


def send(by: Client, rows: Path) -> int:
    """Through the telemetry endpoint; how many rows it took."""
    body = rows.read_bytes()
    answer = by.post("/api/v1/telemetry/path_outcome", body, content_type="application/x-ndjson")
    assert answer.status_code == 202, answer.content
    return int(answer.json()["accepted"])


def run_all(schedule: Schedule) -> None:
    """Every window that is due, one after the other, as ticks and workers would."""
    catch_up()
    while claim_due([schedule], datetime.now(UTC)):
        for run in Run.objects.filter(state=State.QUEUED):
            execute(run.pk, lambda: datetime.now(UTC))


@pytest.mark.usefixtures("log_database")
def test_the_fault_becomes_one_ticket_with_the_evidence(fault: Fault, tmp_path: Path) -> None:
    rows = tmp_path / "mine.ndjson"
    convert(fault, rows, f"--ending={shifted_by_whole_hours(fault).isoformat()}")
    alice = client()
    assert send(alice, rows) == sum(map(len, split(fault)))
    every = {"length": HALF_MINUTE, "every": HALF_MINUTE, "by_arrival": False}
    run_all(Schedule.objects.create(name="mine", analyzer="deepview", **every))
    follow_to_the_end(follower())
    (ticket,) = alice.get("/api/v1/incidents").json()["results"]
    assert (ticket["component"], ticket["state"]) == (CULPRIT, "open")
    evidence = alice.get(f"/api/v1/incidents/{ticket['id']}/evidence").json()
    assert {"table", "chart"} <= {one["kind"] for one in evidence["results"]}
