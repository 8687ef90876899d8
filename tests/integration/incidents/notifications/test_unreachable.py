"""Somebody who is called and cannot be reached is shown in red wherever that is decided, and where a call failed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, override_settings

from incidents import queries
from incidents.domain.notifications.reachability import NO_METHOD, Unreachable
from incidents.escalation.queries import called_but_unreachable
from incidents.notifications.models import ContactMethod, Notification, NotificationDelivery
from incidents.notifications.queries import recent_notifications, unreachable
from incidents.notifications.queue import plan_new
from incidents.oncall.models import OnCallSchedule, Override
from incidents.teams.models import Team
from ingest.queries import watermark
from tests.integration.frontend.test_pages import signed_in
from tests.integration.incidents.escalation.cases import Clock, policy, stands, ticket

pytestmark = pytest.mark.usefixtures("log_database")
LAYER = {"name": "primary", "people": ["alice"], "start": "2026-01-05T09:00", "turn": "1w"}


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    """She has neither a contact method nor a mail address."""
    return signed_in("alice", is_staff=True)


def reach(name: str = "alice") -> None:
    user = User.objects.get(username=name)
    ContactMethod.objects.create(
        user=user,
        name="hook",
        kind="webhook",
        address="https://example.org/hook",
        verified_at=datetime.now(UTC),
    )


def storage_rota() -> None:
    team = Team.objects.get(slug="storage")
    OnCallSchedule.objects.create(slug="storage", name="Storage", team=team, time_zone="UTC", layers=[LAYER])


def body(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def reasons(found: Mapping[str, Unreachable]) -> dict[str, str]:
    return {name: why.reason for name, why in found.items()}


MARK = 'data-unreachable="alice"'


@pytest.mark.parametrize(
    "address", ["/on-call", "/on-call/storage", "/settings/policies", "/settings/people"]
)
def test_pages_that_decide_who_is_called_mark_who_cannot_be_reached(alice: Client, address: str) -> None:
    storage_rota()
    policy(steps=[{"after": 0, "actions": [{"schedule": "storage"}]}], repeats=0)
    assert MARK in body(alice, address)
    reach()
    assert MARK not in body(alice, address)


@pytest.mark.parametrize("address", ["/on-call", "/on-call/storage", "/settings/policies"])
def test_who_takes_over_after_the_next_hand_over_is_marked_too(alice: Client, address: str) -> None:
    signed_in("bob")
    reach()
    storage_rota()
    policy(steps=[{"after": 0, "actions": [{"schedule": "storage"}]}], repeats=0)
    Override.objects.create(
        schedule=OnCallSchedule.objects.get(slug="storage"),
        person=User.objects.get(username="bob"),
        starts_at=datetime.now(UTC) + timedelta(days=30),
        ends_at=datetime.now(UTC) + timedelta(days=31),
        made_by="user:alice",
        made_at=datetime.now(UTC),
    )
    assert 'data-unreachable="bob"' in body(alice, address)
    assert reasons(called_but_unreachable()) == {"bob": NO_METHOD}


def test_mail_alone_reaches_nobody_without_a_mail_server(alice: Client) -> None:
    del alice
    User.objects.filter(username="alice").update(email="alice@example.org")
    with override_settings(EMAIL_IS_SET_UP=False):
        assert "no mail server" in unreachable(["alice"])["alice"].reason
    with override_settings(EMAIL_IS_SET_UP=True):
        assert unreachable(["alice"]) == {}


def ended(state: str, minutes: int, label: str = "hook", why: str = "404 no such chat") -> None:
    """A call of Alice from so many minutes ago that ended."""
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    row = Notification.objects.create(
        key=str(uuid.uuid4()), person="alice", incident=uuid.uuid4(), why="on call", made_at=at, state="done"
    )
    NotificationDelivery.objects.create(
        notification=row,
        place=0,
        source="account" if label == "account" else "method",
        method=ContactMethod.objects.filter(name=label).first(),
        label=label,
        kind="email" if label == "account" else "webhook",
        queue="test",
        at=at,
        next_at=at,
        state=state,
        why=why,
        ended_at=at,
    )


def why() -> str:
    return reasons(unreachable(["alice"])).get("alice", "")


def test_recent_deliveries_that_all_failed_count_until_a_test_arrives_or_the_address_changes(
    alice: Client,
) -> None:
    del alice
    reach()
    method = ContactMethod.objects.filter(name="hook")
    method.update(verified_at=datetime.now(UTC) - timedelta(days=1))
    ended("sent", 50)
    ended("given_up", 40)
    ended("given_up", 30)
    assert why() == ""
    ended("given_up", 20)
    assert why() == "the last deliveries to hook failed (404 no such chat)"
    method.update(address_since=datetime.now(UTC) - timedelta(minutes=10), verified_at=None)
    assert why() == "hook has never been tested"
    method.update(address_since=None, verified_at=datetime.now(UTC) - timedelta(minutes=5))
    assert why() == ""
    ended("given_up", 1)
    assert why() != ""
    ended("sent", 0)
    assert why() == ""


@override_settings(EMAIL_IS_SET_UP=True)
def test_mail_to_an_account_that_always_failed_reaches_nobody(alice: Client) -> None:
    del alice
    User.objects.filter(username="alice").update(email="alice@example.org")
    ended("given_up", 5, "account", "550 no such user")
    assert why() == "the last deliveries to account failed (550 no such user)"
    ended("sent", 4, "account")
    assert why() == ""


def test_who_is_called_by_nothing_is_no_warning(alice: Client) -> None:
    del alice
    assert called_but_unreachable() == {}
    storage_rota()
    assert reasons(called_but_unreachable()) == {"alice": NO_METHOD}


def failed_call() -> str:
    """An incident whose only call reached nobody."""
    policy(steps=[{"after": 0, "actions": [{"person": "alice"}]}], repeats=0)
    id_ = ticket()
    Clock(id_).later()
    plan_new(datetime.now(UTC))
    assert Notification.objects.get().outcome == "given_up"
    assert stands(id_).phase == "climbing"
    return id_


def test_a_call_that_failed_is_told_in_the_header(alice: Client) -> None:
    number = queries.get(failed_call()).incident.number
    page = body(alice, f"/incidents/{number}")
    assert "No one was reached: alice (no contact method)" in page
    assert "Could not reach alice: no contact method" in page


def test_before_the_call_failed_the_header_did_not_say_so(alice: Client) -> None:
    policy(steps=[{"after": 0, "actions": [{"person": "alice"}]}], repeats=0)
    id_ = ticket()
    before = watermark()
    Clock(id_).later()
    plan_new(datetime.now(UTC))
    number = queries.get(id_).incident.number
    assert "data-not-reached" not in body(alice, f"/incidents/{number}?as_of={before}")
    assert "data-not-reached" in body(alice, f"/incidents/{number}")


def test_a_call_that_failed_is_under_lately(alice: Client) -> None:
    failed_call()
    assert [one.words for one in recent_notifications("alice", 20)] == ["not delivered: no contact method"]
    assert "No notifications yet" not in body(alice, "/settings/notifications")


def test_a_coming_call_that_reaches_nobody_is_red(alice: Client) -> None:
    policy(steps=[{"after": 300, "actions": [{"person": "alice"}]}], repeats=0)
    id_ = ticket()
    Clock(id_).later()
    number = queries.get(id_).incident.number
    shown: Any = alice.get(f"/incidents/{number}").context["escalation"]
    assert (shown.tone, shown.why) == ("bad", "alice: no contact method")


def test_the_first_steps_have_one_to_be_reachable(alice: Client) -> None:
    assert "You have no working contact method: no contact method" in body(alice, "/welcome?step=reach")
    reach()
    assert "You cannot be reached" not in body(alice, "/welcome?step=reach")


def test_readyz_warns_without_names_and_without_failing() -> None:
    User.objects.create_user("alice")
    storage_rota()
    told = Client().get("/readyz").json()
    warning = "on call: 1 person that policies or schedules call cannot be reached"
    assert warning in told["warnings"]
    assert not any("on call" in one for one in told["reasons"])
    reach()
    assert warning not in Client().get("/readyz").json()["warnings"]


def test_doctor_and_settings_name_them(alice: Client) -> None:
    storage_rota()
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=out)
    assert "alice (no contact method: add a phone number" in out.getvalue()
    assert "alice (no contact method: add a phone number" in body(alice, "/settings")
