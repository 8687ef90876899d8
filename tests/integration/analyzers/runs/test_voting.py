"""From probes at the door to an incident: voting on a lossy link."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from analyzers.runs.requests import RunRequest, request_run
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

LEAVES, SPINES, HOSTS = 4, 3, 3


def probes(sick: str) -> list[dict[str, Any]]:
    """Flows between hosts of four racks over three spines; the sick link loses one packet in ten."""
    rng, rows = random.Random(7), []
    hosts = [(leaf, host) for leaf in range(LEAVES) for host in range(HOSTS)]
    for leaf, host in hosts:
        for other, peer in hosts:
            if leaf == other:
                continue
            spine = rng.randrange(SPINES)
            hops = [
                f"link/l{leaf}-h{host}~l{leaf}",
                f"link/l{leaf}~s{spine}",
                f"link/s{spine}~l{other}",
                f"link/l{other}~l{other}-h{peer}",
            ]
            at = TOP + HOUR + timedelta(seconds=rng.uniform(0, 299))
            rows.append(
                {
                    "time": at.isoformat(),
                    "src": f"host/l{leaf}-h{host}",
                    "dst": f"host/l{other}-h{peer}",
                    "sent": 100,
                    "lost": 10 if sick in hops else 0,
                    "hops": hops,
                }
            )
    return rows


def test_a_lossy_link_becomes_a_ticket_with_its_evidence() -> None:
    door = Door()
    door.post(probes("link/l1~s2"), kind="probe")
    start = TOP + HOUR
    request_run(RunRequest("voting", start=start, end=start + timedelta(minutes=5)), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["link/l1~s2"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "link/l1~s2"
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}
