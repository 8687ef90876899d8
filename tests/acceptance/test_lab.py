"""Real packets through a fabric of network namespaces. Needs root, `ip`, and a kernel that lets us make namespaces."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from analyzers.commands import RunRequest, request_run
from analyzers.runs.execution import execute
from deploy.lab import namespaces
from deploy.lab.faults import Fault, broken
from deploy.lab.probing import Row, prober
from incidents.follower import follower
from ingest.api import keys
from tests.following import follow_to_the_end

LINK = "link/leaf1~spine1"
REASON = namespaces.why_not()

pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no fault lab here: {REASON}")


@pytest.fixture(autouse=True)
def nothing_left() -> object:
    before = namespaces.existing()
    yield
    assert namespaces.existing() == before == [], "the lab left namespaces behind"


def probed(fault: Fault, rounds: int = 3) -> list[Row]:
    """Rows of a few rounds through the fabric with a fault in it."""
    with namespaces.fabric(), prober() as one, broken(fault):
        return [row for _ in range(rounds) for row in one.round(5)]


def losses(rows: list[Row], component: str) -> tuple[int, int]:
    """Packets lost over the component, and elsewhere."""
    over = sum(row["lost"] for row in rows if component in row["hops"])
    return over, sum(row["lost"] for row in rows) - over


def test_a_whole_fabric_loses_nothing_and_answers_are_timed() -> None:
    rows = probed(Fault())
    assert sum(row["lost"] for row in rows) == 0
    assert all(len(row["rtt_us"]) == row["sent"] and min(row["rtt_us"]) > 0 for row in rows)


def test_a_lossy_link_loses_packets_that_pass_it_and_no_others() -> None:
    over, elsewhere = losses(probed(Fault("loss", LINK, 40)), LINK)
    assert over > 50
    assert elsewhere == 0


def test_a_link_that_is_down_loses_everything_that_should_pass_it() -> None:
    rows = probed(Fault("down", LINK), rounds=1)
    assert {row["lost"] for row in rows if LINK in row["hops"]} == {5}
    assert losses(rows, LINK)[1] == 0


def test_a_second_lab_is_refused_while_one_runs() -> None:
    with namespaces.fabric(), pytest.raises(namespaces.LabBuildError, match="another lab is running"):
        namespaces.fabric().__enter__()


def tickets_after(fault: Fault) -> list[dict[str, Any]]:
    """Probes through the telemetry endpoint, a run of `voting` over them, and the incidents that are there then."""
    rows = probed(fault, rounds=5)
    collector = Client(
        headers={"Authorization": f"Bearer {keys.create('lab', ['telemetry', 'incidents:read'])}"}
    )
    body = "\n".join(map(json.dumps, rows))
    answer = collector.post("/api/v1/telemetry/probe", body, content_type="application/x-ndjson")
    assert (answer.status_code, answer.json()["accepted"]) == (202, len(rows))
    first = min(datetime.fromisoformat(row["time"]) for row in rows)
    now = datetime.now(UTC)
    wanted = RunRequest("voting", start=first, end=now + timedelta(seconds=1))
    execute(request_run(wanted, "key:lab", now).pk, lambda: datetime.now(UTC))
    follow_to_the_end(follower())
    found: list[dict[str, Any]] = collector.get("/api/v1/incidents").json()["results"]
    return found


@pytest.mark.usefixtures("log_database")
@pytest.mark.parametrize("component", [LINK, "switch/spine2"])
def test_what_loses_real_packets_gets_the_ticket(component: str) -> None:
    (ticket,) = tickets_after(Fault("loss", component, 30))
    assert (ticket["component"], ticket["analyzer"]) == (component, "voting")


@pytest.mark.usefixtures("log_database")
def test_a_whole_fabric_gets_no_ticket() -> None:
    assert tickets_after(Fault()) == []
