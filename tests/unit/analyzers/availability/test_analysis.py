"""`availability`: one account of uptimes and outages, and who is below target by more than chance."""

from typing import Any

import numpy as np
import pytest

from analyzers.builtin.availability import ANALYZER
from analyzers.builtin.availability.analysis import Lengths, chances, lengths_of_others
from analyzers.builtin.availability.ledger import ledger_of
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators import uptimes
from analyzers.testing import Case, check_analyzer
from tests.unit.analyzers.availability.cases import (
    Outage,
    Uptime,
    fleet_sums,
    outage_sums,
    uptime_sums,
    window_of,
)

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


def test_a_device_that_was_down_all_the_time_that_is_known_was_never_available() -> None:
    """Rounding made it less than nothing, and a sentence about it raised ValueError."""
    out: list[Outage] = [
        ("tor/a", 0, None, "soft"),
        ("tor/b", 50, 50.74, "soft"),
        ("tor/c", 150, 150.74, "soft"),
    ]
    window = window_of(outages=outage_sums(out))
    low, high = (int(moment.timestamp()) * 1_000_000 for moment in (window.start, window.end))
    assert ledger_of(window.sums, low, high, open_hours=24.0).availability.min() == 0.0


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


def named_beside_long_outages(*mine: tuple[float, float]) -> list[str]:
    """Who is named of a unit with outages at (minute, length) and a thousand others, a tenth of them out for hours."""
    others: list[Outage] = [
        (f"vm/{i:04d}", 40.0 * i, 40.0 * i + (250 if i % 10 == 0 else 10), "soft") for i in range(1000)
    ]
    outages: list[Outage] = [("vm/often", at, at + length, "soft") for at, length in mine]
    verdict = availability(window_of(outages=outage_sums([*outages, *others])))
    return [one["component"] for one in verdict["suspects"]]


def test_one_that_goes_out_on_many_days_is_named_though_few_long_outages_lose_as_much() -> None:
    assert named_beside_long_outages(*((day * DAY, 30.0) for day in range(12))) == ["vm/often"]


def test_many_outages_of_one_day_happened_once() -> None:
    assert named_beside_long_outages(*((100.0 * n, 30.0) for n in range(12))) == []


def test_one_that_is_often_out_for_a_moment_may_be() -> None:
    assert named_beside_long_outages(*((day * DAY, 4.0) for day in range(12))) == []


def test_the_worst_of_a_simulated_month_are_named() -> None:
    life = uptimes.draw(uptimes.Month(units=400, bad=2, bad_factor=60), 4)
    named = [one["component"] for one in availability(uptimes.window_of(life))["suspects"]]
    assert sorted(named) == sorted(life.culprits)


def test_a_window_in_which_nothing_was_observed_is_inconclusive() -> None:
    assert availability(window_of(uptimes=uptime_sums([])))["status"] == "inconclusive"


def chance(lost: float, allowed: float, *sorts: tuple[float, float]) -> float:
    """For outages of which each sort has a share of the downtime and a mean length."""
    share, mean = (np.array([column]) for column in zip(*sorts, strict=True))
    return float(chances(np.array([lost]), np.array([allowed]), Lengths(share, mean))[0])


def test_the_chance_of_so_much_downtime_agrees_with_simulation() -> None:
    rng = np.random.default_rng(8)
    sums = [rng.exponential(30, rng.poisson(43.2 / 30)).sum() for _ in range(20_000)]
    assert chance(120, 43.2, (1.0, 30.0)) == pytest.approx(np.mean(np.array(sums) >= 120), abs=0.01)


@pytest.mark.parametrize("lost", [20.0, 100.0, 200.0])
def test_causes_of_different_lengths_agree_with_simulation(lost: float) -> None:
    rng = np.random.default_rng(9)
    sorts = ((0.3, 5.0), (0.7, 40.0))
    sums = sum(
        rng.gamma(rng.poisson(43.2 * share / mean, 100_000) + 1e-12, mean, 100_000) for share, mean in sorts
    )
    assert chance(lost, 43.2, *sorts) == pytest.approx(np.mean(sums >= lost), abs=0.005)


@pytest.mark.parametrize("lost", [10.0, 60.0, 600.0])
def test_causes_of_one_length_are_one_cause(lost: float) -> None:
    assert chance(lost, 43.2, (0.4, 17.0), (0.6, 17.0)) == pytest.approx(chance(lost, 43.2, (1.0, 17.0)))


def test_long_outages_of_a_cause_make_much_downtime_less_surprising() -> None:
    assert chance(200, 43.2, (0.5, 5.0), (0.5, 60.0)) > 10 * chance(200, 43.2, (1.0, 11.0))


def test_the_chance_has_no_step_where_the_normal_takes_over() -> None:
    below, above = (chance(1.02 * many, many, (1.0, 1.0)) for many in (499.9, 500.1))
    assert below == pytest.approx(above, abs=0.01)


def test_outages_that_scatter_more_than_an_exponential_are_taken_as_longer() -> None:
    minutes, owner = np.array([1.0] * 9 + [91.0]), np.arange(10)
    zeros = np.zeros(10, dtype=np.int64)
    found = lengths_of_others(minutes, owner, zeros, 1, np.array([0]))
    assert found.mean[0, 0] == pytest.approx((8 + 91**2) / (2 * 99))


