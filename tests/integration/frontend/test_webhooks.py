"""The page of webhooks, and what its docs promise receivers."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import Settings

from incidents.webhooks.models import Webhook
from tests.integration.incidents.webhooks.cases import at_end, deliver, ticket
from tests.integration.sinks import http_sink

pytestmark = pytest.mark.usefixtures("log_database")
PAGE = "/settings/webhooks"


@pytest.fixture
def alice(settings: Settings) -> Client:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def make(alice: Client, url: str = "https://hooks.example/", name: str = "pager", **more: Any) -> Any:
    return alice.post(PAGE, {"name": name, "url": url, **more})


def test_a_webhook_is_made_and_its_secret_shown_this_once(alice: Client) -> None:
    page = make(alice, severities=["critical"]).content.decode()
    (secret,) = re.findall(r"whsec_[\w-]+", page)
    assert Webhook.objects.get().severities == ["critical"]
    assert secret not in alice.get(PAGE).content.decode()


def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(alice: Client) -> None:
    answer = make(alice, url="http://192.168.1.1/")
    page = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert "192.168.1.1 is a private address" in page
    assert 'value="pager"' in page


def test_an_empty_page_says_what_to_do(alice: Client) -> None:
    assert "No webhooks." in alice.get(PAGE).content.decode()


def test_somebody_who_is_not_staff_sees_no_addresses(client: Client) -> None:
    client.force_login(get_user_model().objects.create(username="bob"))
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}/pager/test").status_code == 403


def test_deliveries_refusals_and_what_waits_are_shown(alice: Client) -> None:
    with http_sink(lambda _: (422, {}, b"no such field")) as sink:
        make(alice, sink.url)
        ticket()
        webhook = Webhook.objects.get()
        deliver(lambda: at_end(webhook))
    page = alice.get(PAGE).content.decode()
    assert "1 event; a replay sends them again" in page
    assert "answered 422: no such field" in page


@pytest.mark.parametrize(
    ("verb", "form", "said"),
    [
        ("replay", {"since": "2001-01-01T00:00"}, "replaying events after 2001-01-01T00:00"),
        ("replay", {"since": "soon"}, "Not replayed: the time must be an RFC 3339 time"),
        ("rotate", {"overlap": "never"}, "Not rotated: the overlap must be a duration"),
        ("switch", {}, "disabled"),
        ("remove", {}, "pager removed"),
        ("test", {}, "pager accepted the test in"),
    ],
)
def test_what_was_done_is_said(alice: Client, verb: str, form: dict[str, str], said: str) -> None:
    with http_sink() as sink:
        make(alice, sink.url)
        page = alice.post(f"{PAGE}/pager/{verb}", form, follow=True).content.decode()
    assert said in unescape(page)


def test_a_rotated_secret_is_shown_this_once(alice: Client) -> None:
    first = re.findall(r"whsec_[\w-]+", make(alice).content.decode())
    second = re.findall(
        r"whsec_[\w-]+", alice.post(f"{PAGE}/pager/rotate", {"overlap": "1 d"}).content.decode()
    )
    assert len(second) == 1
    assert first != second


@pytest.mark.parametrize("path", ["pager/explode", "nobody/test"])
def test_what_is_not_there_is_not_found(alice: Client, path: str) -> None:
    make(alice)
    assert alice.post(f"{PAGE}/{path}").status_code == 404


def test_the_code_in_the_docs_takes_what_is_sent_and_nothing_else(alice: Client) -> None:
    page = unescape(alice.get("/docs/integrate/webhooks").content.decode())
    snippet = next(one for one in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL) if "def genuine" in one)
    names: dict[str, Callable[..., bool]] = {}
    exec(snippet, names)
    with http_sink() as sink:
        (secret,) = re.findall(r"whsec_[\w-]+", make(alice, sink.url).content.decode())
        alice.post(f"{PAGE}/pager/test")
    (got,) = sink.got
    header, genuine = got.headers["dossier-signature"], names["genuine"]
    assert genuine(header, got.body, secret)
    assert not genuine(header, got.body + b" ", secret)
    assert not genuine(header, got.body, "whsec_other")
    assert not genuine(re.sub(r"t=\d+", "t=1", header), got.body, secret)
    assert not genuine("", got.body, secret)


def test_the_page_asks_as_much_for_many_webhooks_as_for_one(
    alice: Client, django_assert_max_num_queries: Any
) -> None:
    for n in range(12):
        make(alice, name=f"program-{n}")
    Webhook.objects.update(position=Webhook.objects.get(name="program-11").position)
    with django_assert_max_num_queries(14):
        assert "program-11" in alice.get(PAGE).content.decode()
