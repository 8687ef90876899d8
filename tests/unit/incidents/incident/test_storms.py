"""Whether incidents come faster than people read."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from incidents.domain.incident.alerts import (
    FEW_NAMES,
    MANY,
    MOST_INCIDENTS,
    STORM_INCIDENTS,
    Opened,
    Storming,
    about_all,
    at_least,
    group_title,
    is_on_several,
    is_storming,
    storm_of,
    storm_title,
    title_of_the_rest,
)


def test_a_ticket_that_collects_a_storm_is_a_storm() -> None:
    storm = storm_of([Storming(7, "DiskSlow and others", 312, 300), Storming(9, "LinkDown", 8, 1)], 0)
    assert storm is not None
    assert (storm.alerts, storm.firing) == (320, 301)


def test_many_tickets_at_once_are_a_storm_without_one_that_collects_them() -> None:
    storm = storm_of([], MANY)
    assert storm is not None
    assert storm.arrivals == MANY


def test_a_few_tickets_at_once_are_none() -> None:
    assert storm_of([], MANY - 1) is None


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, 0),
        (9, 0),
        (10, 10),
        (19, 10),
        (20, 20),
        (49, 20),
        (50, 50),
        (99, 50),
        (100, 100),
        (31_415, 20_000),
    ],
)
def test_a_count_is_said_so_that_it_stays_true(count: int, said: int) -> None:
    assert at_least(count) == said


def test_the_title_of_a_storm_says_only_what_is_known() -> None:
    assert storm_title("prometheus", 3, ()) == "Storm from prometheus: alerts"
    assert storm_title("prometheus", 30_000, {"tor/t1"}) == "Storm from prometheus: 20,000+ alerts on tor/t1"
    many = {f"{kind}/{n}" for kind in ("tor", "disk") for n in range(206)}
    assert (
        storm_title("prometheus", 30_000, many) == "Storm from prometheus: 20,000+ alerts on 200+ components"
    )


def test_the_title_of_a_group_says_what_its_alerts_share() -> None:
    hosts = {f"host/h{n}" for n in range(60)}
    each = {f"Disk of {name} is slow" for name in hosts}
    assert (
        group_title("DiskSlow", 60, each, hosts) == "DiskSlow: 50+ alerts on 50+ components of the kind host"
    )
    assert group_title("DiskSlow", 12, {"Slow"}, {"host/h1"}) == "Slow: 10+ alerts on host/h1"
    assert group_title("", 12, each, ()) == "10+ alerts"
    assert len(group_title("x" * 500, 12, each, hosts)) == 300


@pytest.mark.parametrize(
    ("title", "alerts", "components", "after"),
    [
        (
            "Slow: 200+ alerts on 200+ components",
            120,
            {"vm/1", "vm/2"},
            "Slow: 100+ alerts on components of the kind vm",
        ),
        ("A: b: 1,000+ alerts", 4, {"vm/1"}, "A: b: fewer than 10 alerts on vm/1"),
        ("20+ alerts", 12, (), "10+ alerts"),
        ("Slow: 200+ alerts on 200+ components", 200, (), None),
        ("Slow: fewer than 10 alerts", 2, (), None),
        ("Cooling of hall 2, 200+ alerts of it", 2, (), None),
    ],
)
def test_the_title_of_a_group_that_lost_alerts_tells_what_is_left(
    title: str, alerts: int, components: Collection[str], after: str | None
) -> None:
    assert title_of_the_rest(title, alerts, components) == after


@pytest.mark.parametrize(
    ("title", "several"),
    [
        (group_title("Slow", 60, (), {f"vm/{n}" for n in range(60)}), True),
        (storm_title("prometheus", 60, {f"{kind}/{n}" for kind in ("vm", "tor") for n in range(60)}), True),
        (title_of_the_rest("Slow: 20+ alerts", 4, {"vm/1", "vm/2"}), True),
        (group_title("Slow", 60, (), {"vm/1"}), False),
        ("Two alerts on components of the rack", False),
    ],
)
def test_a_title_tells_that_alerts_are_on_several_components(title: str, several: bool) -> None:
    assert is_on_several(title) is several


def test_the_title_of_a_storm_fits() -> None:
    assert len(storm_title("x" * 500, 12, {"tor/t1"})) == 300


@pytest.mark.parametrize(
    ("opened", "rank", "name", "joins"),
    [
        ([Opened(3, "NodeDown")] * STORM_INCIDENTS, 3, "NodeDown", True),
        ([Opened(3, "NodeDown")] * (STORM_INCIDENTS - 1), 3, "NodeDown", False),
        ([Opened(3, "NodeDown")] * STORM_INCIDENTS, 2, "NodeDown", False),
        ([Opened(1, "NodeDown")] * STORM_INCIDENTS, 3, "NodeDown", True),
        ([Opened(3, "NodeDown")] * STORM_INCIDENTS, 3, "PaymentDown", False),
        ([Opened(3, "NodeDown")] * MOST_INCIDENTS, 3, "PaymentDown", True),
        ([Opened(3, f"rule {n % FEW_NAMES}") for n in range(STORM_INCIDENTS)], 3, "PaymentDown", True),
    ],
)
def test_a_storm_takes_its_own_names_and_no_higher_severity(
    opened: list[Opened], rank: int, name: str, joins: bool
) -> None:
    assert is_storming(opened, rank, name) is joins


HOSTS = {f"host/h{n}" for n in range(60)}


@pytest.mark.parametrize(
    ("title", "titles", "components", "after"),
    [
        ("Slow: 20+ alerts on host/h1", {"Slow"}, HOSTS, "Slow: 50+ alerts on 50+ components of the kind host"),
        ("Slow: 20+ alerts on vm/1", {"Slow"}, {"vm/1"}, "Slow: 50+ alerts on vm/1"),
        ("Slow: 20+ alerts on vm/2", {"Slow"}, {"vm/1"}, "Slow: 50+ alerts"),
        ("Slow: 20+ alerts on 10+ components", {"Slow"}, {"vm/1"}, "Slow: 50+ alerts"),
        ("Fast: 20+ alerts on vm/1", {"Slow"}, {"vm/1"}, "DiskSlow: 50+ alerts on vm/1"),
        ("20+ alerts on vm/1", {"Slow"}, {"vm/1"}, "DiskSlow: 50+ alerts on vm/1"),
        ("Slow", {"Slow"}, HOSTS, "DiskSlow: 50+ alerts on 50+ components of the kind host"),
    ],
)  # fmt: skip
def test_the_title_of_a_large_group_says_of_all_only_what_it_said_of_the_earlier_ones(
    title: str, titles: set[str], components: set[str], after: str
) -> None:
    assert group_title("DiskSlow", 60, *about_all(title, titles, components)) == after
