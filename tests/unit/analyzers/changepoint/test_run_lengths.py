"""The posterior over run lengths: equal to the recursion written out, and right about steps, spikes and gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from analyzers.builtin.stats import changepoint
from analyzers.builtin.stats.changepoint import (
    RunLengths,
    credible,
    independent_share,
    reference_of,
    run_lengths,
)

Floats = NDArray[np.float64]
BEFORE, INSIDE, STEP = 240, 60, 30


def noise(series: int = 40, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(series, BEFORE + INSIDE))


def judged(values: Floats, settled: int = 5) -> RunLengths:
    usual = reference_of(values[:, :BEFORE])
    scaled = (values[:, BEFORE:] - usual.level[:, None]) / usual.scale[:, None]
    return run_lengths(scaled, usual.rho, usual.samples, settled=settled)


def written_out(values: list[float], rho: float, samples: int, hazard: float) -> list[float]:
    """Masses of every beginning after the last sample, the reference first, one hypothesis at a time."""
    share = float(independent_share(np.array([rho]))[0])
    known = min(samples * share, 60.0)
    segments = [[1.0, 0.0, max(known, 1.0), 2.0 + known / 2, 2.0 + known / 2]]
    for x in values:
        grown = [[mass * (1 - hazard), *rest] for mass, *rest in segments]
        segments = [*grown, [hazard, 0.0, 0.01, 2.0, 2.0]]
        if math.isnan(x):
            segments[-1][0] = 0.0
            for segment in segments[:-1]:
                segment[0] /= 1 - hazard
            continue
        for segment in segments:
            _, mean, count, shape, rate = segment
            scale = math.sqrt(max(rate / shape, 0.5) * (count + 1) / count)
            usual = 0.98 * float(student.pdf(x, 2 * shape, mean, scale))
            density = usual + 0.02 * 10 / math.pi / (x * x + 100)
            weight = usual / density * share
            segment[0] *= density**share
            segment[4] += weight * count * (x - mean) ** 2 / (2 * (count + weight))
            segment[2] += weight
            segment[1] += weight * (x - mean) / segment[2]
            segment[3] += weight / 2
        total = sum(segment[0] for segment in segments)
        for segment in segments:
            segment[0] /= total
    return [segment[0] for segment in segments]


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_posterior_is_that_of_the_recursion_written_out(rho: float) -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=8), [math.nan, 40.0], rng.normal(3, 1, size=8)])
    slow = written_out(values.tolist(), rho, 30, 0.01)
    found = run_lengths(values[None], np.array([rho]), np.array([30]), hazard=0.01)
    assert found.beginning[0] == pytest.approx(np.array(slow[1:]) / sum(slow[1:]), rel=0.01, abs=1e-6)
    assert found.odds[0, -1] == pytest.approx(math.log(sum(slow[1:]) / slow[0]), abs=0.05)
    assert found.start[0, -1] == int(np.argmax(slow)) - 1


def test_a_step_is_found_where_it_is_and_noise_has_none() -> None:
    values = noise()
    values[:20, BEFORE + STEP :] += 3
    found = judged(values)
    assert (found.odds[:20, -1] > 5).all()
    assert (found.odds[20:].max(axis=1) < 5).all()
    inside = [first <= STEP <= last for first, _, last in map(credible, found.beginning[:20])]
    assert sum(inside) >= 17


@pytest.mark.parametrize("length", [1, 2])
def test_spikes_are_no_change(length: int) -> None:
    values = noise()
    values[:, BEFORE + STEP : BEFORE + STEP + length] += 30
    assert (judged(values).odds.max(axis=1) < 5).all()


def test_missing_samples_widen_the_interval_and_hide_no_step() -> None:
    values = noise()
    values[:, BEFORE + STEP :] += 4
    values[:, BEFORE + 20 : BEFORE + 40] = np.nan
    found = judged(values)
    assert (found.odds[:, -1] > 5).all()
    inside = [first <= 40 <= last for first, _, last in map(credible, found.beginning)]
    assert sum(inside) >= 36


def test_what_wanders_is_no_change() -> None:
    """An autoregression of the first order leaves its mean for long, by chance."""
    pushed = noise(series=40, seed=4)
    for at in range(1, pushed.shape[1]):
        pushed[:, at] = 0.9 * pushed[:, at - 1] + math.sqrt(1 - 0.81) * pushed[:, at]
    assert np.median(reference_of(pushed).rho) == pytest.approx(0.9, abs=0.06)
    assert (judged(pushed).odds.max(axis=1) < 5).all()


def test_few_distinct_values_have_a_scale() -> None:
    values = np.full((3, BEFORE + INSIDE), 3.0)
    values[0, BEFORE + STEP :] = 2
    values[1, ::7] = 4
    assert (reference_of(values[:, :BEFORE]).scale > 0).all()
    found = judged(values)
    assert found.start[0, -1] == STEP
    assert found.odds[0, -1] > 20
    assert (found.odds[1:].max(axis=1) < 5).all()


def test_a_series_says_nothing_without_samples() -> None:
    found = judged(np.full((2, BEFORE + INSIDE), np.nan))
    assert (found.start == -1).all()
    assert np.isneginf(found.odds).all()


def test_series_are_judged_alone_whatever_stands_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    values = noise(series=7)
    values[3, BEFORE + STEP :] += 2
    together = judged(values)
    monkeypatch.setattr(changepoint, "_CHUNK", 2)
    apart = judged(values)
    assert np.array_equal(together.odds, apart.odds)
    assert np.array_equal(together.beginning, apart.beginning)


def test_the_interval_is_the_shortest_that_holds_its_share() -> None:
    assert credible(np.array([0.0, 0.02, 0.5, 0.46, 0.02])) == (2, 2, 3)
    assert credible(np.array([0.0, 0.0, 1.0])) == (2, 2, 2)
    with pytest.raises(ValueError, match="no column"):
        credible(np.zeros(3))