def test_a_component_is_held_against_the_outages_of_the_others() -> None:
    minutes, owner = np.array([500.0, 10.0, 10.0]), np.array([0, 1, 2])
    found = lengths_of_others(minutes, owner, np.array([0, 1, 1]), 2, np.array([0, 1]))
    assert found.share.round(3).tolist() == [[0, 1], [0.98, 0.02]]


def test_a_unit_of_which_only_its_outage_is_told_was_there_before_and_after() -> None:
    rows: list[Uptime] = [("vm/a", 5000, 5030, "down", "disk", "")]
    measures = availability(window_of(uptimes=uptime_sums(rows)))["measures"]
    assert measures["minutes_unknown"] == 30 * DAY - 30
    assert measures["share_observed"] == pytest.approx(30 / (30 * DAY))


def test_time_between_rows_is_not_known_and_time_before_the_first_up_is_not_there() -> None:
    rows: list[Uptime] = [("vm/a", 1000, 2000, "up", "", ""), ("vm/a", 2500, 3000, "up", "", "")]
    assert availability(window_of(uptimes=uptime_sums(rows)))["measures"]["minutes_unknown"] == 500


def test_missing_rows_are_no_sign_against_a_unit() -> None:
    rows: list[Uptime] = [(f"vm/v{i}", 0, 30 * DAY, "up", "", "") for i in range(50)]
    lonely: list[Uptime] = [("vm/a", 5000, 5090, "down", "disk", ""), ("vm/b", 900, 912, "down", "disk", "")]
    assert availability(window_of(uptimes=uptime_sums([*rows, *lonely])))["status"] == "quiet"


def test_a_unit_that_is_down_again_and_again_is_named_though_rows_are_missing() -> None:
    rows: list[Uptime] = [(f"vm/v{i}", 0, 20, "down", "disk", "") for i in range(10)]
    bad: list[Uptime] = [("vm/bad", 2000.0 * i, 2000.0 * i + 40, "down", "disk", "") for i in range(20)]
    (suspect,) = availability(window_of(uptimes=uptime_sums([*rows, *bad])))["suspects"]
    assert suspect["component"] == "vm/bad"
    assert suspect["summary"].endswith("nothing is known; they count as up.")
    assert suspect["estimate"]["low"] < 0.05 < suspect["estimate"]["high"]


def test_an_outage_that_began_weeks_ago_and_has_no_end_is_doubted() -> None:
    told: list[Outage] = [("tor/a", 100, None, "soft"), ("tor/b", 0, 20, "soft"), ("tor/c", 0, 40, "soft")]
    measures = availability(window_of(outages=outage_sums(told)))["measures"]
    assert (measures["minutes_lost"], measures["unended_outages"]) == (90, 1)
    assert measures["minutes_unknown"] == 30 * DAY - 130


def test_an_outage_that_began_an_hour_ago_is_taken_at_its_word() -> None:
    told: list[Outage] = [("tor/a", 30 * DAY - 60, None, "soft"), ("tor/b", 0, 20, "soft")]
    measures = availability(window_of(outages=outage_sums(told)))["measures"]
    assert (measures["minutes_lost"], measures["unended_outages"]) == (80, 0)


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def case(seed: int, faulty: bool) -> Case:
        month = uptimes.Month(units=80, bad=1 if faulty else 0, bad_factor=80)
        life = uptimes.draw(month, seed)
        return Case(uptimes.window_of(life), life.culprits)

    check_analyzer(ANALYZER, case, seeds=range(1))


def holding(verdict: dict[str, Any]) -> dict[str, bool]:
    return {one["name"]: one["holds"] for one in verdict["assumptions"]}


def test_components_that_go_down_together_are_not_independent_and_nobody_of_them_is_sure() -> None:
    power: list[Outage] = [(f"host/h{i}", 9000.0, 20_000.0, "power") for i in range(12)]
    short: list[Outage] = [(f"host/s{i}", 500.0 * i, 500.0 * i + 1, "soft") for i in range(12)]
    found = availability(window_of(outages=outage_sums([*power, *short])))
    assert holding(found)["independence"] is False
    assert not any(one["sure"] for one in found["suspects"])


def test_components_that_go_down_one_by_one_are_independent() -> None:
    rows: list[Outage] = [(f"host/s{i}", 500.0 * i, 500.0 * i + 60, "soft") for i in range(12)]
    assert holding(availability(window_of(outages=outage_sums(rows))))["independence"] is True


def test_few_outages_do_not_say_how_long_one_lasts() -> None:
    found = availability(window_of(outages=outage_sums([("tor/a", 0, 432, "soft")])))
    assert holding(found)["noise"] is False


def test_time_of_which_nothing_is_known_is_sampling_that_does_not_hold() -> None:
    rows: list[Uptime] = [("vm/a", 0, 900, "up", "", ""), ("vm/a", 30_000, 30_900, "up", "", "")]
    assert holding(availability(window_of(uptimes=uptime_sums(rows))))["sampling"] is False
