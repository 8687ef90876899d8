"""A brief and mild excursion that was there before is no news; a failure in the history excuses nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from analyzers.builtin.metric_blame import ANALYZER
from analyzers.builtin.metric_blame.change import changes
from analyzers.builtin.metric_blame.series import Identity, Observed
from analyzers.runner import judge
from analyzers.simulators.services.application import Fault, Preset, run, window_of

MINUTES, PAST, WINDOW = timedelta(minutes=5), 60, 5
STARTS = tuple(datetime(2026, 1, 2, tzinfo=UTC) + n * MINUTES for n in range(PAST + WINDOW))
P50, P99 = (Identity("service/a", name, "", "latency") for name in ("p50_seconds", "p99_seconds"))


def evidence(earlier: float, lasts: int = 3) -> list[float]:
    """Nats of two latencies that both triple: one for three readings, as it did before by the factor `earlier`, and one
    for `lasts` readings."""
    rng = np.random.default_rng(3)
    series = (P50, P99, *(Identity(f"service/{n}", "p50_seconds", "", "latency") for n in range(20)))
    values = 1 + 0.02 * rng.standard_normal((len(series), PAST + WINDOW))
    values[0, PAST + 1 : PAST + 4] += 2.0
    values[1, PAST + 1 : PAST + 1 + lasts] += 2.0
    values[0, 20:23] += 2.0 * earlier
    seen = Observed(STARTS, MINUTES, PAST, series, values, {}, 0)
    found = {one.identity: one.nats for one in changes(seen, 2, 12).found}
    return [found[P50], found[P99]]


def test_a_change_of_a_new_size_has_evidence() -> None:
    assert min(evidence(0.0)) > 5


@pytest.mark.parametrize("earlier", [0.7, 1.0, 2.0])
def test_an_excursion_that_was_there_before_is_a_habit_of_the_component(earlier: float) -> None:
    assert max(evidence(earlier)) == pytest.approx(np.log(11 / 2))


def test_a_smaller_excursion_of_before_takes_nothing_away() -> None:
    assert min(evidence(0.2)) > 5


def test_a_change_that_lasts_is_no_habit_of_the_component_as_another_of_its_series_had_one() -> None:
    habit, lasting = evidence(1.0, lasts=4)
    assert habit == pytest.approx(np.log(11 / 2))
    assert lasting > 5


def peaks(now: list[float], every: int) -> float:
    """Nats of a latency of single peaks, one in `every` readings of the history, whose window is `now`."""
    rng = np.random.default_rng(5)
    series = tuple(Identity(f"service/{n}", "p99_seconds", "", "latency") for n in range(20))
    values = 1 + 0.02 * rng.standard_normal((len(series), PAST + WINDOW))
    values[0, 7:PAST:every] += 1.1
    values[0, PAST:] = now
    seen = Observed(STARTS, MINUTES, PAST, series, values, {}, 0)
    return next(one.nats for one in changes(seen, 2, 12).found if one.series == 0)


def test_two_peaks_in_a_row_are_no_news_where_single_ones_are_frequent() -> None:
    assert peaks([1.0, 2.0, 2.0, 1.0, 1.0], every=6) < 1
    assert peaks([1.0, 2.0, 2.0, 1.0, 1.0], every=PAST) > 3
    assert peaks([2.0, 2.0, 2.0, 2.0, 2.0], every=6) > 5, "five in a row are"
    assert peaks([1.0, 4.0, 4.0, 1.0, 1.0], every=6) > 5, "and so is what no peak reached"


def test_a_single_reading_beside_a_missing_one_is_no_change() -> None:
    assert peaks([1.0, 4.0, np.nan, 1.0, 1.0], every=PAST) < 1
    assert peaks([1.0, 4.0, np.nan, 4.0, 1.0], every=PAST) > 5


def shares(kind: str, now: float, readings: int, requests: float = 0.0) -> float:
    """Nats of errors or missing availability at `now` for so many readings in a component that had six tenths
    of it for two readings, three hours before."""
    rng = np.random.default_rng(4)
    series = [Identity(f"service/{n}", kind, "", kind) for n in range(20)]  # type: ignore[arg-type]
    values = 0.001 * rng.random((len(series), PAST + WINDOW))
    values[0, 20:22] = 0.6 * now
    values[0, PAST + 1 : PAST + 1 + readings] = now
    if requests:
        series.append(Identity("service/0", "requests", "", "load"))
        values = np.vstack([values, np.full(PAST + WINDOW, requests)])
    seen = Observed(STARTS, MINUTES, PAST, tuple(series), values, {}, 0)
    return next(one.nats for one in changes(seen, 2, 12).found if one.series == 0)


@pytest.mark.parametrize("kind", ["errors", "availability"])
def test_a_brief_outage_is_no_habit_however_often_it_was_there(kind: str) -> None:
    assert shares(kind, 1.0, 2) > 7
    assert shares(kind, 0.1, 2) < 2


@pytest.mark.parametrize("kind", ["errors", "availability"])
def test_what_lasts_is_no_habit_after_what_was_brief(kind: str) -> None:
    assert shares(kind, 0.1, 4) > 7


def test_counted_errors_are_a_share_of_the_requests_and_no_habit_without_them() -> None:
    assert shares("errors", 20.0, 2, requests=200.0) < 2
    assert shares("errors", 20.0, 2, requests=25.0) > 7
    assert shares("errors", 20.0, 2) > 7


def test_a_percentage_is_a_share() -> None:
    assert shares("availability", 10.0, 2) < 2
    assert shares("availability", 90.0, 2) > 7


@pytest.mark.parametrize(("kind", "severity"), [("errors", 0.3), ("errors", 1.0), ("delay", 6.0)])
def test_a_fault_that_comes_back_is_named_again(kind: str, severity: float) -> None:
    preset = Preset(services=8)
    begins = preset.seconds - 600.0
    now = Fault(kind, 5, severity, begins + 60, preset.seconds)
    before = replace(now, start=begins - 4200, end=begins - 3000)
    made = run(preset, np.random.default_rng(1), (before, now))
    assert [one["component"] for one in judge(ANALYZER, window_of(made), {})["suspects"]] == [made.name(5)]
