"""People on call, out of the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from incidents.oncall import queries
from incidents.oncall.models import Calendar, OnCallSchedule, Override

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""09:00 in Berlin, when Alice's week begins."""
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def people() -> None:
    for name in ("alice", "bob", "charlie"):
        get_user_model().objects.create(username=name)


def schedule(*people: str, **more: Any) -> OnCallSchedule:
    layer = {
        "name": "primary",
        "people": people or ["alice", "bob"],
        "start": "2026-03-02T09:00",
        "turn": "1w",
    }
    given = {"slug": "storage", "name": "Storage", "time_zone": "Europe/Berlin", "layers": [layer], **more}
    return OnCallSchedule.objects.create(**given)


def person(name: str) -> Any:
    return get_user_model().objects.get(username=name)


def test_it_says_who_is_on_call() -> None:
    schedule()
    assert queries.on_call("storage", MONDAY + 7 * DAY) == ("bob",)


def test_nobody_is_on_call_in_a_gap() -> None:
    schedule()
    assert queries.on_call("storage", MONDAY - DAY) == ()


@pytest.mark.parametrize(
    "name", ["network", "", "a\0b", "a" * 5_000], ids=["unknown", "empty", "NUL", "long"]
)
def test_a_schedule_that_is_not_there_is_refused(name: str) -> None:
    schedule()
    with pytest.raises(queries.ScheduleNotFoundError):
        queries.on_call(name, MONDAY)


def test_somebody_who_may_not_sign_in_any_more_is_skipped_and_named() -> None:
    row = schedule()
    get_user_model().objects.filter(username="alice").update(is_active=False)
    assert queries.on_call("storage", MONDAY) == ("bob",)
    assert queries.on_call_status(row, MONDAY).gone == ["alice"]


def test_an_override_counts_and_the_latest_of_several_most() -> None:
    row = schedule()
    for second, name in enumerate(("bob", "charlie")):
        Override.objects.create(
            schedule=row,
            person=person(name),
            starts_at=MONDAY,
            ends_at=MONDAY + DAY,
            reason="dentist",
            made_by="user:alice",
            made_at=MONDAY - timedelta(seconds=10 - second),
        )
    assert queries.on_call("storage", MONDAY) == ("charlie",)


def test_days_off_are_those_of_the_schedules_zone() -> None:
    schedule()
    Calendar.objects.create(
        slug="alice-away",
        name="Alice",
        person=person("alice"),
        text="",
        spans=[["2026-03-04", "2026-03-05", "Off"]],
    )
    midnight = datetime(2026, 3, 3, 23, tzinfo=UTC)
    found = queries.shifts("storage", midnight - DAY, midnight + 2 * DAY)
    assert [(one.person, one.start) for one in found][1:] == [("bob", midnight), ("alice", midnight + DAY)]


def test_a_standing_says_until_when_who_then_and_where_nobody_is() -> None:
    row = schedule()
    row.layers[0]["end"] = "2026-03-20T09:00"
    found = queries.on_call_status(row, MONDAY + 5 * DAY)
    gap = (datetime(2026, 3, 20, 8, tzinfo=UTC), MONDAY + 5 * DAY + queries.WATCHED)
    assert found == queries.OnCallStatus("alice", MONDAY + 7 * DAY, "bob", [gap], [])
    assert queries.gaps("storage", MONDAY - DAY, MONDAY) == [(MONDAY - DAY, MONDAY)]
