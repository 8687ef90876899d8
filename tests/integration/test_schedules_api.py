"""Schedules over HTTP: configuring them, overriding and swapping shifts, reading them as people and calendars do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import icalendar
import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from structlog.testing import capture_logs

from incidents.catalog.models import Membership, Team
from incidents.domain.times import rfc3339
from incidents.escalation.models import EscalationPolicy
from incidents.oncall import calendars, queries
from incidents.oncall.models import Calendar, Feed, Override, Schedule
from ingest.api import keys
from ingest.queries import configured

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
LAYER = {"name": "primary", "people": ["alice", "bob"], "start": "2026-01-05T09:00", "turn": "1d"}
STORAGE = {"slug": "storage", "name": "Storage on call", "time_zone": "Europe/Berlin", "layers": [LAYER]}
HOLIDAYS = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20201225\r\n"
    "RRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


@pytest.fixture(autouse=True)
def people() -> None:
    for name in ("alice", "bob", "charlie"):
        get_user_model().objects.create(username=name, is_staff=name == "alice")


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client


def call(method: str, path: str, body: object = None, who: str = "alice") -> Any:
    given = () if body is None else (body,)
    return getattr(signed_in(who), method)(f"/api/v1/{path}", *given, content_type="application/json")


def storage(**more: Any) -> Any:
    answer = call("post", "schedules", {**STORAGE, **more})
    assert answer.status_code == 201, answer.content
    return answer.json()


def in_days(number: float) -> str:
    return rfc3339(NOW + number * DAY)


def shift_of(person: str) -> tuple[str, str]:
    """The next whole shift of somebody."""
    found = [one for one in queries.shifts("storage", NOW, NOW + 5 * DAY) if one.person == person]
    return rfc3339(found[1].start), rfc3339(found[1].end)


# Configuring
# ----------------------------------------------------------------------------------------------------------
def test_a_schedule_is_kept_as_it_was_written() -> None:
    storage()
    kept = call("get", "schedules/storage").json()
    assert {name: kept[name] for name in STORAGE} == STORAGE


def test_a_schedule_says_how_it_stands() -> None:
    standing = storage()["standing"]
    assert {standing["person"], standing["then"]} == {"alice", "bob"}
    assert standing["gaps"] == standing["gone"] == []


def test_a_schedule_with_a_gap_warns_of_it() -> None:
    ends = (NOW + 3 * DAY).replace(tzinfo=None, hour=12, minute=0, second=0).isoformat()
    [gap] = storage(time_zone="UTC", layers=[{**LAYER, "end": ends}])["standing"]["gaps"]
    assert gap["start"] == f"{ends}Z"


def test_every_change_is_recorded_with_before_and_after() -> None:
    storage()
    call("patch", "schedules/storage", {"name": "Disks"})
    call("delete", "schedules/storage")
    told = [(one.body["before"], one.body["after"]) for one in configured("schedule", "storage")]
    assert [(before and before["name"], after and after["name"]) for before, after in told] == [
        (None, "Storage on call"),
        ("Storage on call", "Disks"),
        ("Disks", None),
    ]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"layers": [{**LAYER, "people": ["mallory"]}]}, "layers"),
        ({"layers": [{**LAYER, "turn": "1m"}]}, "layers[0].turn"),
        ({"time_zone": "Mars/Base"}, "time_zone"),
        ({"team": "nowhere"}, "team"),
        ({"holidays": ["nowhere"]}, "holidays"),
        ({"name": "a\u0000b"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_by_name_and_nothing_is_stored(changed: Any, field: str) -> None:
    answer = call("post", "schedules", {**STORAGE, **changed})
    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert not Schedule.objects.exists()


def test_somebody_who_may_not_sign_in_is_not_put_into_a_layer() -> None:
    get_user_model().objects.filter(username="bob").update(is_active=False)
    assert "bob" in call("post", "schedules", STORAGE).json()["errors"]["layers"][0]


def test_a_schedule_keeps_its_name_for_those_who_name_it() -> None:
    storage()
    assert call("patch", "schedules/storage", {"slug": "disks"}).status_code == 400


def test_a_schedule_that_a_policy_calls_is_not_removed() -> None:
    storage()
    steps = [{"after": 0, "actions": [{"schedule": "storage"}]}]
    EscalationPolicy.objects.create(slug="disks", name="Disks", steps=steps)
    answer = call("delete", "schedules/storage")
    assert (answer.status_code, "Disks" in answer.json()["detail"]) == (409, True)
    assert Schedule.objects.exists()


# Asking
# ----------------------------------------------------------------------------------------------------------
def test_everybody_on_call_is_one_question() -> None:
    storage()
    [found] = call("get", "on_call", who="charlie").json()["results"]
    assert (found["schedule"], found["people"]) == ("storage", list(queries.on_call("storage", NOW)))


def test_shifts_come_with_what_each_person_does() -> None:
    storage()
    told = call("get", f"schedules/storage/shifts?from={in_days(0)}&to={in_days(10)}").json()
    assert sum(told["hours"].values()) == 240
    assert told["gaps"] == []


@pytest.mark.parametrize(
    "query",
    [
        f"from={in_days(0)}&to={in_days(371)}",
        f"from={in_days(1)}&to={in_days(0)}",
        "from=0001-01-01T00:00:00Z",
        "to=9999-12-31T23:59:59Z",
        "from=now",
        "from=%00",
        "colour=red",
    ],
    ids=range(7),  # not by their values, which change with the clock: all workers have to collect the same
)
def test_a_span_that_makes_no_sense_is_refused(query: str) -> None:
    storage()
    assert call("get", f"schedules/storage/shifts?{query}").status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "on_call"),
        ("get", "shifts"),
        ("get", "overrides"),
        ("delete", "overrides/7"),
        ("delete", "swaps/7"),
    ],
)
def test_a_schedule_that_is_not_there_is_said_to_be_so(method: str, path: str) -> None:
    assert call(method, f"schedules/nowhere/{path}").status_code == 404


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
    answer = call("post", "calendars", {"slug": "bomb", "name": "Bomb", "text": text})
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
    kept = Feed.objects.get().digest + str(configured("schedule_feed", f"storage/{made['id']}")[0].body)
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


# Elsewhere
# ----------------------------------------------------------------------------------------------------------
def test_somebody_who_left_does_not_keep_a_schedule_from_being_changed() -> None:
    storage()
    get_user_model().objects.filter(username="bob").update(is_active=False)
    answer = call("patch", "schedules/storage", {"layers": [{**LAYER, "turn": "1w"}]})
    assert (answer.status_code, answer.json()["standing"]["gone"]) == (200, ["bob"])


def test_gaps_are_a_metric() -> None:
    storage(layers=[{**LAYER, "end": "2026-01-06T09:00"}])
    told = Client().get("/metrics").content.decode()
    assert f'dossier_oncall_gap_seconds{{schedule="storage"}} {14 * 86_400:.6e}'.split()[0] in told
    assert queries.uncovered(NOW) == {"storage": 14 * DAY}


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
