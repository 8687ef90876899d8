"""The probable kind of an incident from the symptoms before it: a naive Bayes network with Laplace's rule."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.failure_forecast.days import Days

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST = 4
"""Past incidents of a kind with a day before them."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of incident: its probability given the symptoms, and those of the symptoms that speak for it, with the
    share of its past incidents that had them and of all others."""

    kind: str
    probability: float
    symptoms: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """`prior` has shape (kinds,), `table` (kinds, symptoms): the probability of each symptom given the kind; `counts`
    are the past incidents of each kind."""

    kinds: tuple[str, ...]
    symptoms: tuple[str, ...]
    prior: Floats
    table: Floats
    counts: tuple[int, ...]

    def posterior(self, present: Mask) -> Floats:
        """Probability of each kind given which symptoms are there and which are not; shape (kinds,)."""
        odds = np.log(self.prior) + np.where(present, np.log(self.table), np.log1p(-self.table)).sum(axis=1)
        weight = np.exp(odds - odds.max())
        return np.asarray(weight / weight.sum())

    def cause(self, present: Mask) -> Cause:
        """The likeliest kind."""
        p = self.posterior(present)
        best = int(np.argmax(p))
        others = self.prior.copy()
        others[best] = 0.0
        rest = (others / max(others.sum(), 1e-12)) @ self.table
        found = [
            (self.symptoms[i], float(self.table[best, i]), float(rest[i]))
            for i in np.flatnonzero(present).tolist()
            if self.table[best, i] > rest[i]
        ]
        found.sort(key=lambda one: (one[2] / one[1], one[0]))
        return Cause(self.kinds[best], float(p[best]), tuple(found[:3]))


def network(days: Days, end: int) -> Network | None:
    """Learnt from the last whole day before each incident until `end`; None where fewer than two kinds have enough."""
    before: dict[str, list[Mask]] = defaultdict(list)
    for node, at, kind in days.incidents:
        day = int(np.searchsorted(days.ends, at, side="right")) - 1
        if day >= 0 and at <= end:
            before[kind].append(days.symptoms[node, day])
    kinds = tuple(sorted(kind for kind, rows in before.items() if len(rows) >= LEAST))
    if len(kinds) < 2 or not days.symptom_names:
        return None
    counts = np.array([len(before[kind]) for kind in kinds], dtype=np.float64)
    hits = np.array([np.sum(before[kind], axis=0) for kind in kinds], dtype=np.float64)
    return Network(
        kinds,
        days.symptom_names,
        (counts + 1) / (counts.sum() + len(kinds)),
        (hits + 1) / (counts[:, None] + 2),
        tuple(int(one) for one in counts),
    )
