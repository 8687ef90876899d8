"""Rules and hours as people write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.routing.rules import Rule, Team, hours_from
from incidents.domain.routing.schema import (
    Written,
    all_written,
    check_slug,
    check_tree,
    conditions_from,
    free_name,
    grouping_from,
    grouping_json,
    suggested_name,
    tree_from,
    when_json,
    written_from,
)
from incidents.domain.values import InvalidValueError

TEAMS = {"storage": Team("storage", "Storage")}


def read(**fields: Any) -> Written:
    return written_from(fields, TEAMS, {}, 0)


def test_what_is_asked_reads_back_as_it_was_written() -> None:
    asked = {
        "labels": ['env!="dev"', 'disk=~"d.*"'],
        "analyzer": "deepview",
        "severities": ["critical", "error"],
        "min_confidence": 0.9,
        "hours": ["mon-fri 18:00-08:00"],
        "zone": "Europe/Berlin",
    }
    assert when_json(conditions_from("disk/*", asked)) == asked


def test_what_asks_nothing_is_written_as_nothing() -> None:
    assert when_json(conditions_from("", {"labels": [], "service": "", "min_confidence": None})) == {}


@pytest.mark.parametrize(
    ("when", "field"),
    [
        ({"colour": "red"}, "when.colour"),
        ({"labels": "env=prod"}, "when.labels"),
        ({"labels": ["="]}, "when.labels"),
        ({"labels": ['a=~"("']}, "when.labels"),
        ({"labels": [7]}, "when.labels"),
        ({"severities": ["loud"]}, "when.severities"),
        ({"min_confidence": 90}, "when.min_confidence"),
        ({"min_confidence": True}, "when.min_confidence"),
        ({"hours": ["noon"]}, "when.hours"),
        ({"hours": ["mon 09:00-09:00"]}, "when.hours"),
        ({"hours": ["mon 09:61-10:00"]}, "when.hours"),
        ({"hours": ["mon 09:00-25:00"]}, "when.hours"),
        ({"hours": ["foo 09:00-10:00"]}, "when.hours"),
        ({"hours": ["09:00-10:00"], "zone": "Mars/Olympus"}, "zone"),
        ({"hours": ["09:00-10:00"], "zone": "../etc/passwd"}, "zone"),
        ({"zone": "UTC"}, "when.zone"),
        ({"service": "a\0b"}, "when.service"),
        ([], "when"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(when: Any, field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        conditions_from("", when)
    assert refused.value.field == field


def test_whether_suggestions_are_followed_is_yes_no_or_left_open() -> None:
    follows = [
        read(pattern="disk/*", follow_suggestion=value).rule.follow_suggestion
        for value in (True, False, None)
    ]
    assert follows == [True, False, None]
    with pytest.raises(InvalidValueError, match="true, false or null"):
        read(pattern="disk/*", follow_suggestion="yes")


@pytest.mark.parametrize(
    "grouping",
    [
        None,
        {"by": None, "window_seconds": 60},
        {"by": [], "window_seconds": None},
        {"by": ["..."]},
        {"by": ["a", "b"]},
    ],
)
def test_a_grouping_reads_back_as_it_was_written(grouping: Any) -> None:
    full = None if grouping is None else {"by": None, "window_seconds": None, **grouping}
    assert grouping_json(grouping_from(grouping)) == full


@pytest.mark.parametrize(
    "grouping",
    [
        [],
        {"by": "rack"},
        {"by": ["a", "a"]},
        {"by": ["...", "a"]},
        {"by": [1]},
        {"window_seconds": 1},
        {"window_seconds": 10**12},
        {"window_seconds": True},
        {"window_seconds": 90.5},
        {"wait": 1},
        {"by": [f"l{n}" for n in range(11)]},
    ],
)
def test_a_grouping_that_makes_no_sense_is_refused(grouping: Any) -> None:
    with pytest.raises(InvalidValueError, match="grouping"):
        grouping_from(grouping)


def test_the_old_form_of_a_rule_gets_a_name_from_its_pattern() -> None:
    written = read(order=3, pattern="storage_cluster/*", team="storage")
    assert (written.rule.name, written.order, written.parent) == ("storage_cluster", 3, None)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("tor/*", "tor"), ("*/dc1-*", "dc1"), ("host/a.b", "host-a-b"), ("", "storage"), ("*", "storage")],
)
def test_a_name_is_suggested_from_what_matches(pattern: str, name: str) -> None:
    assert suggested_name(pattern, "storage", 1) == name


@given(st.text(max_size=300), st.text(max_size=60))
def test_a_suggested_name_is_always_a_good_one(pattern: str, team: str) -> None:
    name = suggested_name(pattern, team, 7)
    assert check_slug("name", free_name(name, {name})) == f"{name[:50]}-2"


def test_a_rule_names_its_place_when_it_is_wrong() -> None:
    with pytest.raises(InvalidValueError) as refused:
        written_from({"pattern": "tor/*", "team": "sales"}, TEAMS, {}, 4)
    assert (refused.value.field, refused.value.reason) == (
        "routes[4].team",
        "unknown team; use storage",
    )


def one(name: str, parent: str | None = None, order: int = 0) -> Written:
    return Written(Rule(name), parent, order)


def test_rules_stand_by_order_and_then_by_name_beneath_their_parent() -> None:
    (first, second) = tree_from([one("z", order=1), one("b", "a", 5), one("c", "a", 5), one("a", order=1)])
    assert (first.name, [child.name for child in first.children], second.name) == ("a", ["b", "c"], "z")


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ([one("a"), one("a")], "`a` is the name of another rule"),
        ([one("a", "b")], "no rule `b`"),
        ([one("a", "b"), one("b", "a")], "would be its own ancestor"),
        ([one("a", "a")], "would be its own ancestor"),
        ([one("0"), *(one(str(n), str(n - 1)) for n in range(1, 11))], "at most 10 levels"),
        ([one(str(n)) for n in range(1001)], "at most 1000 rules"),
    ],
)
def test_what_is_no_tree_is_refused(written: list[Written], why: str) -> None:
    with pytest.raises(InvalidValueError, match=why):
        check_tree(written)


def test_a_circle_in_the_table_hangs_nobody() -> None:
    assert tree_from([one("a", "b"), one("b", "a"), one("c")]) == (Rule("c"),)


def holds(span: str, at: str, zone: str = "UTC") -> bool:
    return hours_from("hours", [span], zone).hold(datetime.fromisoformat(at).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("span", "at", "expected"),
    [
        ("mon-fri 09:00-17:00", "2026-11-20T09:00", True),  # a Friday
        ("mon-fri 09:00-17:00", "2026-11-20T17:00", False),
        ("mon-fri 09:00-17:00", "2026-11-21T12:00", False),
        ("sat,sun 00:00-24:00", "2026-11-22T23:59", True),
        ("fri-mon 00:00-24:00", "2026-11-23T00:00", True),
        ("fri-mon 00:00-24:00", "2026-11-24T00:00", False),
        ("22:00-06:00", "2026-11-24T05:59", True),
        ("fri 22:00-06:00", "2026-11-21T05:59", True),  # the night that began on Friday
        ("fri 22:00-06:00", "2026-11-20T05:59", False),
    ],
)
def test_hours_are_those_of_the_week(span: str, at: str, expected: bool) -> None:
    assert holds(span, at) == expected


@pytest.mark.parametrize(("at", "expected"), [("2026-03-28T07:30", False), ("2026-03-30T07:30", True)])
def test_hours_go_with_the_clock_on_the_wall(at: str, expected: bool) -> None:
    """In Berlin 07:30 UTC is 08:30 in winter and 09:30 from 29 March 2026 on."""
    assert holds("09:00-17:00", at, "Europe/Berlin") == expected


def test_rules_of_a_list_that_have_no_name_get_one_each() -> None:
    rules = [{"pattern": "disk/*"}, {"pattern": "disk/*"}, {"name": "disk-2"}, {"pattern": "disk/*"}]
    assert [one.rule.name for one in all_written(rules, {}, {})] == ["disk", "disk-3", "disk-2", "disk-4"]
