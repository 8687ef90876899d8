"""Changes that the history of a series excuses: brief and mild ones, of a size that was there before.

A failure in the history is no norm, and excuses no failure. A change is excused where it is hardly longer than it has
to be kept up, where windows of the history reached half of its size, and where callers fare little worse: less than
three in ten requests fail, and take less than ten times as long. Against a change that lasts or is grave, excursions of
the history that harmed callers are left out of what the chance of a size is read off.
Arrays have the shape (series, columns) or (series,).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.metric_blame.indicators import EXTERNAL, words_of_name
from analyzers.builtin.metric_blame.series import Identity
from analyzers.builtin.nodes.samples import words_given

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ALIKE = 0.5
"""Share of a size from which on an earlier excursion of the series counts as one of the same kind."""
_CLEAR, _NEAR = 3.0, 0.5
"""A change is a clear one of its component from so many nats on, and from this share of the best on."""
_OUTAGE, _TIMES = 0.3, 10.0
"""Share of requests that fail, and multiple of the usual latency, that no history excuses."""
_SHARE = 1.5
"""A share of errors is at most this, with noise; more is a percentage or a count."""
_PERCENT = words_given("percent percentage pct")
_HARMS, _SLOWS = 0.05, 2.0
"""The same from which on a change, and excursions of the history like it, harm callers."""


def harm_of(
    value: Floats, median: Floats, requests: Floats, identities: Sequence[Identity]
) -> tuple[Bools, Bools]:
    """Whether changes to `value` harm callers, and whether gravely. `requests` are those of the component in the same
    time, NaN where unknown: errors that are counted without them can be any share of all, and are grave."""
    harmful, grave = np.zeros(len(value), bool), np.zeros(len(value), bool)
    for at, one in enumerate(identities):
        if one.sort == "latency":
            times = value[at] / max(median[at], 1e-12)
            harmful[at], grave[at] = times >= _SLOWS, times >= _TIMES
        elif one.sort in ("availability", "errors"):
            failing = _failing(one, float(value[at]), float(requests[at]))
            harmful[at], grave[at] = failing >= _HARMS, failing >= _OUTAGE
    return harmful, grave


def _failing(one: Identity, value: float, requests: float) -> float:
    """The share of requests that fail: of a share, a percentage, or a count beside the requests."""
    if value <= _SHARE:
        return value
    if one.sort == "availability" or not _PERCENT.isdisjoint(words_of_name(one.name)):
        return value / 100
    return value / requests if requests > 0 else math.inf


def lasting(here: Floats, size: Floats, brief: int) -> Bools:
    """Whether each series kept up half of its size for more than `brief` columns of the window in a row."""
    return np.asarray((_lengths(here >= _ALIKE * size[:, None]) > brief).any(axis=1))


def failures(past: Floats, size: Floats, brief: int, where: Bools) -> Bools:
    """Columns of the history of the series `where` with an excursion of half the size for more than `brief` columns."""
    on = (past >= _ALIKE * size[:, None]) & (where & (size > 0))[:, None]
    return np.asarray(_lengths(on) > brief)


def habits(past: Floats, size: Floats, length: int, excused: Bools) -> Floats:
    """Most evidence of a change that windows of `length` columns of the history excuse: the logarithm of one over their
    share, as Laplace estimates it. Infinite where none does."""
    count = past.shape[1] // length
    if not count:
        return np.full(len(past), np.inf)
    most = past[:, past.shape[1] - count * length :].reshape(len(past), count, length).max(axis=2)
    often = (most >= _ALIKE * size[:, None]).sum(axis=1)
    return np.where(excused & (often > 0), np.log((count + 1) / (often + 1)), np.inf)


def less_habits(nats: Floats, most: Floats, excused: Bools, identities: Sequence[Identity]) -> Floats:
    """Evidence of changes within `most`; what callers notice of one component is one event, and a habit if one of its
    clearest changes is and all of them may be excused."""
    best, least = defaultdict[str, float](float), defaultdict[str, float](lambda: math.inf)
    external = [at for at, one in enumerate(identities) if one.sort in EXTERNAL]
    for at in external:
        best[identities[at].component] = max(best[identities[at].component], float(nats[at]))
    clear = [at for at in external if nats[at] >= max(_CLEAR, _NEAR * best[identities[at].component])]
    news = {identities[at].component for at in clear if not excused[at]}
    for at in clear:
        name = identities[at].component
        if name not in news:
            least[name] = min(least[name], float(most[at]))
    shared = [least[one.component] if one.sort in EXTERNAL else math.inf for one in identities]
    return np.minimum(nats, np.minimum(most, shared))


def _lengths(on: Bools) -> NDArray[np.int64]:
    """Number of columns of the stretch of `on` that each column is in; 0 outside."""
    columns = np.arange(on.shape[1])
    before = np.maximum.accumulate(np.where(on, -1, columns), axis=1)
    after = np.minimum.accumulate(np.where(on, on.shape[1], columns)[:, ::-1], axis=1)[:, ::-1]
    return np.where(on, after - before - 1, 0)
