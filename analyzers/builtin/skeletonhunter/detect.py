"""Anomalous pairs by slice: later than usual for a short time, or over a long one, or with losses.

Short term: a slice is compared with the ten accepted ones before it by the local outlier factor with `NEIGHBOURS`
neighbours, over seven features of the logarithms of the answers, each in units of its usual scatter. What is later by
the least effect is not accepted, so that a fault does not become what is usual. Long term: the mean logarithm of a
window against the median of those of the history (Welch's test; for skewed answers ranks of the slices' medians), and
pairs that are late all along against pairs like them. All count only if they are later by the least effect, beyond
what most pairs of their layer are later by at that time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.skeletonhunter.observed import FEATURES, MEAN, P50, P75, STD, Observed
from analyzers.contract import Params

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

LOOK_BACK, NEIGHBOURS = 10, 5
LEVEL = 2.0
"""Times the upper quartile of its layer that a pair's median must be to be late all along."""
SCATTER = 0.01
"""Least scatter of a feature."""
CHUNK = 20_000
MANY = 8
"""Pairs of a layer from which the median says what they have in common."""
SKEWED = 1.0
"""Skewness of the logarithms from which answers are not lognormal, and ranks are tested."""
BEYOND = 2.5
"""Standard deviations above the usual upper quartile from which an answer is late."""


@dataclass(frozen=True, slots=True, eq=False)
class Anomalies:
    """`late` marks slices of the window, shape (pairs, slices of the window); `drifted`, `level` and `ranked` (those of
    `drifted` that were tested by ranks) pairs. `limit` is the ln of the time from which an answer of a pair is late,
    `ratio` the ln of how much later than usual it is, `factor` its largest local outlier factor; shape (pairs,).
    """

    late: Mask
    drifted: Mask
    ranked: Mask
    level: Mask
    limit: Floats
    ratio: Floats
    factor: Floats

    @property
    def pairs(self) -> Mask:
        return np.asarray(self.late.any(axis=1) | self.drifted | self.level, dtype=np.bool_)


def detect(seen: Observed, params: Params) -> Anomalies:
    """The late slices and pairs of a window."""
    enough = seen.judged & (seen.answers >= int(params["min_answers"]))
    late, retained, ratio, factor = _short_term(
        seen, enough, float(params["lof"]), math.log1p(float(params["effect"]))
    )
    limit = np.full(len(seen.pairs), np.nan)
    there = ~np.isnan(retained[:, 0, 0])
    if there.any():
        spread = np.nanmedian(retained[there][:, :, STD], axis=1)
        limit[there] = np.nanmedian(retained[there][:, :, P75], axis=1) + BEYOND * spread
    drifted, ranked, moved, usual = _long_term(seen, float(params["drift"]), float(params["drift_z"]))
    level, above, normal = _level(seen, enough)
    for mask, by, new in ((drifted, moved, usual), (level, above, normal)):
        limit = np.where(mask, np.fmin(limit, new), limit)
        ratio = np.where(mask, np.maximum(ratio, by), ratio)
    return Anomalies(late[:, seen.now], drifted, ranked, level, limit, ratio, factor)


def _short_term(
    seen: Observed, enough: Mask, lof: float, effect: float
) -> tuple[Mask, Floats, Floats, Floats]:
    """Late slices, shape (pairs, slices), the features of what was last accepted, ratio and factor by pair."""
    size, slices = seen.sent.shape
    late, factor, ratio = np.zeros((size, slices), dtype=bool), np.ones(size), np.zeros(size)
    retained = np.full((size, LOOK_BACK, len(FEATURES)), np.nan)
    filled = np.zeros(size, dtype=np.int64)
    scale = _scatter(seen.features)
    for at in range(slices):
        new = seen.features[:, at]
        ready = np.flatnonzero(enough[:, at] & (filled > NEIGHBOURS))
        middle = _median(retained[ready][:, :, [MEAN, P75]])
        moved = np.max(new[ready][:, [MEAN, P75]] - middle, axis=1, initial=-np.inf)
        shift = moved - _common(moved, _layers(seen)[ready])
        requested = shift >= effect
        found = outlier_factors(retained[ready[requested]] / scale, new[ready[requested]] / scale)
        flagged = ready[requested][found >= lof]
        late[flagged, at] = True
        if at >= seen.first:
            factor[ready[requested]] = np.maximum(factor[ready[requested]], found)
            ratio[flagged] = np.maximum(ratio[flagged], shift[requested][found >= lof])
        normal = enough[:, at].copy()
        normal[ready[moved >= effect]] = False  # flagged, or late with all others
        accepted = np.flatnonzero(normal)
        retained[accepted, filled[accepted] % LOOK_BACK] = new[accepted]
        filled[accepted] += 1
    return late, retained, ratio, factor


