"""A theory is tested against stored topology, onsets and verdicts, and its result stays on the timeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from rest_framework.test import APIClient

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.changes.metrics import fleet, rows_of
from incidents import queries
from incidents.incident.rebuild import rebuild
from ingest.api import keys
from tests.integration.analyzers.runs.cases import Door, work
from tests.integration.incidents.onsets.test_onsets import HOURS, MINUTE, an_incident

pytestmark = pytest.mark.usefixtures("log_database")
EARLIER = 10 * MINUTE


def check(client: APIClient, *path: str, **more: Any) -> Any:
    hops = [{"cause": a, "effect": b} for a, b in pairwise(path)]
    return client.post("/api/v1/incidents/1/theories", {"hops": hops, **more}, format="json")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_each_hop_comes_back_with_what_speaks_for_and_against_it() -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start = now - HOURS * 60 * MINUTE
    made = fleet(np.random.default_rng([3, 1]), "step", services=24, hours=HOURS)
    service = made.name(made.at)
    bystander = next(name for n in range(24) if (name := made.name(n)) != service)
    client = APIClient()
    client.credentials(
        HTTP_AUTHORIZATION=f"Bearer {keys.create('assistant', ('incidents:read', 'incidents:propose'))}"
    )
    edges = [
        {
            "time": (start - timedelta(days=1)).isoformat(),
            "component": f"service/{service}",
            "depends_on": needed,
        }
        for needed in (["service/upstream"],)
    ]
    Door("topology").post(
        [*edges, {**edges[0], "component": f"service/{bystander}", "depends_on": []}], "topology"
    )
    an_incident(service)

    untested = check(client, "service/upstream", f"service/{service}").data
    assert untested["verdict"] == "cannot be tested"
    assert [one["verdict"] for one in untested["hops"][0]["grounds"]][:2] == ["supported", "cannot be tested"]
    assert "run changepoint" in untested["hops"][0]["grounds"][1]["would_test"]

    rows = [row for row in rows_of(made, start) if row["name"] == "cpu_usage"]
    own = [row for row in rows if row["labels"]["service"] == service]
    upstream = [
        {
            **row,
            "time": (at(row["time"]) - EARLIER).isoformat(),
            "labels": {**row["labels"], "service": "upstream"},
        }
        for row in own
        if at(row["time"]) - EARLIER >= start
    ]
    Door("metrics").post([*rows, *upstream], kind="metric")
    end = now + 15 * MINUTE
    request_run(RunRequest("changepoint", start=end - 60 * MINUTE, end=end, report=False), "alice", now)
    (run,) = work()

    found = check(client, "service/upstream", f"service/{service}", note="the upstream was deployed")
    assert found.status_code == 201, found.data
    grounds = {one["ground"]: one for one in found.data["hops"][0]["grounds"]}
    assert (found.data["verdict"], grounds["order"]["verdict"]) == ("supported", "supported"), grounds
    assert (found.data["run"], found.data["reaches_symptom"]) == (str(run.id), True)
    wrong = check(client, f"service/{bystander}", f"service/{service}").data
    verdicts = {one["ground"]: one["verdict"] for one in wrong["hops"][0]["grounds"]}
    assert (verdicts["topology"], verdicts["order"]) == ("cannot be tested", "contradicted")
    assert wrong["verdict"] == "contradicted"

    listed = client.get("/api/v1/incidents/1/theories").data["results"]
    assert [one["verdict"] for one in listed] == ["contradicted", "supported", "cannot be tested"]
    told = client.get("/api/v1/incidents/1/events").data["results"][-1]
    assert told["text"].endswith(f"service/{bystander} -> service/{service}: contradicted")
    assert (listed[0]["event"], told["body"]["theory"]) == (told["id"], listed[0]["theory"])
    assert rebuild().differed == ()

    alice = Client()
    alice.force_login(get_user_model().objects.create_user("alice"))
    assert "Check a theory" in alice.get("/incidents/1").content.decode()
    shown = alice.get("/incidents/1/theories").content.decode()
    assert "the upstream was deployed" in shown
    refused = alice.post("/incidents/1/theories", {"path": "upstream"})
    assert (refused.status_code, "two or more components" in refused.content.decode()) == (400, True)
    refused = alice.post("/incidents/1/theories", {"path": "upstream -> service/x"})
    assert (refused.status_code, "Hops[0].cause" in refused.content.decode()) == (400, True)
    done = alice.post("/incidents/1/theories", {"path": f"service/upstream → service/{service}"})
    assert done.status_code == 302
    assert queries.get("1").incident.state == "open"


def test_a_read_key_checks_no_theory() -> None:
    an_incident("api")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {keys.create('reader', ('incidents:read',))}")
    assert check(client, "host/a", "service/api").status_code == 403
    assert client.get("/api/v1/incidents/1/theories").data == {"results": []}
    writer = APIClient()
    writer.credentials(HTTP_AUTHORIZATION=f"Bearer {keys.create('writer', ('incidents:write',))}")
    assert list(check(writer, "host/a", "api").data["errors"]) == ["hops[0].effect"]
