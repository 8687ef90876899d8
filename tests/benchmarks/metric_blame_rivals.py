"""BARO beside `metric_blame`, by our own reading of its paper (Pham et al., FSE 2024): RobustScorer.

Each series is scaled by the median and the interquartile range of its history; its score is the largest scaled value in
the window, and a service has that of its best series. Availability counts as what is missing, and `no load` leaves out
counts of requests: both are kinder to it than its own code, which looks for rises of raw columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzers.builtin.metric_blame import ANALYZER
from analyzers.builtin.metric_blame.series import Observed, observe
from analyzers.contract import Window, check_params


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


BASELINES = {"BARO": baro, "BARO, no load": baro_no_load}
