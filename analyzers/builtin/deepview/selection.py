"""Which components to blame: forward selection by likelihood ratio, with swaps, joint refit and backward
pruning.

Evidence is in nats (log-likelihood gained). Clumps are what makes false tickets: a host that dies takes
twenty units with it and looks like twenty independent failures. So every component is judged twice, on units
and on witnesses (hosts, each counting once), and the smaller figure counts. The stop is an information
criterion: evidence must exceed the log of how many chances a healthy day gives to be fooled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.likelihood import Model
from analyzers.builtin.deepview.observed import Observed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 40
"""Blamed components at most; a window that needs more is not explained by blaming components."""

_EXCHANGE = 0.5  # nats that a swap must gain, so that ties do not wander


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """When a component may be blamed.

    `threshold[j]` is the evidence needed against component j, in nats; `spread[j]` divides the evidence of
    witnesses for component j (its over-dispersion in healthy history, >= 1); `smallest` is the least theta
    worth a ticket; `witnesses[j]` is how many of them must speak against j; `allowed[j]` is false for all but
    one of components that are always together.
    """

    threshold: Floats
    spread: Floats
    smallest: float
    witnesses: Floats
    allowed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """For each component of `component`: theta of units, evidence in nats, and whether the rules allow to
    blame it.
    """

    component: Ints
    theta: Floats
    units: Floats
    evidence: Floats
    eligible: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Blamed:
    """The chosen components with their joint fit; `evidence` is what each adds to all others together."""

    chosen: list[int]
    theta: Floats
    evidence: Floats
    loglik: float


class Judges:
    """The same failing rows counted as units and as witnesses."""

    def __init__(self, seen: Observed, units: float, witnesses: float) -> None:
        """`units` and `witnesses` are the background per unit of what is counted."""
        self.seen = seen
        self.units = Model(seen.row, seen.column, seen.failures, seen.carried, seen.total, units)
        self.witnesses = self.units.counting(seen.witness, witnesses)

    def hearing(self, chosen: list[int]) -> Model:
        """Witnesses, given that some components are blamed.

        A host counts once for what is not explained. For what lies beneath a blamed component, where units
        fail one by one, it counts up to twice what the component's hosts typically lost: a ToR that is worse
        than its failing cluster can still be heard, and a host that died there is no ToR.
        """
        told = self.seen.testimony
        if told is None or not chosen:
            return self.witnesses
        explained = np.zeros(self.seen.rows, dtype=bool)
        typical = np.zeros(self.seen.rows)
        for component in chosen:
            beneath = np.zeros(self.seen.rows, dtype=bool)
            beneath[self.units.member_rows(component)] = True
            explained |= beneath
            typical[beneath] = np.maximum(typical[beneath], told.typical(beneath))
        most = np.ones(2 * told.hosts)
        group = 2 * told.host + explained[told.row]
        np.maximum.at(most, group, 2 * typical[told.row])
        return self.witnesses.counting(told.capped(self.seen.rows, group, most), self.witnesses.base)

    def fit(self, chosen: list[int]) -> Blamed:
        theta, loglik = self.units.fit(chosen)
        return Blamed(chosen, theta, np.zeros(len(chosen)), loglik)

    def evidence(self, blamed: Blamed, rules: Rules) -> Evidence:
        """What every other component could add to those already blamed."""
        eta = self.units.eta(blamed.chosen, blamed.theta)
        steps = self.units.steps(eta)
        hearing = self.hearing(blamed.chosen)
        second = hearing.steps(hearing.eta(blamed.chosen, hearing.fit(blamed.chosen)[0]))
        evidence = np.minimum(steps.gain, second.gain / rules.spread[steps.component])
        large = steps.theta >= np.maximum(rules.smallest, 3 * self.units.base)
        heard = self._heard(hearing, eta, steps.theta) >= rules.witnesses[steps.component]
        eligible = large & heard & rules.allowed[steps.component]
        eligible &= evidence >= rules.threshold[steps.component]
        eligible &= ~np.isin(steps.component, blamed.chosen)
        return Evidence(steps.component, steps.theta, steps.gain, evidence, eligible)

    def adds(self, component: int, rest: Blamed, loglik: float, rules: Rules) -> float:
        """The evidence for a component that is blamed together with `rest`; `loglik` is that of all."""
        hearing = self.hearing(rest.chosen)
        second = hearing.fit([*rest.chosen, component])[1] - hearing.fit(rest.chosen)[1]
        return max(0.0, min(loglik - rest.loglik, second / float(rules.spread[component])))

    def _heard(self, hearing: Model, eta: Floats, theta: Floats) -> Floats:
        """How many witnesses each component's theta would answer for (the rest is explained already)."""
        model = self.units
        mine = theta[model.local] / (eta[model.row] + theta[model.local])
        counted = np.bincount(model.local, hearing.weight[model.row] * mine, minlength=len(model.component))
        return np.asarray(counted + 0.05)  # a background of a few per cent in the share is no missing witness


