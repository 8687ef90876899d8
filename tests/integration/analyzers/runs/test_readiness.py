"""Reasons why a schedule has not run yet, and when it will: what is said is what the tick then does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from analyzers.runs.models import Schedule, TelemetryCursor
from analyzers.runs.scheduler import claim_due, schedule_waits
from tests.integration.frontend.test_pages import signed_in

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
pytestmark = pytest.mark.usefixtures("log_database")


def three_days(region: str = "east") -> None:
    """Telemetry that has come as it happened since three days ago."""
    begun = NOW - 3 * DAY
    TelemetryCursor.objects.create(
        region=region,
        kind="path_outcome",
        first=begun,
        latest=NOW,
        first_arrived_at=begun,
        arrived_at=NOW,
        last_received_at=NOW,
    )


def weekly(**changes: object) -> Schedule:
    Schedule.objects.all().delete()
    values = {"name": "weekly", "analyzer": "deepview", "length": 7 * DAY, "every": HOUR, **changes}
    return Schedule.objects.create(**values)


@pytest.mark.parametrize(
    ("length", "why"),
    [
        (7 * DAY, "its window begins before the first row"),
        (3 * DAY, "its first window has not ended yet"),
    ],
)
def test_a_schedule_runs_when_it_said_it_would_and_not_before(length: timedelta, why: str) -> None:
    three_days()
    schedule = weekly(length=length, idle=timedelta(0))
    [wait] = schedule_waits(schedule, NOW)
    assert (wait.region, wait.why, wait.first_row_at) == ("east", why, NOW - 3 * DAY)
    assert wait.first_run_at is not None
    assert claim_due([schedule], wait.first_run_at - timedelta(seconds=1)) == 0
    assert claim_due([schedule], wait.first_run_at) == 1
    assert schedule_waits(schedule, wait.first_run_at) == []


def test_what_is_due_already_runs_next() -> None:
    three_days()
    [wait] = schedule_waits(weekly(length=HOUR), NOW)
    assert (wait.why, wait.first_run_at) == ("its first window has ended and runs next", None)


def test_without_its_telemetry_a_schedule_names_what_it_waits_for() -> None:
    assert [one.why for one in schedule_waits(weekly(input="path_outcome"), NOW)] == [
        "no telemetry of path_outcome received in the last 7 days"
    ]
    [one] = schedule_waits(weekly(input="path_outcome", region="west"), NOW)
    assert (one.region, one.why) == ("west", "no telemetry of path_outcome received")


def test_a_schedule_that_is_off_waits_for_nothing() -> None:
    three_days()
    assert schedule_waits(weekly(enabled=False), NOW) == []


@pytest.mark.parametrize("path", ["/schedules", "/analyzers/deepview"])
def test_the_console_says_it(path: str) -> None:
    three_days()
    weekly()
    alice: Client = signed_in("alice")
    page = alice.get(path).content.decode()
    assert "Has not run yet in region east: its window begins before the first row" in page
    assert "first run in about" in page


def test_the_api_says_it() -> None:
    three_days()
    weekly()
    [found] = signed_in("alice").get("/api/v1/analysis_schedules").json()["results"]
    [wait] = found["waits"]
    assert (wait["region"], wait["why"]) == ("east", "its window begins before the first row")
    assert datetime.fromisoformat(wait["first_run_at"]) > NOW + 3 * DAY
