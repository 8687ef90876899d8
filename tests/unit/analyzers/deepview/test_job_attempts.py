"""Job attempts are paths over nodes: a node that fails its jobs is named, jobs that fail anywhere accuse nobody."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from analyzers import offline
from analyzers.builtin.deepview.analyzer import ANALYZER
from analyzers.runner import judge
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS

START = datetime(2026, 11, 1, tzinfo=UTC)
LEMON = "node/g7"
WEEK = timedelta(days=7)


def attempt(draw: Random, day: int, failing: float) -> dict[str, Any]:
    """One attempt on 1 to 16 of 64 nodes; 3 % fail, with the lemon among them `failing` more."""
    nodes = [f"node/g{n}" for n in draw.sample(range(64), draw.choice([1, 2, 4, 8, 16]))]
    end = START + timedelta(days=day, seconds=draw.uniform(7200, 86400))
    fails = draw.random() < 0.03 + (failing if LEMON in nodes else 0.0)
    other = draw.choices(["completed", "cancelled", "preempted"], [85, 10, 5])[0]
    start = end - timedelta(seconds=draw.uniform(60, 7000))
    return {"end": end.isoformat(), "start": start.isoformat(), "job": f"job{draw.randrange(20)}", "nodes": nodes,
        "outcome": "failed" if fails else other}  # fmt: skip


def blamed(seed: int, failing: float, **changed: str) -> list[str]:
    draw = Random(seed)
    rows = [
        attempt(draw, day, failing if day >= 7 else 0.0) | changed for day in range(14) for _ in range(60)
    ]
    body = "\n".join(map(json.dumps, rows)).encode()
    tables = {"job_attempt": decode_ndjson(KINDS["job_attempt"], body, "default", Bounds())}
    chosen = offline.choose_input(ANALYZER, tables)
    *_, last = offline.windows(ANALYZER, chosen, tables, WEEK)
    return [suspect["component"] for suspect in judge(ANALYZER, last)["suspects"]]


@pytest.mark.simulated
@pytest.mark.parametrize("seed", [1, 3])
def test_a_node_that_fails_its_jobs_is_named(seed: int) -> None:
    assert blamed(seed, 0.6) == [LEMON]


def test_jobs_that_fail_on_any_node_accuse_nobody() -> None:
    assert blamed(2, 0.0) == []


def test_cancelled_attempts_are_no_failures_of_their_nodes() -> None:
    assert blamed(1, 0.6, outcome="cancelled") == []
