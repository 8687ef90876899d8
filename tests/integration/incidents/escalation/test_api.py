"""Escalation policies over HTTP; where an incident's escalation stands; and that people escalate it."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from incidents import commands, queries
from incidents.domain.values import rfc3339
from incidents.escalation.models import EscalationPolicy
from incidents.teams.models import Team
from ingest.log.configuration_events import configured
from tests.integration.incidents.escalation.cases import (
    ALICE,
    STEPS,
    Clock,
    calls,
    people,
    policy,
    stands,
    ticket,
    told,
)
from tests.integration.incidents.incident.test_api import Call, caller

pytestmark = pytest.mark.django_db

GOLD = {"slug": "gold", "name": "Gold", "team": "storage", "steps": STEPS, "repeats": 2}


@pytest.fixture
def admin() -> Call:
    return caller("incidents:read", "incidents:write", "admin")


def test_a_policy_is_kept_shown_changed_and_removed_and_each_change_is_recorded(admin: Call) -> None:
    people("alice", "bob")
    made = admin("POST", "escalation_policies", GOLD)
    assert (made.status_code, made.json()) == (
        201,
        {**GOLD, "repeat_after": 300, "acknowledgement_timeout": None, "restart_when_worse": False},
    )
    changed = admin("PATCH", "escalation_policies/gold", {"acknowledgement_timeout": 900, "team": None})
    assert (changed.json()["acknowledgement_timeout"], changed.json()["team"]) == (900, None)
    assert admin("GET", "escalation_policies").json()["results"] == [changed.json()]
    assert admin("DELETE", "escalation_policies/gold").status_code == 204
    told = [(event.body["before"], event.body["after"]) for event in configured("escalation_policy", "gold")]
    assert told == [(None, made.json()), (made.json(), changed.json()), (changed.json(), None)]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"steps": []}, "steps"),
        ({"steps": [{"actions": [{"person": "nobody-we-know"}]}]}, "steps[0].actions[0].person"),
        ({"steps": [{"actions": [{"schedule": "gone"}]}]}, "steps[0].actions[0].schedule"),
        ({"steps": [{"actions": [{"team": "gone\u0000"}]}]}, "steps[0].actions[0].team"),
        ({"steps": [{"actions": [{"channel": "gone"}]}]}, "steps[0].actions[0].channel"),
        ({"steps": [{"after": 2**70, "actions": [{"person": "alice"}]}]}, "steps[0].after"),
        ({"team": "gone"}, "team"),
        ({"repeats": 10**9}, "repeats"),
        ({"acknowledgement_timeout": 3}, "acknowledgement_timeout"),
        ({"slug": "no slug"}, "slug"),
        ({"pager": "alice"}, "pager"),
    ],
)
def test_what_is_wrong_is_named_by_its_path_and_nothing_is_stored(
    admin: Call, fields: dict[str, Any], path: str
) -> None:
    people("alice", "bob")
    answer = admin("POST", "escalation_policies", {**GOLD, **fields})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [path])
    assert EscalationPolicy.objects.count() == 0


def test_a_team_has_one_policy(admin: Call) -> None:
    people("alice", "bob")
    admin("POST", "escalation_policies", GOLD)
    assert list(admin("POST", "escalation_policies", {**GOLD, "slug": "two"}).json()["errors"]) == ["team"]


def test_a_team_whose_tickets_follow_a_policy_is_not_removed(admin: Call) -> None:
    Team.objects.create(slug="hall-2", name="Hall 2")
    policy(team="hall-2")
    answer = admin("DELETE", "teams/hall-2")
    assert (answer.status_code, "policy" in answer.json()["detail"]) == (409, True)


def test_it_is_told_who_is_called_next_and_when(admin: Call) -> None:
    people("alice", "bob")
    policy(steps=[*STEPS, {"after": 60, "actions": [{"owner": True}, {"severity": "critical"}]}])
    id_ = ticket()
    clock = Clock(id_)
    first = admin("GET", f"incidents/{id_}/escalation").json()
    assert (first["phase"], first["next"]["people"]) == ("starting", [{"person": "alice", "as": "alice"}])
    clock.later()
    second = admin("GET", f"incidents/{id_}/escalation").json()
    assert (second["step"], second["steps"], second["called"]) == (2, 3, ["alice"])
    assert second["next"]["people"] == [{"person": "bob", "as": "bob"}]
    assert second["next_at"] == rfc3339(stands(id_).due_at or timezone.now())
    clock.later(300)
    third = admin("GET", f"incidents/{id_}/escalation").json()["next"]
    assert third["unreachable"] == [{"target": "its owner", "why": "no owner"}]
    assert third["actions"] == ["raise the severity to critical"]


def test_it_is_told_how_far_it_had_come_at_an_earlier_moment(admin: Call) -> None:
    people("alice", "bob")
    policy()
    id_ = ticket()
    Clock(id_).later()
    then = queries.get(id_).position
    commands.acknowledge(id_, ALICE)
    told = admin("GET", f"incidents/{id_}/escalation?as_of={then}").json()
    assert (told["phase"], told["called"], told["next"]) == ("climbing", ["alice"], None)
    assert admin("GET", f"incidents/{id_}/escalation").json()["phase"] == "acknowledged"
    assert admin("GET", f"incidents/{id_}/notifications?as_of={then}").status_code == 400


def test_a_ticket_without_a_policy_says_so(admin: Call) -> None:
    id_ = ticket()
    Clock(id_).later()
    answer = admin("GET", f"incidents/{id_}/escalation").json()
    assert (answer["phase"], answer["why"]) == ("uncalled", "Storage has no escalation policy")


def test_a_person_has_the_next_people_called_at_once(admin: Call) -> None:
    people("alice", "bob")
    policy()
    id_ = ticket()
    Clock(id_).later()
    answer = admin("POST", f"incidents/{id_}/escalate", {"reason": "Alice is on a plane"})
    assert (answer.status_code, calls(id_)) == (200, ["alice", "bob"])
    assert told(id_)[-1] == "key ci notified bob (step 2 of 2, round 1 of 2): Alice is on a plane"


@pytest.mark.parametrize("state", ["acknowledged", "snoozed"])
def test_what_is_acknowledged_or_put_aside_is_escalated_from_the_first_step(admin: Call, state: str) -> None:
    people("alice", "bob")
    policy()
    id_ = ticket()
    clock = Clock(id_)
    clock.later(1)
    if state == "snoozed":
        commands.snooze(id_, None, "", ALICE)
    else:
        commands.acknowledge(id_, ALICE)
    answer = admin("POST", f"incidents/{id_}/escalate", {"reason": "I need help"})
    assert answer.json()["state"] == "open"
    clock.now = timezone.now()
    clock.later()
    assert (calls(id_), stands(id_).run) == (["alice", "alice"], 2)


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": 7}, {"reason": "x", "to": "bob"}])
def test_to_escalate_needs_a_reason(admin: Call, body: dict[str, Any]) -> None:
    assert admin("POST", f"incidents/{ticket()}/escalate", body).status_code == 400


def test_it_is_refused_where_nobody_can_be_called_or_it_is_resolved(admin: Call) -> None:
    id_ = ticket()
    answer = admin("POST", f"incidents/{id_}/escalate", {"reason": "help"})
    assert (answer.status_code, "Storage has no escalation policy" in answer.json()["detail"]) == (409, True)
    commands.resolve(id_, "none", "", ALICE)
    assert "is resolved" in admin("POST", f"incidents/{id_}/escalate", {"reason": "help"}).json()["detail"]


def test_whoever_saw_the_ticket_before_somebody_acknowledged_it_is_told_so(admin: Call) -> None:
    people("alice", "bob")
    policy()
    id_ = ticket()
    seen = admin("GET", f"incidents/{id_}").headers["ETag"]
    commands.acknowledge(id_, ALICE)
    answer = admin("POST", f"incidents/{id_}/escalate", {"reason": "help"}, **{"If-Match": seen})
    assert (answer.status_code, answer.json()["meanwhile"][0]["text"]) == (
        409,
        "alice acknowledged the incident",
    )
