"""The demo's cluster operator: what it says where the way ends early, and the rows of its burn-in."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest

from deploy.demo import cluster
from deploy.demo.burn_in import OF_A_CARD, PEERS, BurnIn
from deploy.demo.cluster import ClusterOperator
from deploy.demo.screen import Screen
from deploy.demo.sender import RequestRejectedError, Sender
from deploy.demo.world import Demo

pytestmark = pytest.mark.simulated
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo(START)


class Answers(Sender):
    """Gives the same list of incidents to every question, and refuses what is posted."""

    def __init__(self, *tickets: dict[str, Any]) -> None:
        super().__init__("", "key", threading.Event())
        self.tickets = tickets

    def _ask(self, path: str, body: bytes | None, headers: dict[str, str], method: str | None = None) -> Any:  # noqa: ARG002
        if body is not None:
            raise RequestRejectedError(f"{path} answered 409")
        return {"results": list(self.tickets)}


def operated(demo: Demo, monkeypatch: pytest.MonkeyPatch, *tickets: dict[str, Any]) -> str:
    """Output of the operator until it ends."""
    monkeypatch.setattr(cluster, "PERIOD", 0.0)
    out, sender = StringIO(), Answers(*tickets)
    ClusterOperator(sender, sender, Screen(out), demo, lambda: demo.minutes).run()
    return out.getvalue()


def ticket(demo: Demo, **more: Any) -> dict[str, Any]:
    opened = (demo.start + timedelta(hours=1)).isoformat()
    return {"number": 1, "state": "open", "opened_at": opened, "opinions": [], "remediation": None, **more}


def test_an_operator_without_an_incident_of_the_card_says_so_and_ends(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = ticket(demo, opened_at=(START - timedelta(days=1)).isoformat())
    assert (
        operated(demo, monkeypatch, early)
        == f"  Cluster: no incident of {demo.training.culprit} to hand over\n"
    )


def test_a_refusal_that_stays_is_said_once_and_a_resolved_incident_is_left_alone(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = operated(demo, monkeypatch, ticket(demo))
    assert said == "  Cluster: Dossier refused the operator: /api/v1/incidents/1/remediation answered 409\n"
    assert operated(demo, monkeypatch, ticket(demo, state="resolved", remediation=None)) == ""


def test_a_burn_in_that_is_not_judged_ends_without_a_proof(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answers, "post_rows", lambda *_: "receipt")
    monkeypatch.setattr(demo.training, "back", None)  # and so again afterwards: the demo is of the module
    returned = {"answer": "returned", "at": demo.start.isoformat()}
    found: dict[str, Any] = {"stage": "returned", "node": "gpu-0050", "proof": None, "answers": [returned]}
    said = operated(demo, monkeypatch, ticket(demo, remediation=found))
    assert said == (
        f"  Cluster: no proof of repair of gpu-0050 after {cluster.MOST_ROUNDS} rounds: the burn-in was not judged\n"
    )


def test_only_the_benchmarks_of_the_slow_card_are_slow_and_only_until_it_is_replaced(demo: Demo) -> None:
    burn_in = BurnIn(demo.training)
    slow, good = (burn_in.rows(0, START, replaced=replaced) for replaced in (False, True))
    assert len(slow) == len(good) == 6 * (1 + PEERS)
    differ = [n for n, (one, other) in enumerate(zip(slow, good, strict=True)) if one != other]
    assert differ == list(OF_A_CARD)
    assert {slow[n]["node"] for n in differ} == {f"node/{demo.training.culprit[4:-2]}"}
    assert all(slow[n]["values"][0] < 0.5 * good[n]["values"][0] for n in differ)
