"""Overrides and swaps of shifts over HTTP, and who may make them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model

from incidents.oncall import queries
from incidents.oncall.models import Override
from incidents.teams.models import Membership, Team
from ingest.queries import configured
from tests.integration.incidents.oncall.cases import DAY, NOW, call, in_days, shift_of, signed_in, storage

pytestmark = pytest.mark.usefixtures("people_of_schedules")


# Overriding
# ----------------------------------------------------------------------------------------------------------
def test_anybody_takes_over_for_a_time() -> None:
    storage()
    answer = call(
        "post", "schedules/storage/overrides", {"ends_at": in_days(0.2), "reason": "dentist"}, "charlie"
    )
    assert answer.status_code == 201
    assert queries.on_call("storage", datetime.now(UTC)) == ("charlie",)


def test_an_override_is_recorded_and_so_is_its_end() -> None:
    storage()
    made = call(
        "post", "schedules/storage/overrides", {"ends_at": in_days(0.2), "reason": "dentist"}, "charlie"
    ).json()
    assert call("delete", f"schedules/storage/overrides/{made['id']}", who="bob").status_code == 204
    begun, over = configured("override", f"storage/{made['id']}")
    assert (begun.body["after"]["person"], begun.actor, over.actor) == ("charlie", "user:charlie", "user:bob")
    assert over.body["after"]["ends_at"] < made["ends_at"]


def test_an_override_that_has_not_begun_is_gone_when_it_is_ended() -> None:
    storage()
    body = {"starts_at": in_days(1), "ends_at": in_days(2), "reason": "dentist", "person": "charlie"}
    made = call("post", "schedules/storage/overrides", body).json()
    call("delete", f"schedules/storage/overrides/{made['id']}")
    assert not Override.objects.exists()


def test_an_override_that_is_over_is_not_ended_again() -> None:
    storage()
    made = call("post", "schedules/storage/overrides", {"ends_at": in_days(0.2), "reason": "dentist"}).json()
    ends = [call("delete", f"schedules/storage/overrides/{made['id']}").status_code for _ in range(2)]
    assert ends == [204, 409]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"person": "mallory"}, "person"),
        ({"person": 7}, "person"),
        ({"ends_at": in_days(-1)}, "ends_at"),
        ({"ends_at": in_days(200)}, "ends_at"),
        ({"ends_at": "tomorrow"}, "ends_at"),
        ({"starts_at": in_days(500), "ends_at": in_days(501)}, "starts_at"),
        ({"reason": ""}, "reason"),
        ({"reason": "\u0000"}, "reason"),
        ({"colour": "red"}, "colour"),
    ],
    ids=range(9),
)
def test_an_override_that_makes_no_sense_is_refused(changed: Any, field: str) -> None:
    storage()
    answer = call(
        "post", "schedules/storage/overrides", {"ends_at": in_days(1), "reason": "dentist", **changed}
    )
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


def test_of_two_overrides_the_one_made_last_wins_also_within_one_tick_of_the_clock() -> None:
    storage()
    for name in ("charlie", "bob", "charlie", "alice"):
        call("post", "schedules/storage/overrides", {"ends_at": in_days(1), "reason": "mine", "person": name})
    assert queries.on_call("storage", datetime.now(UTC)) == ("alice",)


# Swapping
# ----------------------------------------------------------------------------------------------------------
def swap(**more: Any) -> Any:
    stretches = {
        name: dict(zip(("starts_at", "ends_at"), shift_of(person), strict=True)) | {"person": person}
        for name, person in (("first", "alice"), ("second", "bob"))
    }
    return call("post", "schedules/storage/swaps", {**stretches, "reason": "concert", **more}, "bob")


def test_two_people_swap_shifts() -> None:
    storage()
    of_alice, of_bob = shift_of("alice")[0], shift_of("bob")[0]
    assert swap().status_code == 201
    assert queries.on_call("storage", datetime.fromisoformat(of_alice)) == ("bob",)
    assert queries.on_call("storage", datetime.fromisoformat(of_bob)) == ("alice",)


def test_a_swap_is_taken_back_as_a_whole() -> None:
    storage()
    before = queries.shifts("storage", NOW, NOW + 9 * DAY)
    made = swap().json()
    part = call("delete", f"schedules/storage/overrides/{made['overrides'][0]['id']}").status_code
    assert (part, call("delete", f"schedules/storage/swaps/{made['id']}").status_code) == (409, 204)
    assert queries.shifts("storage", NOW, NOW + 9 * DAY) == before


def test_a_swap_that_has_begun_is_not_taken_back() -> None:
    storage()
    made = swap().json()
    Override.objects.filter(pk=made["overrides"][0]["id"]).update(starts_at=NOW - DAY)
    assert call("delete", f"schedules/storage/swaps/{made['id']}").status_code == 409
    assert Override.objects.count() == 2


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"second": {"person": "alice", "ends_at": in_days(3)}}, "second.person"),
        ({"first": {"person": "charlie", "ends_at": in_days(0.1)}}, "first.person"),
        ({"first": {"person": "alice", "ends_at": in_days(9)}}, "first.person"),
        ({"first": {"person": ["alice"], "ends_at": in_days(9)}}, "first.person"),
        ({"first": "alice"}, "first"),
        ({"second": {"person": "bob", "ends_at": None}}, "second.ends_at"),
    ],
    ids=range(6),
)
def test_only_those_who_are_on_call_swap(changed: Any, field: str) -> None:
    storage()
    answer = swap(**changed)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not Override.objects.exists()


# Roles
# ----------------------------------------------------------------------------------------------------------
def in_storage(role: str) -> None:
    bob = get_user_model().objects.get(username="bob")
    Membership.objects.create(team=Team.objects.get(slug="storage"), user=bob, role=role)


@pytest.mark.parametrize(
    ("role", "who", "told"),
    [
        ("viewer", "bob", 403),
        ("responder", "bob", 201),
        ("manager", "bob", 201),
        ("responder", "charlie", 403),
        ("responder", "alice", 201),
    ],
    ids=["viewer", "responder", "manager", "in no team", "staff"],
)
def test_responders_take_over_and_others_look_on(role: str, who: str, told: int) -> None:
    storage()
    in_storage(role)
    body = {"ends_at": in_days(0.2), "reason": "dentist"}
    assert call("post", "schedules/storage/overrides", body, who).status_code == told
    assert call("get", "schedules/storage/overrides", who=who).status_code == 200
    assert call("post", "schedules/storage/feeds", {}, who).status_code == 201
    assert Override.objects.count() == (told == 201)


@pytest.mark.parametrize("verb", ["overrides/{id}", "swaps/{id}"])
def test_viewers_take_nothing_back(verb: str) -> None:
    storage()
    in_storage("viewer")
    assert call("delete", f"schedules/storage/{verb.format(id=uuid4())}", who="bob").status_code == 403


def test_viewers_only_look_in_the_console_too() -> None:
    storage()
    in_storage("viewer")
    body = {"person": "bob", "span": "4 h", "reason": "dentist"}
    assert signed_in("bob").post("/on-call/storage/take-over", body).status_code == 403
    assert not Override.objects.exists()
