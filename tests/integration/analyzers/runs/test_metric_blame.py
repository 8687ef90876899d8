"""From metrics and calls at the door to an incident: one service of eight answers late."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.services.application import Fault, Preset, rows_of, run, topology_of
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")


def test_a_slow_service_becomes_an_incident_with_its_evidence() -> None:
    made = run(
        Preset(services=8, seconds=3600), np.random.default_rng(1), (Fault("delay", 5, 6.0, 3060.0, 3600.0),)
    )
    door = Door()
    door.post(topology_of(made, TOP), kind="topology")
    door.post(rows_of(made, TOP), kind="metric")
    start = TOP + timedelta(minutes=50)
    request_run(RunRequest("metric_blame", start=start, end=start + timedelta(minutes=10)), "alice", NOW)
    (run_,) = work()
    assert (run_.status, [one["component"] for one in run_.blamed]) == ("named", [made.name(5)])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == made.name(5)
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}
