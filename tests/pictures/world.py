"""What the pictures show: an empty Dossier, and one after the demo's stories, in which people have worked."""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.acceptance.stack import Stack, wait_for
from tests.pictures.full import configuration

TOLD = "each culprit has its ticket"
PATIENCE = 900.0  # seconds, on a busy machine
ALERTS = 60
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
    """The demo after its stories, with alerts, an acknowledged and a resolved ticket, and someone on call."""
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


def fill(stack: Stack, count: int) -> None:
    """So many open tickets, and lists of settings as a large organisation has them."""
    file = stack.home / "full.yaml"
    file.write_text(configuration(datetime.now(UTC)))
    stack.manage("config", "apply", str(file))
    stack.manage("shell", "-c", f"from tests.browser.content import fill_inbox; fill_inbox({count})")


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

    wait_for(lambda: bool(alerted()), 60, "the ticket of the alerts")
    runs = stack.get("/api/v1/runs?limit=100", key)["results"]
    run = next(one for one in runs if one["status"] == "named")
    report = stack.get("/api/v1/reports?limit=1", key)["results"][0]
    return {
        "ticket": str(first["number"]),
        "component": first["component"],
        "then": then,
        "resolved": str(last["number"]),
        "alerted": str(alerted()[0]["number"]),
        "run": run["id"],
        "report": report["id"],
    }


def _post(stack: Stack, key: str, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(stack.address + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60):
            pass
    except urllib.error.HTTPError as error:
        sys.exit(f"{path} was refused: {error.read().decode()}")
