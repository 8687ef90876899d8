"""From probes, endpoints and flow tables at the API to an incident; from traffic to a ping list that agents poll."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.training_network import SMALL, scenario
from analyzers.simulators.training_traffic import Job, draw, traffic_rows
from incidents import follower, queries
from ingest.api import keys
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")

START = TOP + HOUR


def moved(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as if the scenario had begun at `START`."""
    at = datetime.fromisoformat(row["time"]) - EPOCH + START
    return {**row, "time": at.isoformat()}


def reader() -> Client:
    key = keys.create("agent", ["incidents:read"])
    return Client(headers={"Authorization": f"Bearer {key}"})


def post_traffic(door: Door) -> None:
    rng = np.random.default_rng(3)
    job = Job(tp=2, pp=2, dp=4, rails=2, micro=4, seconds=60.0)
    door.post([moved(row) for row in traffic_rows(draw(job, rng), rng)], kind="nic_traffic")
    request_run(RunRequest("skeletonhunter", start=START, end=START + MINUTE), "alice", NOW)
    (run,) = work()
    assert run.status == "quiet"


def test_a_dead_network_card_becomes_an_incident_with_its_evidence() -> None:
    door = Door()
    rows, truth = scenario("test", 2, ("rnic_port_down",), "", replace(SMALL, rails=2, windows=2))
    for kind, told in rows.items():
        door.post([moved(row) for row in told], kind=kind)
    start = START + timedelta(minutes=5)
    request_run(RunRequest("skeletonhunter", start=start, end=start + timedelta(minutes=5)), "alice", NOW)
    (run,) = work()
    (planted,) = truth["faults"]
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", [planted["component"]])

    follow_to_the_end(follower.follower())
    (found,) = queries.list_incidents().items
    assert found.incident.component == planted["component"]
    assert {piece.kind for piece in queries.evidence(found.incident.id)} >= {"table", "chart"}


def test_a_ping_list_follows_the_skeleton_of_the_job() -> None:
    post_traffic(Door())
    found = reader().get("/api/v1/pinglists/j0").json()
    assert (found["phase"], found["tp"], found["pp"], found["dp"]) == ("skeleton", 2, 2, 4)
    assert sorted(found["destinations"]["nic/h0-0"]) == ["nic/h1-0", "nic/h2-0", "nic/h3-0", "nic/h4-0"]


def test_an_agent_that_holds_the_list_is_answered_without_it() -> None:
    post_traffic(Door())
    agent = reader()
    first = agent.get("/api/v1/pinglists/j0")
    again = agent.get("/api/v1/pinglists/j0", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_without_a_skeleton_registered_endpoints_probe_their_rail() -> None:
    rows, _ = scenario("test", 2, (), "", replace(SMALL, rails=2, windows=2))
    Door().post([moved(row) for row in rows["endpoint"]], kind="endpoint")
    found = reader().get("/api/v1/pinglists/j0", {"source": "endpoint/j0-0-r1"}).json()
    assert found["phase"] == "basic"
    assert found["destinations"] == {"endpoint/j0-0-r1": [f"endpoint/j0-{host}-r1" for host in range(1, 6)]}
    assert found["underlay"] == {}


def test_cards_of_registered_endpoints_probe_each_other_beside_them() -> None:
    rows, _ = scenario("test", 2, (), "", replace(SMALL, rails=2, windows=2))
    Door().post([moved(row) for row in rows["endpoint"]], kind="endpoint")
    agent = reader()
    found = agent.get("/api/v1/pinglists/j0").json()
    assert found["underlay"]["nic/h0-1"] == [f"nic/h{host}-1" for host in range(1, 6)]
    own = agent.get("/api/v1/pinglists/j0", {"source": "nic/h0-1"}).json()
    assert (own["destinations"], list(own["underlay"])) == ({}, ["nic/h0-1"])


@pytest.mark.parametrize(
    ("path", "status"),
    [("pinglists/unknown", 404), ("pinglists/j0?region=x%00y", 400), ("pinglists/j0?colour=red", 400)],
)
def test_a_list_that_cannot_be_given_says_why(path: str, status: int) -> None:
    answer = reader().get(f"/api/v1/{path}")
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"


def test_a_ping_list_needs_a_key_that_reads() -> None:
    assert Client().get("/api/v1/pinglists/j0").status_code == 401
