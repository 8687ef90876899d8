"""How far off a healthy member of a fleet may be by chance, learnt from the members that are better than usual.

Faults make members worse, so that those above the median say what health scatters like, tails included. That is taken
for Student's t, whose degrees of freedom are how heavy its tails are (Lange, Little and Taylor, 1989): a hundred nodes
tell tails of one metric poorly, so that all metrics of a fleet learn together how often which tails occur (empirical
Bayes), and what remains unknown of tail and width is averaged over, not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FREEDOM = (3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 200.0)
"""Degrees of freedom that are tried; with 200 tails are normal as far as anyone could see."""

_WIDTHS = np.linspace(-4.0, 4.0, 9)
"""Widths that are tried, in standard errors of the width."""

_SEEN_BEFORE = 0.3
"""Metrics of each tail that a fleet is taken to have had before it was looked at."""
_ROUNDS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One metric: by how much its better half is `better` than usual (at least 0), and how far `off` those are that
    are asked about; shapes (members,) and (asked,), in the same unit.
    """

    better: Floats
    off: Floats


def chances(groups: Sequence[Group], least_width: float) -> list[Floats]:
    """The probability that a healthy member is as far off or farther, for each that is asked about.

    `least_width` is the least that healthy members are taken to scatter by.
    """
    if not any(len(group.off) for group in groups):
        return [np.empty(0) for _ in groups]
    fits = [_fit(group.better, least_width) for group in groups]
    shares = _shares(np.array([_log_mean(likelihood) for likelihood, _ in fits]))
    return [_tail(group.off, *fit, shares) for group, fit in zip(groups, fits, strict=True)]


def _fit(better: Floats, least_width: float) -> tuple[Floats, Floats]:
    """Log likelihoods and scales of every tail and width that is tried; both of shape (freedom, widths)."""
    freedom = np.array(FREEDOM)[:, None]
    typical = max(float(np.median(better)) if len(better) else 0.0, least_width * scipy.special.ndtri(0.75))
    tried = typical * np.exp(_WIDTHS / np.sqrt(2 * max(len(better), 2)))
    scale = tried[None, :] / scipy.special.stdtrit(freedom, 0.75)
    special = scipy.special.gammaln((freedom + 1) / 2) - scipy.special.gammaln(freedom / 2)
    constant = len(better) * (special - np.log(freedom) / 2 - np.log(scale))
    bent = np.zeros_like(scale)
    for at, one in enumerate(FREEDOM):
        bent[at] = np.log1p((better[:, None] / scale[at]) ** 2 / one).sum(axis=0)
    return constant - (freedom + 1) / 2 * bent, scale


def _log_mean(likelihood: Floats) -> Floats:
    """The evidence for each tail, its width averaged out; shape (freedom,)."""
    top = likelihood.max()
    return np.asarray(top + np.log(np.exp(likelihood - top).mean(axis=1)))


def _shares(evidence: Floats) -> Floats:
    """How often each tail occurs among metrics whose evidence has shape (metrics, freedom); by expectation and
    maximization from even shares.
    """
    times = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    shares = np.full(len(FREEDOM), 1 / len(FREEDOM))
    for _ in range(_ROUNDS):
        mine = times * shares
        mine /= mine.sum(axis=1, keepdims=True)
        shares = mine.sum(axis=0) + _SEEN_BEFORE
        shares /= shares.sum()
    return shares


def _tail(off: Floats, likelihood: Floats, scale: Floats, shares: Floats) -> Floats:
    weight = np.exp(likelihood - likelihood.max()) * shares[:, None]
    weight /= weight.sum()
    beyond = scipy.special.stdtr(np.array(FREEDOM)[:, None, None], -off / scale[:, :, None])
    return np.asarray((weight[:, :, None] * beyond).sum(axis=(0, 1)))
