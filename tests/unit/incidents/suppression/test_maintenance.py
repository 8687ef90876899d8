"""Maintenance windows: what they cover, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.suppression.recurrence import Times
from incidents.domain.suppression.rules import (
    Matcher,
    Mode,
    Window,
    first_that_covers,
    in_force,
    mode_from,
    patterns_from,
)
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding, types

HOUR = timedelta(hours=1)
ENV = Matcher("env", "test")


def window(
    *components: str,
    matchers: tuple[Matcher, ...] = (),
    hours: int = 2,
    mode: Mode = "hold",
    slug: str = "row-3",
) -> Window:
    return Window("w", slug, "new firmware", components, matchers, Times(NOON, NOON + hours * HOUR), mode)


def test_a_pattern_covers_the_components_that_it_fits() -> None:
    assert window("tor/dc1-*").covers("tor/dc1-t12", {})
    assert not window("tor/dc1-*").covers("tor/dc2-t12", {})


def test_patterns_cover_no_alert_without_a_component() -> None:
    assert not window("tor/*").covers(None, {})


def test_matchers_and_patterns_must_both_fit() -> None:
    both = window("tor/*", matchers=(ENV,))
    assert both.covers("tor/1", {"env": "test"})
    assert not both.covers("tor/1", {})
    assert not both.covers(None, {"env": "test"})


def test_a_service_without_components_covers_nothing() -> None:
    empty = Window("w", "row-3", "moved", (), (), Times(NOON, NOON + HOUR), "hold", ("block-storage",))
    assert not empty.covers("tor/1", {})
    assert not empty.covers(None, {})


def test_matchers_alone_cover_what_they_fit() -> None:
    assert window(matchers=(ENV,)).covers(None, {"env": "test"})


def test_a_window_holds_from_its_start_until_before_its_end() -> None:
    assert in_force([window("a/*")], NOON)
    assert not in_force([window("a/*")], NOON + 2 * HOUR)


def test_of_several_the_one_that_ends_last_says_why() -> None:
    found = in_force([window("a/*"), window("a/*", hours=3, slug="longer")], NOON)
    first = first_that_covers(found, "hold", "a/1", {})
    assert first is not None
    assert first.why == "in the maintenance window longer until 2026-11-21 15:00 UTC: new firmware"


def test_a_quiet_window_holds_nothing_back() -> None:
    assert first_that_covers(in_force([window("a/*", mode="quiet")], NOON), "hold", "a/1", {}) is None


def test_planned_work_is_noted_on_a_ticket_that_is_open() -> None:
    note = c.RecordMaintenance("row-3", "tor/1", NOON + HOUR, "planned")
    assert types(after(blamed(finding())), note) == ["incident.maintenance_noted"]
    assert types(after(blamed(finding()), c.Resolve("none")), note) == []


@pytest.mark.parametrize("value", ["tor/*", [7], ["*"], ["**?"], [""], ["x" * 300], ["a/b"] * 51])
def test_what_is_no_list_of_patterns_is_refused(value: object) -> None:
    with pytest.raises(InvalidValueError, match="components"):
        patterns_from(value)


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="hold, quiet"):
        mode_from("loud")
