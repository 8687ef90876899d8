"""Keys that end: refused afterwards with the reason, told of before; and what happens to keys is in the log."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from ingest.api import keys
from ingest.api.models import IntegrationKey
from ingest.queries import Context, configured

pytestmark = pytest.mark.django_db
ALERT = {"title": "Disks are slow"}


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def with_key(secret: str) -> Client:
    keys._seen.clear()
    return Client(headers={"Authorization": f"Bearer {secret}"})


def expire(name: str) -> None:
    IntegrationKey.objects.filter(name=name).update(expires_at=now() - timedelta(minutes=1))


def test_a_key_is_good_until_it_expires_and_then_says_so() -> None:
    secret = keys.create("script", ["incidents:read"], expires_at=now() + timedelta(days=1))
    assert with_key(secret).get("/api/v1/incidents").status_code == 200
    expire("script")
    answer = with_key(secret).get("/api/v1/incidents")
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith("The key script expired on ")


def test_a_revoked_key_says_that_it_was_revoked() -> None:
    secret = keys.create("script", ["incidents:read"])
    keys.revoke("script")
    assert "was revoked on" in with_key(secret).get("/api/v1/incidents").json()["detail"]


def test_a_key_that_never_was_says_nothing_of_others() -> None:
    answer = with_key("dsr_made-up").get("/api/v1/incidents")
    assert answer.json()["detail"] == "The key is not known; it may have been replaced by a new one."


def test_an_endpoint_of_alerts_refuses_an_expired_key() -> None:
    secret = keys.create("sender", ["alerts"], expires_at=now() + timedelta(days=1))
    expire("sender")
    answer = with_key(secret).post(f"/integrations/generic/{secret}", ALERT, content_type="application/json")
    assert answer.status_code in (401, 403)


def test_a_key_is_not_trusted_beyond_its_end_by_who_has_just_seen_it() -> None:
    secret = keys.create("script", ["incidents:read"], expires_at=now() + timedelta(seconds=3))
    keys._seen.clear()
    assert keys.find(secret) is not None
    (until, _) = next(iter(keys._seen.values()))
    assert until - time.monotonic() <= 3


def test_a_key_that_is_over_already_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="in the past"):
        keys.create("script", ["alerts"], expires_at=now())


def test_over_the_api_a_key_is_made_with_an_end(alice: Client) -> None:
    body: dict[str, Any] = {"name": "sender", "scopes": ["alerts"], "expires_at": "2099-01-31T00:00:00Z"}
    assert alice.post("/api/v1/integrations", body, content_type="application/json").status_code == 201
    (shown,) = alice.get("/api/v1/integrations").json()["results"]
    assert shown["expires_at"] == "2099-01-31T00:00:00Z"
    answer = alice.post(
        "/api/v1/integrations",
        {**body, "name": "b", "expires_at": "2001-01-01T00:00:00Z"},
        content_type="application/json",
    )
    assert "must be in the future" in answer.json()["errors"]["expires_at"][0]


@pytest.mark.parametrize(("told", "days"), [("90d", 90), ("48h", 2)])
def test_the_command_makes_a_key_with_an_end(told: str, days: int) -> None:
    call_command("create_key", "script", scope=["alerts"], expires=told, stdout=StringIO())
    left = IntegrationKey.objects.get(name="script").expires_at - now()  # type: ignore[operator]
    assert abs(left - timedelta(days=days)) < timedelta(minutes=1)


@pytest.mark.parametrize("told", ["soon", "2001-01-01", "-1d"])
def test_the_command_refuses_an_end_that_is_none(told: str) -> None:
    with pytest.raises(CommandError):
        call_command("create_key", "script", scope=["alerts"], expires=told, stdout=StringIO())
    assert not IntegrationKey.objects.exists()


@pytest.mark.parametrize(("days", "said"), [(13, "it expires "), (15, "")])
def test_the_page_warns_two_weeks_before(alice: Client, days: int, said: str) -> None:
    keys.create("sender", ["alerts"], expires_at=now() + timedelta(days=days))
    page = alice.get("/integrations").content.decode()
    assert ("its requests are rejected afterwards" in page) == bool(said)


def test_the_page_makes_a_key_that_is_good_to_the_end_of_a_day(alice: Client) -> None:
    alice.post("/integrations", {"sender": "prometheus", "name": "sender", "expires": "2099-01-31"})
    assert IntegrationKey.objects.get(name="sender").expires_at == datetime(2099, 2, 1, tzinfo=UTC)


def test_what_happens_to_a_key_is_in_the_log_and_the_key_is_not(alice: Client) -> None:
    made = alice.post(
        "/api/v1/integrations", {"name": "sender", "scopes": ["alerts"]}, content_type="application/json"
    ).json()["key"]
    rotated = alice.post("/api/v1/integrations/sender/rotate", {}, content_type="application/json").json()[
        "key"
    ]
    keys.set_mapping("sender", None, Context("user:alice"))
    alice.delete("/api/v1/integrations/sender")
    events = configured("integration", "sender")
    assert [event.actor for event in events] == ["user:alice"] * 3
    assert events[1].body["after"]["key"].startswith("new, the one before until")
    assert (events[2].body["before"]["revoked"], events[2].body["after"]["revoked"]) == (False, True)
    assert not [one for one in (made, rotated) if one in json.dumps([event.body for event in events])]
