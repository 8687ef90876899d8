"""Availability arithmetic: nines, budgets, intervals, rate ratios, and how shares are shown."""

import math

import numpy as np
import pytest

from analyzers.builtin.stats.nines import (
    UNSEEN,
    OutageMix,
    availability_of,
    downtime_per_year,
    lost_interval,
    meets,
    nines,
    required_of_dependency,
    show_availability,
    show_minutes,
    uptime_share,
    what_if_tor_availability,
)
from analyzers.builtin.stats.rate_ratio import Stratum, TooFewCountsError, rate_ratio, what_if_colocation


def test_the_figure_of_the_talk_comes_out() -> None:
    assert show_availability(1 - (0.9 * 20 + 0.1 * 120) * 0.001 / 43200) == "99.99993 %"


def test_the_what_if_of_the_talk_passes_the_extra_nine() -> None:
    found = what_if_tor_availability(0.001)
    assert (found.shown, found.met, found.on_critical_path) == ("99.99993 %", True, False)


def test_ten_times_as_many_reboots_put_the_class_on_the_critical_path() -> None:
    assert what_if_tor_availability(0.01).on_critical_path


def test_a_mix_has_the_mean_of_its_parts() -> None:
    assert OutageMix().mean_minutes == pytest.approx(30)


@pytest.mark.parametrize(
    ("availability", "shown"),
    [
        (1.0, "100 %"), (0.999, "99.9 %"), (0.99999, "99.999 %"), (0.9995, "99.95 %"), (0.9987, "99.87 %"),
        (0.999999999, "99.9999999 %"), (1 - 2**-53, "99.99999999999999 %"), (0.5, "50 %"), (0.1239, "12.3 %"),
        (0.0, "0 %"), (0.98765, "98.7 %"),
    ],
)  # fmt: skip
def test_a_share_is_shown_with_two_digits_of_what_is_lost(availability: float, shown: str) -> None:
    assert show_availability(availability) == shown


def test_a_shown_share_is_never_above_the_true_one() -> None:
    for availability in np.random.default_rng(1).random(500) ** 0.001:
        assert float(show_availability(float(availability)).rstrip(" %")) / 100 <= availability + 1e-16


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_what_is_no_share_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="share from 0 to 1"):
        show_availability(wrong)


def test_nines_and_availability_are_each_others_inverse() -> None:
    assert [nines(availability_of(n)) for n in (1, 2.5, 6)] == pytest.approx([1, 2.5, 6])
    assert nines(1.0) == math.inf


def test_a_dependency_needs_one_nine_more() -> None:
    assert required_of_dependency(5) == pytest.approx(0.999999)


def test_a_requirement_that_is_just_met_is_met() -> None:
    assert meets(0.999999, required_of_dependency(5))
    assert not meets(0.9999989, required_of_dependency(5))


def test_five_nines_are_five_minutes_a_year_and_four_are_fifty_three() -> None:
    assert (round(downtime_per_year(0.99999)), round(downtime_per_year(0.9999))) == (5, 53)


def test_uptime_is_time_up_over_all_time() -> None:
    assert uptime_share(999, 1) == pytest.approx(0.999)
    with pytest.raises(ValueError, match="not both nothing"):
        uptime_share(0, 0)


