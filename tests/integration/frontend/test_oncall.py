"""The pages of on call, and of schedules and calendars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from frontend.examples import SCHEDULE
from incidents.escalation.models import EscalationPolicy
from incidents.oncall import queries
from incidents.oncall.models import Calendar, CalendarFeed, OnCallSchedule, Override
from ingest.api import keys
from ingest.queries import configured

pytestmark = pytest.mark.django_db
LAYER = {"name": "primary", "people": ["alice", "bob"], "start": "2026-01-05T09:00", "turn": "1d"}
ICS = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20201225\r\n"
    "RRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


@pytest.fixture(autouse=True)
def people() -> None:
    for name in ("alice", "bob", "charlie"):
        get_user_model().objects.create(username=name, is_staff=name == "alice")


def signed_in(name: str = "bob") -> Client:
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client


def storage(**more: Any) -> OnCallSchedule:
    given = {"slug": "storage", "name": "Storage", "time_zone": "Europe/Berlin", "layers": [LAYER], **more}
    return OnCallSchedule.objects.create(**given)


def text(path: str, who: str = "bob") -> str:
    answer = signed_in(who).get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def form(**more: str) -> dict[str, str]:
    layer = {
        "name": "primary",
        "people": "alice, bob",
        "start": "2026-01-05T09:00",
        "every": "1",
        "unit": "w",
    }
    named = {"slug": "disks", "name": "Disks", "time_zone": "Europe/Berlin"}
    return {**named, **{f"layer-0-{name}": said for name, said in layer.items()}, **more}


def test_everybody_sees_who_is_on_call_until_when_and_who_then() -> None:
    storage()
    shown, now = text("/on-call", "charlie"), datetime.now(UTC)
    [person] = queries.on_call("storage", now)
    assert f"<strong>{person}</strong> is on call until" in shown
    assert "Nobody" not in shown


def test_an_override_is_marked_with_whose_place_it_takes() -> None:
    storage()
    assert "data-override" not in text("/on-call")
    [rotated] = queries.on_call("storage", datetime.now(UTC))
    signed_in().post("/on-call/storage/take-over", {"person": "charlie", "span": "4 h", "reason": "dentist"})
    for page in ("/on-call", "/on-call/storage"):
        assert f"override</span> in place of <strong>{rotated}</strong> until" in text(page)


def test_an_unknown_schedule_is_refused_with_those_that_exist() -> None:
    for n in range(queries.LISTED + 1):
        storage(slug=f"s{n}")
    answer = signed_in().get("/api/v1/schedules/nightly/shifts")
    assert answer.json()["detail"] == "There is no schedule nightly; there are s0, s1, s2, s3, s4, more."


def test_a_gap_is_said_in_words() -> None:
    storage(layers=[{**LAYER, "end": "2026-01-06T09:00"}])
    assert "No one is on call" in text("/on-call")
    assert "<strong>No one is on call</strong>" in text("/on-call/storage")


@pytest.mark.parametrize(("who", "told"), [("alice", "Create schedule"), ("bob", "Staff can")])
def test_without_a_schedule_the_page_says_what_to_do(who: str, told: str) -> None:
    assert told in text("/on-call", who)


@pytest.mark.parametrize("day", ["2026-03-23", "0001-01-01", "9999-12-31", "tomorrow", "%00"])
def test_the_calendar_turns_to_any_day_or_stays(day: str) -> None:
    storage()
    assert text(f"/on-call/storage?from={day}").count("<td") == 28


def test_somebody_takes_over_with_one_form() -> None:
    storage()
    signed_in().post("/on-call/storage/take-over", {"person": "charlie", "span": "4 h", "reason": "dentist"})
    assert queries.on_call("storage", datetime.now(UTC)) == ("charlie",)


def test_somebody_takes_over_until_a_time_that_was_chosen_in_the_rota() -> None:
    storage()
    day = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%d")
    body = {
        "person": "charlie",
        "span": "4 h",
        "reason": "dentist",
        "starts": f"{day}T10:00",
        "ends": f"{day}T13:00",
    }
    signed_in().post("/on-call/storage/take-over", body)
    row = Override.objects.get()
    assert row.ends_at - row.starts_at == timedelta(hours=3)


@pytest.mark.parametrize("ends", ["2001-01-01T10:00", "soon", "\0", "9999-12-31T00:00"])
def test_an_end_that_cannot_be_is_said_at_its_field(ends: str) -> None:
    storage()
    body = {"person": "charlie", "reason": "dentist", "ends": ends}
    answer = signed_in().post("/on-call/storage/take-over", body)
    assert answer.status_code == 400
    assert '<label for="ends">Until</label><p class="problem" role="alert">' in answer.content.decode()
    assert not Override.objects.exists()


def test_a_week_is_shown_by_the_hour_with_own_turns_and_gaps_in_words() -> None:
    storage(layers=[{**LAYER, "times": [{"days": ["mon"], "from": "08:00", "to": "20:00"}]}])
    shown = text("/on-call/storage?view=hours&from=2095-03-07")
    assert shown.count("<td data-at=") == 7 * 24
    assert ", no one" in shown
    assert "Mon 7 Mar 20:00 – Mon 14 Mar 00:00" in shown


def test_who_looks_finds_their_own_turns_first() -> None:
    storage(layers=[{**LAYER, "people": ["bob"]}])
    assert "Your shifts" in text("/on-call", "bob")
    assert "Your shifts" not in text("/on-call", "charlie")
    assert "<strong>You are on call</strong>" in text("/on-call/storage", "bob")


@pytest.mark.parametrize("view", ["", "months", "\0", "hours"])
def test_any_view_is_answered(view: str) -> None:
    storage()
    assert "<table" in text(f"/on-call/storage?view={view}&from=2026-10-19")


def test_times_of_a_form_are_those_of_the_schedules_zone() -> None:
    storage()
    start = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT10:00")
    body = {"person": "charlie", "span": "4 h", "reason": "dentist", "starts": start}
    signed_in().post("/on-call/storage/take-over", body)
    assert Override.objects.get().starts_at.strftime("%Y-%m-%dT%H") in (f"{start[:11]}08", f"{start[:11]}09")


@pytest.mark.parametrize(
    "changed",
    [
        {"person": "mallory"},
        {"person": "\0"},
        {"span": "for ever"},
        {"starts": "soon"},
        {"reason": ""},
        {"other": "30 d 999 d"},
    ],
    ids=str,
)
def test_what_cannot_be_taken_over_is_said_and_stays_typed(changed: dict[str, str]) -> None:
    storage()
    body = {"person": "charlie", "span": "4 h", "reason": "dentist", **changed}
    answer = signed_in().post("/on-call/storage/take-over", body)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not Override.objects.exists()


def choices() -> tuple[str, str]:
    now = datetime.now(UTC)
    later = queries.shifts("storage", now, now + timedelta(days=5))[1:3]
    first, second = (f"{one.start.isoformat()} {one.end.isoformat()} {one.person}" for one in later)
    return first, second


def test_two_shifts_are_swapped_and_taken_back() -> None:
    storage()
    first, second = choices()
    client = signed_in()
    client.post("/on-call/storage/swap", {"first": first, "second": second, "reason": "concert"})
    assert Override.objects.count() == 2
    client.post(f"/on-call/storage/swaps/{Override.objects.all()[0].swap}/take-back")
    assert not Override.objects.exists()


@pytest.mark.parametrize(
    "wrong", ["", "now then alice", "2026-01-01T00:00:00Z 2026-01-02T00:00:00Z alice", "\0"]
)
def test_a_shift_that_is_none_is_not_swapped(wrong: str) -> None:
    storage()
    answer = signed_in().post(
        "/on-call/storage/swap", {"first": wrong, "second": choices()[1], "reason": "x"}
    )
    assert answer.status_code == 400


def test_an_override_is_ended_on_the_page() -> None:
    storage()
    client = signed_in()
    client.post("/on-call/storage/take-over", {"person": "charlie", "span": "4 h", "reason": "dentist"})
    client.post(f"/on-call/storage/overrides/{Override.objects.get().pk}/end")
    assert queries.on_call("storage", datetime.now(UTC)) != ("charlie",)


def test_an_address_for_calendars_is_shown_once() -> None:
    storage()
    client = signed_in()
    shown = client.post("/on-call/storage/feeds", {"mine": "on"}).content.decode()
    url = shown.split("<pre>")[1].split("</pre>")[0]
    assert Client().get("/" + url.split("/", 3)[3]).status_code == 200
    assert url not in text("/on-call/storage")
    client.post(f"/on-call/storage/feeds/{CalendarFeed.objects.get().pk}/remove")
    assert not CalendarFeed.objects.exists()


# Editing
# ----------------------------------------------------------------------------------------------------------
def test_staff_makes_a_schedule_and_changes_it() -> None:
    client = signed_in("alice")
    client.post("/settings/schedules/new", form())
    client.post(
        "/settings/schedules/disks",
        form(**{"layer-0-people": "charlie", "layer-0-times": "sat sun 08:00-20:00"}),
    )
    assert OnCallSchedule.objects.get().layers[0]["people"] == ["charlie"]
    assert [one.actor for one in configured("schedule", "disks")] == ["user:alice"] * 2


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"layer-0-people": "mallory"}, "mallory"),
        ({"layer-0-every": "0"}, "must be hours, days or weeks"),
        ({"layer-0-times": "weekdays"}, "such as: mon tue"),
        ({"layer-0-name": "", "layer-0-people": "alice"}, "must not be empty"),
        ({"time_zone": "Mars/Base"}, "is not a time zone"),
        ({"slug": "a b"}, "slug"),
        ({"name": "\0"}, 'role="alert"'),
    ],
    ids=str,
)
def test_what_is_wrong_is_shown_with_what_was_typed(changed: dict[str, str], told: str) -> None:
    answer = signed_in("alice").post("/settings/schedules/new", form(**changed))
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert "Disks" in answer.content.decode() or "name" in changed
    assert not OnCallSchedule.objects.exists()


@pytest.mark.parametrize(
    "path", ["schedules/new", "schedules/storage", "schedules/storage/remove", "calendars"]
)
def test_only_staff_edits(path: str) -> None:
    storage()
    assert signed_in("bob").post(f"/settings/{path}", form()).status_code == 403
    assert OnCallSchedule.objects.count() == 1


def test_a_schedule_is_removed_and_that_is_recorded() -> None:
    storage()
    signed_in("alice").post("/settings/schedules/storage/remove")
    assert configured("schedule", "storage")[-1].body["after"] is None


def test_a_calendar_is_brought_as_a_file_and_shown_in_the_weeks() -> None:
    file = SimpleUploadedFile("holidays.ics", ICS.encode(), "text/calendar")
    signed_in("alice").post("/settings/calendars", {"slug": "public", "name": "Public", "file": file})
    row = storage()
    row.holidays.add(Calendar.objects.get())
    assert "Christmas" in text(f"/on-call/storage?from={datetime.now(UTC).year}-12-21")


def test_what_is_no_calendar_is_refused_on_the_page() -> None:
    answer = signed_in("alice").post(
        "/settings/calendars", {"slug": "public", "name": "Public", "text": "hello"}
    )
    assert answer.status_code == 400
    assert "iCalendar" in answer.content.decode()


def test_a_calendar_that_a_schedule_has_stays() -> None:
    calendar = Calendar.objects.create(slug="public", name="Public", text=ICS)
    storage().holidays.add(calendar)
    signed_in("alice").post("/settings/calendars/public/remove")
    assert Calendar.objects.exists()


def test_a_schedule_that_a_policy_calls_stays_and_says_why() -> None:
    storage()
    steps = [{"after": 0, "actions": [{"schedule": "storage"}]}]
    EscalationPolicy.objects.create(slug="disks", name="Disks", steps=steps)
    answer = signed_in("alice").post("/settings/schedules/storage/remove", follow=True)
    assert "used by the escalation policy Disks; change that first." in answer.content.decode()
    assert OnCallSchedule.objects.exists()


def test_the_docs_tell_of_schedules() -> None:
    assert "Absent people are skipped" in text("/docs/operate/on-call")


def test_the_example_of_the_docs_is_a_schedule() -> None:
    made = Client(headers={"Authorization": f"Bearer {keys.create('script', ['admin'])}"}).post(
        "/api/v1/schedules", SCHEDULE, content_type="application/json"
    )
    assert made.status_code == 201


def test_the_address_of_a_calendar_upload_leads_to_its_form() -> None:
    response = signed_in("alice").get("/settings/calendars")
    assert (response.status_code, response["Location"]) == (302, "/settings/schedules#calendars")


@pytest.mark.parametrize("address", ["/settings/schedules", "/settings/schedules/new"])
def test_patterns_of_short_names_are_valid_under_the_v_flag(address: str) -> None:
    page = signed_in("alice").get(address).content.decode()
    assert 'pattern="[a-zA-Z0-9_\\-]+"' in page
    assert 'pattern="[-' not in page


def test_a_turn_is_told_with_its_own_bounds_and_not_those_of_the_page() -> None:
    begun = datetime.now(UTC) - timedelta(days=10)
    alone = {**LAYER, "people": ["bob"], "start": f"{begun:%Y-%m-%dT09:00}", "turn": "1w"}
    storage(time_zone="UTC", layers=[alone])
    shown = text("/on-call/storage", "bob")
    assert f"since {begun:%a} {begun.day} {begun:%b} 09:00, until further notice" in shown
    assert "now –" in shown or "Fewer than two shifts" in shown


def test_a_turn_that_ends_within_weeks_is_told_from_begin_to_end() -> None:
    begun = datetime.now(UTC) - timedelta(days=2)
    storage(time_zone="UTC", layers=[{**LAYER, "start": f"{begun:%Y-%m-%dT09:00}", "turn": "1w"}])
    ends = begun + timedelta(weeks=1)
    told = f"{begun:%a} {begun.day} {begun:%b} 09:00 – {ends:%a} {ends.day} {ends:%b} 09:00"
    assert told in text("/on-call/storage", "alice")


def test_a_schedule_that_begins_now_warns_of_no_gap_that_is_past() -> None:
    begun = datetime.now(UTC) - timedelta(hours=1)
    storage(time_zone="UTC", layers=[{**LAYER, "start": f"{begun:%Y-%m-%dT%H:00}"}])
    for view in ("days", "hours"):
        assert "No one is on call" not in text(f"/on-call/storage?view={view}")
