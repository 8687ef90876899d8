"""Web push from the device that is enabled to the notification that it shows, and the end of a subscription."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings

from incidents import commands, queries
from incidents.domain.values import InvalidValueError
from incidents.notifications import contact_methods
from incidents.notifications.ended import notify_ended
from incidents.notifications.models import ContactMethod, NotificationDelivery, Preferences, PushKey
from incidents.notifications.push_key import push_public_key
from incidents.notifications.queries import unreachable
from ingest.queries import Context, Position, read_all
from tests.integration.incidents.notifications.cases import (
    call,
    deliver,
    events,
    hook,
    hook_server,
    later,
    outcomes,
    person,
    ticket,
)
from tests.integration.incidents.notifications.push_service import PushService, push_service

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")
PAGE = "/settings/notifications"


@pytest.fixture
def service() -> Iterator[PushService]:
    with push_service() as found:
        yield found


@pytest.fixture
def alice(log_database: str) -> User:  # noqa: ARG001
    user = person()
    user.email = ""
    user.save()
    return user


def device(user: User, service: PushService, name: str = "phone") -> ContactMethod:
    return contact_methods.add_device(user, name, service.subscription(name), ALICE)


def changes(kind: str) -> list[tuple[str, Any, Any]]:
    return [
        (event.actor, event.body["before"], event.body["after"])
        for event in read_all(Position.START, 1_000, {"configuration.changed"})
        if event.body["kind"] == kind
    ]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def enabled(client: Client, service: PushService, name: str = "phone") -> str:
    form = {"device": name, "subscription": service.subscription()}
    return client.post(f"{PAGE}/devices", form, follow=True).content.decode()


def test_a_device_is_enabled_with_a_test_that_it_shows(alice: User, service: PushService) -> None:
    assert "alice" in unreachable(["alice"])
    shown = enabled(signed_in(alice), service)
    assert "Test sent: response 201" in shown
    assert "127.0.0.1" in shown
    assert "/send/1" not in shown
    assert [one["title"] for one in service.shown] == ["Dossier test message"]
    assert unreachable(["alice"]) == {}


def test_a_browser_that_is_known_is_not_added_again(alice: User, service: PushService) -> None:
    client = signed_in(alice)
    enabled(client, service)
    enabled(client, service, "telephone")
    assert [row.name for row in ContactMethod.objects.all()] == ["phone"]


def test_what_is_no_subscription_is_told_beside_the_form(alice: User) -> None:
    answer = signed_in(alice).post(f"{PAGE}/devices", {"device": "phone", "subscription": "{}"})
    assert answer.status_code == 400
    assert "Address must be a push subscription" in answer.content.decode()


@pytest.mark.parametrize("endpoint", ["http://10.0.0.1/send", "https://169.254.169.254/", "ftp://a.example"])
def test_an_endpoint_that_is_no_public_address_is_refused(
    alice: User, service: PushService, endpoint: str
) -> None:
    text = service.subscription().replace(f"http://127.0.0.1:{service.port}/send/1", endpoint)
    with pytest.raises(InvalidValueError, match="has an endpoint that is refused"):
        contact_methods.add_device(alice, "phone", text, ALICE)


def test_push_belongs_to_a_person(service: PushService) -> None:
    given = {"name": "room", "kind": "push", "address": service.subscription()}
    with pytest.raises(InvalidValueError, match="belongs to one device of a person"):
        contact_methods.add_method(None, given, ALICE)


def test_a_page_is_encrypted_urgent_and_answered_by_its_link(alice: User, service: PushService) -> None:
    device(alice, service)
    incident = ticket()
    call(incident)
    deliver()
    (shown,), (headers,) = service.shown, service.headers
    assert (shown["title"], shown["url"]) == ("[error] #1 Disks are slow", "/incidents/1")
    assert (headers["urgency"], headers["ttl"], headers["topic"]) == (
        "high",
        "14400",
        incident.replace("-", ""),
    )
    assert service.signers == [push_public_key()]
    answer = Client(headers={"Accept": "application/json"}).post(shown["answer"], {"verb": "acknowledge"})
    assert answer.json() == {"text": "Acknowledged #1."}
    assert queries.get("1").incident.acknowledged_by == "alice"


def test_the_message_that_it_is_over_replaces_the_page(alice: User, service: PushService) -> None:
    device(alice, service)
    incident = ticket()
    call(incident)
    deliver()
    commands.resolve(incident, "none", "", Context("user:bob"))
    notify_ended(later(1))
    deliver(30)
    page, over = service.shown
    assert (over["tag"], over["title"]) == (page["tag"], "[resolved] #1 Disks are slow")
    assert [headers["urgency"] for headers in service.headers] == ["high", "normal"]
    assert service.headers[0]["topic"] == service.headers[1]["topic"]


@pytest.mark.parametrize("status", [404, 410])
def test_a_subscription_that_ended_removes_itself_and_leaves_a_person_in_red(
    alice: User, service: PushService, status: int
) -> None:
    device(alice, service)
    Preferences.objects.create(
        user=alice, rules=[{"method": "phone", "delay": 0, "severities": [], "urgent": None}]
    )
    incident = ticket()
    call(incident)
    service.answers.append(status)
    deliver()
    assert events(incident)[0][2] == f"response {status}: the browser's subscription has ended"
    assert not ContactMethod.objects.exists()
    assert Preferences.objects.get().rules == []
    assert changes("contact_method")[-1][::2] == ("system:delivery", None)
    assert changes("notification_rules")[-1][2]["rules"] == []
    assert unreachable(["alice"])["alice"].reason == "no contact method"
    assert NotificationDelivery.objects.get().label == "phone"


def test_the_next_contact_method_takes_over_from_one_that_ended(alice: User, service: PushService) -> None:
    device(alice, service)
    rule = {"method": "phone", "delay": 0, "severities": [], "urgent": None}
    Preferences.objects.create(user=alice, rules=[rule])
    with hook_server() as sink:
        hook(alice, sink.url)
        incident = ticket()
        call(incident)
        service.answers.append(410)
        deliver()
        assert outcomes(incident) == ["given_up", "sent"]
        assert len(sink.taken) == 1


def test_a_test_of_a_subscription_that_ended_removes_it(alice: User, service: PushService) -> None:
    row = device(alice, service)
    service.answers.append(410)
    answer = signed_in(alice).post(f"{PAGE}/methods/{row.name}/test", follow=True)
    assert "Test failed: response 410" in answer.content.decode()
    assert not ContactMethod.objects.exists()


def test_a_device_that_was_enabled_anew_meanwhile_stays(alice: User, service: PushService) -> None:
    row = device(alice, service)
    call(ticket())
    deliver()
    sent = NotificationDelivery.objects.get()
    contact_methods.remove_gone({sent.pk: "another address"})
    assert ContactMethod.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize(
    ("status", "outcome"), [(429, "failed"), (503, "failed"), (413, "given_up"), (403, "given_up")]
)
def test_other_refusals_keep_the_device(alice: User, service: PushService, status: int, outcome: str) -> None:
    device(alice, service)
    incident = ticket()
    call(incident)
    service.answers.append(status)
    deliver()
    assert outcomes(incident)[0] == outcome
    assert ContactMethod.objects.count() == 1


def test_the_key_is_made_once_and_encrypted(service: PushService, alice: User) -> None:
    first = push_public_key()
    device(alice, service)
    assert push_public_key() == first
    with connection.cursor() as cursor:
        cursor.execute("SELECT private FROM notifications_pushkey")
        assert cursor.fetchone()[0].startswith("sealed:")


def test_without_the_key_a_page_waits_for_it(alice: User, service: PushService) -> None:
    device(alice, service)
    push_public_key()
    incident = ticket()
    call(incident)
    with override_settings(SECRET_KEY="another" * 10, SECRET_KEY_FALLBACKS=[]):
        deliver()
    assert service.shown == []
    assert "cannot be decrypted with this DOSSIER_SECRET_KEY" in events(incident)[0][2]
    deliver(120)
    assert len(service.shown) == 1


def test_reencryption_takes_the_key_along(alice: User, service: PushService) -> None:
    device(alice, service)
    first = push_public_key()
    new = "another" * 10
    with override_settings(SECRET_KEY=new, SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
        call_command("reencrypt", stdout=StringIO())
    with override_settings(SECRET_KEY=new, SECRET_KEY_FALLBACKS=[]):
        row = PushKey.objects.get()
        assert (row.public, bool(row.private)) == (first, True)


def test_a_browser_finds_the_app_its_worker_and_a_page_for_the_time_without_a_network() -> None:
    client = Client()
    found = client.get("/manifest.webmanifest")
    assert found["Content-Type"] == "application/manifest+json"
    assert (found.json()["start_url"], found.json()["display"]) == ("/", "standalone")
    worker = client.get("/service-worker.js")
    assert (worker["Content-Type"], worker["Cache-Control"]) == ("text/javascript", "no-cache")
    assert "No connection" in client.get("/offline").content.decode()
    assert "manifest-src 'self'" in client.get("/accounts/login/")["Content-Security-Policy"]


def test_a_replaced_subscription_is_handed_in_with_the_earlier_one_as_proof(
    alice: User, service: PushService
) -> None:
    row = device(alice, service)
    client = Client()
    renew = f"{PAGE}/devices/renew"
    after = service.subscription("replaced")
    body = {"before": row.address, "subscription": after}
    assert client.post(renew, body).status_code == 401
    client.force_login(alice)
    answer = client.post(renew, body)
    assert (answer.status_code, answer.json()["text"]) == (200, "phone has a new subscription.")
    row.refresh_from_db()
    assert json.loads(row.address)["endpoint"] == json.loads(after)["endpoint"]
    assert row.verified_at is not None, "the test reached the new one"
    again = client.post(renew, body)
    assert (again.status_code, "no device of yours" in again.json()["text"]) == (403, True)
    (refusal,) = changes("push_device")
    assert refusal[0] == "system:push"
    assert refusal[2]["outcome"] == "refused: unknown subscription"


def test_nobody_renews_the_device_of_somebody_else(alice: User, service: PushService) -> None:
    row = device(alice, service)
    client = Client()
    client.force_login(person("bob"))
    body = {"before": row.address, "subscription": service.subscription("stolen")}
    assert client.post(f"{PAGE}/devices/renew", body).status_code == 403
    row.refresh_from_db()
    assert row.address == body["before"]
    assert changes("push_device")[-1][2]["outcome"] == "refused: unknown subscription"
