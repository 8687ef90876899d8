"""From observations at the door to an incident: a gray failure that heartbeats do not see."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from analyzers.runs.requests import RunRequest, request_run
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, NOW, SECOND, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

START = TOP + HOUR
NAMES = [f"proc/p{i}" for i in range(5)]


def observations(sick: str, context: str) -> list[dict[str, Any]]:
    """Half a minute in which everyone calls everyone twice a second; the sick one fails after twelve seconds."""
    rows = []
    for second in range(30):
        for observer in NAMES:
            for subject in NAMES:
                for place, seen in enumerate(("read", "write", "heartbeat")):
                    if observer == subject:
                        continue
                    bad = subject == sick and seen == context and second >= 12
                    at = START + second * SECOND + timedelta(milliseconds=100 + 200 * place)
                    rows.append(
                        {
                            "time": at.isoformat(),
                            "observer": observer,
                            "subject": subject,
                            "context": seen,
                            "status": "unhealthy" if bad else "healthy",
                        }
                    )
    return rows


def test_a_gray_failure_becomes_a_ticket_that_says_what_probes_do_not_see() -> None:
    door = Door()
    door.post(observations("proc/p2", "write"), kind="observation")
    request_run(RunRequest("panorama", start=START, end=START + timedelta(seconds=30)), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["proc/p2"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "proc/p2"
    titles = {piece.title for piece in queries.evidence(ticket.incident.id)}
    assert "Callers' view against probes'" in titles