def _median(values: Floats) -> Floats:
    """The median over the second axis of what is no NaN. As `np.nanmedian`, which takes several times as long for many
    short rows."""
    count = np.count_nonzero(~np.isnan(values), axis=1)[:, None]
    ordered = np.sort(values, axis=1)
    low, high = (np.take_along_axis(ordered, at, axis=1)[:, 0] for at in ((count - 1) // 2, count // 2))
    return np.asarray((low + high) / 2)


def _scatter(features: Floats) -> Floats:
    """The usual scatter of each feature about the median of its pair, shape (features,)."""
    if not np.isfinite(features).any():
        return np.ones(features.shape[2])
    there = np.isfinite(features[:, :, 0]).any(axis=1)
    off = np.abs(features[there] - np.nanmedian(features[there], axis=1, keepdims=True))
    return np.asarray(np.maximum(1.4826 * np.nanmedian(off, axis=(0, 1)), SCATTER))


def _layers(seen: Observed) -> Ints:
    return np.array([pair[2] == "overlay" for pair in seen.pairs], dtype=np.int64)


def _common(shift: Floats, layer: Ints) -> Floats:
    """Common delay of most pairs of the same layer; 0 where they are few or earlier."""
    common = np.zeros(len(shift))
    for one in (0, 1):
        mine = layer == one
        if np.count_nonzero(mine) >= MANY:
            common[mine] = max(0.0, float(np.median(shift[mine])))
    return common


def outlier_factors(retained: Floats, new: Floats, neighbours: int = NEIGHBOURS) -> Floats:
    """The local outlier factor of each `new` row, shape (rows, features), among those in `retained`, shape (rows,
    look-back, features), of which rows of NaN are absent (Breunig et al., SIGMOD 2000).

    As scikit-learn's LocalOutlierFactor with novelty, for many small samples at once: fitted one by one, 100,000 take
    minutes.
    """
    out = np.ones(len(new))
    for start in range(0, len(new), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = _factors(retained[part], new[part], neighbours)
    return out


def _factors(retained: Floats, new: Floats, neighbours: int) -> Floats:
    if not len(new):
        return np.ones(0)
    among = _distances(retained, retained)
    size = among.shape[1]
    among[:, np.arange(size), np.arange(size)] = np.inf
    near = np.argsort(among, axis=2, kind="stable")[:, :, :neighbours]
    distance = np.take_along_axis(among, near, axis=2)
    reach = distance[:, :, -1]
    around = np.take_along_axis(np.broadcast_to(reach[:, None, :], among.shape), near, axis=2)
    density = 1 / (np.maximum(distance, around).mean(axis=2) + 1e-10)
    mine = _distances(new[:, None, :], retained)[:, 0]
    close = np.argsort(mine, axis=1, kind="stable")[:, :neighbours]
    own = np.maximum(np.take_along_axis(mine, close, 1), np.take_along_axis(reach, close, 1)).mean(axis=1)
    return np.asarray(np.take_along_axis(density, close, 1).mean(axis=1) * (own + 1e-10))


def _distances(one: Floats, other: Floats) -> Floats:
    """Euclidean; infinite to what is absent. Shapes (rows, a, features), (rows, b, features) to (rows, a, b)."""
    square = ((one[:, :, None, :] - other[:, None, :, :]) ** 2).sum(axis=3)
    return np.asarray(np.sqrt(np.where(np.isnan(square), np.inf, square)))


def _long_term(seen: Observed, effect: float, least: float) -> tuple[Mask, Mask, Floats, Floats]:
    """Pairs whose mean is above that of the history, those of them tested by ranks, by how much, and the ln of the time
    from which an answer is late then.
    """
    size = len(seen.pairs)
    none = np.zeros(size, dtype=bool)
    if seen.n.shape[1] < 2 or not size:
        return none, none, np.zeros(size), np.full(size, np.nan)
    now, known = seen.now, (seen.n[:, :-1] > 0).any(axis=1) & (seen.n[:, -1] > 0)
    known &= (seen.judged | (seen.sent == 0))[:, now].all(axis=1)
    mean, var = np.zeros(size), np.ones(size)
    mean[known] = np.nanmedian(seen.mean[known][:, :-1], axis=1)
    var[known] = np.nanmedian(seen.var[known][:, :-1], axis=1)
    moved = np.where(known, seen.mean[:, -1] - mean, -np.inf)
    moved[known] -= _common(moved[known], _layers(seen)[known])
    error = np.sqrt(
        var / np.maximum(seen.n[:, :-1].sum(axis=1), 1) + seen.var[:, -1] / np.maximum(seen.n[:, -1], 1)
    )
    above = moved >= math.log1p(effect)
    drifted = above & (moved >= least * error)
    ranked = above & (np.abs(seen.skew[:, -1]) > SKEWED)
    for pair in np.flatnonzero(ranked).tolist():
        drifted[pair] = rank_z(seen.features[pair, now, P50], seen.features[pair, : seen.first, P50]) >= 3.0
    return drifted, ranked & drifted, np.maximum(moved, 0.0), mean + BEYOND * np.sqrt(var)


def rank_z(new: Floats, old: Floats) -> float:
    """The normal deviate of the rank sum of `new` among both (Mann and Whitney 1947); 0 without either."""
    new, old = new[np.isfinite(new)], old[np.isfinite(old)]
    if not len(new) or not len(old):
        return 0.0
    above = np.sign(new[:, None] - old[None, :]).sum() / 2
    return float(above / math.sqrt(len(new) * len(old) * (len(new) + len(old) + 1) / 12))


def _level(seen: Observed, enough: Mask) -> tuple[Mask, Floats, Floats]:
    """Pairs that are late all along: their median is `LEVEL` times the upper quartile of their layer."""
    size = len(seen.pairs)
    judged = np.where(enough[:, seen.now], seen.features[:, seen.now, P50], np.nan)
    median, normal = np.full(size, np.nan), np.full(size, np.inf)
    there = np.isfinite(judged).any(axis=1)
    median[there] = np.nanmedian(judged[there], axis=1)
    layer = _layers(seen)
    for one in (0, 1):
        mine = there & (layer == one)
        if np.count_nonzero(mine) >= MANY:
            normal[layer == one] = float(np.quantile(median[mine], 0.75))
    above = np.where(there, median - normal, -np.inf)
    return above >= math.log(LEVEL), np.maximum(above, 0.0), normal + math.log(LEVEL) / 2
