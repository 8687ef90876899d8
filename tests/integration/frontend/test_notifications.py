"""The page where people say how they are reached."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from incidents.notifications.models import ContactMethod, Preferences
from tests.integration.incidents.notifications.cases import (
    HookSink,
    MailSink,
    call,
    deliver,
    hook,
    person,
    ticket,
)

pytestmark = pytest.mark.usefixtures("log_database")
PAGE = "/settings/notifications"


@pytest.fixture
def alice(log_database: str) -> User:  # noqa: ARG001
    return person()


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def text(client: Client, path: str = PAGE) -> str:
    return client.get(path).content.decode()


def test_the_page_says_what_holds_without_rules(browser: Client) -> None:
    shown = text(browser)
    assert "alice@example.com" in shown
    assert "No notifications yet" in shown


def test_somebody_without_any_address_is_warned(browser: Client, alice: User) -> None:
    alice.email = ""
    alice.save()
    assert "You cannot be reached" in text(browser)


def test_a_method_is_added_and_its_address_not_shown_again(browser: Client) -> None:
    address = "tgram://123456789:abcdefg_hijklmnop/12315544/"
    form = {"name": "phone", "kind": "apprise", "address": address, "most": "5"}
    assert browser.post(PAGE, form).status_code == 302
    shown = text(browser)
    assert "tgram://…" in shown
    assert "abcdefg_hijklmnop" not in shown
    assert ContactMethod.objects.get().most == 5


def test_an_address_that_cannot_be_is_told_beside_its_field(browser: Client) -> None:
    answer = browser.post(PAGE, {"name": "phone", "kind": "apprise", "address": "syslog://", "most": "many"})
    assert answer.status_code == 400
    assert "Syslog is no supported service" in answer.content.decode()


def test_rules_and_quiet_hours_are_kept_and_shown(browser: Client, alice: User) -> None:
    form = {
        "rows": "2",
        "method-0": "account",
        "delay-0": "5 min",
        "severities-0": ["critical", "error"],
        "urgent-0": "urgent",
        "method-1": "",
        "start": "22:00",
        "end": "07:00",
        "zone": "Europe/Berlin",
        "bundle": "1 min",
    }
    assert browser.post(f"{PAGE}/rules", form).status_code == 302
    kept = Preferences.objects.get(user=alice)
    rule = {"method": "account", "delay": 300, "severities": ["critical", "error"], "urgent": True}
    assert (kept.rules, kept.bundle_seconds) == ([rule], 60)
    assert kept.quiet == {"zone": "Europe/Berlin", "start": "22:00", "end": "07:00"}
    shown = text(browser)
    assert 'value="5 min"' in shown
    assert 'value="22:00"' in shown


@pytest.mark.parametrize(
    "form", [{"rows": "1", "method-0": "account", "delay-0": "soon"}, {"start": "22:00"}, {"bundle": "2 d"}]
)
def test_rules_that_make_no_sense_are_refused_with_the_reason(browser: Client, form: dict[str, str]) -> None:
    answer = browser.post(f"{PAGE}/rules", form)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not Preferences.objects.exists()


def test_a_test_message_is_sent_and_its_answer_told(browser: Client, mails: MailSink) -> None:
    answer = browser.post(f"{PAGE}/methods/account/test", follow=True)
    assert "Test sent" in answer.content.decode()
    assert mails.subjects == ["Dossier test message"]


def test_a_method_is_removed_unless_a_rule_uses_it(browser: Client, alice: User, hooks: HookSink) -> None:
    hook(alice, hooks.url)
    browser.post(f"{PAGE}/rules", {"rows": "1", "method-0": "hook"})
    answer = browser.post(f"{PAGE}/methods/hook/remove", follow=True)
    assert "A rule uses hook" in answer.content.decode()
    browser.post(f"{PAGE}/rules", {"rows": "0"})
    browser.post(f"{PAGE}/methods/hook/remove")
    assert not ContactMethod.objects.exists()


def test_the_methods_of_somebody_else_are_out_of_reach(browser: Client, hooks: HookSink) -> None:
    hook(person("bob"), hooks.url)
    assert browser.post(f"{PAGE}/methods/hook/remove").status_code == 404
    assert ContactMethod.objects.count() == 1


def test_what_was_sent_lately_is_listed_with_its_ticket(browser: Client, mails: MailSink) -> None:
    call(ticket())
    deliver()
    assert len(mails.mails) == 1
    assert "sent: you are on call" in text(browser)


def test_an_attempt_stands_on_the_timeline_in_words(browser: Client, mails: MailSink) -> None:
    mails.answers = ["451 later"]
    call(ticket())
    deliver(0, 60)
    shown = text(browser, "/incidents/1")
    assert "Attempt 1 to notify alice by account failed: the mail server responded 451 later" in shown
    assert "Notified alice by account: you are on call" in shown


def test_channels_are_for_staff(browser: Client, alice: User, hooks: HookSink) -> None:
    form = {"name": "storage-room", "kind": "webhook", "address": hooks.url}
    assert browser.post("/settings/channels", form).status_code == 403
    alice.is_staff = True
    alice.save()
    assert browser.post("/settings/channels", form).status_code == 302
    assert ContactMethod.objects.get().user is None
    assert "storage-room" in text(browser, "/settings/channels")


def test_a_channel_is_tried_and_removed(browser: Client, alice: User, hooks: HookSink) -> None:
    alice.is_staff = True
    alice.save()
    hook(None, hooks.url, name="storage-room")
    answer = browser.post("/settings/channels/storage-room/test", follow=True)
    assert "Test sent: response 200" in answer.content.decode()
    browser.post("/settings/channels/storage-room/remove")
    assert not ContactMethod.objects.exists()
    assert "No channels." in text(browser, "/settings/channels")


def test_the_docs_say_how_people_are_told(browser: Client) -> None:
    assert "Idempotency-Key" in text(browser, "/docs/operate/notifications")
