"""SMS and phone calls: what goes to the provider, what replies and keys do, and which requests are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from incidents import commands, queries
from incidents.domain.telephony import MOST_TURNS
from incidents.notifications import contact_methods
from incidents.notifications.ended import notify_ended
from incidents.notifications.models import OVER, ContactMethod, Notification, NotificationDelivery
from incidents.notifications.queries import unreachable
from incidents.telephony.requests import WRONG_CODES
from ingest.queries import Context, Position, read_all
from tests.integration.incidents.escalation.cases import Clock, calls, policy
from tests.integration.incidents.escalation.cases import ticket as routed_ticket
from tests.integration.incidents.notifications.cases import (
    HookSink,
    call,
    deliver,
    ended,
    hook,
    hook_server,
    outcomes,
    person,
    ticket,
)
from tests.integration.incidents.notifications.twilio_server import (
    ALICE,
    TOKEN,
    TwilioServer,
    sign,
    twilio_server,
)

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def twilio(log_database: str) -> Iterator[TwilioServer]:  # noqa: ARG001
    with twilio_server() as server:
        yield server


@pytest.fixture
def other_method(twilio: TwilioServer) -> Iterator[HookSink]:  # noqa: ARG001
    with hook_server() as sink:
        yield sink


def method(kind: str, **fields: Any) -> ContactMethod:
    given = {"user": person(), "name": kind, "kind": kind, "address": ALICE, **fields}
    return ContactMethod.objects.create(**given)


def called(kind: str = "sms") -> str:
    """The key of a call that Alice got by this kind, about incident 1."""
    method(kind)
    key = call(ticket())
    deliver()
    return key


def code(twilio: TwilioServer, place: int = -1) -> str:
    found = re.search(r"Reply 1(\d{4}) ack, 2\1 hand over, 3\1 snooze", twilio.messages[place]["Body"])
    assert found is not None
    return found[1]


def state() -> tuple[str, str | None]:
    incident = queries.get("1").incident
    return incident.state, incident.acknowledged_by


def refusals() -> list[str]:
    return [
        event.body["after"]["outcome"].removeprefix("refused: ")
        for event in read_all(Position.START, 1_000, {"configuration.changed"})
        if event.body["kind"] == "telephony_request"
    ]


# SMS
# ----------------------------------------------------------------------------------------------------------
def test_an_sms_has_the_link_and_the_digits_to_reply(twilio: TwilioServer) -> None:
    key = called()
    (message,) = twilio.messages
    assert (message["To"], ended(key)) == (ALICE, ("done", "sent"))
    title, link, _ = message["Body"].split("\n")
    assert title == "[error] #1 Disks are slow"
    assert link.startswith(f"{settings.PUBLIC_URL}/answer/")
    assert code(twilio).isdigit()
    assert len(message["Body"]) < 2 * 153


def test_a_reply_acknowledges_once_in_the_name_of_its_sender(twilio: TwilioServer) -> None:
    called()
    text = f"1{code(twilio)} ack"
    done = twilio.reply(text)
    assert done.status_code == 200
    assert "<Message>Acknowledged: incident 1.</Message>" in done.content.decode()
    assert state() == ("acknowledged", "alice")
    assert "was answered before" in twilio.reply(f"3{code(twilio)}").content.decode()
    assert state()[0] == "acknowledged"


def test_a_reply_snoozes_for_an_hour(twilio: TwilioServer) -> None:
    called()
    assert "Snoozed for one hour" in twilio.reply(f"3 {code(twilio)}").content.decode()
    assert state()[0] == "snoozed"


def test_a_reply_hands_over_to_a_team_with_the_reason(twilio: TwilioServer) -> None:
    called()
    wrong = twilio.reply(f"2{code(twilio)} nowhere it is theirs").content.decode()
    assert "not done: team no such team" in wrong
    done = twilio.reply(f"2 {code(twilio)} network it is the fabric").content.decode()
    assert "Handed over: incident 1" in done
    assert queries.get("1").incident.team == "network"
    assert any("it is the fabric" in str(event.body) for event in queries.incident_events("1"))


def test_a_hand_over_without_a_team_calls_the_next_person(twilio: TwilioServer) -> None:
    person("bob")
    steps = [{"after": 0, "actions": [{"person": "alice"}]}, {"after": 600, "actions": [{"person": "bob"}]}]
    policy(steps=steps, repeats=0)
    method("sms")
    id_ = routed_ticket()
    Clock(id_).later()
    deliver()
    assert "Handed over: incident 1" in twilio.reply(f"2{code(twilio)}").content.decode()
    assert calls(id_) == ["alice", "bob"]


def test_each_message_has_a_code_of_its_own(twilio: TwilioServer) -> None:
    called()
    call(ticket("Fans are loud"))
    deliver(20)
    assert len(twilio.messages) == 2
    assert code(twilio, 0) != code(twilio, 1)
    twilio.reply(f"1{code(twilio, 1)}")
    assert (state()[0], queries.get("2").incident.state) == ("open", "acknowledged")


def test_a_wrong_code_does_nothing_and_cannot_be_guessed(twilio: TwilioServer) -> None:
    called()
    right = code(twilio)
    wrong = f"{(int(right) + 1) % 10_000:04}"
    answers = [twilio.reply(f"1{wrong}").content.decode() for _ in range(WRONG_CODES)]
    assert all("This code is wrong" in one for one in answers)
    assert "Too many wrong codes" in twilio.reply(f"1{right}").content.decode()
    assert state()[0] == "open"
    assert refusals() == ["wrong code", "too many wrong codes"]


def test_a_stranger_gets_no_answer(twilio: TwilioServer) -> None:
    called()
    answer = twilio.reply(f"1{code(twilio)}", number="+4915999999999")
    assert "<Message>" not in answer.content.decode()
    assert (state()[0], refusals()) == ("open", ["unknown number"])


def test_words_without_a_code_are_answered_with_what_to_reply(twilio: TwilioServer) -> None:
    called()
    assert "Reply with the digits of the message" in twilio.reply("ok, looking").content.decode()
    assert state()[0] == "open"


def test_a_code_is_good_for_a_day(twilio: TwilioServer) -> None:
    called()
    right = code(twilio)
    Notification.objects.update(made_at=datetime.now(UTC) - timedelta(hours=25))
    assert "older than a day" in twilio.reply(f"1{right}").content.decode()
    assert state()[0] == "open"


# Phone calls
# ----------------------------------------------------------------------------------------------------------
def test_a_key_acknowledges_once(twilio: TwilioServer) -> None:
    called("voice")
    assert "Press 1 to acknowledge" in twilio.calls[0]["Twiml"]
    assert "Acknowledged: incident 1" in twilio.press("1").content.decode()
    assert state() == ("acknowledged", "alice")
    assert twilio.press("1").status_code == 409
    assert refusals() == ["repeated"]


def test_other_keys_repeat_the_menu_until_the_call_ends(twilio: TwilioServer) -> None:
    called("voice")
    answer = twilio.press("9").content.decode()
    assert "That key has no function" in answer
    for _ in range(MOST_TURNS - 2):
        answer = twilio.press("4", answer).content.decode()
        assert "error incident 1, Disks are slow" in answer
    assert "Goodbye" in twilio.press("4", answer).content.decode()
    assert state()[0] == "open"


def test_no_phone_rings_only_to_say_that_it_is_over(twilio: TwilioServer) -> None:
    called("voice")
    commands.resolve(queries.get("1").incident.id, "none", "", Context("user:bob"))
    notify_ended(datetime.now(UTC))
    deliver()
    assert (len(twilio.calls), Notification.objects.filter(about=OVER).count()) == (1, 0)


def test_no_phone_rings_for_an_end_that_another_method_did_not_deliver(
    twilio: TwilioServer, other_method: HookSink
) -> None:
    row = method("voice", name="z-phone")
    hook(row.user, other_method.url, "hook")
    contact_methods.set_preferences(row.user, {"rules": [{"method": "hook"}]}, Context("user:alice"))  # type: ignore[arg-type]
    call(ticket())
    deliver()
    other_method.answers = [(404, {})]
    commands.resolve(queries.get("1").incident.id, "none", "", Context("user:bob"))
    notify_ended(datetime.now(UTC))
    deliver(30, 60)
    assert (len(other_method.taken), twilio.calls) == (1, [])
    ends = NotificationDelivery.objects.filter(notification__about=OVER)
    tried = dict(ends.values_list("label", "state"))
    assert tried["hook"] == "given_up"
    assert "z-phone" not in tried


# Reports of delivery
# ----------------------------------------------------------------------------------------------------------
def report(twilio: TwilioServer, status: str, **more: str) -> Any:
    message = (twilio.messages or twilio.calls)[0]
    name = "MessageStatus" if twilio.messages else "CallStatus"
    return twilio.post(message["StatusCallback"], {"MessageSid": "SM1", name: status, **more})


def test_a_delivery_is_noted(twilio: TwilioServer) -> None:
    key = called()
    assert report(twilio, "sent").status_code == 204
    assert report(twilio, "delivered").status_code == 204
    assert NotificationDelivery.objects.get().why == "delivered"
    assert ended(key) == ("done", "sent")


def test_a_message_that_failed_after_all_makes_the_next_method_due(
    twilio: TwilioServer, other_method: HookSink
) -> None:
    row = method("sms", name="a-phone")
    hook(row.user, other_method.url, "hook")
    contact_methods.set_preferences(row.user, {"rules": [{"method": "a-phone"}]}, Context("user:alice"))  # type: ignore[arg-type]
    key = call(ticket())
    deliver()
    assert (ended(key), other_method.taken) == (("done", "sent"), [])
    assert report(twilio, "undelivered", ErrorCode="30005").status_code == 204
    deliver(1)
    assert len(other_method.taken) == 1
    assert ended(key) == ("done", "sent")
    assert outcomes(queries.get("1").incident.id) == ["sent", "given_up", "sent"]
    assert report(twilio, "undelivered", ErrorCode="30005").status_code == 409


def test_a_call_that_nobody_answers_counts_as_failed(twilio: TwilioServer) -> None:
    called("voice")
    report(twilio, "no-answer")
    assert NotificationDelivery.objects.get(kind="voice").why == "the call was not answered"


# Refusals
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: "", "unsigned"),
        (lambda signed: f"A{signed[1:]}" if signed[0] != "A" else f"B{signed[1:]}", "forged"),
        (lambda _: "é", "forged"),
    ],
)
def test_what_the_provider_did_not_sign_is_refused(twilio: TwilioServer, change: Any, reason: str) -> None:
    called()
    url = twilio.messages[0]["StatusCallback"]
    form = {"MessageSid": "SM1", "MessageStatus": "failed"}
    for _ in range(2):
        answer = twilio.post(url, form, change(sign(url, form)))
        assert answer.status_code == 403
        assert answer.json()["detail"].count("\n") == 0
        assert TOKEN not in answer.content.decode()
    assert (ended(Notification.objects.get().key), refusals()) == (("done", "sent"), [reason])


def test_a_signature_of_another_form_or_address_is_refused(twilio: TwilioServer) -> None:
    called()
    url = f"{settings.PUBLIC_URL}/telephony/twilio/sms"
    form = {"MessageSid": "SM7", "From": ALICE, "Body": f"1{code(twilio)}"}
    other = sign(url, {**form, "Body": "hello"})
    assert twilio.post(url, form, other).status_code == 403
    assert twilio.post(url, form, sign(f"{url}?a=1", form)).status_code == 403
    assert (state()[0], refusals()) == ("open", ["forged"])


def test_a_request_is_good_once(twilio: TwilioServer) -> None:
    called()
    text = f"1{code(twilio)}"
    assert twilio.reply("hello", sid="SM5").status_code == 200
    again = twilio.reply(text, sid="SM5")
    assert (again.status_code, state()[0], refusals()) == (409, "open", ["repeated"])


def test_a_message_older_than_a_day_is_refused(twilio: TwilioServer) -> None:
    called("voice")
    Notification.objects.update(made_at=datetime.now(UTC) - timedelta(hours=25))
    assert (twilio.press("1").status_code, report(twilio, "busy").status_code) == (410, 410)
    assert (state()[0], refusals()) == ("open", ["expired"])


def test_without_a_provider_there_is_nothing_here(twilio: TwilioServer) -> None:
    called()
    with override_settings(TELEPHONY_IS_SET_UP=False):
        assert twilio.reply("hello").status_code == 404
        assert "DOSSIER_TWILIO_ACCOUNT_SID" in unreachable(["alice"])["alice"].reason


# The provider
# ----------------------------------------------------------------------------------------------------------
def test_an_error_of_the_provider_is_shown_and_a_passing_one_tried_again(twilio: TwilioServer) -> None:
    method("sms")
    twilio.errors = [(503, {"code": 20503, "message": "Service unavailable"})]
    key = call(ticket())
    deliver(0, 30)
    assert (len(twilio.messages), ended(key)) == (1, ("done", "sent"))
    twilio.errors = [(400, {"code": 21211, "message": f"The 'To' number {ALICE} is not valid."})]
    tried = contact_methods.try_method(ContactMethod.objects.get())
    assert not tried.taken
    assert "The 'To' number …5678 is not valid. (21211)" in tried.why


def test_a_wrong_token_is_told(twilio: TwilioServer) -> None:
    row = method("voice")
    with override_settings(TWILIO_AUTH_TOKEN="wrong"):
        assert "Authenticate" in contact_methods.try_method(row).why
    assert contact_methods.try_method(row).taken
    assert "test message" in twilio.calls[0]["Twiml"]
    assert "Gather" not in twilio.calls[0]["Twiml"]


def test_the_provider_is_reached_through_the_outbound_guard(twilio: TwilioServer) -> None:
    row = method("sms")
    with override_settings(OUTBOUND_ALLOWED_NETWORKS=()):
        assert "loopback" in contact_methods.try_method(row).why
    assert twilio.messages == []


def test_a_number_is_kept_in_one_form_and_shown_by_its_end(twilio: TwilioServer) -> None:
    del twilio
    user = person()
    given = {"name": "phone", "kind": "sms", "address": "+49 (151) 1234-5678"}
    row = contact_methods.add_method(user, given, Context("user:alice"))
    assert row.address == ALICE
    assert contact_methods.method_as_json(row)["address"] == "…5678"
    with pytest.raises(Exception, match="country code"):
        contact_methods.add_method(
            user, {**given, "name": "b", "address": "0151 12345"}, Context("user:alice")
        )
