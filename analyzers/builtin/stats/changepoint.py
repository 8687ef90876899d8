"""Bayesian online change-point detection of many series at once, and the robust scale that it needs.

`run_lengths` is the recursion of Adams and MacKay (Bayesian Online Changepoint Detection, arXiv 0710.3742): at each
column the posterior over when the current segment began. Segments have a normal likelihood with a normal-inverse-gamma
prior, so that the predictive density is Student's t. Three things are unlike the paper:

- Hypotheses are addressed by the column at which a segment began, not by its length: no array is ever shifted, and all
  series advance together. The cost is series x columns^2 / 2; `_CHUNK` series at a time stay in the cache.
- A sample may be an outlier: the predictive density is mixed with a broad one, and a segment learns from a sample by
  its probability of not being one (weights of generalised Bayes: Altamirano et al., ICML 2023, arXiv 2302.04759). One
  spike begins no segment; two in a row begin to.
- Samples that depend on each other count less: the likelihood is tempered by (1 - rho) / (1 + rho), the share of
  independent samples in an autoregression of the first order.

A column without a sample moves no mass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

OUTLIERS = 0.02
"""Share of samples that are outliers."""
_FAR = 10.0
"""Half width of the density of outliers, in scales of the reference."""
_BREADTH = 0.01
"""Samples that the prior of a new segment's mean is worth: its level lies within about ten scales."""
_SHAPE = 2.0
"""Shape of the prior of a new segment's variance, whose mean is that of the reference."""
_LEAST_VARIANCE = 0.5
"""Variance of a segment, at least, in squared scales of the reference: a run of equal readings is no new segment."""
_KNOWN = 60.0
"""Samples that the reference counts as, at most: it may drift."""
_CHUNK = 128
_MOST_RHO = 0.95
_NORMAL = 1.4826
"""Median absolute deviation to standard deviation, of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Usual level of each series; all of shape (series,). `rho` is the correlation of neighbouring samples,
    `samples` how many there were."""

    level: Floats
    scale: Floats
    rho: Floats
    samples: Ints


def reference_of(values: Floats) -> Reference:
    """Level, scale and correlation of series of shape (series, columns), NaN where nothing was measured.

    The level is the median. The scale is the largest of the normalised median absolute deviation, the spread of the
    middle four fifths, half the least step between values where there are few, and 0.1 % of the level: a gauge that
    never moved has a scale. Series without a sample have level NaN and scale 1.
    """
    there = np.isfinite(values)
    samples = there.sum(axis=1)
    level, low, high = _quantiles(values, there, (0.5, 0.1, 0.9))
    (spread,) = _quantiles(np.abs(values - level[:, None]), there, (0.5,))
    scale = np.fmax(_NORMAL * spread, (high - low) / 2.563)
    scale = np.fmax(scale, 0.5 * _least_step(values))
    scale = np.fmax(scale, 1e-3 * np.abs(level))
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
    return Reference(level, scale, correlation_of((values - level[:, None]) / scale[:, None]), samples)


def correlation_of(scaled: Floats) -> Floats:
    """Correlation of neighbouring samples in [0, .95], from differences over one and over two columns.

    Of an autoregression the mean squares have the ratio 1 + rho, whatever its level drifts to. Differences are clipped
    at six scales, so that outliers and steps count little.
    """
    one = np.clip(scaled[:, 1:] - scaled[:, :-1], -6, 6)
    two = np.clip(scaled[:, 2:] - scaled[:, :-2], -6, 6)
    short, longer = _mean_square(one), _mean_square(two)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = longer / short - 1
    return np.clip(np.where(np.isfinite(rho), rho, 0.0), 0.0, _MOST_RHO)


def independent_share(rho: Floats) -> Floats:
    """The share of independent samples in an autoregression of the first order."""
    return (1 - rho) / (1 + rho)


@dataclass(frozen=True, slots=True)
class RunLengths:
    """Run lengths of each series at each column; shapes (series, columns).

    `odds` are log odds that the series left its reference: that its segment began in these columns and has lasted for
    `settled` of them. `start` is the most probable column at which the current segment began, -1 for the reference.
    `beginning` holds, of shape (series, columns), the probabilities of each beginning at column `stop` of the series,
    given that it left the reference.
    """

    odds: Floats
    start: Ints
    beginning: Floats


def run_lengths(
    scaled: Floats,
    rho: Floats,
    samples: Ints,
    *,
    hazard: float = 1 / 1000,
    settled: int = 1,
    stop: Ints | None = None,
) -> RunLengths:
    """The posterior over run lengths of series in units of their reference, shape (series, columns), NaN where there is
    no sample. `rho` and `samples` are those of the reference, shape (series,).

    `hazard` is the probability of a change before a sample. A segment counts as `settled` from so many columns on.
    `stop` is the column (series,) at which `beginning` is read, the last one by default.
    """
    series, columns = scaled.shape
    stops = np.full(series, columns - 1) if stop is None else stop
    odds, start = np.full((series, columns), -np.inf), np.full((series, columns), -1)
    beginning = np.zeros((series, columns))
    share = independent_share(rho)
    for at in range(0, series, _CHUNK):
        part = slice(at, at + _CHUNK)
        known = np.minimum(samples[part] * share[part], _KNOWN)
        segments = _Segments(scaled[part], share[part], known, hazard)
        for column in range(columns):
            segments.advance(column)
            odds[part, column] = segments.log_odds(column, settled)
            start[part, column] = segments.start(column)
            here = np.flatnonzero(stops[part] == column)
            if len(here):
                beginning[at + here, : column + 1] = segments.beginning(column, here)
    return RunLengths(odds, start, beginning)


