"""From outages at the door to an incident: a class of ToRs that misses what its dependents need."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from analyzers.runs.requests import RunRequest, request_run
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

BEGIN = TOP - timedelta(hours=24)


def outages() -> list[dict[str, Any]]:
    """One ToR that reboots every two hours, and another that did once; each is told of when it begins, too."""
    times = [("tor/t1", BEGIN + hour * HOUR) for hour in range(0, 24, 2)] + [("tor/t2", BEGIN + HOUR)]
    begun = [{"device": device, "start": at.isoformat(), "cause": "soft"} for device, at in times]
    return [
        *begun,
        *({**row, "end": (at + 9 * MINUTE).isoformat()} for row, (_, at) in zip(begun, times, strict=True)),
    ]


def test_a_tor_that_reboots_again_and_again_becomes_a_ticket_with_its_evidence() -> None:
    door = Door()
    door.post([{"time": BEGIN.isoformat(), "component": f"tor/t{i}"} for i in range(64)], kind="topology")
    door.post(outages(), kind="outage")
    request_run(
        RunRequest("tor_availability", start=BEGIN, end=TOP, params={"target_nines": 3}), "alice", NOW
    )
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["tor/t1"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "tor/t1"
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart", "text"}
