"""Silences that recur: they hold alerts in each of their times, and let go between."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from incidents.suppression.silences import state_of, suppressed_alerts
from incidents.teams.models import Silence
from ingest.api import keys
from ingest.queries import configured
from tests.integration.incidents.alerts.test_correlate import alert, send
from tests.integration.incidents.suppression.test_planned import HOUR, call, later

pytestmark = pytest.mark.usefixtures("log_database")


def silence(start: datetime, **more: Any) -> Any:
    told = {
        "matchers": 'disk="d7"',
        "comment": "backup",
        "starts_at": start.isoformat(),
        "ends_at": (start + HOUR).isoformat(),
        "recurrence": {"rule": "FREQ=DAILY", "time_zone": "UTC"},
    }
    return call("post", "silences", {**told, **more}, "incidents:write")


def test_a_silence_that_recurs_holds_in_its_times_only() -> None:
    start = timezone.now() + timedelta(minutes=10)
    made = silence(start)
    assert (made.status_code, made.json()["state"]) == (201, "pending")
    row = Silence.objects.get()
    assert state_of(row, start + timedelta(days=3, minutes=5)) == "active"
    assert state_of(row, start + timedelta(days=3, hours=2)) == "pending"
    assert state_of(row, start + timedelta(days=400)) == "expired"


def test_it_lets_go_when_its_time_is_over_and_holds_again_in_the_next() -> None:
    silence(timezone.now() + timedelta(seconds=1))
    row = Silence.objects.get()
    Silence.objects.update(starts_at=row.starts_at - timedelta(minutes=5))
    again = row.recurrence
    again.starts_at -= timedelta(minutes=5)
    again.ends_at -= timedelta(minutes=5)
    again.save()
    send(alert("d7", labels={"disk": "d7"}))
    assert [one.alert.alert.title for one in suppressed_alerts()[0]] == ["d7 is slow"]
    assert later(timezone.now()) == 0
    assert later(timezone.now() + 2 * HOUR) == 1


def test_alertmanagers_api_tells_the_next_time_of_one_that_recurs() -> None:
    start = (timezone.now() + 2 * HOUR).replace(microsecond=0)
    silence(start)
    key = keys.create("amtool", ["incidents:read"])
    (told,) = Client(headers={"Authorization": f"Bearer {key}"}).get("/api/v2/silences").json()
    assert told["status"] == {"state": "pending"}
    assert datetime.fromisoformat(told["endsAt"]) == start + HOUR


def test_silences_are_recorded_as_configuration() -> None:
    made = silence(timezone.now() + HOUR).json()
    call("delete", f"silences/{made['id']}", scope="incidents:write")
    first, last = configured("silence", made["id"])
    assert first.body["after"]["recurrence"]["rule"] == "FREQ=DAILY"
    assert last.body["after"]["ends_at"] < first.body["after"]["ends_at"]


@pytest.mark.parametrize(
    "told",
    [
        7,
        {},
        {"rule": 7},
        {"rule": "FREQ=DAILY", "more": 1},
        {"rule": "FREQ=MINUTELY"},
        {"rule": "FREQ=DAILY", "time_zone": 7},
        {"rule": "FREQ=DAILY", "until": "2099-01-01T00:00:00Z"},
        {"rule": "FREQ=DAILY", "until": "soon"},
    ],
)
def test_a_silence_that_cannot_recur_so_is_refused(told: object) -> None:
    answer = silence(timezone.now() + HOUR, recurrence=told)
    assert answer.status_code == 400
    assert "recurrence" in str(answer.json()["errors"])
    assert not Silence.objects.exists()