def select(judges: Judges, rules: Rules) -> Blamed:
    """The blamed components, most evidence first."""
    blamed = judges.fit([])
    seen: set[frozenset[int]] = set()
    while len(blamed.chosen) < MOST:
        found = judges.evidence(blamed, rules)
        best = _best(found)
        if best is None:
            break
        blamed = judges.fit([*blamed.chosen, int(found.component[best])])
        blamed = _prune(judges, _exchange(judges, blamed, rules), rules)
        if frozenset(blamed.chosen) in seen:
            break
        seen.add(frozenset(blamed.chosen))
    weighed = _weigh(judges, blamed, rules)
    order = sorted(range(len(weighed.chosen)), key=lambda at: (-weighed.evidence[at], weighed.chosen[at]))
    return Blamed(
        [weighed.chosen[at] for at in order],
        weighed.theta[order],
        weighed.evidence[order],
        weighed.loglik,
    )


def _best(found: Evidence) -> int | None:
    """The eligible component with most evidence; the first by name of equals."""
    if not found.eligible.any():
        return None
    return int(np.argmax(np.where(found.eligible, found.evidence, -np.inf)))


def _exchange(judges: Judges, blamed: Blamed, rules: Rules) -> Blamed:
    """Replace a chosen component by a better one, for each once: a first choice may be a poor stand-in for
    two.
    """
    if len(blamed.chosen) < 2:
        return blamed
    for component in list(blamed.chosen):
        rest = judges.fit([other for other in blamed.chosen if other != component])
        found = judges.evidence(rest, rules)
        best = _best(found)
        if best is None or int(found.component[best]) == component:
            continue
        swapped = judges.fit([*rest.chosen, int(found.component[best])])
        if swapped.loglik > blamed.loglik + _EXCHANGE:
            blamed = swapped
    return blamed


def _prune(judges: Judges, blamed: Blamed, rules: Rules) -> Blamed:
    """Drop, weakest first, what the others explain by now."""
    while len(blamed.chosen) > 1:
        weighed = _weigh(judges, blamed, rules)
        surplus = weighed.evidence - rules.threshold[blamed.chosen]
        weakest = int(np.argmin(surplus))
        tiny = np.flatnonzero(weighed.theta < rules.smallest)
        if surplus[weakest] >= 0 and not len(tiny):
            return weighed
        gone = weakest if surplus[weakest] < 0 else int(tiny[0])
        blamed = judges.fit([other for at, other in enumerate(blamed.chosen) if at != gone])
    return blamed


def _weigh(judges: Judges, blamed: Blamed, rules: Rules) -> Blamed:
    """Fill in what each chosen component adds to the others, all of them refitted without it."""
    evidence = []
    for component in blamed.chosen:
        rest = judges.fit([other for other in blamed.chosen if other != component])
        evidence.append(judges.adds(component, rest, blamed.loglik, rules))
    return replace(blamed, evidence=np.array(evidence))
