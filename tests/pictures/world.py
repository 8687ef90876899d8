"""World of the pictures: an empty Dossier, and one after the demo's stories, in which people have worked."""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.acceptance.stack import Stack, wait_for
from tests.pictures.full import configuration

TOLD = "every component at fault has its incident"
PATIENCE = 900.0  # seconds, on a busy machine
ALERTS = 60
STORM = 4_000
MANY = 10_000
CALLED = """\
schedules:
- slug: storage-primary
  name: Storage, primary
  team: storage
  time_zone: Europe/Berlin
  layers:
  - {name: weeks, people: [demo], start: "2026-01-05T09:00", turn: 1w}
escalation_policies:
- slug: storage
  name: Storage
  team: storage
  steps:
  - {after: 0, actions: [{schedule: storage-primary}]}
  - {after: 300, actions: [{team: storage}, {severity: critical}]}
  repeats: 2
"""


@dataclass(frozen=True, slots=True)
class World:
    """A Dossier that runs, who may sign in, and what stands in it."""

    stack: Stack
    user: str
    password: str
    places: dict[str, str]


@contextmanager
def empty(home: Path) -> Iterator[World]:
    """A Dossier that nobody has sent anything to."""
    stack = Stack(home, "up")
    try:
        stack.start(PATIENCE)
        password = "correct horse battery staple"
        stack.environment |= {"DJANGO_SUPERUSER_PASSWORD": password}
        stack.manage("createsuperuser", "--noinput", "--username", "alice", "--email", "alice@example.com")
        yield World(stack, "alice", password, {})
    finally:
        stack.stop()


@contextmanager
def told(home: Path) -> Iterator[World]:
    """The demo after its stories, with alerts, an acknowledged and a resolved incident, and someone on call."""
    stack = Stack(home, "demo", "--speed", "200")
    try:
        stack.start(PATIENCE)
        wait_for(lambda: TOLD in stack.said, PATIENCE, "the stories")
        login = re.search(r"Login +(\S+) / (\S+)", stack.said)
        assert login, "the demo says how to sign in"
        (home / "called.yaml").write_text(CALLED)
        stack.manage("config", "apply", str(home / "called.yaml"))
        key = stack.manage("create_key", "pictures", "--scope", "admin").split()[-1]
        yield World(stack, login[1], login[2], _worked_on(stack, key))
    finally:
        stack.stop()


def fill(world: World) -> None:
    """Many open incidents, and lists of settings as a large organisation has them."""
    file = world.stack.home / "full.yaml"
    file.write_text(configuration(datetime.now(UTC)))
    world.stack.manage("config", "apply", str(file))
    world.stack.manage("shell", "-c", f"from tests.browser.content import fill_inbox; fill_inbox({MANY})")


def storm(world: World) -> None:
    """More alerts at once than anybody reads one by one."""
    key = world.stack.manage("create_key", "storm", "--scope", "admin").split()[-1]
    for first in range(0, STORM, 500):
        alerts = [_check_failed(n) for n in range(first, first + 500)]
        _post(world.stack, key, "/api/v2/alerts", alerts)

    def collecting() -> list[dict[str, Any]]:
        found = world.stack.get("/api/v1/incidents?search=is%3Astorm", key)["results"]
        return [one for one in found if int(one["alerts"]) > STORM / 2]

    wait_for(lambda: bool(collecting()), PATIENCE, "the incident of the storm")
    world.places["storm"] = str(collecting()[0]["number"])


def _check_failed(n: int) -> dict[str, Any]:
    """An alert of a name of its own: what grouping by names does not hold together."""
    labels = {"alertname": f"Check{n}", "severity": "critical", "instance": f"h{n % 900}:9100"}
    return {"labels": labels, "annotations": {"summary": f"Check {n} fails on h{n % 900}"}}


def _worked_on(stack: Stack, key: str) -> dict[str, str]:
    found: list[dict[str, Any]] = stack.get("/api/v1/incidents?limit=100", key)["results"]
    blamed = [one for one in found if one["analyzer"]]
    first, last = blamed[0], blamed[-1]
    then = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    _post(stack, key, f"/api/v1/incidents/{last['number']}/acknowledge", {})
    _post(
        stack,
        key,
        f"/api/v1/incidents/{last['number']}/comment",
        {"text": "Looking at the **last** deployment."},
    )
    _post(stack, key, f"/api/v1/incidents/{last['number']}/resolve", {"confirmed_cause": last["component"]})
    alerts = [
        {
            "labels": {
                "alertname": "DiskLatencyHigh",
                "severity": "warning",
                "instance": f"node-{n:02}",
                "cluster": "c7",
            },
            "annotations": {"summary": f"Disk latency of node-{n:02} is 4 times its median"},
        }
        for n in range(ALERTS)
    ]
    _post(stack, key, "/api/v2/alerts", alerts)

    def alerted() -> list[dict[str, Any]]:
        return [one for one in stack.get("/api/v1/incidents?limit=100", key)["results"] if one["alerts"]]

    wait_for(lambda: bool(alerted()), 60, "the incident of the alerts")
    runs = stack.get("/api/v1/runs?limit=100", key)["results"]
    run = next(one for one in runs if one["status"] == "named")
    reports = [one["id"] for one in stack.get("/api/v1/reports?limit=100", key)["results"]]
    _trace_blamed(stack, key)
    found = stack.get("/api/v1/incidents?limit=100", key)["results"]
    return {
        **{one["analyzer"]: str(one["number"]) for one in found if one["analyzer"]},
        "incident": str(first["number"]),
        "component": first["component"],
        "then": then,
        "resolved": str(last["number"]),
        "alerted": str(alerted()[0]["number"]),
        "run": run["id"],
        "report": reports[0],
        "week": next(one for one in reports if one.startswith("weekly")),
    }


def _trace_blamed(stack: Stack, key: str) -> None:
    """An incident of an analyzer that the demo does not feed: a service answers late in the last minute."""
    scenario = stack.home / "traces"
    stack.manage("simulate", "trace_slow", "--seed", "1", "--out", str(scenario))
    rows = [json.loads(line) for line in (scenario / "span.ndjson").read_text().splitlines()]
    truth = json.loads((scenario / "truth.json").read_text())
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    later = end - datetime.fromisoformat(truth["end"])
    for row in rows:
        row["time"] = (datetime.fromisoformat(row["time"]) + later).isoformat()
    _post(stack, key, "/api/v1/telemetry/span", rows)
    window = {"start": (end - timedelta(minutes=1)).isoformat(), "end": end.isoformat()}
    _post(stack, key, "/api/v1/runs", {"analyzer": "trace_blame", "window": window})
    asked = "/api/v1/incidents?limit=100"
    wait_for(
        lambda: any(one["analyzer"] == "trace_blame" for one in stack.get(asked, key)["results"]),
        120,
        "the incident of the traces",
    )


def _post(stack: Stack, key: str, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(stack.address + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60):
            pass
    except urllib.error.HTTPError as error:
        sys.exit(f"{path} was refused: {error.read().decode()}")
