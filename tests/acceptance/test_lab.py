"""Real packets through a fabric of network namespaces. Needs root, `ip`, and a kernel that lets us make namespaces."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from analyzers.commands import RunRequest, request_run
from analyzers.runs.execution import execute
from deploy.lab import namespaces, plan
from deploy.lab.faults import Fault, broken
from deploy.lab.probing import PATHS, Prober, Row, prober
from incidents.follower import follower
from incidents.questions.sweep import answer_requested
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


def test_links_carry_packets_as_soon_as_the_fabric_is_there() -> None:
    with namespaces.fabric():
        assert [node for node in plan.NODES if namespaces._down(node)] == []
        namespaces.run("ip", "-netns", plan.namespace("spine2"), "link", "set", "leaf1", "down")
        assert namespaces._down("spine2") == ["leaf1"]


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


class Site:
    """A Dossier with the keys of its agents, who send real probes."""

    def __init__(self, one: Prober) -> None:
        self.prober = one
        key = keys.create("lab", ["telemetry", "incidents:read", "incidents:write"])
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def send(self, rows: list[Row]) -> None:
        body = "\n".join(map(json.dumps, rows))
        answer = self.client.post("/api/v1/telemetry/probe", body, content_type="application/x-ndjson")
        assert answer.status_code == 202, answer.content

    def get(self, path: str) -> Any:
        return self.client.get(f"/api/v1/{path}").json()

    def run_requested(self) -> int:
        """Work of an agent: poll the list, send the packets, report the rows. Returns the number of probes."""
        asked = self.get("pinglists")["requested"]
        for one in asked:
            path, *_ = [  # below one leaf the planes are one path
                path
                for path in PATHS
                if (f"host/h{path.src}", f"host/h{path.dst}") == (one["source"], one["destination"])
                and list(plan.hops(path.src, path.dst, path.plane)) == one["hops"]
            ]
            self.send(self.prober.round(one["packets"], [path]))
        return len(asked)


@pytest.mark.usefixtures("log_database")
def test_probes_that_an_incident_asks_for_tell_its_suspects_apart() -> None:
    """Only h1 watches the plane: its cable, its leaf, the spine and the link between them fail alike to it."""
    watched = [path for path in PATHS if path.plane == 1 and path.src == 1 and path.dst > 2]
    watched += [path for path in PATHS if path.src > 2 and path.dst == path.src + 1 and path.src % 2]
    with namespaces.fabric(), prober() as one:
        site = Site(one)
        site.send(one.round(2))  # which paths there are
        with broken(Fault("loss", LINK, 40)):
            first = datetime.now(UTC)
            for _ in range(5):
                site.send(one.round(10, watched))
            now = datetime.now(UTC)
            wanted = RunRequest("voting", start=first, end=now + timedelta(seconds=1))
            execute(request_run(wanted, "key:lab", now).pk, lambda: datetime.now(UTC))
            follow_to_the_end(follower())
            (ticket,) = site.get("incidents")["results"]
            where = f"incidents/{ticket['number']}/questions"
            before = site.get(where)
            suspects = {one["component"] for one in before["suspects"]} - {"none"}
            assert suspects == {LINK, "link/h1~leaf1", "switch/leaf1", "switch/spine1"}
            for _ in range(4):
                probes = [one for one in site.get(where)["questions"] if one["judged_by_rows"]]
                if not probes:
                    break
                assert (
                    site.client.post(
                        f"/api/v1/{where}/{probes[0]['id']}/request", {}, "application/json"
                    ).status_code
                    == 200
                )
                assert site.run_requested() == 1
                assert answer_requested(datetime.now(UTC)) == 1
            after = site.get(where)
            (ticket,) = site.get("incidents")["results"]
    assert ticket["component"] == LINK
    assert after["suspects"][0]["component"] == LINK
    assert after["bits"] < before["bits"] / 2
    assert all(one["by"] == "telemetry" for one in after["answers"])


@pytest.mark.usefixtures("log_database")
def test_a_whole_fabric_gets_no_ticket() -> None:
    assert tickets_after(Fault()) == []
