"""Two nodes with two keys: the second does not start or deliver, and no message is given up for it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from pytest_django import Settings

from deploy.management.commands import migrate
from incidents.delivery import key
from incidents.delivery.models import ContactMethod, KeyCheck, Sending
from incidents.delivery.running import run
from tests.integration.delivery_cases import HookSink, call, deliver, hook, person, ticket

pytestmark = pytest.mark.usefixtures("log_database")


def test_the_first_process_sets_the_key_and_another_key_is_refused(settings: Settings) -> None:
    key.check_key()
    key.check_key()
    before = str(settings.SECRET_KEY)
    settings.SECRET_KEY = "another"
    assert not key.is_right()
    with pytest.raises(key.WrongKeyError, match="DOSSIER_SECRET_KEY"):
        key.check_key()
    with pytest.raises(CommandError, match="nothing is delivered"):
        call_command("deliver", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = [before]
    key.check_key()
    call_command("reseal", stdout=StringIO())
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
    assert not Sending.objects.exists()


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
    one = Sending.objects.get()
    assert (one.state, "cannot be read" in one.why) == ("waiting", True)
    settings.SECRET_KEY = before
    deliver(120)
    assert Sending.objects.get().state == "sent"


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
