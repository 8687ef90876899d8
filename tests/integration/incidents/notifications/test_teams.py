"""Microsoft Teams: what a workflow of a person and one of a team receives, and the answer from a card."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from incidents import queries
from incidents.domain.values import InvalidValueError
from incidents.notifications import contact_methods
from incidents.notifications.models import ContactMethod
from incidents.notifications.queue import notify_address
from ingest.queries import Context, now_utc
from tests.integration.incidents.notifications.cases import (
    HookSink,
    call,
    deliver,
    events,
    person,
    ticket,
)

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")


def urls(body: Any) -> list[str]:
    (attached,) = body["attachments"]
    return [one["url"] for one in attached["content"]["actions"]]


def test_a_card_to_a_person_is_answered_once_by_its_link(hooks: HookSink) -> None:
    given = {"name": "teams", "kind": "teams", "address": hooks.url}
    row = contact_methods.add_method(person(), given, ALICE)
    assert contact_methods.try_method(row).taken
    assert contact_methods.method_as_json(row)["address"] == "http://127.0.0.1…"
    hooks.answers.append((202, {}))
    incident = ticket()
    call(incident)
    deliver()
    assert events(incident)[0][::2] == ("sent", "response 202")
    _, (_, body) = hooks.taken
    answer, page = urls(body)
    assert page == f"{settings.PUBLIC_URL}/incidents/1"
    path = answer.removeprefix(settings.PUBLIC_URL)
    assert Client().post(path, {"verb": "acknowledge"}).status_code == 200
    assert queries.get("1").incident.acknowledged_by == "alice"
    assert Client().post(path, {"verb": "acknowledge"}).status_code == 410


def test_a_card_to_a_channel_leads_to_the_incident_only(hooks: HookSink) -> None:
    ContactMethod.objects.create(user=None, name="war-room", kind="teams", address=hooks.url)
    notify_address("webhook", "war-room", ticket(), "x", "step 1", ALICE, now_utc())
    deliver()
    ((_, body),) = hooks.taken
    assert urls(body) == [f"{settings.PUBLIC_URL}/incidents/1"]


def test_an_address_that_is_not_public_is_refused() -> None:
    alice = person()
    given = {"name": "teams", "kind": "teams", "address": "https://10.0.0.1/workflows/1?sig=a"}
    with pytest.raises(InvalidValueError, match="private address"):
        contact_methods.add_method(alice, given, ALICE)
