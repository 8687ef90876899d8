"""The weights of changes, against what they are defined as."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from analyzers.builtin.trace_blame.likelihood import GROUPS, MODES, MOST_SUPPORT, SHARES, Claims, scores
from analyzers.builtin.trace_blame.normal import FAULT_SPREAD, log_bayes


@pytest.mark.simulated
@pytest.mark.parametrize(("shift", "variance"), [(0.0, 0.3), (1.5, 0.3), (4.0, 1.2)])
def test_the_weight_of_a_change_is_the_integral_over_all_faults(shift: float, variance: float) -> None:
    def joint(change: float) -> float:
        return float(norm.pdf(shift, change, math.sqrt(variance)) * norm.pdf(change, 0, FAULT_SPREAD))

    under_fault = quad(joint, -20, 20, points=[0, shift])[0]
    expected = math.log(under_fault / norm.pdf(shift, 0, math.sqrt(variance)))
    assert log_bayes(np.array([shift]), np.array([variance]))[0] == pytest.approx(expected, abs=1e-6)


def test_a_place_about_which_nothing_is_known_says_nothing() -> None:
    assert log_bayes(np.array([7.0]), np.array([np.inf]))[0] == 0.0


def slow_score(claims: list[tuple[str, float]]) -> float:
    """The definition, one case after the other."""
    modes = []
    for mode in MODES:
        likelihood = 1.0
        for group in mode:
            mine = [min(support, MOST_SUPPORT) for name, support in claims if name == group]
            likelihood *= sum(
                math.prod(share * math.exp(support) + 1 - share for support in mine) for share in SHARES
            ) / len(SHARES)
        modes.append(likelihood)
    return math.log(sum(modes) / len(modes))


def test_a_service_is_scored_as_defined() -> None:
    claims = [("own", 3.0), ("own", -1.0), ("in", 20.0), ("new", 0.5), ("mix", -2.0)]
    given = Claims(
        np.zeros(len(claims), dtype=np.int64),
        np.array([GROUPS.index(name) for name, _ in claims]),
        np.array([support for _, support in claims]),
    )
    assert scores(given, 1)[0] == pytest.approx(slow_score(claims))


def test_of_two_ends_of_a_slow_call_the_one_whose_other_calls_are_slow_is_likelier() -> None:
    one, other = 0, 1
    service = np.array([one, one, one, other, other, other])
    group = np.full(6, GROUPS.index("in"))
    support = np.array([10.0, 10.0, 10.0, 10.0, -1.0, -1.0])
    both = scores(Claims(service, group, support), 2)
    assert both[one] > both[other] + 10
