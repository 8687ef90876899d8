"""Services in the console, and what fails with a component."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from incidents.teams.models import Route, Service
from ingest.api import keys
from ingest.queries import configured
from tests.integration.frontend.test_routes import signed_in, text

pytestmark = pytest.mark.usefixtures("log_database")
PAGE = "/settings/services"
BLOCK = {
    "slug": "block",
    "name": "Block storage",
    "team": "storage",
    "patterns": "disk/*\n\nstorage_cluster/*",
}


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    return signed_in("alice", True)


def test_a_service_is_made_changed_and_removed_and_each_is_recorded(alice: Client) -> None:
    assert alice.post(PAGE, BLOCK).status_code == 302
    assert Service.objects.get().patterns == ["disk/*", "storage_cluster/*"]
    alice.post(PAGE, {"slug": "mail", "name": "Mail", "depends_on": ["block"]})
    shown = text(alice.get(PAGE, {"edit": "mail"}))
    assert 'value="block" checked' in shown
    alice.post(PAGE, {"edited": "mail", "slug": "mail", "name": "Post"})
    alice.post(f"{PAGE}/mail/remove")
    made, changed, removed = configured("service", "mail")
    assert (made.body["after"]["depends_on"], changed.body["after"]["depends_on"]) == (["block"], [])
    assert (changed.body["after"]["name"], removed.body["after"], removed.actor) == (
        "Post",
        None,
        "user:alice",
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"slug": "a b"}, "slug"),
        ({"name": ""}, "blank"),
        ({"patterns": "disk"}, "must match kind/name"),
        ({"team": "no-such"}, "no-such"),
        ({"depends_on": ["no-such"]}, "no-such"),
        ({"patterns": "a/\0"}, 'class="problem"'),
    ],
)
def test_what_cannot_be_a_service_is_shown_again_with_the_reason(
    alice: Client, typed: Any, said: str
) -> None:
    answer = alice.post(PAGE, {**BLOCK, **typed})
    assert (answer.status_code, said in text(answer).lower()) == (400, True)
    assert not Service.objects.exists()


def test_a_service_that_is_named_elsewhere_stays(alice: Client) -> None:
    alice.post(PAGE, BLOCK)
    Route.objects.filter(name="disk").update(service=Service.objects.get())
    assert "Block storage is used by the route disk; change that first." in text(
        alice.post(f"{PAGE}/block/remove", follow=True)
    )
    assert Service.objects.exists()


def test_what_fails_with_a_component_is_shown_with_its_services(alice: Client) -> None:
    alice.post(PAGE, BLOCK)
    rows = [{"time": datetime.now(UTC).isoformat(), "component": "disk/d1", "parents": ["rack/r1"]}]
    key = keys.create("sender", ["telemetry"])
    alice.post(
        "/api/v1/telemetry/topology", json.dumps(rows), "application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
    )
    shown = text(alice.get(PAGE, {"component": "rack/r1"}))
    assert "1 dependent component of rack/r1" in shown
    assert "has disk/d1" in shown
    assert "Not in the topology" in text(alice.get(PAGE, {"component": "rack/r9"}))
    assert alice.get(PAGE, {"component": "nothing"}).status_code == 400


def test_people_who_are_not_staff_see_services_and_change_none(alice: Client) -> None:
    alice.post(PAGE, BLOCK)
    bob = signed_in("bob", False)
    assert "Block storage" in text(bob.get(PAGE))
    assert "Edit" not in text(bob.get(PAGE))
    assert [bob.post(path, BLOCK).status_code for path in (PAGE, f"{PAGE}/block/remove")] == [403, 403]
