"""Weight of dissent: the evidence that an analyzer judged a component and did not name it. Pure.

A component that is named with probability p, and that the analyzers S judged and did not name, is at fault with
log-odds `logit(p) - sum(w[j] for j in S)`. The weights w >= 0 are learnt from resolved incidents: a logistic
regression with the log-odds that were stated as its offset, fitted to which of the disputed blames were confirmed
(at the largest posterior). Its prior is normal around 0 with a deviation of
`PRIOR` nats, so that without a record a dissent counts nothing: faint faults are often seen by one method only.

With a record the weight is what an analyzer's recall is worth: where it finds nearly all that others name rightly, a
component that it does not name is rarely at fault. Incidents of other kinds of components give the prior of one kind,
with a deviation of `PRIOR_OF_KIND`.

Blames of one analyzer and of several that agree have weights of their own: agreement mostly outweighs a dissent, unless
those that agree read the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

PRIOR: Final = 2.0
PRIOR_OF_KIND: Final = 1.0
"""Deviations in nats: from nothing, and of one kind of component from the others."""
STEP: Final = 2.0
STEPS: Final = 40
CAP: Final = 0.999
"""Log-odds are those of a probability between 1 - `CAP` and `CAP`."""


@dataclass(frozen=True, slots=True)
class DisputedBlame:
    """A component that was blamed with `score`, by `several` analyzers together or by one, and that `dissenters` judged
    without naming it; `right` if it was confirmed as the cause. `kind` is that of the component."""

    kind: str
    score: float
    several: bool
    dissenters: tuple[str, ...]
    right: bool


@dataclass(frozen=True, slots=True)
class Dissent:
    """Nats that the dissent of one analyzer takes off the log-odds of a blame by one analyzer and by several."""

    one: float = 0.0
    several: float = 0.0

    def against(self, blaming: int) -> float:
        return self.several if blaming > 1 else self.one


NO_DISSENT: Final = Dissent()


def dissent_of(analyzer: str, record: Collection[DisputedBlame], kind: str) -> Dissent:
    """The dissent of an analyzer about a component of that kind."""
    one, several = (weights(record, kind, several=many).get(analyzer, 0.0) for many in (False, True))
    return Dissent(round(one, 4), round(several, 4))


def weights(record: Iterable[DisputedBlame], kind: str, *, several: bool = False) -> dict[str, float]:
    """By dissenter: the nats that its dissent about a component of that kind takes off a blame."""
    same, others = list[DisputedBlame](), list[DisputedBlame]()
    for one in record:
        if one.several == several:
            (same if one.kind == kind else others).append(one)
    return _fitted(same, _fitted(others, {}, PRIOR), PRIOR_OF_KIND)


def lowered(score: float, dissent: float) -> float:
    """The probability of a blame after that many nats of dissent."""
    return score if dissent <= 0 else _expit(logit(score) - dissent)


def logit(share: float) -> float:
    bounded = min(max(share, 1 - CAP), CAP)
    return math.log(bounded / (1 - bounded))


def _fitted(
    record: Sequence[DisputedBlame], prior: Mapping[str, float], deviation: float
) -> dict[str, float]:
    """Projected Newton steps of at most `STEP` nats; weights of analyzers without a record are those of the prior."""
    names = sorted({name for one in record for name in one.dissenters})
    if not names:
        return dict(prior)
    stated = np.array([logit(one.score) for one in record])
    right = np.array([float(one.right) for one in record])
    dissents = np.array([[float(name in one.dissenters) for name in names] for one in record])
    centre = np.array([prior.get(name, 0.0) for name in names])
    fitted = centre.copy()
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(dissents @ fitted - stated))
        slope = dissents.T @ (share - right) + (centre - fitted) / deviation**2
        curve = (dissents.T * (share * (1 - share))) @ dissents + np.eye(len(names)) / deviation**2
        free = (fitted > 0) | (slope > 0)
        if not free.any():
            break
        step = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        fitted[free] = np.maximum(0.0, fitted[free] + np.clip(step, -STEP, STEP))
        if np.abs(step).max() < 1e-6:
            break
    return {**prior, **dict(zip(names, fitted.tolist(), strict=True))}


def _expit(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))
