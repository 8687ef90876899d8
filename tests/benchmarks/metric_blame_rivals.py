"""BARO and PRISM beside `metric_blame`, by our own reading of their papers.

BARO (Pham et al., FSE 2024), RobustScorer:

Each series is scaled by the median and the interquartile range of its history; its score is the largest scaled value in
the window, and a service has that of its best series. Availability counts as what is missing, series that
`metric_blame.indicators` does not judge are left out, and `no load` leaves out counts of requests: kinder to it than
its own code, which looks for rises of raw columns.

PRISM (Pham, arXiv 2601.21359), of which we found no code: a root cause changes in what is internal (its resources) and
in what its callers see (external), an affected component in the latter alone. Series are scaled as above, either way; a
component has the smaller of its two best scores. One without internal series comes after all that have both, by its
external score: where none has any, as in PetShop, that is all there is. The split of series is that of
`metric_blame.indicators`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzers.builtin.metric_blame import ANALYZER
from analyzers.builtin.metric_blame.indicators import EXTERNAL
from analyzers.builtin.metric_blame.series import Observed, observe
from analyzers.contract import Window, check_params

ALARM = 6.0
"""Deviations from which `robust_z` names a component."""


def ranked(seen: Observed, *, load: bool) -> list[str]:
    """Components by their largest scaled value, highest first."""
    best: dict[str, float] = {}
    for identity, values in zip(seen.series, seen.values, strict=True):
        past, now = values[: seen.now], values[seen.now :]
        past, now = past[np.isfinite(past)], now[np.isfinite(now)]
        if len(past) < 2 or not len(now) or (identity.sort == "load" and not load):
            continue
        low, median, high = np.quantile(past, [0.25, 0.5, 0.75])
        if past.min() == past.max():
            continue  # its code drops columns that are constant in either part
        score = float(now.max() - median) / (float(high - low) or 1.0)
        best[identity.component] = max(score, best.get(identity.component, -np.inf))
    return sorted(best, key=lambda one: (-best[one], one))


def _first(window: Window, *, load: bool) -> Sequence[str]:
    return ranked(observe(window, check_params(ANALYZER, {})), load=load)[:1]


def baro(window: Window) -> Sequence[str]:
    return _first(window, load=True)


def baro_no_load(window: Window) -> Sequence[str]:
    return _first(window, load=False)


def prism(window: Window) -> Sequence[str]:
    seen = observe(window, check_params(ANALYZER, {}))
    best: dict[str, dict[bool, float]] = {}
    for identity, values in zip(seen.series, seen.values, strict=True):
        past, now = values[: seen.now], values[seen.now :]
        past, now = past[np.isfinite(past)], now[np.isfinite(now)]
        internal = identity.sort == "internal"
        if len(past) < 2 or not len(now) or past.min() == past.max():
            continue
        if not internal and identity.sort not in EXTERNAL:
            continue
        low, median, high = np.quantile(past, [0.25, 0.5, 0.75])
        score = float(np.abs(now - median).max()) / (float(high - low) or 1.0)
        mine = best.setdefault(identity.component, {})
        mine[internal] = max(score, mine.get(internal, -np.inf))

    def key(component: str) -> tuple[bool, float, str]:
        mine = best[component]
        both = True in mine and False in mine
        return not both, -(min(mine.values()) if both else mine.get(False, -np.inf)), component

    return sorted(best, key=key)[:1]


def robust_z(window: Window) -> Sequence[str]:
    """The component of the series whose median in the window is farthest off, in median absolute deviations of its
    history, if that is more than ALARM; a scale is at least a hundredth of the median."""
    seen = observe(window, check_params(ANALYZER, {}))
    best, first = ALARM, ""
    for identity, values in zip(seen.series, seen.values, strict=True):
        past, now = values[: seen.now], values[seen.now :]
        past, now = past[np.isfinite(past)], now[np.isfinite(now)]
        if len(past) < 2 or not len(now) or identity.sort == "load":
            continue
        median = float(np.median(past))
        scale = max(1.4826 * float(np.median(np.abs(past - median))), 0.01 * abs(median), 1e-9)
        score = abs(float(np.median(now)) - median) / scale
        if score > best:
            best, first = score, identity.component
    return [first] if first else []


BASELINES = {"BARO": baro, "BARO, no load": baro_no_load, "PRISM": prism, "robust z": robust_z}
