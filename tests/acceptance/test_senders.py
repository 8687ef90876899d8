"""Real senders, unchanged, against a whole Dossier: Prometheus, Alertmanager, amtool, PagerDuty's client."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.stack import Stack, wait_for
from tests.senders.daemons import ALERTMANAGER, AMTOOL, PROMETHEUS, alertmanager, missing, prometheus

PATIENCE = 60.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    dossier = Stack(tmp_path_factory.mktemp("senders") / "home")
    try:
        dossier.start()
        yield dossier
    finally:
        dossier.stop()


@pytest.fixture
def key(stack: Stack, request: pytest.FixtureRequest) -> str:
    """An integration of the test's own."""
    scopes = ("alerts", "incidents:read", "incidents:write")
    return stack.manage(
        "create_key", request.node.name[:90], *(part for s in scopes for part in ("--scope", s))
    )


def rule(name: str, end: float) -> dict[str, Any]:
    """Fires until a time, seconds since 1970."""
    expression = f'label_replace(vector(time()) < {end:.0f}, "instance", "db-1:9100", "", "")'
    return {"alert": name, "expr": expression, "labels": {"severity": "critical"}}


def states(stack: Stack, key: str, title: str) -> list[tuple[str, str | None]]:
    found = stack.get("/api/v1/incidents?limit=200", key)["results"]
    return [(one["state"], one["component"]) for one in found if title in one["title"]]


@pytest.mark.skipif(bool(missing(PROMETHEUS)), reason=missing(PROMETHEUS))
def test_a_stock_prometheus_fires_and_resolves_a_ticket(stack: Stack, key: str, tmp_path: Path) -> None:
    target = {
        "static_configs": [{"targets": [f"localhost:{stack.port}"]}],
        "authorization": {"credentials": key},
    }
    with prometheus(tmp_path, [rule("DiskFull", time.time() + 10)], [target]):
        wait_for(lambda: states(stack, key, "DiskFull") == [("open", "host/db-1")], PATIENCE, "the ticket")
        wait_for(lambda: states(stack, key, "DiskFull") == [("resolved", "host/db-1")], PATIENCE, "its end")


@pytest.mark.skipif(bool(missing(PROMETHEUS, ALERTMANAGER)), reason=missing(PROMETHEUS, ALERTMANAGER))
def test_a_stock_alertmanager_fires_and_resolves_tickets_by_webhook_and_as_to_pagerduty(
    stack: Stack, key: str, tmp_path: Path
) -> None:
    other = stack.manage("create_key", "as to PagerDuty", "--scope", "alerts")
    pagerduty = {"routing_key": other, "url": f"{stack.address}/v2/enqueue", "description": "PagerDuty said"}
    receivers = [
        {"name": "webhook", "webhook_configs": [{"url": f"{stack.address}/integrations/alertmanager/{key}"}]},
        {"name": "pagerduty", "pagerduty_configs": [pagerduty]},
    ]
    directory = tmp_path / "prometheus"
    directory.mkdir()
    with alertmanager(tmp_path, receivers) as address:
        target = {"static_configs": [{"targets": [address.removeprefix("http://")]}]}
        with prometheus(directory, [rule("NicFlaps", time.time() + 12)], [target]):
            for state in ("open", "resolved"):
                for title in ("NicFlaps", "PagerDuty said"):
                    wait_for(partial(is_only, stack, key, title, state), PATIENCE, f"{title} {state}")


def is_only(stack: Stack, key: str, title: str, state: str) -> bool:
    return [found for found, _ in states(stack, key, title)] == [state]


@pytest.mark.skipif(bool(missing(AMTOOL)), reason=missing(AMTOOL))
def test_amtool_sends_alerts_lists_them_and_keeps_silences(stack: Stack, key: str) -> None:
    amtool(
        stack, key, "alert", "add", "alertname=FanLoud", "node=n7", "--annotation=summary=Fan of n7 is loud"
    )
    wait_for(lambda: states(stack, key, "Fan of n7") == [("open", "node/n7")], PATIENCE, "the ticket")
    (alert,) = json.loads(amtool(stack, key, "alert", "query", "alertname=FanLoud", "--output=json"))
    assert alert["labels"] == {"alertname": "FanLoud", "node": "n7"}

    made = amtool(
        stack, key, "silence", "add", "node=n7", "--comment=new fan", "--author=alice", "--duration=1h"
    )
    (silence,) = json.loads(amtool(stack, key, "silence", "query", "--output=json"))
    assert (silence["id"], silence["comment"]) == (made.strip(), "new fan")
    assert json.loads(amtool(stack, key, "alert", "query", "--silenced", "--output=json")) != []
    assert amtool(stack, key, "config", "routes", "test", "node=n7").strip() == "on-call"
    amtool(stack, key, "silence", "expire", silence["id"])
    assert json.loads(amtool(stack, key, "silence", "query", "--output=json")) == []


def amtool(stack: Stack, key: str, *arguments: str) -> str:
    address = f"http://amtool:{key}@localhost:{stack.port}"
    done = subprocess.run(
        [AMTOOL, f"--alertmanager.url={address}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