@pytest.mark.parametrize(
    ("minutes", "shown"),
    [
        (0, "0 min"), (0.5, "30 s"), (2.25, "2.2 min"), (43, "43 min"), (59.6, "1 h"), (200, "3 h 20 min"),
        (2 * 1440 + 20, "2 days"), (4 * 1440 + 61, "4 days 1 h"),
    ],
)  # fmt: skip
def test_minutes_are_shown_as_people_say_them(minutes: float, shown: str) -> None:
    assert show_minutes(minutes) == shown


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"rebooted_per_month": -1}, "go out in a month"),
        ({"rebooted_per_month": 2000}, "the whole period"),
        ({"rebooted_per_month": 0.1, "mix": OutageMix(soft=2)}, "share of soft outages"),
        ({"rebooted_per_month": 0.1, "mix": OutageMix(hard_minutes=-5)}, "hard outages of -5"),
        ({"rebooted_per_month": 0.1, "month_minutes": 0}, "must be more than 0"),
    ],
)
def test_a_what_if_that_cannot_be_says_why(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        what_if_tor_availability(**given)  # type: ignore[arg-type]


def test_equal_outages_give_the_exact_poisson_interval() -> None:
    low, high = lost_interval([2.0] * 10, 1000.0)
    assert (low, high) == pytest.approx((4.795389 * 2 / 1000, 18.39036 * 2 / 1000), rel=1e-6)


def test_the_interval_of_uneven_outages_holds_the_truth() -> None:
    rng, held = np.random.default_rng(2), 0
    for _ in range(400):
        times = np.where(rng.random(rng.poisson(20)) < 0.9, 20.0, 120.0)
        low, high = lost_interval(times.tolist(), 43200.0)
        held += low <= 20 * 30 / 43200 <= (high or 1)
    assert held >= 340  # .90 measured: twenty outages of which two are long hold little about the long ones


def test_allowing_for_a_longer_outage_than_any_seen_the_interval_keeps_its_word() -> None:
    rng, held = np.random.default_rng(2), 0
    for _ in range(400):
        typical = np.where(rng.random(rng.poisson(20)) < 0.9, 20.0, 120.0)
        times = typical * rng.lognormal(-0.08, 0.4, len(typical))
        low, high = lost_interval(times.tolist(), 43200.0, unseen=UNSEEN)
        held += low <= 20 * 30 / 43200 <= (high or 1)
    assert held >= 380


def test_without_an_outage_nothing_bounds_the_loss_from_above() -> None:
    assert lost_interval([], 100.0) == (0.0, None)


def test_one_stratum_is_the_ratio_of_rates() -> None:
    found = what_if_colocation(1000, 1e6, 1114, 1e6)
    half = math.exp(1.959964 * math.sqrt(1 / 1000 + 1 / 1114))
    assert (found.ratio, found.low, found.high) == pytest.approx((0.114, 1.114 / half - 1, 1.114 * half - 1))


def test_a_bad_day_of_both_groups_biases_nothing() -> None:
    good, bad = Stratum(10, 1000, 90, 9000), Stratum(900, 9000, 100, 1000)
    assert rate_ratio([good, bad]).ratio == pytest.approx(0)
    assert 190 / 10000 / (910 / 10000) < 0.3  # what the totals would say


def test_strata_that_scatter_widen_the_interval() -> None:
    even = [Stratum(50, 1000, 50, 1000)] * 10
    uneven = [Stratum(10, 1000, 90, 1000), Stratum(90, 1000, 10, 1000)] * 5
    assert rate_ratio(uneven).high > 2 * rate_ratio(even).high


def test_the_interval_of_the_ratio_holds_the_truth() -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(300):
        days = rng.lognormal(0, 0.5, 20)
        strata = [Stratum(rng.poisson(20 * d), 1000, rng.poisson(10 * d * 1.3), 500) for d in days]
        found = rate_ratio(strata)
        held += found.low <= 0.3 <= found.high
    assert held >= 275


@pytest.mark.parametrize(
    ("strata", "missing"),
    [
        ([], "never seen in the same"),
        ([Stratum(1, 10, 0, 0), Stratum(0, 0, 1, 10)], "never seen in the same"),
        ([Stratum(0, 10, 3, 10)], "no near unit failed"),
        ([Stratum(3, 10, 0, 10)], "no far unit failed"),
        ([Stratum(0, 10, 0, 10)], "no near and no far unit failed"),
    ],
)
def test_too_little_for_a_ratio_says_what_is_missing(strata: list[Stratum], missing: str) -> None:
    with pytest.raises(TooFewCountsError, match=missing):
        rate_ratio(strata)


def test_a_typed_in_figure_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="far_failures is nan"):
        what_if_colocation(1, 1, math.nan, 1)
