"""Over-dispersed failure rates: the null distribution of a fleet and the tail of each part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FITTED = 0.9
"""Quantile of the null distribution up to which counts are fitted."""
LEAST_CUT = 2.0
"""Counts up to this are fitted in any case: where nearly all parts have none, those with one or two show the spread."""
MOST_FITTED = 400
"""Parts that the null distribution is learnt from; of more, every k-th by exposure."""
ROUNDS = 3
SPREADS = np.concatenate([[1e-4], np.geomspace(0.02, 3.0, 11)])
"""Candidates for the squared coefficient of variation of healthy parts' rates; the first is Poisson's case."""
SCALES = np.geomspace(0.2, 1.4, 17)
"""Candidates for the rate of healthy parts, as multiples of that of the whole fleet, which lemons only raise."""
LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """Scatter of failures of healthy parts: weighted pairs of rate (failures a unit of exposure) and spread, each of
    shape (pairs,); weights sum to 1."""

    rates: Floats
    spreads: Floats
    weights: Floats

    @property
    def rate(self) -> float:
        return float(self.weights @ self.rates)

    @property
    def spread(self) -> float:
        return float(self.weights @ self.spreads)


def fit_null(counts: Floats, exposure: Floats) -> Null:
    """The null distribution of a fleet from counts and exposures, both of shape (parts,), exposures above 0.

    A truncated likelihood: only counts up to the quantile `FITTED` of the fit before count, each given that it is one
    of those, so that lemons above neither raise the rate nor widen the spread (the zero assumption of Efron 2004).
    """
    places = np.argsort(exposure, kind="stable")
    if len(places) > MOST_FITTED:
        places = places[np.linspace(0, len(places) - 1, MOST_FITTED).astype(int)]
    counts, exposure = counts[places], exposure[places]
    overall = max(float(counts.sum()), 0.5) / float(exposure.sum())
    rates, spreads = (one.ravel() for one in np.meshgrid(overall * SCALES, SPREADS))
    # The first cut is that of a fleet as uneven as the counts look, lemons included: generous, and narrowed after.
    weights = _weights(counts, exposure, rates, spreads, np.full(len(counts), np.inf))
    for _ in range(ROUNDS):
        rate, spread = float(weights @ rates), float(weights @ spreads)
        cut = np.maximum(quantile(FITTED, rate * exposure, spread), LEAST_CUT)
        weights = _weights(counts, exposure, rates, spreads, cut)
    retained = weights > LEAST_WEIGHT
    return Null(rates[retained], spreads[retained], weights[retained] / weights[retained].sum())


def _weights(counts: Floats, exposure: Floats, rates: Floats, spreads: Floats, cut: Floats) -> Floats:
    """Likelihood of each pair, normalized: shape (pairs,). Counts above `cut` are left out."""
    used = counts <= cut
    counts, exposure, cut = counts[used], exposure[used], cut[used]
    bounded = np.isfinite(cut)
    found = np.empty(len(rates))
    for place, (rate, spread) in enumerate(zip(rates, spreads, strict=True)):
        mean = rate * exposure
        found[place] = log_mass(counts, mean, spread).sum()
        if bounded.any():
            below = 1 - at_least(cut[bounded] + 1, mean[bounded], spread)
            found[place] -= np.log(np.maximum(below, 1e-300)).sum()
    weights = np.exp(found - found.max())
    return np.asarray(weights / weights.sum())


def log_mass(counts: Floats, mean: Floats, spread: float) -> Floats:
    """log P(count) of a negative binomial with this mean and variance mean + spread * mean^2, shape (parts,)."""
    from scipy.special import gammaln

    size = 1 / spread
    return np.asarray(
        gammaln(counts + size)
        - gammaln(size)
        - gammaln(counts + 1)
        + size * np.log(size / (size + mean))
        + counts * np.log(mean / (size + mean))
    )


def at_least(counts: Floats, mean: Floats, spread: float | Floats) -> Floats:
    """P(count or more) of that negative binomial: a regularized incomplete beta function, shape (parts,)."""
    from scipy.special import betainc

    size = 1 / np.asarray(spread)
    inside = betainc(np.maximum(counts, 1), size, mean / (size + mean))
    return np.asarray(np.where(counts <= 0, 1.0, inside), dtype=np.float64)


def quantile(share: float, mean: Floats, spread: float) -> Floats:
    """The least count with P(count or fewer) >= `share`, shape (parts,); by bisection."""
    low = np.full(len(mean), -1.0)
    high = np.ceil(mean + 40 * np.sqrt(mean + spread * mean**2) + 40)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        enough = 1 - at_least(middle + 1, mean, spread) >= share
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def p_values(null: Null, counts: Floats, exposure: Floats) -> Floats:
    """P(so many failures or more) of each part if it is healthy, averaged over what the fleet leaves open."""
    found = np.zeros(len(counts))
    for rate, spread, weight in zip(null.rates, null.spreads, null.weights, strict=True):
        found += weight * at_least(counts, rate * exposure, spread)
    return np.asarray(np.clip(found, 1e-300, 1.0))


def middle_p_values(null: Null, counts: Floats, exposure: Floats) -> Floats:
    """P(more) + P(as many) / 2 (Lancaster 1961): symmetric for healthy parts, so that parts can be added up."""
    found = np.zeros(len(counts))
    for rate, spread, weight in zip(null.rates, null.spreads, null.weights, strict=True):
        mean = rate * exposure
        found += weight * (at_least(counts, mean, spread) + at_least(counts + 1, mean, spread)) / 2
    return np.asarray(np.clip(found, 1e-300, 1 - 1e-12))


def ratio_interval(count: float, expected: float) -> tuple[float, float]:
    """The 95 % interval of observed over expected failures (Garwood 1936); the upper end is finite."""
    from scipy.special import gammaincinv

    low = 0.0 if count == 0 else float(gammaincinv(count, 0.025))
    return low / expected, float(gammaincinv(count + 1, 0.975)) / expected
