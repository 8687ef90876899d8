"""Alertmanager's API v2 as version 0.34 has it: what amtool and its kin ask for beside alerts."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from django.test import Client

from incidents.api.alerts.alertmanager import ELSEWHERE
from incidents.teams.models import Route, Service, Team
from ingest.api import keys
from ingest.api.models import IntegrationKey

pytestmark = pytest.mark.django_db
SILENCE = {
    "matchers": [{"name": "disk", "value": "d7", "isRegex": False}],
    "startsAt": "2026-01-01T00:00:00Z",
    "endsAt": "2126-01-01T00:00:00Z",
    "createdBy": "alice",
    "comment": "moved",
}


def call(method: str, path: str, body: Any = None, scopes: tuple[str, ...] = ()) -> Any:
    scopes = scopes or ("alerts", "incidents:read", "incidents:write")
    name = " ".join(scopes)
    number = IntegrationKey.objects.count()
    key = keys.create(f"{name} {number}", scopes)
    sent = "" if body is None else json.dumps(body)
    return Client().generic(
        method, f"/api/v2/{path}", sent, "application/json", headers={"Authorization": f"Bearer {key}"}
    )


def fire(**labels: str) -> None:
    assert call("POST", "alerts", [{"labels": {"alertname": "Down", **labels}}]).status_code == 200


def test_groups_carry_the_labels_of_their_route() -> None:
    fire()
    (group,) = call("GET", "alerts/groups").json()
    assert group["routeLabels"] == {}


def test_annotations_of_a_silence_are_returned_as_sent() -> None:
    made = call("POST", "silences", {**SILENCE, "annotations": {"ticket": "OPS-7"}}).json()["silenceID"]
    assert call("GET", f"silence/{made}").json()["annotations"] == {"ticket": "OPS-7"}
    assert call("POST", "silences", {**SILENCE, "annotations": {"ticket": 7}}).status_code == 400


ANNOTATIONS = {
    "summary": "Disk is slow",
    "k": "v",
    "empty": "",
    "runbook_url": "https://books.example.com/disk",
}


@pytest.mark.parametrize("sent", [ANNOTATIONS, {}])
@pytest.mark.parametrize("webhook", [False, True])
def test_annotations_of_an_alert_are_returned_as_sent(sent: dict[str, str], webhook: bool) -> None:
    one = {"labels": {"alertname": "Slow"}, "annotations": sent, "startsAt": "2026-01-01T00:00:00Z"}
    if webhook:
        key = keys.create("webhook", ["alerts"])
        told = {"version": "4", "status": "firing", "alerts": [{**one, "status": "firing"}]}
        answer = Client().post(f"/integrations/alertmanager/{key}", json.dumps(told), "application/json")
        assert answer.status_code == 200
    else:
        assert call("POST", "alerts", [one]).status_code == 200
    (found,) = call("GET", "alerts").json()
    assert found["annotations"] == sent


def test_annotations_are_those_of_the_latest_change() -> None:
    key = keys.create("webhook", ["alerts"])
    for severity, told in (("warning", {"k": "one"}), ("critical", {"k": "two"})):
        one = {"status": "firing", "labels": {"alertname": "Slow", "severity": severity}, "annotations": told}
        body = {"version": "4", "status": "firing", "alerts": [{**one, "fingerprint": "a" * 16}]}
        answer = Client().post(f"/integrations/alertmanager/{key}", json.dumps(body), "application/json")
        assert answer.status_code == 200
    (found,) = call("GET", "alerts").json()
    assert found["annotations"] == {"k": "two"}


def test_receivers_have_labels_that_matchers_ask_for() -> None:
    Team.objects.create(slug="shop", name="Shop")
    every = call("GET", "receivers").json()
    assert {"name": "shop", "labels": {"name": "shop"}} in every
    assert call("GET", 'receivers?receiver_matchers=name="shop"').json() == [
        {"name": "shop", "labels": {"name": "shop"}}
    ]
    assert len(call("GET", 'receivers?receiver_matchers=name!="shop"').json()) == len(every) - 1
    assert call("GET", 'receivers?receiver_matchers=name=~"s.*"&receiver_matchers=kind=mail').json() == []
    assert call("GET", "receivers?receiver_matchers=name").status_code == 400


@pytest.mark.parametrize("path", ["alerts", "alerts/groups"])
def test_alerts_are_found_by_the_labels_of_their_receiver(path: str) -> None:
    fire()
    (found,) = call("GET", path).json()
    (receiver,) = found.get("receivers") or [found["receiver"]]
    slug = receiver["labels"]["name"]
    assert len(call("GET", f"{path}?receiver_matchers=name={slug}").json()) == 1
    assert call("GET", f"{path}?receiver_matchers=name!={slug}").json() == []
    assert call("GET", f"{path}?receiver_matchers=").status_code == 400


def test_a_filter_may_quote_a_name_in_utf_8() -> None:
    fire(**{"ünï code": "1"})
    fire(other="1")
    found = call("GET", 'alerts?filter="ünï%20code"="1"').json()
    assert [one["labels"].get("ünï code") for one in found] == ["1"]


@pytest.mark.parametrize("path", ["alerts", "alerts/groups"])
@pytest.mark.parametrize("flag", ["active", "silenced", "inhibited", "unprocessed", "muted"])
def test_a_flag_that_is_neither_true_nor_false_is_refused(path: str, flag: str) -> None:
    answer = call("GET", f"{path}?{flag}=null")
    assert (answer.status_code, answer.json()) == (400, f"{flag}: must be true or false, not 'null'")


def test_silences_are_listed_by_their_state() -> None:
    call("POST", "silences", SILENCE)
    assert len(call("GET", "silences").json()) == 1
    assert call("GET", "silences?active=false").json() == []
    assert call("GET", "silences?pending=null").status_code == 400


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("alerts", "GET, POST, OPTIONS"),
        ("silences", "GET, POST, OPTIONS"),
        ("silence/x", "GET, DELETE, OPTIONS"),
        ("alerts/groups", "GET, OPTIONS"),
        ("status", "GET, OPTIONS"),
        ("receivers", "GET, OPTIONS"),
    ],
)
def test_an_address_names_the_methods_that_it_has(path: str, methods: str) -> None:
    for method, status in (("OPTIONS", 200), ("PUT", 405), ("TRACE", 405)):
        answer = call(method, path)
        assert (answer.status_code, answer["Allow"]) == (status, methods)


def test_a_key_that_lacks_a_scope_is_told_all_that_amtool_needs() -> None:
    answer = call("GET", "alerts", scopes=("alerts",))
    assert answer.status_code == 403
    assert answer.json().endswith("lacks the scope incidents:read; amtool needs a key with alerts, incidents:read,"
                                  " incidents:write")  # fmt: skip


def configuration() -> Any:
    return yaml.safe_load(call("GET", "status").json()["config"]["original"])


def test_rules_that_ask_for_labels_are_routes_in_the_configuration() -> None:
    Route.objects.all().delete()  # those that an installation begins with ask for components
    Service.objects.all().delete()
    Team.objects.create(slug="shop", name="Shop")
    team = Team.objects.get(slug="shop")
    Route.objects.create(name="shop", order=1, team=team, when={"labels": ['service="foo"']})
    told = configuration()
    assert told["route"]["routes"] == [{"receiver": "shop", "matchers": ['service="foo"']}]
    assert {one["name"] for one in told["receivers"]} >= {"shop", told["route"]["receiver"]}


def test_rules_that_a_route_cannot_say_name_no_wrong_team() -> None:
    Team.objects.create(slug="shop", name="Shop")
    Route.objects.create(name="shop", order=1, team=Team.objects.get(slug="shop"), pattern="disk/*")
    told = configuration()
    assert told["route"] == {"receiver": ELSEWHERE}
