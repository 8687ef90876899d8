"""`tor_availability`: what is counted, when the class is named, and who."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.tor_availability import ANALYZER
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators import outages
from analyzers.testing import Case, check_analyzer
from tests.unit.analyzers.availability.cases import Outage, fleet_sums, outage_sums, window_of

MONTH = 43200.0
TALK: list[Outage] = [
    *((f"tor/t{i}", 1000.0 * i, 1000.0 * i + 20, "soft") for i in range(9)),
    ("tor/t9", 20_000.0, 20_120.0, "hard"),
]
"""Ten of ten thousand ToRs in a month: nine soft outages of 20 minutes and a hard one of 120."""


def tor(window: Window, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window, params)


def of(outages: list[Outage], planned: list[Outage] | None = None, days: float = 30) -> Window:
    return window_of(days, outages=outage_sums(outages, planned or []))


def test_the_figure_of_the_talk_comes_out_of_recorded_outages() -> None:
    verdict = tor(of(TALK), devices=10_000)
    assert verdict["measures"]["shown"] == "99.99993 %"
    assert verdict["measures"]["availability"] == pytest.approx(1 - 300 / (10_000 * MONTH))


def test_six_nines_are_enough_for_dependents_with_five() -> None:
    verdict = tor(of(TALK), devices=10_000)
    assert (verdict["status"], verdict["measures"]["critical_path"]) == ("quiet", False)


def test_dependents_with_six_nines_put_the_class_on_the_critical_path() -> None:
    verdict = tor(of(TALK), devices=10_000, target_nines=6)
    assert (verdict["status"], verdict["measures"]["critical_path"]) == ("named", True)


def test_if_no_device_stands_out_the_class_is_named() -> None:
    (suspect,) = tor(of(TALK), devices=10_000, target_nines=6)["suspects"]
    assert suspect["component"] == "device_class/tor"
    assert "misses what its dependents need" in suspect["summary"]
    assert 0.95 < suspect["score"] < 1


@pytest.mark.parametrize("seed", range(10))
def test_a_class_that_misses_while_nobody_stands_out_names_no_device(seed: int) -> None:
    record = outages.draw(outages.Class(devices=300, monthly=0.05), seed)
    assert {one["component"] for one in tor(outages.window_of(record))["suspects"]} == {"device_class/tor"}


def test_a_lemon_is_named_beside_a_class_that_misses_without_it() -> None:
    lemon: list[Outage] = [("tor/t3", 4000.0 * i + 777, 4000.0 * i + 797, "soft") for i in range(9)]
    others: list[Outage] = [(f"tor/d{i}", 300.0 * i, 300.0 * i + 20, "soft") for i in range(60)]
    found = [one["component"] for one in tor(of([*lemon, *others]), devices=300)["suspects"]]
    assert found == ["tor/t3", "device_class/tor"]


def test_a_device_whose_one_outage_cost_the_class_its_target_is_named_alone() -> None:
    long: list[Outage] = [("tor/t9", 20_000.0, 24_000.0, "hard")]
    found = tor(of([*TALK[:9], *long]), devices=10_000)
    assert [one["component"] for one in found["suspects"]] == ["tor/t9"]
    assert "far longer than any other outage" in found["suspects"][0]["summary"]


def test_devices_that_go_out_together_again_and_again_are_no_repeaters() -> None:
    rack: list[Outage] = [
        (f"tor/r{i}", 5000.0 * turn, 5000.0 * turn + 30, "power") for turn in range(6) for i in range(8)
    ]
    assert [one["component"] for one in tor(of(rack), devices=800)["suspects"]] == ["device_class/tor"]


def test_a_device_that_flaps_for_an_hour_went_out_once() -> None:
    flaps: list[Outage] = [("tor/f", 9000.0 + 8 * i, 9003.0 + 8 * i, "soft") for i in range(8)]
    named = {one["component"] for one in tor(of([*TALK, *flaps]), devices=10_000, target_nines=6)["suspects"]}
    assert named == {"device_class/tor"}


def test_one_outage_in_a_small_class_is_no_sign_against_anyone() -> None:
    found = tor(of([("tor/a", 500.0, 600.0, "soft")]), devices=1000)
    assert (found["status"], found["suspects"]) == ("inconclusive", [])
    assert "may come by chance" in found["reason"]


def test_where_the_size_of_the_class_is_unknown_the_class_is_not_judged() -> None:
    found = tor(of(TALK))
    assert (found["status"], found["suspects"]) == ("inconclusive", [])
    assert {one["name"]: one["holds"] for one in found["assumptions"]}["topology"] is False


def test_rates_that_differ_between_devices_are_noise_that_a_repeater_must_exceed() -> None:
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(1.0, 1.0, 300))
    rows: list[Outage] = [
        (f"tor/g{i}", at, at + 20, "soft")
        for i, times in enumerate(counts)
        for at in rng.uniform(0, MONTH - 30, times)
    ]
    found = tor(of(rows), devices=300)
    assert {one["name"]: one["holds"] for one in found["assumptions"]}["noise"] is False
    assert [one["component"] for one in found["suspects"]] == ["device_class/tor"]


def test_every_verdict_carries_what_was_checked() -> None:
    found = tor(of(TALK), devices=10_000)
    assert [one["name"] for one in found["assumptions"]] == ["topology", "sampling", "noise"]
    assert all(one["holds"] for one in found["assumptions"])


def test_overlapping_reports_of_one_outage_count_once() -> None:
    twice = of([("tor/a", 100, 120, "soft"), ("tor/a", 103, 120, "soft"), ("tor/a", 110, 130, "hard")])
    measures = tor(twice, devices=10)["measures"]
    assert (measures["outages"], measures["minutes_lost"]) == (1, 30)


def test_outages_are_clipped_to_the_window() -> None:
    across = of([("tor/a", -50, 10, "soft"), ("tor/b", MONTH - 5, MONTH + 600, "hard")])
    assert tor(across, devices=10)["measures"]["minutes_lost"] == 15


def test_an_outage_that_still_goes_on_counts_up_to_the_end() -> None:
    assert tor(of([("tor/a", MONTH - 60, None, "hard")]), devices=10)["measures"]["minutes_lost"] == 60


def test_planned_work_is_told_apart_and_not_counted() -> None:
    window = of(
        [("tor/a", 100, 120, "soft")], planned=[("tor/a", 110, 140, "upgrade"), ("tor/b", 0, 30, "upgrade")]
    )
    measures = tor(window, devices=10)["measures"]
    assert (measures["minutes_lost"], measures["minutes_planned"]) == (10, 60)


def test_only_the_last_days_are_measured_when_asked() -> None:
    window = of([("tor/a", 0, 500, "soft"), ("tor/b", MONTH - 100, MONTH - 80, "soft")])
    measures = tor(window, devices=10, window_days=7)["measures"]
    assert (measures["minutes_lost"], measures["days"]) == (20, 7)


def test_more_days_than_the_window_holds_count_as_quiet_and_are_said_so() -> None:
    verdict = tor(of([("tor/a", 0, 20, "soft")], days=1), devices=1000, window_days=30)
    assert verdict["measures"]["availability"] == pytest.approx(1 - 20 / (1000 * MONTH))
    assert "before that, no outage is known" in verdict["evidence"][-1]["text"]


def test_devices_that_were_never_out_come_from_the_topology() -> None:
    fleet = fleet_sums({f"tor/t{i}": "{}" for i in range(50)} | {"host/h1": "{}"})
    window = window_of(
        outages=outage_sums([("tor/t3", 5, 25, "soft"), ("host/h1", 5, 25, "soft")]), fleet=fleet
    )
    assert tor(window)["measures"]["devices"] == 50


def test_without_any_device_of_the_class_nothing_is_judged() -> None:
    verdict = tor(of([("switch/a", 5, 25, "soft")]))
    assert verdict["status"] == "inconclusive"
    assert "the outages are of switch: set device_class" in verdict["reason"]


def test_a_month_without_outages_is_quiet_where_devices_are_known() -> None:
    verdict = tor(of([]), devices=100)
    assert (verdict["status"], verdict["measures"]["availability"], verdict["measures"]["low"]) == (
        "quiet",
        1.0,
        None,
    )


def test_fewer_devices_than_the_rows_name_is_a_contradiction() -> None:
    assert "devices=3, but the rows name 10" in tor(of(TALK), devices=3)["reason"]


def test_a_batch_with_bad_firmware_is_named_and_its_label_told() -> None:
    record = outages.draw(outages.BATCH, 3)
    verdict = tor(outages.window_of(record))
    assert {one["component"] for one in verdict["suspects"]} == set(record.culprits)
    assert "shares firmware = 9.4.2 with 7 other" in verdict["suspects"][0]["summary"]


def test_a_class_that_surely_misses_makes_repeaters_sure() -> None:
    record = outages.draw(outages.BATCH, 3)
    assert all(one["sure"] for one in tor(outages.window_of(record))["suspects"])


def test_devices_that_fail_together_are_one_event_to_the_interval() -> None:
    alone: list[Outage] = [(f"tor/t{i}", 100.0 * i, 100.0 * i + 20, "soft") for i in range(20)]
    together: list[Outage] = [(f"tor/t{i}", 100.0, 120.0, "soft") for i in range(20)]
    low = [tor(of(rows), devices=1000)["measures"]["low"] for rows in (alone, together)]
    assert 1 - low[1] > 2 * (1 - low[0])


OPEN: list[Outage] = [("tor/a", 1000.0, None, "soft")]


def test_an_outage_of_weeks_without_an_end_leaves_it_open_whether_the_class_is_good_enough() -> None:
    verdict = tor(of([*TALK, *OPEN]), devices=10_000)
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert "Of outages of tor/a no end was reported" in verdict["reason"]


def test_an_outage_without_an_end_is_taken_to_last_as_long_as_the_others() -> None:
    measures = tor(of([*TALK, *OPEN]), devices=10_000)["measures"]
    assert (measures["minutes_lost"], measures["unended_outages"]) == (330, 1)


def test_the_interval_leaves_room_for_outages_without_an_end() -> None:
    plain, doubted = (tor(of([*TALK, *more]), devices=10_000)["measures"] for more in ([], OPEN))
    assert plain["low"] - doubted["low"] > (MONTH - 1030) / (10_000 * MONTH)


def test_open_outages_are_counted_in_full_when_asked() -> None:
    verdict = tor(of([*TALK, *OPEN]), devices=10_000, open_hours=9000)
    assert verdict["suspects"][0]["component"] == "tor/a"
    assert verdict["measures"]["minutes_lost"] == 300 + MONTH - 1000


def test_doubtful_ends_do_not_hide_a_class_that_misses_anyway() -> None:
    record = outages.draw(outages.BATCH, 3)
    doubted = [replace(one, end=None) if n % 20 == 0 else one for n, one in enumerate(record.outages)]
    verdict = tor(outages.window_of(replace(record, outages=tuple(doubted))))
    assert {one["component"] for one in verdict["suspects"]} == set(record.culprits)


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def case(seed: int, faulty: bool) -> Case:
        quiet = outages.Class(devices=800, monthly=0.0001)
        record = outages.draw(outages.BATCH if faulty else quiet, seed)
        return Case(outages.window_of(record), record.culprits)

    check_analyzer(ANALYZER, case, seeds=range(2))
