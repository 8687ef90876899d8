"""People who were told of an incident hear when it is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from incidents import commands
from incidents.notifications.ended import notify_ended
from incidents.notifications.models import Notification
from ingest.queries import Context
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
BOB = Context("user:bob")


def over(incident: str, by: Context = BOB) -> None:
    commands.resolve(incident, "none", "", by)
    notify_ended(datetime.now(UTC) + timedelta(seconds=1))
    deliver(30)


def test_who_was_called_hears_of_the_end_by_the_method_that_reached_them(mails: MailSink) -> None:
    person()
    incident = ticket()
    call(incident)
    deliver()
    over(incident)
    first, last = mails.mails
    assert first["Subject"] == "[error] #1 Disks are slow"
    assert last["Subject"] == "[resolved] #1 Disks are slow"
    assert "Resolved by bob" in last.get_content()


def test_they_are_told_once_however_often_they_were_called(mails: MailSink) -> None:
    person()
    incident = ticket()
    for key in ("first", "second"):
        call(incident, key=key)
        deliver()
    over(incident)
    notify_ended(datetime.now(UTC) + timedelta(seconds=5))
    deliver(30)
    assert [mail["Subject"][:10] for mail in mails.mails].count("[resolved]") == 1


def test_who_resolved_it_knows(mails: MailSink) -> None:
    person()
    incident = ticket()
    call(incident)
    deliver()
    over(incident, Context("user:alice"))
    assert len(mails.mails) == 1


def test_who_was_never_reached_hears_of_no_end(mails: MailSink) -> None:
    person()
    incident = ticket()
    call(incident)
    commands.acknowledge(incident, BOB)
    deliver()
    over(incident)
    assert mails.mails == []


def test_an_incident_that_is_reopened_first_tells_nobody_that_it_is_over(mails: MailSink) -> None:
    person()
    incident = ticket()
    call(incident)
    deliver()
    commands.resolve(incident, "none", "", BOB)
    notify_ended(datetime.now(UTC) + timedelta(seconds=1))
    commands.reopen(incident, "still failing", BOB)
    deliver(30)
    assert len(mails.mails) == 1
    ending = Notification.objects.get(about="over")
    assert (ending.outcome, ending.ended_why) == ("stopped", "reopened")


def test_a_webhook_is_told_with_what_a_program_needs(hooks: HookSink) -> None:
    hook(person(rules=[{"method": "hook"}]), hooks.url)
    incident = ticket()
    call(incident)
    deliver()
    over(incident)
    body = hooks.taken[-1][1]
    assert body["text"] == "[resolved] #1 Disks are slow"
    assert (body["incidents"][0]["over"], body["incidents"][0]["resolved_by"]) == (True, "bob")
