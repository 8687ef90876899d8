"""Ways to reach people, over the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from incidents.notifications import contact_methods
from incidents.notifications.models import ContactMethod
from ingest.api import keys
from ingest.queries import configured
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
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#oncall"


@pytest.fixture
def alice(log_database: str) -> User:  # noqa: ARG001
    return person()


@pytest.fixture
def api(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def ask(client: Client, method: str, path: str, body: object = None) -> tuple[int, Any]:
    given = () if body is None else (body,)
    answer = getattr(client, method)(f"/api/v1/{path}", *given, content_type="application/json")
    return answer.status_code, answer.json() if answer.content else None


def test_a_method_is_kept_and_its_address_shown_to_nobody(api: Client) -> None:
    status, made = ask(
        api, "post", "me/contact_methods", {"name": "chat", "kind": "apprise", "address": SLACK}
    )
    assert (status, made["address"], made["verified_at"]) == (201, "slack://…", None)
    told = str([event.body for event in configured("contact_method", "alice/chat")])
    assert "TIiajkdnlazkcOXrIdevi7FQ" not in told
    assert "slack://…" in told


def test_a_changed_address_is_recorded_as_changed_and_has_to_be_verified_again(
    api: Client, alice: User, hooks: HookSink
) -> None:
    hook(alice, hooks.url)
    assert ask(api, "post", "me/contact_methods/hook/test") == (
        200,
        {"taken": True, "why": "response 200"},
    )
    assert ContactMethod.objects.get().verified_at is not None
    ask(api, "patch", "me/contact_methods/hook", {"address": f"{hooks.url}2"})
    assert ContactMethod.objects.get().verified_at is None
    after = configured("contact_method", "alice/hook")[-1].body["after"]
    assert after["address"] == "http://127.0.0.1… (changed)"


def test_a_test_message_says_what_the_receiver_answered(api: Client, alice: User, hooks: HookSink) -> None:
    hook(alice, hooks.url)
    hooks.answers = [(503, {})]
    assert ask(api, "post", "me/contact_methods/hook/test")[1] == {"taken": False, "why": "response 503"}


def test_nobody_sends_test_messages_without_end(
    api: Client, alice: User, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(alice, hooks.url)
    monkeypatch.setattr(contact_methods, "MOST_TESTS", 2)
    told = [ask(api, "post", "me/contact_methods/hook/test")[1] for _ in range(3)]
    assert [one["taken"] for one in told] == [True, True, False]
    assert "limit of 2 test messages per hour" in told[2]["why"]


def test_the_address_of_the_account_can_be_tried(api: Client, mails: MailSink) -> None:
    assert ask(api, "post", "me/contact_methods/account/test")[1]["taken"]
    assert mails.subjects == ["Dossier test message"]


def test_messages_of_a_method_with_a_secret_are_signed(api: Client, alice: User, hooks: HookSink) -> None:
    hook(alice, hooks.url, secret="s3cret")
    ask(api, "post", "me/contact_methods/hook/test")
    ((headers, _),) = hooks.taken
    assert headers["Dossier-Signature"].startswith("t=")
    assert ask(api, "get", "me/contact_methods/hook")[1]["secret"] == "set"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "kind": "fax", "address": "1"}, "kind"),
        ({"name": "x", "kind": "email", "address": "nobody"}, "address"),
        ({"name": "x", "kind": "email", "address": "a@example.com\r\nBcc: b@example.com"}, "address"),
        ({"name": "x", "kind": "webhook", "address": "http://169.254.169.254/"}, "address"),
        ({"name": "x", "kind": "webhook", "address": "ftp://example.com"}, "address"),
        ({"name": "x", "kind": "apprise", "address": "syslog://"}, "address"),
        ({"name": "account", "kind": "email", "address": "a@example.com"}, "name"),
        ({"name": "a b", "kind": "email", "address": "a@example.com"}, "name"),
        ({"name": "x\0", "kind": "email", "address": "a@example.com"}, "name"),
        ({"name": "x", "kind": "email", "address": "a@example.com", "most": 0}, "most"),
        ({"name": "x", "kind": "email", "address": "a@example.com", "span": 10**12}, "span"),
        ({"name": "x", "kind": "email", "address": "a@example.com", "user": "bob"}, "user"),
        ({"kind": "email", "address": "a@example.com"}, "name"),
    ],
)
def test_a_method_that_cannot_be_is_refused_by_its_field(
    api: Client, body: dict[str, Any], field: str
) -> None:
    status, problem = ask(api, "post", "me/contact_methods", body)
    assert (status, list(problem["errors"])) == (400, [field])
    assert not ContactMethod.objects.exists()


def test_a_name_is_given_once(api: Client) -> None:
    body = {"name": "mail", "kind": "email", "address": "a@example.com"}
    assert [ask(api, "post", "me/contact_methods", body)[0] for _ in range(2)] == [201, 400]


def test_rules_are_kept_whole_and_told_before_and_after(api: Client) -> None:
    wishes = {
        "rules": [{"method": "account", "delay": 60, "severities": ["critical"], "urgent": None}],
        "quiet_hours": {"zone": "Europe/Berlin", "start": "22:00", "end": "07:00"},
        "bundle_seconds": 30,
    }
    assert ask(api, "put", "me/notification_rules", wishes) == (200, wishes)
    assert ask(api, "get", "me/notification_rules") == (200, wishes)
    (event,) = configured("notification_rules", "alice")
    assert (event.body["before"]["rules"], event.body["after"]) == ([], wishes)
    assert event.actor == "user:alice"


def test_a_rule_for_a_method_that_does_not_exist_is_refused(api: Client) -> None:
    status, problem = ask(api, "put", "me/notification_rules", {"rules": [{"method": "pager"}]})
    assert (status, list(problem["errors"])) == (400, ["rules[0].method"])


def test_a_method_that_a_rule_uses_is_not_removed(api: Client, alice: User) -> None:
    hook(alice, "https://example.com/x")
    ask(api, "put", "me/notification_rules", {"rules": [{"method": "hook"}]})
    assert ask(api, "delete", "me/contact_methods/hook")[0] == 409
    ask(api, "put", "me/notification_rules", {})
    assert ask(api, "delete", "me/contact_methods/hook")[0] == 204


def test_people_keep_their_own_and_staff_those_of_others(api: Client, alice: User) -> None:
    person("bob")
    body = {"name": "mail", "kind": "email", "address": "b@example.com"}
    assert ask(api, "post", "users/bob/contact_methods", body)[0] == 403
    alice.is_staff = True
    alice.save()
    assert ask(api, "post", "users/bob/contact_methods", body)[0] == 201
    assert ContactMethod.objects.get().user == User.objects.get(username="bob")


def test_a_key_has_no_methods_of_its_own(alice: User) -> None:  # noqa: ARG001
    client = Client(headers={"Authorization": f"Bearer {keys.create('script', ['incidents:read'])}"})
    assert ask(client, "get", "me/contact_methods")[0] == 404
    assert ask(client, "get", "users/alice/contact_methods")[0] == 403


def test_channels_are_read_by_all_and_changed_by_staff(api: Client, alice: User) -> None:
    body = {"name": "storage-room", "kind": "apprise", "address": SLACK}
    assert ask(api, "post", "channels", body)[0] == 403
    alice.is_staff = True
    alice.save()
    assert ask(api, "post", "channels", body)[0] == 201
    assert [one["name"] for one in ask(api, "get", "channels")[1]["results"]] == ["storage-room"]
    assert configured("channel", "storage-room")


def test_who_was_told_of_a_ticket_is_told(api: Client, mails: MailSink) -> None:
    mails.answers = ["451 later"]
    call(ticket())
    deliver(0)
    ((told,),) = (ask(api, "get", "incidents/1/notifications")[1]["results"],)
    assert (told["person"], told["state"], told["reason"]) == ("alice", "waiting", "you are on call")
    (method,) = told["methods"]
    assert (method["method"], method["attempts"]) == ("account", 1)
    assert method["why"] == "the mail server responded 451 later"
    deliver(60)
    assert ask(api, "get", "incidents/1/notifications")[1]["results"][0]["state"] == "sent"


@pytest.mark.parametrize("path", ["me/contact_methods/a%00b", "users/a%00b/contact_methods", "channels/%00"])
def test_a_name_that_cannot_be_is_not_found(api: Client, alice: User, path: str) -> None:
    alice.is_staff = True
    alice.save()
    assert ask(api, "get", path)[0] == 404
