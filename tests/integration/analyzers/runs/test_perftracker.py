"""From function profiles at the door to an incident: one worker whose link is capped."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.profiles import Fault, Preset, profile, rows_of
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")


def test_a_worker_with_a_capped_link_becomes_an_incident_with_its_evidence() -> None:
    made = profile(
        Preset(workers=24, stages=1, minor=0), np.random.default_rng(1), [Fault("slow_nic", 7, 0.3)]
    )
    Door().post([{**row, "time": TOP.isoformat()} for row in rows_of(made)], kind="function_profile")
    request_run(RunRequest("perftracker", start=TOP, end=TOP + timedelta(minutes=5)), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["worker/7"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "worker/7"
    assert "uses its link in all_reduce" in (ticket.incident.verdict or "")
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}
