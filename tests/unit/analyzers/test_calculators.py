"""Calculators of what-if: the talk's example, what the inputs mean, and what cannot be taken."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.builtin.stats.nines import OutageMix, what_if_tor_availability
from analyzers.builtin.stats.rate_ratio import what_if_colocation
from analyzers.calculators import (
    AVAILABILITY,
    CALCULATORS,
    COLOCATION,
    TOR_AVAILABILITY,
    Calculator,
    answer,
    read,
)


def defaults(calculator: Calculator, **changed: float) -> dict[str, float]:
    return {one.name: one.default for one in calculator.inputs} | changed


def test_the_example_of_the_talk_comes_to_six_nines() -> None:
    assert answer(TOR_AVAILABILITY, defaults(TOR_AVAILABILITY)).shown == "99.99993 %"


def test_the_talks_tors_are_good_enough_for_five_nines_and_not_for_six() -> None:
    for nines, good in ((5, True), (6, False)):
        assert answer(TOR_AVAILABILITY, defaults(TOR_AVAILABILITY, target_nines=nines)).good is good


def test_a_tor_is_computed_as_the_analyzer_computes_it() -> None:
    told = answer(TOR_AVAILABILITY, defaults(TOR_AVAILABILITY, rebooted=2.5, soft=70, soft_minutes=5))
    assert (
        told.measures["availability"] == what_if_tor_availability(0.025, OutageMix(0.7, 5, 120)).availability
    )


def test_colocation_is_computed_as_the_analyzer_computes_it() -> None:
    told = answer(COLOCATION, defaults(COLOCATION, near_failures=90, far_failures=120)).measures
    found = what_if_colocation(90, 1e6, 120, 1e6)
    assert (told["ratio"], told["low"], told["high"]) == (found.ratio, found.low, found.high)


def test_the_published_ratio_is_where_colocation_begins() -> None:
    assert answer(COLOCATION, defaults(COLOCATION)).shown == "+11.4 %"


def test_few_failures_cannot_tell_near_from_far() -> None:
    few = defaults(COLOCATION, near_failures=10, far_failures=11)
    assert answer(COLOCATION, few).verdict == "These figures do not decide"


def test_a_ratio_needs_failures_on_both_sides() -> None:
    with pytest.raises(ValueError, match="no near unit failed"):
        answer(COLOCATION, defaults(COLOCATION, near_failures=0))


def test_one_bad_hour_is_below_target_and_no_sign() -> None:
    told = answer(AVAILABILITY, defaults(AVAILABILITY, outages=1, minutes=60))
    assert told.good is False
    assert "no sign against it" in told.sentences[-1]


def test_twenty_bad_hours_are_a_sign() -> None:
    told = answer(AVAILABILITY, defaults(AVAILABILITY, outages=20, minutes=60))
    assert told.sentences[-1].endswith("it is a sign.")


def test_a_unit_without_an_outage_is_at_a_hundred_per_cent() -> None:
    assert answer(AVAILABILITY, defaults(AVAILABILITY, outages=0)).shown == "100 %"


def test_more_downtime_than_time_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"are more than 1 day$"):
        answer(AVAILABILITY, defaults(AVAILABILITY, days=1, outages=2, minutes=1440))


def test_what_is_not_given_is_the_default() -> None:
    values, wrong = read(TOR_AVAILABILITY, {"soft": "50", "hard_minutes": " "})
    assert (values["soft"], values["hard_minutes"], wrong) == (50, 120, {})


@pytest.mark.parametrize("text", ["many", "nan", "inf", "-1", "1e9", "1,5", "\0", "0x10"])
def test_what_is_no_number_within_its_bounds_is_named(text: str) -> None:
    assert read(TOR_AVAILABILITY, {"soft": text})[1] == {"soft": "must be a number from 0 to 100"}


def test_a_count_has_no_fraction() -> None:
    assert "outages" in read(AVAILABILITY, {"outages": "1.5"})[1]


@pytest.mark.parametrize("calculator", CALCULATORS.values(), ids=list(CALCULATORS))
def test_every_default_can_be_reached_with_its_slider(calculator: Calculator) -> None:
    assert all(one.low <= one.least <= one.default <= one.most <= one.high for one in calculator.inputs)


@pytest.mark.parametrize("calculator", CALCULATORS.values(), ids=lambda one: one.slug)
@given(data=st.data())
def test_any_inputs_within_bounds_give_finite_figures_or_say_why_not(
    calculator: Calculator, data: st.DataObject
) -> None:
    values = {}
    for one in calculator.inputs:
        number = data.draw(st.floats(one.low, one.high), label=one.name)
        values[one.name] = float(round(number)) if one.whole else number
    try:
        told = answer(calculator, values)
    except ValueError:
        return
    numbers = [one for one in told.measures.values() if isinstance(one, float)]
    assert all(math.isfinite(one) for one in numbers)


def test_the_curve_falls_as_more_devices_go_out() -> None:
    curve = answer(TOR_AVAILABILITY, defaults(TOR_AVAILABILITY)).drawings[0]
    heights = [y for _, y in curve.points]  # type: ignore[union-attr]
    assert heights == sorted(heights, reverse=True)
