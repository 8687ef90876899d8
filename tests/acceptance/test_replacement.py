"""A new version takes the place of a running one while Alice's monitoring sends on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from deploy import processes
from deploy.embedded import Home
from tests.acceptance.stack import Stack, wait_for
from tests.places import ROOT

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    one = Stack(tmp_path / "home")
    one.environment |= {"DOSSIER_WEB_WORKERS": "1", "DOSSIER_TASK_WORKERS": "1"}
    yield one
    one.stop()


class Alice(threading.Thread):
    """Sends one alert after the other until told to stop; `refused` has what was not answered with 2xx."""

    def __init__(self, stack: Stack, key: str) -> None:
        super().__init__(daemon=True)
        self.address, self.key = f"{stack.address}/api/v2/alerts", key
        self.stop = threading.Event()
        self.accepted, self.refused = 0, list[str]()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        while not self.stop.wait(0.01):
            alert = [{"labels": {"alertname": "Down", "instance": f"h{self.accepted + len(self.refused)}"}}]
            request = urllib.request.Request(self.address, json.dumps(alert).encode(), headers)
            try:
                with urllib.request.urlopen(request, timeout=60):
                    self.accepted += 1
            except OSError as error:
                self.refused.append(repr(error))


def replace(stack: Stack) -> subprocess.CompletedProcess[str]:
    """As somebody would who knows the home and nothing else."""
    known = {name: stack.environment[name] for name in ("DJANGO_SETTINGS_MODULE", "DOSSIER_HOME")}
    environment = {**os.environ, **known, "DOSSIER_ALLOW_ROOT": "true"}
    command = [sys.executable, "manage.py", "up", "--replace"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400, check=False
    )


def pids(stack: Stack) -> dict[str, int | None]:
    return {one.name: one.pid for one in (processes.read(stack.home) or ([], 0.0))[0]}


def test_nothing_is_refused_while_a_version_replaces_another(stack: Stack) -> None:
    stack.start()
    wait_for(lambda: "scheduler" in pids(stack), 60, "all processes")
    before = pids(stack)
    alice = Alice(stack, stack.manage("create_key", "alice", "--scope", "alerts").split()[-1])
    alice.start()
    wait_for(lambda: alice.accepted > 0, 60, "an alert")

    done = replace(stack)
    wait_for(lambda: pids(stack).keys() == before.keys(), 60, "all processes")
    seen = alice.accepted
    wait_for(lambda: alice.accepted > seen, 60, "an alert taken by the new version")
    alice.stop.set()
    alice.join(60)

    assert (done.returncode, "replaced: " in done.stdout) == (0, True), done.stderr
    assert alice.refused == []
    after = pids(stack)
    assert {name for name in before if before[name] == after[name]} == {"database", "broker"}
    query = "SELECT count(*), count(DISTINCT stream) FROM log_event WHERE type = 'alert.reported'"
    with psycopg2.connect(Home(stack.home).database_url) as database, database.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone() == (alice.accepted, alice.accepted)
    database.close()
