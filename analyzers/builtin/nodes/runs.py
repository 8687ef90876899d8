"""Whether the runs of a node say what its mean says, held against how runs scatter on any node.

A node is typically worse because it is, or because some of its runs were: single runs are bad on healthy nodes, too,
and the better half of a fleet does not show it. How far runs fall short of what is typical of their own node, pooled
over all nodes, says how often. A node that is worse has nearly all of its runs on the bad side.
"""

from __future__ import annotations

import numpy as np
import scipy  # scipy.stats takes a second to load, and does when it is first used
from numpy.typing import NDArray

from analyzers.builtin.nodes.similarity import TRIMMED_FROM, Criteria, levels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 3
"""Runs of a node from which on they can be told from it."""
_SPREADS = 4.0


def by_runs(
    quantiles: Floats, runs: Ints, criteria: Criteria, typical: Floats, allowed: float, higher: bool
) -> Floats:
    """The probability that a healthy node has as many bad runs as each, shape (nodes,), runs being bad independently of
    each other; 0 where a node has too few runs to say.

    `typical` is how far each node is worse than usual. Where that is more than `allowed`, a run is bad if it is worse
    than usual by half of it. Elsewhere a run is bad if it is worse than what is typical of its node by more than
    `allowed`, and than runs scatter by.
    """
    sign = 1.0 if higher else -1.0
    own = (levels(quantiles)[:, None] - quantiles) / criteria.scale * sign
    usual = (criteria.quantiles.mean() - quantiles) / criteria.scale * sign
    level = typical > allowed
    least = np.where(level, typical / 2, max(allowed, _SPREADS * np.sqrt(criteria.noise)))
    bad = (np.where(level[:, None], usual, own) >= least[:, None]).mean(axis=1)
    judged = np.where(runs >= TRIMMED_FROM, runs - 2, runs)  # the best and the worst do not count
    counted = np.round(bad * judged)
    found = np.asarray(scipy.stats.binom.sf(counted - 1, judged, _shares(own, runs, least)))
    return np.where(runs < FEWEST, 0.0, np.where(counted > 0, found, 1.0))


def _shares(own: Floats, runs: Ints, least: Floats) -> Floats:
    """The share of all runs that are worse than what is typical of their node by each of `least`."""
    enough = runs >= FEWEST
    if not enough.any():
        return np.zeros(len(least))
    ascending = np.sort(own[enough], axis=None)
    total = float(runs[enough].sum())
    beyond = (len(ascending) - np.searchsorted(ascending, least, side="left")) / len(ascending)
    return np.asarray((beyond * total + 0.5) / (total + 1.0))
