"""Pages by the clock of the browser, which says its zone in a cookie."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import commands, queries
from incidents.commands import Report
from ingest.queries import Context

pytestmark = pytest.mark.django_db


@pytest.fixture
def abroad() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    client.cookies["zone"] = "Asia/Kolkata"
    return client


def test_times_are_shown_by_the_clock_of_the_browser(abroad: Client) -> None:
    assert "2100-01-01 05:30:00 UTC+5:30" in abroad.get("/?as_of=2100-01-01T00:00:00Z").content.decode()


def test_an_address_that_is_shared_says_its_moment_in_utc(abroad: Client) -> None:
    assert abroad.get("/?at=2100-01-01T05:30")["Location"].endswith("as_of=2100-01-01T00%3A00%3A00Z")


def test_a_ticket_is_snoozed_until_a_time_of_the_readers_clock(abroad: Client) -> None:
    number = commands.open_incident(Report("Rack 12 loses packets"), Context("user:bob")).incident.number
    until = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=9)
    typed = until + timedelta(hours=5, minutes=30)
    abroad.post(f"/incidents/{number}/snooze", {"for": "time", "time": f"{typed:%Y-%m-%dT%H:%M}"})
    assert queries.get(str(number)).incident.snoozed_until == until


def test_the_api_speaks_utc_whatever_the_cookie_says(abroad: Client) -> None:
    number = commands.open_incident(Report("Rack 12 loses packets"), Context("user:bob")).incident.number
    assert abroad.get(f"/api/v1/incidents/{number}").json()["opened_at"].endswith("Z")
