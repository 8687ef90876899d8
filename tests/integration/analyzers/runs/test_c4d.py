"""From records of collectives over HTTP to an incident: one rank that stops."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from analyzers.runs.requests import RunRequest, request_run
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

START = TOP + HOUR


def states(rank: int, stops_at: int) -> list[dict[str, Any]]:
    """An all-reduce a second for 20 seconds; rank 3 stops, the others stay in theirs, reported again every 5 s."""
    rows = []
    for seq in range(20 if rank == 3 else 21):
        begin = START + timedelta(seconds=seq, milliseconds=10 * rank)
        row: dict[str, Any] = {
            "time": begin.isoformat(),
            "job": "train",
            "communicator": "dp",
            "seq": seq,
            "op": "all_reduce",
            "rank": rank,
            "bytes": 1e6,
            "start_ns": int(begin.timestamp() * 1e9),
        }
        if seq < stops_at:
            rows.append({**row, "end_ns": row["start_ns"] + 200_000_000, "state": "completed"})
        else:
            times = [begin + timedelta(seconds=after) for after in range(0, 39, 5)]
            rows += [{**row, "time": time.isoformat(), "state": "started"} for time in times]
    return rows


def test_a_rank_that_never_launched_becomes_an_incident_with_its_evidence() -> None:
    door = Door()
    door.post([row for rank in range(8) for row in states(rank, 20)], kind="collective")
    request_run(RunRequest("c4d", start=START, end=START + MINUTE), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["rank/3"])

    follow_to_the_end(follower.follower())
    (found,) = queries.list_incidents().items
    assert found.incident.component == "rank/3"
    assert "never launched all_reduce 20" in found.incident.title
    assert {piece.kind for piece in queries.evidence(found.incident.id)} >= {"table", "text"}
