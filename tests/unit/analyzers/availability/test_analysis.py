"""`availability`: one account of uptimes and outages, and who is below target by more than chance."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from analyzers.builtin.availability import ANALYZER
from analyzers.builtin.availability.chances import chance_of_sum, chances, days_of
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
    """Suspects among a unit with outages at (minute, length) and a thousand others, a tenth of them out for hours."""
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


def chance(total: float, expected: float) -> float:
    return float(chance_of_sum(np.array([total]), np.array([expected]))[0])


def test_the_chance_of_a_random_sum_agrees_with_simulation() -> None:
    rng = np.random.default_rng(8)
    sums = [rng.exponential(1, rng.poisson(1.44)).sum() for _ in range(20_000)]
    assert chance(4.0, 1.44) == pytest.approx(np.mean(np.array(sums) >= 4), abs=0.01)


def test_a_sum_above_nothing_needs_one_event() -> None:
    assert chance(1e-6, 2.0) == pytest.approx(1 - np.exp(-2), rel=1e-5)


def test_a_far_tail_is_exact() -> None:
    """Against the same sum by the number of events; 1 - P would be 0 or less."""
    n = np.arange(1, 400)
    reference = float(np.sum(scipy.stats.poisson.pmf(n, 1.0) * scipy.stats.gamma.sf(60.0, n)))
    assert reference < 1e-17
    assert chance(60.0, 1.0) == pytest.approx(reference, rel=1e-9)


def chance_beside_equals(lost: float, *mine: float) -> float:
    """Of an owner that was out for so many minutes on days of its own beside 50 others with an outage of 30 each."""
    minutes = np.array([*mine, *[30.0] * 50])
    owner = np.array([0] * len(mine) + list(range(1, 51)))
    start = np.arange(len(minutes)) * 86_400_000_000
    time = np.full(51, 30 * DAY)
    spent = np.where(np.arange(51) == 0, lost, 30.0)
    return float(chances(days_of(start, minutes, owner), time, 1e-3 * time, spent, np.array([0]))[0])


def test_a_component_like_the_others_is_no_surprise() -> None:
    assert chance_beside_equals(45.0, 45.0) == 1.0


def test_the_others_rate_counts_where_twice_the_allowed_is_lost() -> None:
    assert chance_beside_equals(90.0, 18.0, 18.0, 18.0, 18.0, 18.0) < chance_beside_equals(
        80.0, 18.0, 18.0, 18.0, 18.0, 18.0
    )


def test_outages_of_one_day_are_one_event_of_their_minutes() -> None:
    days = days_of(np.array([5, 9, 86_400_000_005]), np.array([1.0, 2.0, 4.0]), np.array([3, 3, 3]))
    assert (days.owner.tolist(), days.minutes.tolist()) == ([3, 3], [3.0, 4.0])


def test_components_that_never_went_out_are_peers_if_the_topology_knows_them() -> None:
    out: list[Outage] = [("vm/a", 1500.0 * day, 1500.0 * day + 22, "soft") for day in range(4)]
    out += [(f"vm/o{i}", 900.0 * i, 900.0 * i + 20, "soft") for i in range(12)]
    alone = window_of(outages=outage_sums(out))
    among = window_of(outages=outage_sums(out), fleet=fleet_sums({f"vm/u{i}": "{}" for i in range(200)}))
    switches = window_of(outages=outage_sums(out), fleet=fleet_sums({f"tor/u{i}": "{}" for i in range(200)}))
    named = [
        [one["component"] for one in availability(each)["suspects"]] for each in (alone, switches, among)
    ]
    assert named == [[], [], ["vm/a"]]


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
