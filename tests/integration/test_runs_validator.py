"""From benchmark results at the door to a ticket: one gray node of forty."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from analyzers.runs.requests import Wanted, request_run
from analyzers.simulators.node_benchmarks import METRICS, Defect, Preset, build, results, rows_of, taken_at
from incidents import queries, reactors
from tests.following import follow_to_the_end
from tests.integration.runs_cases import HOUR, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")


def test_a_gray_node_becomes_a_ticket_with_its_evidence() -> None:
    rng = np.random.default_rng(1)
    fleet = build(Preset(nodes=40, runs=8, metrics=METRICS[:2]), rng)
    door = Door()
    door.post(rows_of(fleet, results(fleet, rng, [Defect(7, (0,), 0.1)]), TOP), kind="benchmark")
    request_run(Wanted("validator", start=TOP, end=TOP + HOUR), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["node/gpu-0007"])
    assert run.window_end - run.window_start == timedelta(hours=1)

    follow_to_the_end(reactors.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "node/gpu-0007"
    assert " than the fleet in " in (ticket.incident.verdict or "")
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}


def test_a_node_that_was_repaired_failed_until_its_last_bad_round() -> None:
    rng = np.random.default_rng(1)
    fleet = build(Preset(nodes=40, runs=8, metrics=METRICS[:2]), rng)
    door = Door()
    for at, severity in ((TOP, 0.2), (TOP + HOUR, 0.2), (TOP + 2 * HOUR, 0.0)):
        sick = [Defect(7, (0,), severity)] if severity else []
        door.post(rows_of(fleet, results(fleet, rng, sick), at), kind="benchmark")
    request_run(Wanted("validator", start=TOP, end=TOP + 3 * HOUR), "alice", NOW + 3 * HOUR)
    work()
    follow_to_the_end(reactors.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.last_failure == taken_at(TOP + HOUR, 7)
