"""The link of a message: what it offers, does once, and refuses."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from incidents import queries
from incidents.notifications.answer_links import LASTS, link_of
from incidents.notifications.models import OVER, Notification
from ingest.queries import Position, read_all
from tests.integration.incidents.notifications.cases import MailSink, call, deliver, person, ticket

pytestmark = pytest.mark.usefixtures("log_database")
MINUTE = timedelta(minutes=1)


def link() -> str:
    """The path of the link by which Alice is called for a new incident."""
    person()
    key = call(ticket())
    return link_of(Notification.objects.get(key=key)).partition(settings.PUBLIC_URL)[2]


def test_a_mail_to_a_person_has_a_link_and_one_that_says_it_is_over_has_none(mails: MailSink) -> None:
    person()
    incident = ticket()
    call(incident)
    deliver()
    (message,) = mails.mails
    text = message.get_content().replace("\r", "")
    found = re.search(r"without signing in: http\S+(/answer/[\w.-]+)$", text, re.MULTILINE)
    assert found is not None
    assert "Disks are slow" in Client().get(found[1]).content.decode()
    row = Notification.objects.get()
    row.about = OVER
    assert link_of(row) == ""


def state() -> tuple[str, str | None]:
    incident = queries.get("1").incident
    return incident.state, incident.acknowledged_by


def audited() -> list[str]:
    return [
        event.body["after"]["outcome"]
        for event in read_all(Position.START, 1_000, {"configuration.changed"})
        if event.body["kind"] == "answer_link"
    ]


def test_a_link_acknowledges_once_under_the_name_of_its_reader() -> None:
    path, client = link(), Client(enforce_csrf_checks=True)
    shown = client.get(path)
    assert shown.status_code == 200
    assert "Disks are slow" in shown.content.decode()
    assert shown["Referrer-Policy"] == "no-referrer"
    assert state()[0] == "open"  # scanners of mail look at every link
    assert client.post(path, {"verb": "resolve"}).status_code == 400
    done = client.post(path, {"verb": "acknowledge"})
    assert "Acknowledged #1" in done.content.decode()
    assert state() == ("acknowledged", "alice")
    assert audited() == ["used"]
    for again in (client.get(path), client.post(path, {"verb": "snooze", "for": "1"})):
        assert again.status_code == 410
        assert "was already used" in again.content.decode()
    assert (state()[0], audited()) == ("acknowledged", ["used", "repeated"])


def test_a_link_hands_over_and_is_not_used_up_by_a_wrong_form() -> None:
    path, client = link(), Client()
    wrong = client.post(path, {"verb": "hand_over", "team": "network", "reason": ""})
    assert wrong.status_code == 400
    assert "Reason" in wrong.content.decode()
    assert client.post(path, {"verb": "hand_over", "team": "nowhere", "reason": "a"}).status_code in (
        400,
        409,
    )
    assert audited() == []
    done = client.post(path, {"verb": "hand_over", "team": "network", "reason": "it is the fabric"})
    assert done.status_code == 200, done.content.decode()
    assert queries.get("1").incident.team == "network"
    assert any(
        "it is the fabric" in str(event.body) and event.actor == "user:alice"
        for event in queries.incident_events("1")
    )


def test_a_service_worker_that_accepts_json_gets_one_sentence() -> None:
    path, client = link(), Client(headers={"Accept": "application/json"})
    assert client.post(path, {"verb": "acknowledge"}).json() == {"text": "Acknowledged #1."}
    again = client.post(path, {"verb": "acknowledge"})
    assert (again.status_code, again.json()["text"][:27]) == (410, "This link was already used:")


def _forged(path: str) -> str:
    return path[:-2] + ("aa" if path[-2:] != "aa" else "bb")


@pytest.mark.parametrize("change", [_forged, lambda path: path[: len(path) // 2], lambda _: "/answer/a.b.c"])
def test_a_link_that_was_not_made_here_is_refused(change: Any) -> None:
    answer = Client().post(change(link()), {"verb": "acknowledge"})
    assert (answer.status_code, state()[0], audited()) == (404, "open", ["refused: forged"])


def test_a_link_expires_and_ends_with_the_account() -> None:
    path = link()
    with patch(
        "django.core.signing.time.time", return_value=(datetime.now(UTC) + LASTS + MINUTE).timestamp()
    ):
        late = Client().post(path, {"verb": "acknowledge"})
        assert "has expired" in late.content.decode()
    User.objects.filter(username="alice").update(is_active=False)
    left = Client().post(path, {"verb": "acknowledge"})
    assert (late.status_code, left.status_code, state()[0]) == (410, 403, "open")
    assert audited() == ["expired", "no active account"]


def test_a_link_of_a_deleted_message_is_refused() -> None:
    path = link()
    Notification.objects.all().delete()
    answer = Client().post(path, {"verb": "acknowledge"})
    assert (answer.status_code, "has been deleted" in answer.content.decode()) == (410, True)
    assert (state()[0], audited()) == ("open", ["refused: message deleted"])
