"""From metrics at the door to an incident: one throttled node of a training job."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.training import Fault, Preset, rows_of, run
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

JOB = Preset(nodes=8, seconds=1200, step=20)


def test_a_throttled_node_becomes_an_incident_with_its_evidence() -> None:
    fault = Fault("throttle", 3, 0.4, 660.0, 1200.0)
    Door().post(rows_of(run(JOB, np.random.default_rng(1), [fault]), TOP), kind="metric")
    start = TOP + timedelta(minutes=10)
    request_run(RunRequest("straggler", start=start, end=start + timedelta(minutes=10)), "alice", NOW)
    (run_,) = work()
    assert (run_.status, [one["component"] for one in run_.blamed]) == ("named", ["node/gpu-0003"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "node/gpu-0003"
    assert "slows job llm-70b" in (ticket.incident.verdict or "")
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}


def test_an_evaluation_on_one_node_opens_no_incident() -> None:
    made = run(JOB, np.random.default_rng(1), event="evaluation")
    Door().post(rows_of(made, TOP), kind="metric")
    start = TOP + timedelta(minutes=10)
    request_run(RunRequest("straggler", start=start, end=start + timedelta(minutes=10)), "alice", NOW)
    (run_,) = work()
    assert run_.status == "quiet"