class _Segments:
    """Every hypothesis of when the current segment began: place 0 is the reference, place c + 1 column c.

    The statistics of a segment are those of the normal-inverse-gamma distribution: mean, samples, shape, rate.
    """

    def __init__(self, scaled: Floats, share: Floats, known: Floats, hazard: float) -> None:
        series, columns = scaled.shape
        self._values, self._hazard = scaled, hazard
        self._share = share[:, None]
        size = (series, columns + 1)
        self._mass = np.zeros(size)
        self._mass[:, 0] = 1.0
        self._reference = np.zeros(series)
        self._mean = np.zeros(size)
        self._samples = np.full(size, _BREADTH)
        self._shape = np.full(size, _SHAPE)
        self._samples[:, 0] = np.maximum(known, 1.0)
        self._shape[:, 0] = _SHAPE + known / 2
        self._rate = self._shape.copy()

    def advance(self, column: int) -> None:
        sample = self._values[:, column]
        there = np.isfinite(sample)
        if not there.any():
            return
        x = np.where(there, sample, 0.0)[:, None]
        active = slice(0, column + 2)
        mean, samples = self._mean[:, active], self._samples[:, active]
        shape, rate = self._shape[:, active], self._rate[:, active]
        off = x - mean
        fresh = samples / (samples + 1)
        variance = np.maximum(rate / shape, _LEAST_VARIANCE)
        usual = (1 - OUTLIERS) * _student(off * off, variance / fresh, shape)
        density = usual + OUTLIERS * _FAR / np.pi / (x * x + _FAR * _FAR)
        weight = usual / density * self._share * there[:, None]
        np.power(density, self._share, out=density)
        self._move(column, density, there)
        rate += weight * samples * off * off / (2 * (samples + weight))
        samples += weight
        mean += weight * off / samples
        shape += weight / 2

    def _move(self, column: int, density: Floats, there: Flags) -> None:
        mass = self._mass[:, : column + 2].copy()
        mass[:, :-1] *= 1 - self._hazard
        mass[:, -1] = self._hazard
        mass *= density
        total = mass.sum(axis=1)
        self._mass[:, : column + 2] = np.where(
            there[:, None], mass / total[:, None], self._mass[:, : column + 2]
        )
        retained = self._reference + np.log((1 - self._hazard) * density[:, 0] / total)
        self._reference = np.where(there, retained, self._reference)

    def log_odds(self, column: int, settled: int) -> Floats:
        """Against the reference, whose mass is kept as a logarithm: evidence does not end where floats do."""
        lasted = self._mass[:, 1 : max(1, column + 3 - settled)].sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(lasted) - self._reference)

    def start(self, column: int) -> Ints:
        return np.asarray(np.argmax(self._mass[:, : column + 2], axis=1) - 1)

    def beginning(self, column: int, series: Ints) -> Floats:
        mass = self._mass[series, 1 : column + 2]
        total = mass.sum(axis=1, keepdims=True)
        return np.asarray(mass / np.where(total > 0, total, 1.0))


def _student(square: Floats, scale: Floats, shape: Floats) -> Floats:
    """Density of Student's t with 2 `shape` degrees of freedom and squared scale `scale` at a squared distance.

    The ratio of gamma functions is that of Frame (American Mathematical Monthly 1949), within 0.1 % from shape 2 on.
    """
    gammas = np.sqrt((shape - 0.25 + 1 / (32 * shape)) / (2 * np.pi * shape * scale))
    return np.asarray(gammas * np.exp(-(shape + 0.5) * np.log1p(square / (2 * shape * scale))))


def credible(beginning: Floats, level: float = 0.95) -> tuple[int, int, int]:
    """First, median and last column of the shortest interval that holds `level` of the probabilities of columns."""
    cumulated = np.concatenate([[0.0], np.cumsum(beginning)])
    if cumulated[-1] <= 0:
        raise ValueError("no column has a probability")
    cumulated /= cumulated[-1]
    ends = np.searchsorted(cumulated, cumulated[:-1] + level - 1e-12)
    possible = np.flatnonzero(ends < len(cumulated))
    first = int(possible[np.argmin(ends[possible] - possible)])
    median = int(np.searchsorted(cumulated, 0.5)) - 1
    return first, max(first, min(median, int(ends[first]) - 1)), int(ends[first]) - 1


def _quantiles(values: Floats, there: Flags, shares: tuple[float, ...]) -> list[Floats]:
    """Quantiles of the samples of each series, interpolated; NaN where there is none."""
    ordered = np.sort(np.where(there, values, np.inf), axis=1)
    count = there.sum(axis=1)
    found = []
    for share in shares:
        place = share * np.maximum(count - 1, 0)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(count - 1, 0))
        low = np.take_along_axis(ordered, below[:, None], axis=1)[:, 0]
        high = np.take_along_axis(ordered, above[:, None], axis=1)[:, 0]
        with np.errstate(invalid="ignore"):
            between = low + (place - below) * np.where(above > below, high - low, 0.0)
        found.append(np.where(count > 0, between, np.nan))
    return found


def _least_step(values: Floats) -> Floats:
    """The least step between two values of a series, 0 where most values differ; shape (series,)."""
    ordered = np.sort(values, axis=1)
    with np.errstate(invalid="ignore"):
        steps = np.diff(ordered, axis=1)
    different = steps > 0
    few = different.sum(axis=1) < 0.5 * np.isfinite(steps).sum(axis=1)
    least = np.min(np.where(different, steps, np.inf), axis=1, initial=np.inf)
    return np.where(few & np.isfinite(least), least, 0.0)


def _mean_square(values: Floats) -> Floats:
    there = np.isfinite(values)
    total = np.where(there, values * values, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(there.sum(axis=1), 1))
