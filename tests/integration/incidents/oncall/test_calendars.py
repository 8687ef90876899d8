"""Calendars that schedules follow, and those that schedules give to calendar programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import icalendar
import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from structlog.testing import capture_logs

from incidents.oncall import calendars, queries
from incidents.oncall.models import Calendar, CalendarFeed
from ingest.api import keys
from ingest.queries import configured
from tests.integration.incidents.oncall.cases import DAY, HOLIDAYS, LAYER, NOW, call, in_days, storage

pytestmark = pytest.mark.usefixtures("people_of_schedules")


# Calendars
# ----------------------------------------------------------------------------------------------------------
def test_somebody_who_is_away_is_skipped() -> None:
    storage()
    away = HOLIDAYS.replace("20201225", NOW.strftime("%Y%m%d")).replace("FREQ=YEARLY", "FREQ=DAILY;COUNT=5")
    call("post", "calendars", {"slug": "a", "name": "Alice", "person": "alice", "text": away})
    assert {one.person for one in queries.shifts("storage", NOW + DAY, NOW + 3 * DAY)} == {"bob"}


def test_a_layer_for_holidays_takes_over_on_them() -> None:
    call("post", "calendars", {"slug": "public", "name": "Public holidays", "text": HOLIDAYS})
    festive = {**LAYER, "name": "holidays", "people": ["charlie"], "holidays": "only"}
    storage(holidays=["public"], layers=[LAYER, festive])
    christmas = datetime(NOW.year, 12, 25, 12, tzinfo=UTC)
    assert queries.on_call("storage", christmas) == ("charlie",)
    assert queries.on_call("storage", christmas - 2 * DAY) != ("charlie",)


def test_the_change_of_a_calendar_is_recorded_without_its_text() -> None:
    call("post", "calendars", {"slug": "public", "name": "Public holidays", "text": HOLIDAYS})
    [made] = configured("calendar", "public")
    assert "Christmas" not in str(made.body)
    assert made.body["after"]["entries"] > 0


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=1,2,3;BYSECOND=1,2,3",
    ],
    ids=["every second", "never", "too many"],
)
def test_a_calendar_that_would_run_for_ever_is_refused(rule: str) -> None:
    text = HOLIDAYS.replace("FREQ=YEARLY", rule).replace(";VALUE=DATE:20201225", ":20201225T000000Z")
    # Four times, because a quick machine comes to the year 9999 of one within the seconds that it has.
    answer = call("post", "calendars", {"slug": "bomb", "name": "Bomb", "text": text * 4})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["text"])


@pytest.mark.parametrize(
    "text",
    ["", "hello", "\ud800", HOLIDAYS * 3_000, "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VEVENT"],
    ids=range(5),
)
def test_what_is_no_calendar_is_refused(text: str) -> None:
    answer = call("post", "calendars", {"slug": "bad", "name": "Bad", "text": text})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["text"])


def test_a_calendar_that_a_schedule_has_is_not_removed() -> None:
    call("post", "calendars", {"slug": "public", "name": "Public holidays", "text": HOLIDAYS})
    storage(holidays=["public"])
    assert call("delete", "calendars/public").status_code == 409


# For calendar programs
# ----------------------------------------------------------------------------------------------------------
def test_shifts_are_read_by_calendar_programs() -> None:
    storage()
    answer = call("get", f"schedules/storage.ics?from={in_days(0)}&to={in_days(3)}")
    events: list[Any] = icalendar.Calendar.from_ical(answer.content).walk("VEVENT")
    assert [(one["DTSTART"].dt, one["DTEND"].dt, str(one["SUMMARY"]).split()[0]) for one in events] == [
        (one.start, one.end, one.person) for one in queries.shifts("storage", NOW, NOW + 3 * DAY)
    ]


def test_a_secret_address_needs_no_key_and_shows_ones_own_shifts() -> None:
    storage()
    made = call("post", "schedules/storage/feeds", {"mine": True}, "bob").json()
    answer = Client().get(made["url"])
    events = icalendar.Calendar.from_ical(answer.content).walk("VEVENT")
    assert {str(one["SUMMARY"]) for one in events} == {"bob on call: Storage on call"}


def test_a_secret_is_neither_kept_nor_recorded() -> None:
    storage()
    made = call("post", "schedules/storage/feeds", {}, "bob").json()
    secret = made["url"].rsplit("/", 1)[1].removesuffix(".ics")
    kept = CalendarFeed.objects.get().digest + str(
        configured("schedule_feed", f"storage/{made['id']}")[0].body
    )
    assert secret not in kept


def test_a_secret_is_not_logged() -> None:
    storage()
    url = call("post", "schedules/storage/feeds", {}, "bob").json()["url"]
    with capture_logs() as logged:
        Client().get(url)
    assert [one["path"] for one in logged] == ["/api/v1/on_call/feeds/<secret>.ics"]


def test_a_secret_address_dies_with_its_maker() -> None:
    storage()
    url = call("post", "schedules/storage/feeds", {}, "bob").json()["url"]
    get_user_model().objects.filter(username="bob").update(is_active=False)
    assert Client().get(url).status_code == 404


@pytest.mark.parametrize(("who", "told"), [("charlie", 404), ("bob", 204), ("alice", 204)])
def test_ones_own_address_is_removed_by_oneself_or_staff(who: str, told: int) -> None:
    storage()
    made = call("post", "schedules/storage/feeds", {}, "bob").json()
    assert call("delete", f"schedules/storage/feeds/{made['id']}", who=who).status_code == told
    assert Client().get(made["url"]).status_code == (200 if told == 404 else 404)


def test_a_key_that_only_writes_removes_nobodys_address() -> None:
    storage()
    made = call("post", "schedules/storage/feeds", {}, "bob").json()
    writer = Client(headers={"Authorization": f"Bearer {keys.create('script', ['incidents:write'])}"})
    assert writer.delete(f"/api/v1/schedules/storage/feeds/{made['id']}").status_code == 404


def test_what_recurs_in_a_calendar_never_runs_out() -> None:
    call("post", "calendars", {"slug": "public", "name": "Public holidays", "text": HOLIDAYS})
    before = Calendar.objects.get().spans
    assert (calendars.read_again(NOW), calendars.read_again(NOW + 366 * DAY)) == (0, 1)
    assert Calendar.objects.get().spans[-1][0] > before[-1][0]


def test_a_calendar_that_cannot_be_read_again_stays_as_it_was() -> None:
    spans = [["2026-12-25", "2026-12-26", "Christmas"]]
    Calendar.objects.create(slug="bad", name="Bad", text="hello", spans=spans, read_until=NOW)
    assert calendars.read_again(NOW) == 0
    assert Calendar.objects.get().spans == spans
