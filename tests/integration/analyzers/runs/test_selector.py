"""From incidents of nodes at the door to an incident that asks for validation."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from analyzers.runs.scheduler import claim_window
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, NOW, Door, hourly, work
from tests.unit.analyzers.selector.cases import START, fleet

pytestmark = pytest.mark.usefixtures("log_database")


def test_a_node_that_is_likely_to_fail_becomes_a_ticket_with_the_reason() -> None:
    begin = NOW - 61 * HOUR
    rows = fleet(2, "n07", step=5.0)
    for one in rows:
        one["time"] = (begin + (datetime.fromisoformat(one["time"]) - START)).isoformat()
    door = Door()
    door.post(rows, kind="node_incident")
    params = {"target_probability": 0.05, "horizon_hours": 2.0}
    schedule = hourly(name="advice", analyzer="selector", params=params, length=60 * HOUR)
    for minutes in (0, 5):  # advice opens an incident when it is given twice
        assert claim_window(schedule, "default", begin + timedelta(hours=60, minutes=minutes), NOW)
        (run,) = work()
        assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["node/n07"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "node/n07"
    assert ticket.incident.severity == "info"
    sentence = ticket.incident.verdict or ""
    assert sentence.startswith("node/n07 may have an incident within 2 hours (predicted probability ")
    assert sentence.endswith("node's): heat 4.5, 1 incident so far.")
