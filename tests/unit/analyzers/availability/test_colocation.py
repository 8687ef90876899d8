"""`colocation`: failures of far units against near ones."""

from typing import Any

import pytest

from analyzers.builtin.colocation import ANALYZER
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators import uptimes
from analyzers.testing import Case, check_calculator
from tests.unit.analyzers.availability.cases import Uptime, uptime_sums, window_of

DAY = 1440.0


def colocation(window: Window, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window, params)


def lives(unit: str, placed: str, downs: list[float], days: int = 2) -> list[Uptime]:
    """Up for `days`, down for ten minutes at each of `downs`."""
    rows: list[Uptime] = []
    at = 0.0
    for down in downs:
        rows += [(unit, at, down, "up", "", placed), (unit, down, down + 10, "down", "disk", placed)]
        at = down + 10
    return [*rows, (unit, at, days * DAY, "up", "", placed)]


def of(*parts: list[Uptime], days: float = 2) -> Window:
    return window_of(days, uptimes=uptime_sums([row for part in parts for row in part]))


def test_the_ratio_is_failures_per_time_up_far_over_near() -> None:
    window = of(lives("vm/a", "near", [100.0]), lives("vm/b", "far", [100.0, 900.0]))
    assert colocation(window, stratum_hours=48)["measures"]["ratio"] == pytest.approx(
        2 * 2870 / 2860 - 1, rel=1e-6
    )


def test_time_at_risk_is_time_up() -> None:
    measures = colocation(of(lives("vm/a", "near", [100.0]), lives("vm/b", "far", [100.0, 900.0])))[
        "measures"
    ]
    days = 2 - 10 / DAY, 2 - 20 / DAY
    assert (measures["near_unit_days"], measures["far_unit_days"]) == pytest.approx(days)


def test_a_unit_that_goes_down_in_two_rows_without_a_gap_failed_once() -> None:
    rows: list[Uptime] = [
        ("vm/a", 0, 100, "up", "", "near"), ("vm/a", 100, 105, "down", "disk", "near"),
        ("vm/a", 105, 130, "down", "disk", "near"), ("vm/a", 130, 2000, "up", "", "near"),
    ]  # fmt: skip
    assert colocation(of(rows, lives("vm/b", "far", [50.0])))["measures"]["near_failures"] == 1


def test_a_unit_that_was_down_before_the_window_did_not_fail_in_it() -> None:
    rows: list[Uptime] = [("vm/a", -60, 30, "down", "disk", "near"), ("vm/a", 30, 2000, "up", "", "near")]
    assert colocation(of(rows, lives("vm/b", "far", [50.0])))["measures"]["near_failures"] == 0


def test_a_row_that_does_not_say_how_far_takes_what_was_said_before() -> None:
    rows: list[Uptime] = [("vm/a", 0, 100, "up", "", "far"), ("vm/a", 100, 110, "down", "disk", "")]
    assert colocation(of(rows, lives("vm/b", "near", [50.0])))["measures"]["far_failures"] == 1


def test_failures_of_units_whose_placement_nobody_told_are_left_out_and_counted() -> None:
    rows: list[Uptime] = [("vm/c", 0, 100, "up", "", ""), ("vm/c", 100, 110, "down", "disk", "")]
    window = of(rows, lives("vm/a", "near", [50.0]), lives("vm/b", "far", [50.0]))
    assert colocation(window)["measures"]["failures_untold"] == 1


def test_a_simulated_month_finds_the_planted_share() -> None:
    found = colocation(uptimes.window_of(uptimes.draw(uptimes.Month(units=1500, daily=0.1), 5)))["measures"]
    assert found["low"] <= 0.114 <= found["high"]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "Near and far units are never seen"),
        ([lives("vm/a", "near", [5.0])], "Near and far units are never seen"),
        ([lives("vm/a", "near", []), lives("vm/b", "far", [5.0])], "No near unit failed"),
    ],
)
def test_too_little_to_compare_is_inconclusive(parts: list[list[Uptime]], reason: str) -> None:
    verdict = colocation(of(*parts))
    assert verdict["status"] == "inconclusive"
    assert verdict["reason"].startswith(reason)


def test_nobody_is_ever_blamed() -> None:
    window = uptimes.window_of(uptimes.draw(uptimes.Month(units=300, daily=0.3, farther=3.0), 1))
    verdict = colocation(window)
    assert (verdict["status"], verdict["suspects"], verdict["measures"]["differs"]) == ("quiet", [], True)


def test_causes_are_told_apart() -> None:
    verdict = colocation(uptimes.window_of(uptimes.draw(uptimes.Month(units=300, daily=0.3), 1)))
    (causes,) = (one for one in verdict["evidence"] if one["title"] == "Failures by cause")
    assert {row[0] for row in causes["rows"]} == set(uptimes.CAUSES)


def test_it_is_a_good_calculator() -> None:
    def case(seed: int, faulty: bool) -> Case:
        month = uptimes.Month(units=60, daily=0.3, farther=2.0 if faulty else 0.0)
        return Case(uptimes.window_of(uptimes.draw(month, seed)))

    check_calculator(ANALYZER, case, seeds=range(1))


def test_assumptions_are_checked_and_few_failures_do_not_hold() -> None:
    few = colocation(of(lives("vm/a", "near", [100.0]), lives("vm/b", "far", [100.0, 900.0])))
    many = colocation(uptimes.window_of(uptimes.draw(uptimes.Month(units=300, daily=0.3), 1)))
    held = [{one["name"]: one["holds"] for one in each["assumptions"]} for each in (few, many)]
    assert held[0] == {"sampling": False, "topology": True, "noise": True}
    assert held[1] == {"sampling": True, "topology": True, "noise": True}


def test_failures_of_unknown_placement_are_a_topology_that_does_not_hold() -> None:
    parts = [lives("vm/a", "near", [100.0]), lives("vm/b", "far", [100.0]), lives("vm/c", "", [100.0, 500.0])]
    found = {one["name"]: one["holds"] for one in colocation(of(*parts))["assumptions"]}
    assert found["topology"] is False


def test_the_interval_is_wider_where_a_few_units_have_all_the_failures() -> None:
    """The same failures at the same times, of twenty units of each class or of two."""

    def widths(failing: int) -> float:
        parts = []
        for placed in ("near", "far"):
            downs: list[list[float]] = [[] for _ in range(20)]
            for i in range(20):
                downs[i % failing].append(100.0 + 130 * i)
            parts += [lives(f"vm/{placed}-{unit}", placed, one) for unit, one in enumerate(downs)]
        measures = colocation(of(*parts))["measures"]
        return float((1 + measures["high"]) / (1 + measures["low"]))

    assert widths(2) > 1.5 * widths(20)
