"""Routes tried before they count, and what fails with a component."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from incidents import commands
from incidents.commands import Report
from incidents.incident.models import MemberAlert
from incidents.routing import replay
from incidents.teams.models import Route, Service, Silence, Team, routing_table
from ingest.api import keys
from ingest.queries import Context
from tests.integration.incidents.incident.test_findings import T12, run, suspect
from tests.integration.incidents.routing.test_tree import alert, send

pytestmark = pytest.mark.usefixtures("log_database")
Call = Callable[..., Any]


@pytest.fixture
def post(client: Any) -> Call:
    key = keys.create("reader", ["incidents:read"])

    def call(path: str, body: Any) -> Any:
        return client.post(
            f"/api/v1/{path}", json.dumps(body), "application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
        )

    return call


def current() -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "pattern": one.pattern,
            "team": one.team.slug if one.team else None,
            "order": one.order,
        }
        for one in Route.objects.select_related("team")
    ]


def test_a_described_alert_is_explained_rule_by_rule(post: Call) -> None:
    told = post("routes/explain", {"component": "disk/d7", "labels": {"rack": "r1"}}).json()
    assert (told["team"], told["path"], told["incident"]) == ("storage", ["disk"], None)
    outcomes = {one["rule"]: one["outcome"] for one in told["rules"]}
    assert (outcomes["tor"], outcomes["disk"], outcomes["host"]) == ("did_not_match", "matched", "not_tried")


def test_a_recorded_alert_is_explained_with_its_ticket(post: Call) -> None:
    send(alert("d7", component="disk/d7"))
    id_ = str(MemberAlert.objects.get().alert)
    told = post("routes/explain", {"alert": id_}).json()
    assert (told["explanation"], told["incident"], told["subject"]["integration"]) == (
        "routed to Storage because rule `disk` (8th) matched `disk/*`",
        1,
        "prometheus",
    )


def test_an_alert_is_explained_by_rules_that_are_only_proposed(post: Call) -> None:
    rules = [{"pattern": "disk/*", "team": "network", "follow_suggestion": True}]
    told = post("routes/explain", {"component": "disk/d7", "routes": rules}).json()
    assert (told["team"], told["follow_suggestion"]) == ("network", True)
    assert [one["team"] for one in current() if one["name"] == "disk"] == ["storage"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"alert": "11111111-1111-4111-8111-111111111111"}, 404),
        ({"alert": "x"}, 400),
        ({"alert": ["x"]}, 400),
        ({"alert": "11111111-1111-4111-8111-111111111111", "component": "a/b"}, 400),
        ({"component": "no slash"}, 400),
        ({"component": "a/\u0000"}, 400),
        ({"labels": ["a"]}, 400),
        ({"confidence": 7}, 400),
        ({"at": "noon"}, 400),
        ({"routes": {}}, 400),
        ({"routes": [7]}, 400),
        ({"routes": [{"team": "no-such"}]}, 400),
        ({"routes": [{"name": "a", "parent": "b"}]}, 400),
        ({"routes": [{"name": "a"}, {"name": "a"}]}, 400),
        ({"colour": "red"}, 400),
    ],
)
def test_what_cannot_be_explained_is_refused(post: Call, body: Any, status: int) -> None:
    assert post("routes/explain", body).status_code == status


def test_a_replay_says_what_would_have_gone_elsewhere_and_changes_nothing(post: Call) -> None:
    send(*(alert(f"d{n}", component=f"disk/d{n}") for n in range(5)), alert("t", component="tor/t1"))
    commands.open_incident(Report("It hums", component="disk/d9"), Context("user:alice"))
    rules = [{**one, "team": "network"} if one["name"] == "disk" else one for one in current()]
    told = post("routes/replay", {"routes": rules}).json()
    assert (told["alerts"], told["reports"], told["findings"], told["differ"]) == (6, 1, 0, 6)
    (difference,) = told["differences"]
    assert (difference["what"], difference["before"], difference["after"], difference["count"]) == (
        "team",
        "storage",
        "network",
        6,
    )
    assert (told["complete"], Team.objects.get(routes__name="disk").slug) == (True, "storage")


def test_a_replay_looks_at_its_span_only(post: Call) -> None:
    send(alert("d1", component="disk/d1"))
    before = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    told = post("routes/replay", {"routes": [], "from": "2026-01-01T00:00:00Z", "to": before})
    assert told.status_code == 400
    told = post("routes/replay", {"routes": [], "days": 3, "to": before}).json()
    assert (told["alerts"], told["differ"]) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"routes": "all"},
        {"routes": [], "days": 0},
        {"routes": [], "days": 91},
        {"routes": [], "days": 1.5},
        {"routes": [], "to": "0001-01-01T00:00:00Z"},
        {"routes": [], "days": 1, "from": "2026-11-01T00:00:00Z"},
        {"routes": [], "from": "2026-11-02T00:00:00Z", "to": "2026-11-01T00:00:00Z"},
        {"routes": [{"pattern": "x"}]},
    ],
)
def test_what_cannot_be_replayed_is_refused(post: Call, body: Any) -> None:
    assert post("routes/replay", body).status_code == 400


def test_a_replay_ends_where_it_has_read_enough_and_says_so() -> None:
    send(*(alert(f"d{n}", component=f"disk/d{n}") for n in range(9)))
    end = datetime.now(UTC)
    told = replay.replay_recorded(routing_table(), end - timedelta(days=1), end, most=5)
    assert (told.complete, told.end < end, told.result.looked_at["alert"]) == (False, True, 5)


def test_a_replay_counts_apart_what_asked_no_rule(post: Call) -> None:
    now = timezone.now()
    matchers = [{"name": "quiet", "value": "yes", "isRegex": False, "isEqual": True}]
    Silence.objects.create(
        matchers=matchers, starts_at=now, ends_at=now + timedelta(hours=1), created_by="alice"
    )
    run(0, suspect(T12, sure=True))
    send(
        alert("d1", component="disk/d1", labels={"quiet": "yes"}),
        alert("d2", component="disk/d2"),
        alert("t", component=T12),
    )
    told = post("routes/replay", {"routes": []}).json()
    assert (told["alerts"], told["suppressed"], told["to_cause"]) == (3, 1, 1)
    # The finding opened an incident of Network, and d2 one of Storage; neither rule would be left.
    assert (told["findings"], told["differ"]) == (1, 2)


def test_the_blast_radius_names_components_and_services(client: Any) -> None:
    key = keys.create("sender", ["telemetry", "incidents:read"])
    now = datetime.now(UTC).isoformat()
    rows = [
        {"time": now, "component": "host/h1", "parents": ["rack/r1"]},
        {"time": now, "component": "vm/v1", "parents": ["host/h1"], "depends_on": ["disk/d1"]},
    ]
    sent = client.post(
        "/api/v1/telemetry/topology", json.dumps(rows), "application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
    )
    assert sent.status_code == 202, sent.content
    Service.objects.create(slug="vms", name="Machines", patterns=["vm/*"])
    answer = client.get("/api/v1/components/rack/r1/blast_radius", HTTP_AUTHORIZATION=f"Bearer {key}").json()
    assert (answer["known"], answer["count"], answer["by_kind"]) == (True, 2, {"host": 1, "vm": 1})
    assert [one["because"] for one in answer["components"]] == [
        "is contained in rack/r1",
        "is contained in host/h1",
    ]
    assert [one["slug"] for one in answer["services"]] == ["vms"]


@pytest.mark.parametrize("path", ["nothing", "a%00/b", "x/y?at=noon", "x/y?region=", "x/y?colour=red"])
def test_a_blast_radius_of_nothing_sensible_is_refused(client: Any, path: str) -> None:
    key = keys.create("reader", ["incidents:read"])
    name, _, asked = path.partition("?")
    answer = client.get(f"/api/v1/components/{name}/blast_radius?{asked}", HTTP_AUTHORIZATION=f"Bearer {key}")
    assert answer.status_code in (400, 404)


# What a sender sends, pasted
# ----------------------------------------------------------------------------------------------------------
def webhook_of(*alerts: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": "4",
        "status": "firing",
        "receiver": "dossier",
        "groupKey": "{}",
        "alerts": list(alerts),
    }


def sent(status: str, component: str) -> dict[str, Any]:
    labels = {"alertname": "Slow", "component": component, "severity": "critical"}
    return {"status": status, "labels": labels, "annotations": {}, "startsAt": "2026-01-01T00:00:00Z"}


def test_a_payload_is_read_by_its_endpoint_and_what_fires_in_it_is_explained(post: Call) -> None:
    body = webhook_of(sent("resolved", "tor/t1"), sent("firing", "disk/d7"))
    told = post("routes/explain", {"endpoint": "alertmanager", "payload": body}).json()
    assert (told["team"], told["alerts"], told["refused"]) == ("storage", 2, [])
    assert (told["subject"]["component"], told["subject"]["severity"]) == ("disk/d7", "critical")


def test_a_payload_may_be_pasted_as_text_and_is_not_stored(post: Call) -> None:
    text = json.dumps({"title": "slow", "component": "disk/d7"})
    assert post("routes/explain", {"payload": text}).json()["team"] == "storage"
    assert not MemberAlert.objects.exists()


def test_a_payload_is_read_by_the_mapping_of_its_integration(post: Call) -> None:
    how = {"title": "$.what", "key": "$.what", "component": "$.where"}
    keys.create("own form", ["alerts"], mapping=how)
    asked = {"payload": {"what": "slow", "where": "disk/d7"}, "integration": "own form"}
    told = post("routes/explain", asked).json()
    assert (told["team"], told["subject"]["integration"]) == ("storage", "own form")


def nested(deep: int) -> Any:
    found: Any = {}
    for _ in range(deep):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"payload": {"version": "3", "alerts": []}, "endpoint": "alertmanager"}, "payload.version"),
        ({"payload": [1, 2]}, "holds no alert"),
        ({"payload": nested(600)}, "payload"),
        ({"payload": "\x00{"}, "payload"),
        ({"payload": {}, "endpoint": "cloudevents"}, "payload"),
        ({"payload": {}, "endpoint": "pagerduty"}, "payload"),
        ({"payload": "From: alice", "endpoint": "nowhere"}, "endpoint"),
        ({"payload": {"title": "slow"}, "integration": "nobody"}, "there is no integration nobody"),
        ({"payload": {"title": "slow"}, "integration": 7}, "integration"),
        ({"payload": {"title": "slow"}, "component": "disk/d7"}, "component"),
        ({"endpoint": "generic"}, "endpoint"),
    ],
)
def test_a_payload_that_cannot_be_read_is_refused_with_the_place(post: Call, body: Any, says: str) -> None:
    answer = post("routes/explain", body)
    assert answer.status_code == 400
    assert says in answer.content.decode()
