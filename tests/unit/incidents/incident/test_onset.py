"""Since when an incident lasts, and whether a change is supported, contradicted or cannot be tested as its cause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import fisher_exact

from incidents.domain.incident import onset as onsets
from incidents.domain.incident.onset import (
    LastGood,
    MetricOnset,
    MetricShifts,
    Onset,
    bounded,
    fisher,
    judge_change,
    of_forecast,
    onset,
    shifts_in,
)

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
RARE = 1 / 240
"""Changes an hour: one in ten days."""


def after(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def shift(component: str, minutes: float, width: float = 2) -> MetricOnset:
    return MetricOnset(component, "latency", after(minutes), after(minutes), after(minutes + width), 5.0)


def shifts(*found: MetricOnset, steady: int = 0) -> MetricShifts:
    return MetricShifts(found, frozenset(f"service/other-{n}" for n in range(steady)))


def began(found: MetricShifts, component: str = "service/a") -> Onset:
    return onset((component,), found, None, None, after(60))


def test_the_earliest_shift_of_a_cause_says_since_when() -> None:
    found = shifts(shift("service/a", 9), shift("service/a", 5), shift("service/b", 1))
    one = onset(("service/a",), found, after(7), after(8), after(10))
    assert (one.at, one.low, one.high, one.source) == (after(5), after(5), after(7), "metrics")
    assert one.detail == "latency of service/a"


@pytest.mark.parametrize(
    ("failing", "alert", "source", "at"),
    [(7, 8, "analyzer", 7), (9, 8, "alert", 8), (None, 8, "alert", 8), (None, None, "opened", 10)],
)
def test_without_metrics_the_first_record_says_when_at_the_latest(
    failing: float | None, alert: float | None, source: str, at: float
) -> None:
    first_failure, first_alert = (None if one is None else after(one) for one in (failing, alert))
    one = onset(("service/a",), shifts(shift("service/a", 30)), first_failure, first_alert, after(10))
    assert (one.source, one.at, one.low) == (source, after(at), None)


def test_a_change_after_the_onset_is_contradicted() -> None:
    found = shifts(shift("service/a", 0), steady=30)
    test = judge_change({"service/a": after(10)}, began(found), found, RARE)
    assert test.verdict == "contradicted"
    assert test.reasons == ("The onset is over 8 min before the change.",)


def test_a_change_shortly_before_of_what_alone_shifted_is_supported() -> None:
    found = shifts(shift("service/a", 3), steady=30)
    test = judge_change({"service/a": NOON}, began(found), found, RARE)
    assert test.verdict == "supported"
    assert (test.changed, test.control, test.lag_seconds) == ((1, 1), (0, 30), 180)
    assert test.control_p == pytest.approx(1 / 31)


def test_a_shift_of_what_was_not_changed_contradicts() -> None:
    found = shifts(*[shift(f"service/{name}", 3) for name in "abcdefgh"], steady=2)
    test = judge_change({"service/a": NOON}, began(found), found, RARE)
    assert (test.verdict, test.reasons[0]) == ("contradicted", "Unchanged components behave alike.")


def test_a_rollout_of_which_one_component_shifted_is_contradicted() -> None:
    found = shifts(shift("service/x", 3), steady=30)
    rollout = {"service/x": NOON} | {f"service/other-{n}": NOON for n in range(11)}
    test = judge_change(rollout, began(found, "service/x"), found, RARE)
    assert (test.verdict, test.changed) == ("contradicted", (1, 12))


def test_a_rollout_in_stages_is_supported_by_its_order_without_controls() -> None:
    found = shifts(*[shift(f"service/{name}", 20 * n + 3) for n, name in enumerate("abcde")])
    rollout = {f"service/{name}": after(20 * n) for n, name in enumerate("abcde")}
    test = judge_change(rollout, began(found), found, RARE)
    assert (test.verdict, test.control_p) == ("supported", None)
    assert test.dose_p == pytest.approx(1 / 120)


@pytest.mark.parametrize(
    ("minutes", "rate", "steady", "why"),
    [
        (300, 0.1, 30, "The change may precede the onset by chance: p 0.39, at most 0.05 needed."),
        (
            3,
            RARE,
            2,
            "Too few components with metrics to compare with: 2 of the 3 unchanged components needed;"
            " order of a rollout: 1 of the 4 moments needed.",
        ),
        (
            3,
            RARE,
            5,
            "Changed and unchanged components differ too little: p 0.17, at most 0.05 needed;"
            " order of a rollout: 1 of the 4 moments needed.",
        ),
    ],
)
def test_what_figures_cannot_decide_is_said(minutes: float, rate: float, steady: int, why: str) -> None:
    found = shifts(shift("service/a", minutes), steady=steady)
    where = onset(("service/a",), found, None, None, after(400))
    test = judge_change({"service/a": NOON}, where, found, rate)
    assert (test.verdict, test.reasons[0]) == ("cannot be tested", why)


def test_a_change_within_the_interval_of_the_onset_cannot_be_tested() -> None:
    found = shifts(shift("service/a", 0, width=30), steady=30)
    test = judge_change({"service/a": after(15)}, began(found), found, RARE)
    assert test.verdict == "cannot be tested"
    assert test.reasons[0] == (
        "The change lies within the interval of the onset: 15 min after its beginning, 15 min before its end."
    )


def test_without_metrics_only_a_change_after_the_first_alert_is_decided() -> None:
    alone = onset((), shifts(), None, after(5), after(6))
    verdicts = [judge_change({"service/a": after(at)}, alone, shifts(), RARE).verdict for at in (0, 10)]
    assert verdicts == ["cannot be tested", "contradicted"]


def test_a_test_without_metrics_says_what_was_missing() -> None:
    """With a beginning known, too: an interval that is not of metrics decides no order."""
    reason = "None of 4 series has 30 minutes with samples in the 12 minutes before what is judged."
    found = shifts_in(
        {"evidence": [], "reason": reason, "measures": {"series": 4, "series_not_judged": 4, "components": 2}}
    )
    alone = bounded(onset((), found, None, after(5), after(6)), LastGood(after(-20), "why"))
    test = judge_change({"service/a": after(-30)}, alone, found, RARE)
    assert test.verdict == "cannot be tested"
    assert test.reasons == (
        f"No metric of the failed component shows the onset: changepoint judged 0 of 4 series: {reason}",
        "The onset is at most 35 min after the change. It lies within 25 min.",
        "Changed components with metrics: 0 of 1.",
    )


def test_an_onset_without_metrics_lies_after_the_last_good_moment() -> None:
    began = onset((), shifts(), after(7), None, after(10))
    known = bounded(began, LastGood(after(2), "from the end of a window"))
    assert (known.low, known.high, known.interval) == (after(2), after(7), "from the end of a window")
    assert bounded(began, LastGood(None, "beginning unknown")).low is None


def test_a_forecast_has_no_onset() -> None:
    one = of_forecast(onset((), shifts(), None, None, after(10)))
    assert (one.at, one.low, one.forecast, one.interval) == (after(10), None, True, "nothing has failed yet")
    found = shifts(shift("service/a", 5))
    shown = of_forecast(began(found))
    assert (shown.low, shown.forecast) == (after(5), True)


def test_exact_tests_agree_with_the_library_and_with_enumeration() -> None:
    assert fisher(3, 4, 1, 9) == pytest.approx(fisher_exact(np.array([[3, 1], [1, 8]]), "greater").pvalue)
    orders = list(permutations(range(5)))
    swaps = [sum(one[a] > one[b] for a in range(5) for b in range(a + 1, 5)) for one in orders]
    for most in range(11):
        share = onsets._as_few_swaps(5, most)
        assert share == pytest.approx(sum(one <= most for one in swaps) / len(orders))
