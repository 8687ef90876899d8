"""Real senders, unchanged, against a whole Dossier: Prometheus, Alertmanager, amtool, PagerDuty's client."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
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


@pytest.fixture(scope="module")
def admin(stack: Stack) -> str:
    return stack.manage("create_key", "administrator", "--scope", "admin")


@pytest.fixture
def key(stack: Stack, admin: str, request: pytest.FixtureRequest) -> str:
    """An integration of the test's own."""
    return made(stack, admin, request.node.name[:90], "alerts", "incidents:read", "incidents:write")


def made(stack: Stack, admin: str, name: str, *scopes: str) -> str:
    """The key of a new integration: asked for by HTTP, which takes a tenth of a command."""
    body = json.dumps({"name": name, "scopes": scopes}).encode()
    headers = {"Authorization": f"Bearer {admin}", "Content-Type": "application/json"}
    asked = urllib.request.Request(f"{stack.address}/api/v1/integrations", body, headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return str(json.load(answer)["key"])


def rule(name: str, end: float) -> dict[str, Any]:
    """Fires until a time, seconds since 1970."""
    expression = f'label_replace(vector(time()) < {end:.0f}, "instance", "db-1:9100", "", "")'
    return {"alert": name, "expr": expression, "labels": {"severity": "critical"}}


def states(stack: Stack, key: str, title: str) -> list[tuple[str, str | None]]:
    found = stack.get("/api/v1/incidents?limit=200", key)["results"]
    return [(one["state"], one["component"]) for one in found if title in one["title"]]


def are(stack: Stack, key: str, wanted: Mapping[str, tuple[str, str | None]]) -> bool:
    """Whether there is one incident of each title, in that state and of that component."""
    return all(states(stack, key, title) == [state] for title, state in wanted.items())


@pytest.mark.skipif(bool(missing(PROMETHEUS, ALERTMANAGER)), reason=missing(PROMETHEUS, ALERTMANAGER))
def test_a_stock_prometheus_and_an_alertmanager_fire_and_resolve_tickets(
    stack: Stack, admin: str, key: str, tmp_path: Path
) -> None:
    """Prometheus itself; an Alertmanager by its webhook, as to PagerDuty and as to Opsgenie. All of it is waiting."""
    other = made(stack, admin, "as to PagerDuty", "alerts")
    pagerduty = {"routing_key": other, "url": f"{stack.address}/v2/enqueue", "description": "PagerDuty said"}
    third = made(stack, admin, "as to Opsgenie", "alerts")
    opsgenie = {
        "api_key": third,
        "api_url": f"{stack.address}/",
        "message": "Opsgenie said",
        "update_alerts": True,
    }
    receivers = [
        {"name": "webhook", "webhook_configs": [{"url": f"{stack.address}/integrations/alertmanager/{key}"}]},
        {"name": "pagerduty", "pagerduty_configs": [pagerduty]},
        {"name": "opsgenie", "opsgenie_configs": [opsgenie]},
    ]
    direct = {
        "static_configs": [{"targets": [f"localhost:{stack.port}"]}],
        "authorization": {"credentials": key},
    }
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with alertmanager(tmp_path, receivers) as address:
        relayed = {"static_configs": [{"targets": [address.removeprefix("http://")]}]}
        end = time.time() + 12
        with (
            prometheus(tmp_path / "one", [rule("DiskFull", end)], [direct]),
            prometheus(tmp_path / "two", [rule("NicFlaps", end)], [relayed]),
        ):
            for state in ("open", "resolved"):
                wanted = {"DiskFull": (state, "host/db-1"), "NicFlaps": (state, "host/db-1")}
                wait_for(partial(are, stack, key, wanted), PATIENCE, f"{state} incidents")
                for title in ("PagerDuty said", "Opsgenie said"):
                    wait_for(partial(is_only, stack, key, title, state), PATIENCE, f"one {state}")


def is_only(stack: Stack, key: str, title: str, state: str) -> bool:
    return [found for found, _ in states(stack, key, title)] == [state]


@pytest.mark.skipif(bool(missing(AMTOOL)), reason=missing(AMTOOL))
def test_amtool_sends_alerts_lists_them_and_keeps_silences(stack: Stack, key: str) -> None:
    amtool(
        stack, key, "alert", "add", "alertname=FanLoud", "node=n7", "--annotation=summary=Fan of n7 is loud"
    )
    wait_for(lambda: states(stack, key, "Fan of n7") == [("open", "node/n7")], PATIENCE, "the incident")
    (alert,) = json.loads(amtool(stack, key, "alert", "query", "alertname=FanLoud", "--output=json"))
    assert alert["labels"] == {"alertname": "FanLoud", "node": "n7"}

    made = amtool(
        stack, key, "silence", "add", "node=n7", "--comment=new fan", "--author=alice", "--duration=1h"
    )
    (silence,) = json.loads(amtool(stack, key, "silence", "query", "--output=json"))
    assert (silence["id"], silence["comment"]) == (made.strip(), "new fan")
    assert json.loads(amtool(stack, key, "alert", "query", "--silenced", "--output=json")) != []
    routed = amtool(stack, key, "config", "routes", "test", "node=n7").strip()
    assert routed == "cannot-say-ask-api-v1-routes-explain", (
        "services take part in routing, which amtool cannot know"
    )
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
