"""Trial of the probabilities: learnt from the earlier part of the data, tried on the later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.selector.episodes import Episodes
from analyzers.builtin.selector.hazard import HazardModelError, Model, fit, state_at

Floats = NDArray[np.float64]

_TEST_SHARE = 0.25  # share of the time that is held out
_MOST = 20  # moments tried
_BINS = 5


@dataclass(frozen=True, slots=True)
class Bin:
    """Nodes with about the same probability: how many, the mean of what was predicted and the share that happened."""

    nodes: int
    predicted: float
    happened: float


@dataclass(frozen=True, slots=True)
class Trial:
    """`brier` is the mean squared error of the probabilities (Brier, 1950) and `climate` that of always saying the
    usual share; `concordance` is how often a node that had an incident was given a higher probability than one that
    had none.
    """

    predictions: int
    incidents: int
    brier: float
    climate: float
    concordance: float | None
    bins: tuple[Bin, ...]

    @property
    def expected(self) -> float:
        """Number of predicted incidents."""
        return sum(one.nodes * one.predicted for one in self.bins)

    @property
    def skill(self) -> float:
        """1 for perfect probabilities, 0 for no better than the usual share."""
        return 1 - self.brier / self.climate if self.climate > 0 else 0.0


def hold_out(record: Episodes, horizon: float, min_incidents: int) -> Trial | None:
    """Try the method on the last quarter of the data, one horizon after the other; None if that cannot be done."""
    try:
        model = fit(record.until(_cut(record, horizon)), horizon, min_incidents)
    except HazardModelError:
        return None
    return last_quarter(record, model, horizon)


def last_quarter(record: Episodes, model: Model, horizon: float) -> Trial | None:
    """Predictions of a model for the last quarter of the data, whether it has learnt from it or not; None if nobody
    was at risk.
    """
    last = float(record.stop.max())
    moments = np.arange(_cut(record, horizon), last - horizon + 1e-6, horizon)
    if len(moments) > _MOST:
        moments = moments[np.unique(np.linspace(0, len(moments) - 1, _MOST).round().astype(int))]
    predicted, happened = [], []
    for at in moments.tolist():
        state, under_way = state_at(record, at)
        if len(under_way):
            predicted.append(model.chance(state, horizon))
            happened.append(struck_within(record, under_way, at, horizon))
    if not predicted:
        return None
    return scored(np.concatenate(predicted), np.concatenate(happened))


def _cut(record: Episodes, horizon: float) -> float:
    """Begin of the last quarter, in hours since 1970: a horizon before the end at the latest."""
    first, last = float(record.start.min()), float(record.stop.max())
    return last - max(_TEST_SHARE * (last - first), horizon)


def struck_within(record: Episodes, state: Episodes, at: float, horizon: float) -> NDArray[np.bool_]:
    """Nodes of `state` with an incident in (at, at + horizon]."""
    soon = record.event & (record.stop > at) & (record.stop <= at + horizon)
    struck = np.zeros(len(record.nodes), dtype=bool)
    struck[record.node[soon]] = True
    return np.asarray(struck[state.node])


def scored(predicted: Floats, happened: NDArray[np.bool_]) -> Trial:
    """Brier score, reliability by equal numbers of predictions, and concordance."""
    share = float(happened.mean())
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, _BINS) if len(part)]
    bins = tuple(
        Bin(len(part), float(predicted[part].mean()), float(happened[part].mean())) for part in parts
    )
    return Trial(
        len(predicted),
        int(happened.sum()),
        float(np.mean((predicted - happened) ** 2)),
        share * (1 - share),
        _concordance(predicted, happened),
        bins,
    )


def _concordance(predicted: Floats, happened: NDArray[np.bool_]) -> float | None:
    """The share of pairs of one that was struck and one that was not in which the former was given more (ties half)."""
    struck, spared = int(happened.sum()), int((~happened).sum())
    if not struck or not spared:
        return None
    values, inverse, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2
    total = float(rank[inverse][happened].sum()) if len(values) else 0.0
    return (total - struck * (struck + 1) / 2) / (struck * spared)


@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """Each node that is at risk at the end of the window: its name, hours since its last incident (or since it was
    first seen), incidents so far, the probability of one within the horizon, and the hours until it exceeds the target.
    All of shape (nodes,), likeliest first.
    """

    nodes: tuple[str, ...]
    since: Floats
    incidents: NDArray[np.int64]
    chance: Floats
    due: Floats
    strongest: tuple[str | None, ...]
