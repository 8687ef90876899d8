"""The demo's cluster operator against the real API: whether the proof comes depends on the card, not on the script."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from deploy.demo.cluster import ClusterOperator
from deploy.demo.screen import Screen
from deploy.demo.sender import RequestRejectedError, Sender
from deploy.demo.world import Demo
from incidents import commands
from incidents.commands import Report
from incidents.remediation.sweep import judge_returned
from ingest.api import keys
from ingest.queries import now_utc
from tests.integration.incidents.webhooks.cases import ALICE

pytestmark = [pytest.mark.usefixtures("log_database"), pytest.mark.simulated]


class Through(Sender):
    """A sender whose requests go to the application in this process."""

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str], method: str | None = None) -> Any:
        sent = {**headers, "Authorization": f"Bearer {self.key}"}
        if body is None:
            answer = Client().get(path, headers=sent)
        else:
            verb, kind = method or "POST", sent.pop("Content-Type")
            answer = Client().generic(verb, path, body, content_type=kind, headers=sent)
        if answer.status_code >= 400:
            raise RequestRejectedError(answer.content.decode())
        return json.loads(answer.content)


class World:
    """An operator with an incident of the card, in a demo of which so many minutes were sent."""

    def __init__(self) -> None:
        self.demo = Demo(datetime.now(UTC) - timedelta(hours=4))
        self.minutes, self.out = self.demo.minutes, StringIO()
        stop = threading.Event()
        self.rows = Through("", keys.create("demo", ["telemetry"]), stop)
        scopes = ["incidents:read", "remediation:request", "remediation:answer"]
        self.api = Through("", keys.create("demo-cluster", scopes), stop)
        self.operator = ClusterOperator(
            self.api, self.rows, Screen(self.out), self.demo, lambda: self.minutes
        )

    def open(self) -> str:
        card = self.demo.training.culprit
        topology = [row for row in self.demo.training.topology() if row["component"] == card]
        self.rows.post_rows("topology", topology, "topology")
        report = Report("the network card is slow", component=card, region="gpu")
        return f"/api/v1/incidents/{commands.open_incident(report, ALICE).incident.number}"

    def remediation(self, path: str) -> Any:
        return self.api.get(path)["remediation"]

    def judged(self, rounds: int) -> None:
        for _ in range(rounds):
            assert self.operator.step()
        judge_returned(now_utc() + timedelta(seconds=1))

    @property
    def said(self) -> list[str]:
        return self.out.getvalue().splitlines()


def test_the_node_of_the_card_goes_from_handed_over_to_repaired() -> None:
    world = World()
    assert world.operator.step()
    assert world.said == []
    path = world.open()
    world.minutes = 190
    assert world.operator.step()
    assert world.remediation(path) is None, "two analyzers may still name the card"
    for minutes, stage in ((225, "requested"), (195, "requested"), (196, "drained"), (197, "replaced")):
        world.minutes = minutes
        assert world.operator.step()
        assert world.remediation(path)["stage"] == stage
    assert world.operator.step()
    assert world.remediation(path)["stage"] == "replaced", "rows of the stories are still to come"
    world.minutes = world.demo.minutes
    assert world.operator.step()
    world.judged(2)
    assert world.remediation(path)["proof"]["verdict"] == "unknown"
    world.judged(3)
    assert world.remediation(path)["proof"]["verdict"] == "repaired"
    assert world.operator.step()
    assert (world.demo.training.back is None, world.demo.training.replaced) == (False, True)
    assert judge_returned(now_utc() + timedelta(seconds=2)) == 1
    assert not world.operator.step()
    card = world.demo.training.culprit
    steps = ("handed", "drained", f"{card} replaced", "returned", "repaired, 0 of ", "resolved by system")
    assert [step in line for step, line in zip(steps, world.said, strict=True)] == [True] * 6


def test_a_node_that_returns_with_the_slow_card_is_not_repaired() -> None:
    world = World()
    path = world.open()
    for _ in range(2):
        assert world.operator.step()
    found = world.remediation(path)
    by_hand = {"request": found["request"], "answer": "returned", "by": "dc-ops"}
    world.api.post(f"{path}/remediation/answers", by_hand)
    world.judged(6)
    assert world.remediation(path)["proof"]["verdict"] == "not_repaired"
    assert not world.operator.step()
    assert "not repaired" in world.said[-1]
