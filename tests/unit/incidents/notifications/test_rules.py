"""Rules of a person: which methods, in which order; quiet hours time zone where they live."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.notifications.delivery import (
    ACCOUNT,
    Method,
    Person,
    QuietHours,
    Rule,
    another_way,
    quiet_as_json,
    quiet_from,
    rules_as_json,
    rules_from,
    steps,
)
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.incident.cases import NOON

PHONE = Method("phone", "apprise")
MAIL = Method("mail", "email")
OWN = Method(ACCOUNT, "email", "account")
BERLIN = QuietHours("Europe/Berlin", time(22), time(7))


def planned(person: Person, severity: Any = "error", urgent: bool = True) -> list[tuple[str, int]]:
    found = steps(person, severity, urgent, NOON)
    return [(step.method.name, int((step.at - NOON).total_seconds())) for step in found]


def test_without_rules_and_methods_the_address_of_the_account_is_told_at_once() -> None:
    assert planned(Person("alice", (OWN,))) == [("account", 0)]


def test_without_rules_all_own_methods_are_told_at_once() -> None:
    assert planned(Person("alice", (PHONE, MAIL, OWN))) == [("phone", 0), ("mail", 0)]


def test_rules_are_followed_in_the_order_of_their_delays() -> None:
    rules = (Rule("phone", timedelta(minutes=5)), Rule("mail"))
    assert planned(Person("alice", (PHONE, MAIL), rules)) == [("mail", 0), ("phone", 300)]


def test_a_rule_is_for_the_severities_and_the_urgency_that_it_names() -> None:
    rules = (Rule("phone", severities=("critical",)), Rule("mail", urgent=False), Rule("account"))
    person = Person("alice", (PHONE, MAIL, OWN), rules)
    assert planned(person, "critical", urgent=True) == [("phone", 0), ("account", 0)]
    assert planned(person, "error", urgent=False) == [("mail", 0), ("account", 0)]


def test_a_ticket_that_no_rule_is_for_is_told_as_without_rules() -> None:
    assert planned(Person("alice", (PHONE, OWN), (Rule("phone", severities=("critical",)),)), "info") == [
        ("phone", 0)
    ]


def test_rules_that_say_the_same_tell_once() -> None:
    assert planned(Person("alice", (MAIL,), (Rule("mail"), Rule("mail", severities=("error",))))) == [
        ("mail", 0)
    ]


def test_somebody_without_a_method_has_no_plan() -> None:
    assert planned(Person("alice")) == []


def test_when_all_has_failed_a_method_that_no_rule_names_is_next() -> None:
    person = Person("alice", (PHONE, MAIL, OWN))
    assert another_way(person, ["phone", "mail"]) == OWN
    assert another_way(person, ["phone", "mail", "account"]) is None


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        ("2026-11-20T21:30:00", "2026-11-21T06:00:00"),
        ("2026-11-21T05:59:59", "2026-11-21T06:00:00"),
        ("2026-11-21T06:00:00", None),
        ("2026-11-21T20:59:59", None),
        ("2026-03-28T22:00:00", "2026-03-29T05:00:00"),  # the night when summer time begins
        ("2026-10-24T23:00:00", "2026-10-25T06:00:00"),  # and ends
    ],
)
def test_quiet_hours_go_by_local_clocks(moment: str, end: str | None) -> None:
    told = BERLIN.until(datetime.fromisoformat(moment).replace(tzinfo=UTC))
    assert told == (None if end is None else datetime.fromisoformat(end).replace(tzinfo=UTC))


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]),
    st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_quiet_hours_always_end_within_a_day_and_some(
    zone: str, start: time, end: time, now: datetime
) -> None:
    until = QuietHours(zone, start, end).until(now)
    assert until is None or now < until <= now + timedelta(hours=25)


def test_rules_are_read_as_they_are_written() -> None:
    rules = (Rule("phone", timedelta(seconds=90), ("critical", "error"), True), Rule("mail"))
    assert rules_from(rules_as_json(rules), ["phone", "mail"]) == rules


def test_quiet_hours_are_read_as_they_are_written() -> None:
    assert quiet_from(quiet_as_json(BERLIN)) == BERLIN


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ("mail", "rules"),
        ([{"method": "fax"}], "rules[0].method"),
        ([{"method": "mail", "delay": -1}], "rules[0].delay"),
        ([{"method": "mail", "delay": True}], "rules[0].delay"),
        ([{"method": "mail", "delay": 10**9}], "rules[0].delay"),
        ([{"method": "mail", "severities": ["loud"]}], "rules[0].severities"),
        ([{"method": "mail", "severities": "error"}], "rules[0].severities"),
        ([{"method": "mail", "urgent": "yes"}], "rules[0].urgent"),
        ([{"method": "mail", "wait": 1}], "rules[0].wait"),
        ([{"method": "mail"}] * 21, "rules"),
        ([{"method": "ma\0il"}], "rules[0].method"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_by_its_field(told: object, field: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        rules_from(told, ["mail"])
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"zone": "Mars/Phobos", "start": "22:00", "end": "07:00"}, "quiet_hours.zone"),
        ({"zone": "../../etc/passwd", "start": "22:00", "end": "07:00"}, "quiet_hours.zone"),
        ({"zone": "UTC", "start": "25:00", "end": "07:00"}, "quiet_hours.start"),
        ({"zone": "UTC", "start": "22:00", "end": "22:00"}, "quiet_hours.end"),
        ({"zone": "UTC", "start": 22, "end": "07:00"}, "quiet_hours.start"),
        ([], "quiet_hours"),
    ],
)
def test_quiet_hours_that_make_no_sense_are_refused_by_their_field(told: object, field: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        quiet_from(told)
    assert refusal.value.field == field
