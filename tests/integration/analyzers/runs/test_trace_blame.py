"""From spans at the door to an incident: one slow service."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from analyzers.runs.requests import RunRequest, request_run
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

START = TOP + HOUR


def spans(minute: int, late: str = "") -> list[dict[str, Any]]:
    """Forty requests to a shop that asks a cart and a bank in turn; what `late` answers takes 0.3 s more."""
    rng, rows = random.Random(minute), []
    for number in range(40):
        trace, at = f"{minute + 1:08x}{number:08x}", START + minute * MINUTE + timedelta(seconds=number)
        elapsed = 1000
        calls = []
        for place, callee in enumerate(("cart", "bank")):
            served, way = rng.randint(1500, 2500), rng.randint(600, 1200) + 300_000 * (callee == late)
            calls.append((f"{place}a", "1", "shop", f"call {callee}", elapsed, served + way))
            calls.append((f"{place}b", f"{place}a", callee, "answer", elapsed + way // 2, served))
            elapsed += served + way
        for span, parent, service, operation, offset, lasts in (
            ("1", "", "shop", "page", 0, elapsed + 1000),
            *calls,
        ):
            row = {
                "time": (at + timedelta(microseconds=offset)).isoformat(),
                "trace": trace,
                "span": span,
                "service": service,
                "instance": f"{service}-0",
                "operation": operation,
                "duration_us": lasts,
                "error": False,
            }
            rows.append({**row, "parent": parent} if parent else row)
    return rows


def test_a_service_that_answers_late_becomes_a_ticket_with_its_evidence() -> None:
    door = Door()
    healthy = [row for minute in range(3) for row in spans(minute)]
    door.post([*healthy, *spans(3, late="cart")], kind="span")
    begin = START + 3 * MINUTE
    request_run(RunRequest("trace_blame", start=begin, end=begin + MINUTE), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["service/cart"])

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "service/cart"
    assert "times its normal time" in ticket.incident.title
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}
