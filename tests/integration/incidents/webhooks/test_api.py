"""Webhooks over HTTP: made with a secret that is shown once, tried, rotated, sent back; refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from incidents.webhooks import commands
from incidents.webhooks.models import Webhook
from ingest.api import keys
from ingest.queries import Context, configured
from tests.integration.incidents.webhooks.cases import at_end, deliver, ticket
from tests.integration.sinks import http_sink

pytestmark = pytest.mark.usefixtures("log_database")
Call = Callable[..., Any]


@pytest.fixture
def api(client: Client, settings: Settings) -> Call:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    key = keys.create("alice", ["admin"])

    def call(method: str, path: str, body: object = None) -> Any:
        sent = "" if body is None else json.dumps(body)
        return client.generic(
            method, f"/api/v1/webhooks{path}", sent, "application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
        )

    return call


def made(api: Call, **fields: Any) -> Any:
    return api("POST", "", {"name": "pager", "url": "https://hooks.example/a-secret-path", **fields})


def test_the_secret_is_in_the_first_answer_and_in_no_other(api: Call) -> None:
    secret = made(api).json()["secret"]
    assert secret.startswith("whsec_")
    for path in ("", "/pager", "/pager/deliveries"):
        assert secret not in api("GET", path).content.decode()
    assert secret.encode() not in bytes(Webhook.objects.get().secret)


def test_neither_secret_nor_address_goes_into_the_log(api: Call) -> None:
    secret = made(api).json()["secret"]
    api("PATCH", "/pager", {"url": "https://hooks.example/another-secret"})
    rotated = api("POST", "/pager/rotate", {}).json()["secret"]
    api("DELETE", "/pager")
    events = configured("webhook", "pager")
    text = json.dumps([event.body for event in events])
    assert len(events) == 4
    assert not [one for one in (secret, rotated, "secret-path", "another-secret") if one in text]
    before, after = events[1].body["before"], events[1].body["after"]
    assert before["url"] != after["url"]
    assert events[2].body["after"]["secret"].startswith("new, the one before until")


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"url": "ftp://hooks.example"}, "url", "must begin with http"),
        ({"url": "http://10.0.0.1/"}, "url", "private address"),
        ({"url": "http://[::ffff:169.254.169.254]/"}, "url", "link-local"),
        ({"url": "https://alice:pw@hooks.example/"}, "url", "credentials"),
        ({"url": "https://hooks.example/\x00"}, "url", "ull char"),
        ({"url": 5 * 10**400}, "url", ""),
        ({"name": "a b"}, "name", "slug"),
        ({"name": ""}, "name", "blank"),
        ({"teams": ["nobody"]}, "teams", "no team nobody"),
        ({"teams": "storage"}, "teams", "list"),
        ({"severities": ["bad"]}, "severities", "not a valid choice"),
        ({"types": ["incident.nothing"]}, "types", "not a valid choice"),
        ({"secret": "mine"}, "secret", "not a field here"),
        ({"position": "0"}, "position", ""),
    ],
)
def test_what_makes_no_sense_is_refused_by_field_and_nothing_is_kept(
    api: Call, fields: dict[str, Any], field: str, why: str
) -> None:
    answer = made(api, **fields)
    if field == "position":  # read only: ignored
        assert Webhook.objects.get().position != "0"
        return
    assert answer.status_code == 400
    assert why in json.dumps(answer.json()["errors"][field], ensure_ascii=False)
    assert not Webhook.objects.exists()


def test_a_second_one_of_the_same_name_is_refused(api: Call) -> None:
    made(api)
    assert made(api).status_code == 400
    assert Webhook.objects.count() == 1


def test_a_name_stays(api: Call) -> None:
    made(api)
    assert api("PATCH", "/pager", {"name": "other"}).status_code == 400


def test_a_test_delivery_says_what_came_of_it(api: Call) -> None:
    with http_sink(lambda _: (418, {}, b"a teapot")) as sink:
        made(api, url=sink.url)
        answer = api("POST", "/pager/test").json()
    assert (answer["taken"], answer["status"], answer["answer"]) == (False, 418, "a teapot")
    assert json.loads(sink.got[0].body)["type"] == "webhook.test"


def test_a_replay_goes_back_to_a_position_and_not_ahead(api: Call) -> None:
    with http_sink() as sink:
        start = made(api, url=sink.url).json()["position"]
        ticket()
        webhook = Webhook.objects.get()
        deliver(lambda: at_end(webhook))
        assert api("POST", "/pager/replay", {"since": start}).json()["position"] == start
        deliver(lambda: at_end(webhook))
        assert len(sink.got) == 2
    assert api("POST", "/pager/replay", {"since": "f" * 36}).status_code == 409
    assert api("POST", "/pager/replay", {"since": "yesterday"}).status_code == 400


def test_a_team_that_went_meanwhile_is_named_by_no_webhook(api: Call) -> None:
    made(api)
    with pytest.raises(commands.TeamDeletedError, match="gone was removed"):
        commands.change(Webhook.objects.get(), {"teams": ["storage", "gone"]}, Context("user:alice"))
    assert Webhook.objects.get().teams == []


def test_a_replay_goes_back_to_a_time(api: Call) -> None:
    made(api)
    ticket()
    told = api("POST", "/pager/replay", {"since": "2001-01-01T00:00:00Z"}).json()
    assert told["position"] == "0" * 36
    assert told["lag_seconds"] > 0
    recorded = configured("webhook", "pager")[-1]
    assert recorded.actor == "key:alice"
    assert recorded.body["after"]["position"] == "0" * 36 < recorded.body["before"]["position"]


def test_one_that_is_switched_off_and_on_goes_on_from_where_it_stood(api: Call) -> None:
    with http_sink() as sink:
        made(api, url=sink.url)
        assert api("PATCH", "/pager", {"active": False}).json()["disabled_reason"] == "switched off by hand"
        ticket()
        assert api("PATCH", "/pager", {"active": True}).json()["disabled_reason"] == ""
        webhook = Webhook.objects.get()
        deliver(lambda: at_end(webhook))
    assert len(sink.got) == 1


def test_what_was_sent_last_can_be_read(api: Call) -> None:
    with http_sink(lambda _: (422, {}, b"no")) as sink:
        made(api, url=sink.url)
        ticket()
        webhook = Webhook.objects.get()
        deliver(lambda: at_end(webhook))
    told = api("GET", "/pager/deliveries").json()
    assert [(one["status"], one["taken"], one["answer"]) for one in told["attempts"]] == [(422, False, "no")]
    assert [one["reason"] for one in told["dead_letters"]] == ["answered 422: no"]


@pytest.mark.parametrize("scope", ["incidents:read", "incidents:write"])
def test_addresses_are_closed_to_keys_without_admin(client: Client, scope: str) -> None:
    header = f"Bearer {keys.create('bob', [scope])}"
    assert client.get("/api/v1/webhooks", headers={"Authorization": header}).status_code == 403
