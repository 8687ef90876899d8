"""Messages on their way to people, through receivers that listen on this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from incidents import commands, queries
from incidents.follower import follower
from incidents.notifications.models import ContactMethod, Notification, NotificationDelivery
from incidents.notifications.queue import notify_address
from incidents.notifications.retention import _looked, forget
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context
from tests.following import follow_to_the_end
from tests.integration.incidents.notifications.cases import (
    HookSink,
    MailSink,
    call,
    deliver,
    ended,
    events,
    hook,
    later,
    outcomes,
    person,
    ticket,
)

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")


def test_without_rules_the_address_of_the_account_gets_a_mail_at_once(mails: MailSink) -> None:
    person()
    incident = ticket()
    key = call(incident)
    deliver()
    (mail,) = mails.mails
    text = mail.get_content()
    assert mail["To"] == "alice@example.com"
    assert mail["Subject"] == "[error] #1 Disks are slow"
    assert "Reason: you are on call" in text
    assert "/incidents/1" in text
    assert events(incident) == [("sent", "account", "the mail server responded 250")]
    assert ended(key) == ("done", "sent")


def test_the_mail_about_a_large_group_names_what_its_alerts_share(mails: MailSink) -> None:
    person()
    disks = [Alert(f"d{n}", "firing", f"Disk of h{n} is full", group="DiskFull") for n in range(60)]
    receive(Parsed(tuple(disks)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    call(queries.get("1").incident.id)
    deliver()
    assert mails.mails[0]["Subject"] == "[warning] #1 DiskFull: 50+ alerts"


def test_wishes_that_can_no_longer_be_read_keep_nobody_from_being_called(mails: MailSink) -> None:
    person(quiet={"zone": "Mars/Base", "start": "00:00", "end": "23:59"})
    person("bob", rules=[{"method": "account", "delay": -1}])
    incident = ticket()
    for name in ("alice", "bob"):
        call(incident, name, urgent=False)
    deliver()
    assert sorted(mail["To"] for mail in mails.mails) == ["alice@example.com", "bob@example.com"]


def test_a_mail_server_that_is_busy_is_asked_again(mails: MailSink) -> None:
    person()
    mails.answers = ["451 come back"]
    incident = ticket()
    call(incident)
    deliver(0, 30)
    assert events(incident) == [
        ("failed", "account", "the mail server responded 451 come back"),
        ("sent", "account", "the mail server responded 250"),
    ]


def test_an_address_that_does_not_exist_is_tried_once_and_the_next_method_is_due_at_once(
    mails: MailSink, hooks: HookSink
) -> None:
    rules = [{"method": "account", "delay": 0}, {"method": "hook", "delay": 3600}]
    hook(person(rules=rules), hooks.url)
    mails.answers = ["550 no such user"]
    incident = ticket()
    call(incident)
    deliver()
    assert events(incident) == [
        ("given_up", "account", "the mail server responded 550 no such user"),
        ("sent", "hook", "response 200"),
    ]


def test_a_method_that_no_rule_names_is_used_when_all_others_failed(mails: MailSink, hooks: HookSink) -> None:
    hook(person(rules=[{"method": "hook"}]), hooks.url)
    hooks.answers = [(404, {})]
    incident = ticket()
    call(incident)
    deliver()
    assert [(outcome, method) for outcome, method, _ in events(incident)] == [
        ("given_up", "hook"),
        ("sent", "account"),
    ]
    assert len(mails.mails) == 1


def test_who_can_be_reached_by_nothing_is_named_on_the_ticket(mails: MailSink) -> None:
    person()
    mails.answers = ["550 no such user"]
    incident = ticket()
    key = call(incident)
    deliver()
    assert events(incident)[-1] == (
        "given_up",
        None,
        "all contact methods failed (account: the mail server responded 550 no such user)",
    )
    assert ended(key) == ("done", "given_up")


def test_a_call_for_somebody_without_an_account_is_told_on_the_ticket() -> None:
    incident = ticket()
    call(incident, "charlie")
    deliver()
    assert events(incident) == [("given_up", None, "no active account charlie")]


def test_a_call_about_no_ticket_ends(caplog: pytest.LogCaptureFixture) -> None:
    del caplog
    key = call("5c3d0a4e-0000-4000-8000-000000000000")
    deliver()
    assert ended(key) == ("done", "given_up")


def test_a_webhook_gets_the_ticket_and_an_id_that_stays(hooks: HookSink) -> None:
    hook(person(), hooks.url)
    hooks.answers = [(503, {})]
    incident = ticket()
    call(incident)
    deliver(0)
    first = NotificationDelivery.objects.get().message
    deliver(30)
    ((headers, body),) = hooks.taken
    assert headers["Idempotency-Key"] == body["id"] == str(first)
    assert [(one["number"], one["reason"]) for one in body["incidents"]] == [(1, "you are on call")]


def test_a_webhook_that_says_when_is_not_asked_before(hooks: HookSink) -> None:
    hook(person(), hooks.url)
    hooks.answers = [(429, {"Retry-After": "300"})]
    incident = ticket()
    call(incident)
    deliver(0, 200)
    assert outcomes(incident) == ["failed"]
    deliver(310)
    assert outcomes(incident) == ["failed", "sent"]


def test_an_address_inside_the_house_is_refused_unless_it_is_allowed() -> None:
    hook(person(rules=[{"method": "hook"}]), "http://127.0.0.1:8099/page")
    incident = ticket()
    call(incident)
    deliver()
    outcome, _, why = events(incident)[0]
    assert (outcome, "loopback" in why) == ("given_up", True)


def test_an_acknowledgement_stops_what_was_to_come(mails: MailSink, hooks: HookSink) -> None:
    rules = [{"method": "account", "delay": 0}, {"method": "hook", "delay": 300}]
    hook(person(rules=rules), hooks.url)
    incident = ticket()
    key = call(incident)
    deliver(0)
    commands.acknowledge(incident, ALICE)
    deliver(1, 400)
    assert (len(mails.mails), hooks.taken) == (1, [])
    assert ended(key) == ("done", "sent")
    assert list(NotificationDelivery.objects.values_list("state", "why"))[1] == (
        "stopped",
        "acknowledged by alice",
    )


def test_an_acknowledgement_stops_a_message_that_failed_and_says_so(mails: MailSink) -> None:
    person()
    mails.answers = ["451 come back"]
    incident = ticket()
    call(incident)
    deliver(0)
    commands.acknowledge(incident, ALICE)
    deliver(60)
    assert mails.mails == []
    assert events(incident)[-1] == ("stopped", None, "acknowledged by alice")


def test_several_tickets_within_seconds_are_one_message_and_an_event_on_each(mails: MailSink) -> None:
    person()
    first = ticket("Disks are slow")
    call(first)
    deliver(0)
    others = [ticket(f"Rack {number} is hot") for number in range(3)]
    for incident in others:
        call(incident)
    deliver(1)
    assert len(mails.mails) == 1
    deliver(20)
    assert mails.subjects == ["[error] #1 Disks are slow", "[error] #2 Rack 0 is hot and 2 more"]
    assert [outcomes(incident) for incident in others] == [["sent"]] * 3


def test_quiet_hours_hold_and_say_so_and_end(mails: MailSink) -> None:
    now = datetime.now(UTC)
    start, end = f"{now.hour:02}:00", f"{(now.hour + 2) % 24:02}:00"
    person(quiet={"zone": "UTC", "start": start, "end": end})
    incident = ticket()
    call(incident, urgent=False)
    deliver(0, 1)
    assert mails.mails == []
    assert events(incident) == [("delayed", "account", f"quiet hours until {end} (UTC)")]
    deliver(2 * 3600)
    assert outcomes(incident) == ["delayed", "sent"]


def test_a_throttle_holds_a_second_message_about_a_ticket_never_the_first(hooks: HookSink) -> None:
    hook(person(bundle_seconds=0, rules=[{"method": "hook"}]), hooks.url, most=1, span=600)
    one, other = ticket("Disks are slow"), ticket("Racks are hot")
    call(one)
    deliver(0)
    call(other)
    deliver(1)
    call(one)
    deliver(2)
    assert (outcomes(one), outcomes(other)) == (["sent", "delayed"], ["sent"])
    deliver(700)
    assert outcomes(one) == ["sent", "delayed", "sent"]


def test_a_shared_channel_is_told_by_its_name(hooks: HookSink) -> None:
    hook(None, hooks.url, name="storage-room")
    incident = ticket()
    notify_address("webhook", "storage-room", incident, "room-1", "step 2", ALICE, datetime.now(UTC))
    deliver()
    assert events(incident) == [("sent", "storage-room", "response 200")]


def test_a_bare_address_is_told_and_named_by_its_host_only(hooks: HookSink) -> None:
    incident = ticket()
    secret = f"{hooks.url}?token=t0psecret"
    notify_address("webhook", secret, incident, "bare-1", "step 2", ALICE, datetime.now(UTC))
    deliver()
    assert events(incident) == [("sent", "webhook at 127.0.0.1", "response 200")]


def test_a_channel_that_does_not_exist_is_told_on_the_ticket() -> None:
    incident = ticket()
    notify_address("apprise", "nowhere", incident, "x", "step 2", ALICE, datetime.now(UTC))
    deliver()
    assert events(incident) == [("given_up", None, "no channel nowhere")]


def test_a_method_that_was_removed_meanwhile_gives_way_to_another(mails: MailSink, hooks: HookSink) -> None:
    method = hook(person(rules=[{"method": "hook"}]), hooks.url)
    incident = ticket()
    call(incident)
    hooks.answers = [(503, {})]
    deliver(0)
    ContactMethod.objects.filter(pk=method.pk).delete()
    deliver(30)
    assert [(outcome, name) for outcome, name, _ in events(incident)] == [
        ("failed", "hook"),
        ("given_up", "hook"),
        ("sent", "account"),
    ]
    assert len(mails.mails) == 1


def test_nothing_secret_stands_in_an_event(hooks: HookSink) -> None:
    hook(person(), f"{hooks.url}?token=t0psecret")
    incident = ticket()
    call(incident)
    deliver()
    from ingest.queries import read_stream

    assert "t0psecret" not in str([event.body for event in read_stream(f"incident/{incident}")])


def test_every_call_has_an_end(mails: MailSink) -> None:
    person()
    mails.answers = ["451 not now"] * 40
    key = call(ticket())
    for minutes in range(0, 120, 5):
        deliver(minutes * 60)
    assert ended(key) == ("done", "given_up")
    assert not Notification.objects.exclude(state="done").exists()


def test_messages_that_are_long_over_are_forgotten_and_the_ticket_still_tells_of_them(
    hooks: HookSink,
) -> None:
    hook(person(bundle_seconds=0), hooks.url)
    incident = ticket()
    old = call(incident)
    deliver()
    waiting = call(incident, when=later(0))
    _looked.clear()
    assert [forget(later(0)), forget(later(0) + settings.NOTIFICATION_RETENTION + timedelta(minutes=11))] == [
        0,
        1,
    ]
    assert list(Notification.objects.values_list("key", flat=True)) == [waiting]
    assert (NotificationDelivery.objects.count(), outcomes(incident)) == (0, ["sent"]), old
