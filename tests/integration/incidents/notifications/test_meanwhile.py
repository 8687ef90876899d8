"""Changes of an incident, a person or a way to reach them between a call and its message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from incidents import commands
from incidents.notifications.contact_methods import set_preferences
from incidents.notifications.models import ContactMethod
from incidents.notifications.queue import Call, notify_all
from ingest.queries import Context
from tests.integration.incidents.notifications.cases import (
    HookSink,
    MailSink,
    call,
    deliver,
    ended,
    events,
    hook,
    outcomes,
    person,
    ticket,
)

pytestmark = pytest.mark.usefixtures("log_database")
ALICE, BOB = Context("user:alice"), Context("user:bob")


def quiet_for_two_hours() -> dict[str, str]:
    now = datetime.now(UTC)
    return {"zone": "UTC", "start": f"{now.hour:02}:00", "end": f"{(now.hour + 2) % 24:02}:00"}


def test_who_is_left_to_sleep_is_called_once_the_ticket_becomes_critical(mails: MailSink) -> None:
    person(quiet=quiet_for_two_hours())
    incident = ticket(severity="warning")
    call(incident, urgent=False)
    deliver(0)
    assert outcomes(incident) == ["delayed"]
    commands.set_severity(incident, "critical", ALICE)
    deliver(1)
    assert mails.subjects == ["[critical] #1 Disks are slow"]


def test_who_wants_no_quiet_any_more_is_told_at_once(mails: MailSink) -> None:
    alice = person(quiet=quiet_for_two_hours())
    call(ticket(severity="warning"), urgent=False)
    deliver(0)
    assert mails.mails == []
    set_preferences(alice, {}, ALICE)
    deliver(1)
    assert mails.subjects == ["[warning] #1 Disks are slow"]


def test_an_acknowledgement_counts_by_which_clock_ever_it_was_made(mails: MailSink) -> None:
    person()
    incident = ticket()
    commands.acknowledge(incident, ALICE)
    call(incident, when=datetime.now(UTC) + timedelta(seconds=30))
    deliver(31)
    assert mails.mails == []


def test_whom_a_hand_over_called_is_not_told_once_it_was_taken_back(hooks: HookSink) -> None:
    hook(person(rules=[{"method": "hook", "delay": 300}]), hooks.url)
    incident = ticket()
    commands.hand_over(incident, "network", "theirs", BOB)
    when = datetime.now(UTC)
    notify_all([Call(incident, "once", "step 1", True, BOB, when, person="alice", team="network")])
    deliver(0)
    commands.undo(incident, None, BOB)
    deliver(1)
    assert ended("once") == ("done", "stopped")
    deliver(400)
    assert hooks.taken == []
    assert "back with" in events(incident)[-1][2]


def test_whose_account_was_closed_is_told_nothing_more(hooks: HookSink) -> None:
    alice = person(rules=[{"method": "hook", "delay": 300}])
    hook(alice, hooks.url)
    incident = ticket()
    call(incident)
    deliver(0)
    alice.is_active = False
    alice.save()
    deliver(400)
    assert hooks.taken == []
    assert events(incident)[-1][2] == "no active account alice"


def test_a_method_that_became_one_of_another_kind_is_used_as_it_is_now(
    mails: MailSink, hooks: HookSink
) -> None:
    hook(person(rules=[{"method": "hook", "delay": 300}]), hooks.url)
    call(ticket())
    deliver(0)
    ContactMethod.objects.update(kind="email", address="alice@example.org")
    deliver(400)
    assert [mail["To"] for mail in mails.mails] == ["alice@example.org"]
