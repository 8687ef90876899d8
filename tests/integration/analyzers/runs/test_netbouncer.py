"""From probes over known paths at the door to an incident about the link that loses them."""

from __future__ import annotations

import numpy as np
import pytest

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.bounces import bounce, probe_rows
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")


def test_a_link_that_loses_probes_becomes_a_ticket_with_a_probability() -> None:
    one = bounce(4, 1, np.random.default_rng(12), 0.3, 0.6)
    door = Door()
    rows = [{**row, "time": (TOP + MINUTE).isoformat()} for row in probe_rows(one, 1.0)]
    door.post(rows, kind="probe")
    request_run(RunRequest("netbouncer", start=TOP, end=TOP + 5 * MINUTE), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", list(one.bad))

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == one.bad[0]
    assert "of the probes over it, over 99 % likely at fault" in (ticket.incident.verdict or "")
