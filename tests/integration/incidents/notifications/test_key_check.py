"""Two nodes with two keys: the second does not start or deliver, and no message is given up for it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from pytest_django import Settings

from deploy.management.commands import migrate
from incidents import commands, queries
from incidents.domain.notifications.delivery import MOST_ATTEMPTS
from incidents.domain.notifications.reachability import ALL_UNREADABLE
from incidents.notifications import key
from incidents.notifications.dispatcher import run
from incidents.notifications.models import ContactMethod, KeyCheck, NotificationDelivery
from incidents.notifications.queries import unreachable
from ingest.queries import Context
from tests.integration.frontend.test_pages import signed_in
from tests.integration.incidents.notifications.cases import HookSink, call, deliver, hook, person, ticket

pytestmark = pytest.mark.usefixtures("log_database")


def test_the_first_process_sets_the_key_and_another_key_is_refused(settings: Settings) -> None:
    key.check_key()
    key.check_key()
    before = str(settings.SECRET_KEY)
    settings.SECRET_KEY = "another"
    assert not key.is_right()
    with pytest.raises(key.WrongKeyError, match="DOSSIER_SECRET_KEY"):
        key.check_key()
    with pytest.raises(CommandError, match="no notifications are delivered"):
        call_command("deliver", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = [before]
    key.check_key()
    call_command("reencrypt", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = []
    key.check_key()
    assert KeyCheck.objects.count() == 1


def test_an_installation_from_before_is_not_taken_by_another_key(settings: Settings) -> None:
    ContactMethod.objects.create(
        name="chat", kind="webhook", address="https://chat.example/", secret="s3cret"
    )
    settings.SECRET_KEY = "another"
    with pytest.raises(key.WrongKeyError):
        key.check_key()
    assert not KeyCheck.objects.exists()
    assert key.unreadable() == ["channel chat"]


def test_a_process_with_another_key_claims_nothing(settings: Settings, hooks: HookSink) -> None:
    key.check_key()
    hook(person("bob"), hooks.url)
    call(ticket(), "bob")
    settings.SECRET_KEY = "another"
    with pytest.raises(key.WrongKeyError):
        run(threading.Event())
    assert not NotificationDelivery.objects.exists()


def test_what_cannot_be_read_is_tried_again_and_sent_by_who_can(settings: Settings, hooks: HookSink) -> None:
    key.check_key()
    bob = person("bob")
    bob.email = ""
    bob.save()
    hook(bob, hooks.url)
    call(ticket(), "bob")
    before = str(settings.SECRET_KEY)
    settings.SECRET_KEY = "another"
    deliver(0)
    one = NotificationDelivery.objects.get()
    assert (one.state, "cannot be decrypted" in one.why) == ("waiting", True)
    settings.SECRET_KEY = before
    deliver(120)
    assert NotificationDelivery.objects.get().state == "sent"


@pytest.fixture
def lost(log_database: str, settings: Settings, hooks: HookSink) -> str:  # noqa: ARG001
    """An incident about which bob is called, whose only address is encrypted under another key; that key."""
    key.check_key()
    bob = person("bob")
    bob.email = ""
    bob.save()
    hook(bob, hooks.url)
    call(ticket(), "bob")
    before = str(settings.SECRET_KEY)
    settings.SECRET_KEY = f"another {hooks.url}"
    return before


def test_what_cannot_be_read_is_tried_for_as_long_as_the_incident_is_open(
    settings: Settings, lost: str, hooks: HookSink
) -> None:
    for minute in range(3 * MOST_ATTEMPTS):
        deliver(90 * minute)
    one = NotificationDelivery.objects.get()
    assert (one.state, one.attempts) == ("waiting", 3 * MOST_ATTEMPTS)
    told = [entry.text for entry in queries.timeline("1")]
    assert sum("cannot be decrypted" in text for text in told) == 1
    settings.SECRET_KEY = lost
    deliver(90 * 3 * MOST_ATTEMPTS)
    assert (NotificationDelivery.objects.get().state, len(hooks.taken)) == ("sent", 1)


@pytest.mark.usefixtures("lost")
def test_what_cannot_be_read_ends_with_its_incident() -> None:
    deliver(0)
    commands.resolve(queries.get("1").incident.id, "none", "", Context("user:alice"))
    deliver(90)
    assert NotificationDelivery.objects.get().state == "stopped"


@pytest.mark.usefixtures("lost")
def test_what_cannot_be_read_is_red_on_every_page_of_staff_and_on_the_incident() -> None:
    deliver(0)
    body = signed_in("dora", is_staff=True).get("/incidents/1").content.decode()
    assert 'class="operator" role="alert"><strong>Secrets: ' in body
    assert "No one was reached: bob" in body
    assert unreachable(["bob"])["bob"].reason == ALL_UNREADABLE
    assert "Secrets: " not in signed_in("eve").get("/").content.decode()


def test_a_signed_webhook_whose_secret_is_lost_is_not_sent_without_its_signature(
    settings: Settings, hooks: HookSink
) -> None:
    key.check_key()
    bob = person("bob")
    bob.email = ""
    bob.save()
    row = hook(bob, hooks.url)
    with connection.cursor() as cursor:
        sealed, settings.SECRET_KEY = str(settings.SECRET_KEY), "of another secret"
        ContactMethod.objects.filter(pk=row.pk).update(secret="s3cret")
        settings.SECRET_KEY = sealed
        cursor.execute("SELECT secret FROM notifications_contactmethod")
        assert cursor.fetchone()[0].startswith("sealed:")
    call(ticket(), "bob")
    deliver(0)
    assert (NotificationDelivery.objects.get().state, hooks.taken) == ("waiting", [])


def test_readiness_says_so(settings: Settings, client: Client) -> None:
    key.check_key()
    settings.SECRET_KEY = "another"
    assert any("DOSSIER_SECRET_KEY" in reason for reason in client.get("/readyz").json()["reasons"])


def test_migrations_run_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, order = threading.Semaphore(0), list[str]()
    sleep = time.sleep

    def tried(seconds: float) -> None:
        tries.release()
        sleep(seconds)

    def second() -> None:
        with migrate.alone("default"):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        with migrate.alone("default"):
            monkeypatch.setattr(time, "sleep", tried)
            waiting = pool.submit(second)
            assert tries.acquire(timeout=60)
            order.append("first")
        waiting.result(60)
    assert order == ["first", "second"]
