"""From probes and topology at the door to an incident: a ToR that drops packets."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.mesh import build, draw_fault
from analyzers.simulators.mesh_rows import probe_rows, topology_rows
from analyzers.simulators.mesh_windows import scene
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

START = TOP + HOUR


def moved(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same rows, from the simulator's time to the test's."""
    for row in rows:
        row["time"] = (START + (datetime.fromisoformat(row["time"]) - EPOCH)).isoformat()
    return rows


def post_dropping_tor() -> str:
    """Ten minutes of probes from START on, and the topology as of then; the ToR that drops packets."""
    rng = np.random.default_rng(3)
    mesh = build(2, 4, 4)
    fault = draw_fault(mesh, rng, "tor_drops", 0)
    one = scene(mesh, rng, [fault])
    door = Door()
    door.post(moved(topology_rows(one)), kind="topology")
    door.post(moved(probe_rows(one, rng)), kind="probe")
    return fault.component


def test_a_tor_that_drops_packets_becomes_a_ticket_with_its_heat_map() -> None:
    component = post_dropping_tor()
    request_run(RunRequest("pingmesh", start=START, end=START + timedelta(minutes=10)), "alice", NOW)
    (run,) = work()
    assert (run.status, [found["component"] for found in run.blamed]) == ("named", [component])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == component
    titles = {piece.title for piece in queries.evidence(ticket.incident.id)}
    assert {"Blamed", "Answers from pod to pod", "Service level"} <= titles


def test_a_window_that_begins_before_topology_was_told_takes_it_as_it_first_was() -> None:
    component = post_dropping_tor()
    end = START + timedelta(minutes=10)
    request_run(RunRequest("pingmesh", start=START - timedelta(minutes=20), end=end), "alice", NOW)
    (run,) = work()
    assert (run.status, [found["component"] for found in run.blamed]) == ("named", [component])
