"""`availability`: one account of uptimes and outages, and who is below target by more than chance."""

from typing import Any

import numpy as np
import pytest

from analyzers.builtin.availability import ANALYZER
from analyzers.builtin.availability.below import chance
from analyzers.contract import Window
from analyzers.shell import judge
from analyzers.simulators import uptimes
from analyzers.testing import Case, check_analyzer
from tests.unit.availability_cases import Outage, Uptime, fleet_sums, outage_sums, uptime_sums, window_of

DAY = 1440.0


def availability(window: Window, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window, params)


def test_availability_is_time_up_over_time_observed() -> None:
    rows: list[Uptime] = [("vm/a", 0, 900, "up", "", ""), ("vm/a", 900, 1000, "down", "disk", "")]
    assert availability(window_of(uptimes=uptime_sums(rows)))["measures"]["availability"] == pytest.approx(
        0.9
    )


def test_a_device_that_only_outages_speak_of_is_observed_all_the_time() -> None:
    window = window_of(outages=outage_sums([("tor/a", 0, 432, "soft")]))
    assert availability(window)["measures"]["availability"] == pytest.approx(0.99)


def test_time_reported_as_up_and_as_out_is_down_once() -> None:
    rows: list[Uptime] = [("tor/a", 0, 1000, "up", "", "")]
    window = window_of(uptimes=uptime_sums(rows), outages=outage_sums([("tor/a", 100, 200, "soft")]))
    assert availability(window)["measures"]["availability"] == pytest.approx(0.9)


def test_planned_work_is_neither_up_nor_down() -> None:
    planned: list[Outage] = [("tor/a", 100, 200, "upgrade")]
    window = window_of(1, outages=outage_sums([("tor/a", 150, 250, "soft")], planned))
    measures = availability(window)["measures"]
    assert (measures["minutes_lost"], measures["minutes_observed"]) == (50, DAY - 100)


def test_downtime_is_told_by_cause() -> None:
    window = window_of(outages=outage_sums([("tor/a", 0, 20, "soft"), ("tor/b", 0, 120, "hard")]))
    assert availability(window)["measures"]["minutes_by_cause"] == {"hard": 120, "soft": 20}


def test_labels_of_the_topology_group_components() -> None:
    fleet = fleet_sums({"vm/a": '{"team":"storage"}', "vm/b": '{"team":"web"}'})
    rows: list[Uptime] = [
        ("vm/a", 0, 1000, "up", "", ""), ("vm/b", 0, 500, "up", "", ""), ("vm/b", 500, 1000, "down", "x", ""),
    ]  # fmt: skip
    table = availability(window_of(uptimes=uptime_sums(rows), fleet=fleet))["evidence"][0]
    shares = {row[0]: row[4] for row in table["rows"]}
    assert shares == {
        "everything": "75 %", "kind = vm": "75 %", "team = storage": "100 %", "team = web": "50 %"
    }  # fmt: skip


def test_one_outage_that_breaks_the_budget_is_no_sign_of_anything() -> None:
    typical: list[Outage] = [(f"tor/t{i}", 0, 60, "soft") for i in range(5)]
    assert availability(window_of(outages=outage_sums(typical)))["status"] == "quiet"


def test_one_that_is_down_again_and_again_is_named() -> None:
    many: list[Outage] = [("tor/a", 1000.0 * i, 1000.0 * i + 60, "soft") for i in range(15)]
    typical: list[Outage] = [(f"tor/t{i}", 0, 60, "soft") for i in range(5)]
    (suspect,) = availability(window_of(outages=outage_sums([*many, *typical])))["suspects"]
    assert (suspect["component"], suspect["sure"]) == ("tor/a", True)


def test_the_worst_of_a_simulated_month_are_named() -> None:
    life = uptimes.draw(uptimes.Month(units=400, bad=2, bad_factor=60), 4)
    named = [one["component"] for one in availability(uptimes.window_of(life))["suspects"]]
    assert sorted(named) == sorted(life.culprits)


def test_a_window_in_which_nothing_was_observed_is_inconclusive() -> None:
    assert availability(window_of(uptimes=uptime_sums([])))["status"] == "inconclusive"


def test_the_chance_of_so_much_downtime_agrees_with_simulation() -> None:
    rng = np.random.default_rng(8)
    sums = [rng.exponential(30, rng.poisson(43.2 / 30)).sum() for _ in range(20_000)]
    assert chance(120, 43.2, 30) == pytest.approx(np.mean(np.array(sums) >= 120), abs=0.01)


def test_the_chance_has_no_step_where_the_normal_takes_over() -> None:
    assert chance(10_200, 9_999, 1) == pytest.approx(chance(10_202, 10_001, 1), abs=0.01)


def test_it_is_a_good_analyzer() -> None:
    def case(seed: int, faulty: bool) -> Case:
        month = uptimes.Month(units=80, bad=1 if faulty else 0, bad_factor=80)
        life = uptimes.draw(month, seed)
        return Case(uptimes.window_of(life), life.culprits)

    check_analyzer(ANALYZER, case, seeds=range(1))
