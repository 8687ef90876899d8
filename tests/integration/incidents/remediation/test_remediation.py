"""The way of a node over the API, against a receiver that checks the signature as the documentation says."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.incident.remediation import REQUESTED
from incidents.incident.rebuild import rebuild_incidents
from incidents.remediation.sweep import judge_returned
from incidents.reviews.commands import drafted
from incidents.suppression.models import MaintenanceWindow
from ingest.api import keys
from ingest.queries import now_utc
from tests.integration.incidents.webhooks.cases import ALICE, SECRET, bodies, deliver, hook
from tests.integration.sinks import Got, http_sink

pytestmark = pytest.mark.usefixtures("log_database")

GPU, NEW = "gpu/1652821001234", "gpu/1652821009999"


def signed(got: Got, secret: str = SECRET) -> bool:
    """As a receiver checks it: HMAC-SHA256 over the timestamp, a full stop and the body."""
    fields = dict(part.split("=", 1) for part in got.headers["dossier-signature"].split(","))
    wanted = hmac.new(secret.encode(), f"{fields['t']}.".encode() + got.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, fields["v1"])


class Api:
    def __init__(self, number: int, *scopes: str) -> None:
        self.path = f"/api/v1/incidents/{number}"
        self.key = keys.create(f"key {len(scopes)} {scopes[0]}", scopes)

    def post(self, rest: str, **body: Any) -> Any:
        return Client().post(
            f"{self.path}{rest}",
            body,
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Bearer {self.key}",
        )

    def get(self, rest: str = "") -> Any:
        return Client().get(f"{self.path}{rest}", HTTP_AUTHORIZATION=f"Bearer {self.key}").json()


def place(slot: str, part: str) -> None:
    key = keys.create(f"telemetry {part}", ["telemetry"])
    row = {"time": (now_utc() - timedelta(days=1)).isoformat(), "unit": slot, "components": [part]}
    answer = Client().post(
        "/api/v1/telemetry/placement",
        [row],
        content_type="application/json",
        HTTP_AUTHORIZATION=f"Bearer {key}",
    )
    assert answer.status_code == 202, answer.content


def opened() -> int:
    return commands.open_incident(Report("GPU fell off the bus", component=GPU), ALICE).incident.number


def test_a_node_is_handed_over_drained_replaced_and_returned(settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    place("slot/gpu-17:3", GPU)
    number = opened()
    asks, answers = Api(number, "remediation:request", "incidents:read"), Api(number, "remediation:answer")
    with http_sink() as cluster, http_sink() as other, http_sink() as chat:
        hook(cluster.url, "cluster", types=[REQUESTED])
        hook(other.url, "other-cluster", types=[REQUESTED])
        hook(chat.url, "chat")
        assert asks.post("/remediation", reason="Xid 79").json()["errors"]["target"] == [
            "choose one of cluster, other-cluster"
        ]
        made = asks.post("/remediation", reason="Xid 79", target="cluster", proof_required=True)
        assert (made.status_code, made.json()["remediation"]["node"]) == (201, "gpu-17")
        assert asks.get("/remediation")["delivery"]["state"] == "waiting"
        deliver(lambda: bool(cluster.got and chat.got))
        assert [signed(got) for got in cluster.got] == [True]
        assert not signed(cluster.got[0], "whsec_other")
        assert other.got == []
        sent = bodies(cluster)[0]
    assert asks.get("/remediation")["delivery"]["state"] == "delivered"
    assert sent["event"]["kubernetes"]["spec"]["healthEvent"]["nodeName"] == "gpu-17"
    request = sent["event"]["request"]

    told = {"request": request, "by": "dc-ops"}
    assert (
        answers.post("/remediation/answers", **told, answer="returned")
        .json()["detail"]
        .endswith("returned cannot follow that, drained or refused or failed can")
    )
    drained = answers.post("/remediation/answers", **told, answer="drained")
    assert (drained.status_code, "Dossier-Receipt" in drained.headers) == (200, True)
    again = answers.post("/remediation/answers", **told, answer="drained")
    assert (again.status_code, "Dossier-Receipt" in again.headers) == (200, False)
    window = MaintenanceWindow.objects.get()
    assert {"node/gpu-17", "slot/gpu-17:*", GPU} <= set(window.components)
    assert window.times.at(datetime.now(UTC))
    assert (
        answers.post("/remediation/answers", **{**told, "request": "forged"}, answer="replaced").status_code
        == 409
    )
    replaced = answers.post(
        "/remediation/answers", **told, answer="replaced", part="1652821009999", note="RMA 4711"
    )
    assert replaced.json()["remediation"]["part"] == NEW
    assert answers.post("/remediation/answers", **told, answer="returned").status_code == 200
    assert MaintenanceWindow.objects.get().times.at(datetime.now(UTC)) is None

    shown = asks.get()
    assert (shown["remediation"]["stage"], [one["answer"] for one in shown["remediation"]["answers"]]) == (
        "returned",
        ["drained", "replaced", "returned"],
    )
    timeline = [one["text"] for one in asks.get("/events")["results"]]
    assert (
        "key key 2 remediation:request handed gpu-17 to the cluster through webhook cluster: Xid 79"
        in timeline
    )
    assert (
        f"{GPU} was replaced with {NEW}, says dc-ops (sent by key key 1 remediation:answer): RMA 4711"
        in timeline
    )
    resolves = Api(number, "incidents:write")
    assert "requires proof of repair" in resolves.post("/resolve", confirmed_cause=GPU).json()["detail"]
    assert resolves.post("/resolve", confirmed_cause=GPU, without_proof="tonight").status_code == 403
    assert rebuild_incidents([shown["id"]]) == []
    assert asks.get()["remediation"] == shown["remediation"]
    json.dumps(shown)


def test_hand_overs_need_their_scope_a_node_and_a_target() -> None:
    gpu, rack = (
        opened(),
        commands.open_incident(Report("Rack is hot", component="rack/r7"), ALICE).incident.number,
    )
    for scope in ("incidents:write", "remediation:answer"):
        assert Api(gpu, scope).post("/remediation", reason="Xid 79").status_code == 403
    asks = Api(gpu, "remediation:request", "incidents:read")
    assert asks.post("/remediation/answers", request="x", answer="drained", by="me").status_code == 403
    refused = asks.post("/remediation", reason="Xid 79").json()
    assert "neither placement nor topology contains it" in refused["errors"]["node"][0]
    assert (
        "must be the name of one node"
        in asks.post("/remediation", reason="x", node="n[1-9]").json()["errors"]["node"][0]
    )
    missing = asks.post("/remediation", reason="x", node="gpu-17", target="nowhere").json()
    assert "no active webhook 'nowhere'" in missing["errors"]["target"][0]
    by_hand = asks.post("/remediation", reason="Xid 79", node="gpu-17")
    assert (by_hand.status_code, by_hand.json()["remediation"]["target"]) == (201, None)
    assert "scontrol update nodename=gpu-17 state=drain" in str(by_hand.json()["commands"])
    assert "already handed" in asks.post("/remediation", reason="again", node="gpu-17").json()["detail"]
    of_rack = Api(rack, "remediation:request", "incidents:read", "alerts")
    assert "neither a node nor a part of one" in of_rack.post("/remediation", reason="x").json()["detail"]


def send(kind: str, rows: list[dict[str, Any]]) -> None:
    key = keys.create(f"telemetry {kind} {len(rows)}", ["telemetry"])
    answer = Client().post(
        f"/api/v1/telemetry/{kind}", rows, content_type="application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
    )
    assert answer.status_code == 202, answer.content


def test_a_returned_part_is_proved_repaired_by_the_rows_that_come() -> None:
    number, now = opened(), now_utc()
    asks = Api(number, "remediation:request", "remediation:answer", "incidents:read", "incidents:write")
    asked = asks.post("/remediation", reason="Xid 79", node="gpu-17", proof_required=True).json()
    told = {"request": asked["remediation"]["request"], "by": "dc-ops"}
    for said in ("drained", "returned"):
        assert asks.post("/remediation/answers", **told, answer=said).status_code == 200

    def job(name: str, node: str, at: datetime, outcome: str) -> dict[str, Any]:
        start = (at - timedelta(minutes=1)).isoformat()
        return {"job": name, "nodes": [node], "start": start, "end": at.isoformat(), "outcome": outcome}

    minutes = [now - timedelta(hours=20) + timedelta(minutes=i) for i in range(360)]
    own = [job(f"a{i}", "node/gpu-17", minutes[i * 9], ("completed", "failed")[i % 2]) for i in range(40)]
    fleet = [job(f"b{i}", f"node/gpu-{i % 9}", minutes[i], "completed") for i in range(300)]
    send("job_attempt", [*own, *fleet])
    assert judge_returned(now_utc()) == 1
    assert asks.get("/remediation")["remediation"]["proof"]["rows"] == 0
    after = now_utc()
    again = [job(f"c{i}", "node/gpu-17", after + timedelta(seconds=i), "completed") for i in range(120)]
    send("job_attempt", again)
    assert judge_returned(after + timedelta(minutes=5)) == 1
    proof = asks.get("/remediation")["remediation"]["proof"]
    assert (proof["verdict"], proof["assumed"], proof["sources"][0]["before"]) == ("repaired", False, 0.5)
    assert any("proof of repair, " in one["text"] for one in asks.get("/events")["results"])
    assert judge_returned(after + timedelta(minutes=6)) == 1
    assert (asks.get()["state"], asks.get()["resolved_by"]) == ("resolved", "system:incidents")
    assert asks.get()["confirmed_cause"] is None
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    page = alice.get(f"/incidents/{number}").content.decode()
    assert "Cause not confirmed by a person; the repair of " in page
    assert "Confirmed cause" not in page
    assert f"Not confirmed by a person; the repair of `{GPU}` was proved." in drafted(
        queries.get(str(number)).incident
    )
    assert asks.post("/reopen", reason="Xid 79 again").status_code == 200
    assert judge_returned(after + timedelta(minutes=7)) == 0
    assert asks.get("/remediation")["left_open"].startswith("Still open: reopened after the proof")
    assert rebuild_incidents([asks.get()["id"]]) == []
    assert asks.post("/resolve", confirmed_cause=GPU).status_code == 200


def test_the_command_hands_over_records_answers_and_lists(capsys: pytest.CaptureFixture[str]) -> None:
    number = opened()

    def said(*words: str) -> str:
        call_command("remediation", *words)
        return capsys.readouterr().out

    def refused(*words: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            call_command("remediation", *words)
        assert stopped.value.code == 2
        return capsys.readouterr().err

    assert said("list") == "no node is handed to the cluster\n"
    assert "was not handed to the cluster" in refused("answer", str(number), "drained")
    assert "neither placement nor topology" in refused("request", str(number), "--reason", "Xid 79")
    handed = said("request", str(number), "--reason", "Xid 79", "--node", "gpu-17", "--proof")
    assert handed.startswith(f"#{number} gpu-17: requested, {GPU}, by hand (open)\n")
    assert "    scontrol update nodename=gpu-17 state=drain" in handed
    assert "returned cannot follow that" in refused("answer", str(number), "returned")
    assert "give an RFC 3339 time" in refused("answer", str(number), "drained", "--at", "noon")
    said("answer", str(number), "drained", "--by", "dc-ops")
    said("answer", str(number), "replaced", "--part", "1652821009999")
    assert f"#{number} gpu-17: replaced, {GPU}, by hand (open)" in said("list")
    (shown,) = json.loads(said("list", "--json"))
    assert (shown["incident"], shown["part"], shown["proof_required"]) == (number, NEW, True)
    assert [one["actor"].partition(":")[0] for one in shown["answers"]] == ["shell", "shell"]
    assert shown["answers"][0]["by"] == "dc-ops"
    assert "there is no incident 999" in refused("request", "999", "--reason", "x")
