"""Escalations in the console: the line on an incident's page, and the page of policies."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from frontend.incident_page import words
from incidents import commands, queries
from incidents.escalation.models import EscalationPolicy
from incidents.escalation.queries import escalation_status
from ingest.log.configuration_events import configured
from tests.integration.incidents.escalation.cases import ALICE, Clock, calls, people, policy, stands, ticket

pytestmark = pytest.mark.django_db
STEPS = "at once: person alice\nafter 5 min: person bob, severity critical"
TYPED = {
    "name": "Gold",
    "slug": "gold",
    "team": "storage",
    "steps": STEPS,
    "repeats": "1",
    "repeat_after": "10 min",
}


def signed_in(name: str, *, staff: bool) -> Client:
    client = Client()
    user, _ = get_user_model().objects.get_or_create(username=name)
    user.is_staff = staff
    user.save()
    client.force_login(user)
    return client


@pytest.fixture
def staff() -> Client:
    people("alice", "bob")
    return signed_in("alice", staff=True)


def said(id_: str, after: float = 0, at: datetime | None = None) -> str | None:
    now = at or timezone.now() + timedelta(seconds=after)
    found = escalation_status(queries.get(id_).incident, now)
    assert found is not None
    line = words(found, now)
    return None if line is None else line.text


def test_the_page_of_a_ticket_says_who_is_called_next_and_when(staff: Client) -> None:
    policy()
    id_ = ticket()
    assert said(id_) == "Notifies alice now"
    Clock(id_).later()
    due = stands(id_).due_at
    assert due is not None
    before = due - timedelta(minutes=5)
    assert said(id_, at=before) == f"Notifies bob in 5 min, at {due:%H:%M} UTC (step 2 of 2, round 1 of 2)"
    page = staff.get(f"/incidents/{queries.get(id_).incident.number}").content.decode()
    assert "Notifies bob in " in page


def test_the_page_of_a_ticket_says_when_nobody_will_come() -> None:
    id_ = ticket()
    Clock(id_).later()
    assert said(id_) == "No one is paged: Storage has no escalation policy"


def test_the_page_says_that_calls_are_late() -> None:
    people("alice")
    policy()
    assert said(ticket(), 300) == "The next step is late by 5 min; manage.py deliver may not be running"


def test_an_acknowledged_ticket_says_when_it_counts_as_forgotten() -> None:
    people("alice")
    policy()
    id_ = ticket()
    Clock(id_).later()
    commands.acknowledge(id_, ALICE)
    assert (said(id_) or "").startswith("Re-pages in 30 min, at ")
    commands.resolve(id_, "none", "", ALICE)
    assert said(id_) is None


def test_a_person_escalates_with_a_reason(staff: Client) -> None:
    policy()
    id_ = ticket()
    Clock(id_).later()
    number = queries.get(id_).incident.number
    assert staff.post(f"/incidents/{number}/escalate", {"reason": ""}).status_code == 400
    staff.post(f"/incidents/{number}/escalate", {"reason": "I am on a plane"})
    assert calls(id_) == ["alice", "bob"]


def test_staff_make_change_and_remove_policies(staff: Client) -> None:
    assert staff.post("/settings/policies", TYPED).status_code == 302
    assert staff.get("/settings/policies?edit=gold").status_code == 200
    staff.post("/settings/policies?edit=gold", {**TYPED, "acknowledgement_timeout": "30 min", "team": ""})
    row = EscalationPolicy.objects.get(slug="gold")
    assert (row.acknowledgement_timeout, row.team, row.policy.steps[1].after) == (1800, None, 300)
    staff.post("/settings/policies/gold/remove")
    assert not EscalationPolicy.objects.exists()
    assert [event.actor for event in configured("escalation_policy", "gold")] == ["user:alice"] * 3


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ({"steps": "soon: person bob"}, "Line 1 must begin with"),
        ({"steps": "at once: person nobody-here"}, "Step 1: person no active account with this name"),
        ({"steps": ""}, "Must be a list of 1 to 20 entries"),
        ({"repeat_after": "a while"}, "Must be a duration such as"),
        ({"repeats": "many"}, "A valid integer is required"),
        ({"slug": "no slug"}, "consisting of letters"),
    ],
)
def test_what_is_wrong_is_told_beside_the_field_and_what_was_typed_stays(
    staff: Client, typed: dict[str, str], reason: str
) -> None:
    answer = staff.post("/settings/policies", {**TYPED, **typed})
    assert answer.status_code == 400
    assert reason in answer.content.decode()
    assert 'value="Gold"' in answer.content.decode()
    assert not EscalationPolicy.objects.exists()


def test_others_read_policies_and_change_none() -> None:
    people("alice")
    policy()
    bob = signed_in("bob", staff=False)
    page = bob.get("/settings/policies")
    assert (page.status_code, "New policy" in page.content.decode()) == (200, False)
    assert bob.post("/settings/policies", TYPED).status_code == 403
    assert bob.post("/settings/policies/storage/remove").status_code == 403
    assert EscalationPolicy.objects.count() == 1
