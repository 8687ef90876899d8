"""The default method: who is blamed, how surely, and how large the failure is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from analyzers.builtin.deepview import assumptions, noise
from analyzers.builtin.deepview.baseline import Baseline, from_history, from_window
from analyzers.builtin.deepview.calibration import probability
from analyzers.builtin.deepview.noise import ENOUGH_HISTORY
from analyzers.builtin.deepview.observed import (
    Observed,
    alike,
    component_sets,
    exposure,
    holds_any,
    kinds_of,
    observe,
)
from analyzers.builtin.deepview.selection import Blamed, Judges, Rules, select
from analyzers.contract import Assumption, Estimate, Params, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPLACEABLE = 3.0
"""Nats within which another component explains the failures as well: a likelihood ratio of 20."""

_SHARED = (
    0.7  # of the units on either of two components that pass both, if records of a few paths may be wrong
)

_COLD = 5  # times the evidence that makes one window enough, as long as history is too short to know normal

_SHORTEST = timedelta(minutes=1)
"""Shorter windows are counted as this long: a file whose rows are of one moment is not one of millions a day."""

_INTERVAL = 1.92  # half the 95 % point of chi-square with one degree of freedom


@dataclass(frozen=True, slots=True)
class Charge:
    """A blamed component with its figures; `evidence` and what was `needed` in nats, `lost` units of
    `carried`, on `hosts` hosts.
    """

    component: int
    name: str
    evidence: float
    needed: float
    p_value: float
    q_value: float
    score: float | None
    sure: bool
    estimate: Estimate
    ambiguous: tuple[str, ...]
    lost: float
    carried: float
    hosts: int | None
    expected: float


@dataclass(frozen=True, slots=True, eq=False)
class Runner:
    """A component that was not blamed, and why; `alone` is the evidence if nothing else were blamed."""

    component: int
    name: str
    lost: float
    carried: float
    alone: float
    left: float
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    seen: Observed
    baseline: Baseline
    needed: Floats
    charges: tuple[Charge, ...]
    runners: tuple[Runner, ...]
    assumptions: tuple[Assumption, ...]


def blame(window: Window, params: Params) -> Outcome:
    """Judge one window. `params` are those of `analyzer.PARAMS`."""
    seen = observe(window.sums)
    rules = _rules(seen, window, params)
    baseline = from_history(seen, window) or from_window(seen, rules)
    rules = replace(rules, noise=baseline.noise)
    # Where hosts are known, clumps are the witnesses' business: a rate of units that holds the clumps of history
    # would hide faint failures, and without them it only makes the witnesses' figure the smaller one.
    usual = baseline.units if seen.testimony is None else min(baseline.units, baseline.witnesses)
    judges = Judges(seen, usual, baseline.witnesses)
    blamed = select(judges, rules)
    checked = assumptions.check(window, judges, blamed, rules, baseline)
    charges = _charges(
        judges, blamed, rules, baseline, params, alike(component_sets(window.sums["paths"])), checked
    )
    return Outcome(seen, baseline, rules.threshold, charges, _runners(judges, blamed, rules), checked)


def _rules(seen: Observed, window: Window, params: Params) -> Rules:
    """The bars that a blamed component must pass.

    The threshold is the log of the chances to be fooled in a day, components times independent windows, plus
    the parameter `margin`. Every kind gets an equal share of those chances: 128 ToRs must clear more than one
    spine.
    """
    first = alike(component_sets(window.sums["paths"]))
    allowed = first == np.arange(len(seen.names))
    kinds, kind_of = kinds_of(seen.names)
    peers = np.bincount(kind_of[allowed], minlength=len(kinds))[kind_of] * len(kinds)
    daily = max(1.0, timedelta(days=1) / max(window.length, _SHORTEST))
    threshold = np.log(np.maximum(peers, 2)) + math.log(daily) + float(params["margin"])
    needed = float(params["min_witnesses"])
    if seen.testimony is None:  # paths are the witnesses, and a component may have few
        witnesses = np.full(len(seen.names), max(needed, 3.0))
    else:
        witnesses = np.full(len(seen.names), needed)
    smallest = -math.log1p(-float(params["min_rate"]))
    return Rules(np.maximum(threshold, 1.0), noise.still(len(seen.names)), smallest, witnesses, allowed)


def _charges(
    judges: Judges,
    blamed: Blamed,
    rules: Rules,
    baseline: Baseline,
    params: Params,
    first: Ints,
    checked: tuple[Assumption, ...],
) -> tuple[Charge, ...]:
    seen = judges.seen
    p_values = [tail(evidence) for evidence in blamed.evidence.tolist()]
    q_values = step_up(p_values, int(rules.allowed.sum()))
    lost = seen.per_component(seen.failures)
    unmet = {one.name for one in checked if not one.holds}
    charges = []
    for at, component in enumerate(blamed.chosen):
        evidence = float(blamed.evidence[at])
        ambiguous = _ambiguous(judges, blamed, at, rules, first)
        if "topology" in unmet:
            ambiguous = tuple(sorted({*ambiguous, *_nearly_alike(judges, blamed, component)}))
        needed = float(rules.threshold[component])
        surplus = evidence - needed
        charges.append(
            Charge(
                component,
                seen.names[component],
                evidence,
                needed,
                p_values[at],
                q_values[at],
                probability(
                    surplus + float(params["margin"]),
                    unmet,
                    leading=evidence >= blamed.evidence.max(),
                    hosts=seen.testimony is not None,
                ),
                surplus
                >= float(params["sure_margin"]) * (1 if baseline.windows >= ENOUGH_HISTORY else _COLD),
                _estimate(judges, blamed, at),
                ambiguous,
                float(lost[component]),
                float(seen.carried[component]),
                _hosts(judges, component),
                baseline.units * float(seen.carried[component]),
            )
        )
    return tuple(sorted(charges, key=lambda one: (-(one.score or 0.0), -one.evidence, one.name)))


def tail(evidence: float) -> float:
    """P-value of a likelihood ratio at the edge of theta >= 0: half a chi-square with one degree (Chernoff
    1954).
    """
    return float(0.5 * erfc(math.sqrt(max(evidence, 0.0))))


def step_up(p_values: list[float], tests: int) -> list[float]:
    """Benjamini-Hochberg q-values of the smallest of `tests` p-values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    q_values, running = [1.0] * len(p_values), 1.0
    for rank in range(len(order), 0, -1):
        running = min(running, p_values[order[rank - 1]] * tests / rank)
        q_values[order[rank - 1]] = running
    return q_values


def _ambiguous(judges: Judges, blamed: Blamed, at: int, rules: Rules, first: Ints) -> tuple[str, ...]:
    """Components that could take a blamed one's place: always together with it, or as likely within a
    factor 20.
    """
    component = blamed.chosen[at]
    rest = judges.fit([other for other in blamed.chosen if other != component])
    found = judges.evidence(rest, rules)
    units = blamed.loglik - rest.loglik
    enough = np.minimum(blamed.evidence[at] - REPLACEABLE, rules.threshold[found.component])
    near = (found.units >= units - REPLACEABLE) & (found.evidence >= enough)
    near &= rules.allowed[found.component] & ~np.isin(found.component, blamed.chosen)
    groups = [component, *found.component[near].tolist()]
    names = {judges.seen.names[j] for j in np.flatnonzero(np.isin(first, groups)).tolist()}
    return tuple(sorted(names - {judges.seen.names[component]}))


def _nearly_alike(judges: Judges, blamed: Blamed, component: int) -> set[str]:
    """Components that share nearly all of their paths with a blamed one: if a few are recorded wrongly, all may be."""
    seen = judges.seen
    both = exposure(seen, holds_any(seen.paths, [component]))
    near = both >= _SHARED * (seen.carried + seen.carried[component] - both)
    near[blamed.chosen] = False
    return {seen.names[j] for j in np.flatnonzero(near & (seen.carried > 0)).tolist()}


def _hosts(judges: Judges, component: int) -> int | None:
    """How many hosts lost units on the component's paths, or None where hosts are not known."""
    told = judges.seen.testimony
    if told is None:
        return None
    beneath = np.isin(told.row, judges.units.member_rows(component))
    return len(np.unique(told.host[beneath]))


def _estimate(judges: Judges, blamed: Blamed, at: int) -> Estimate:
    """The share of its units that a component fails, with the 95 % interval of the profile likelihood."""
    theta = float(blamed.theta[at])
    low = _crossing(judges, blamed, at, 0.0, theta)
    high = _crossing(judges, blamed, at, max(2 * theta, 1e-6), theta)
    low, high = min(low, theta), max(high, theta)
    rate, least, most = (float(-math.expm1(-value)) for value in (theta, low, high))
    return Estimate(rate, least, most)


def _crossing(judges: Judges, blamed: Blamed, at: int, outer: float, theta: float) -> float:
    """Where the profile log-likelihood is 1.92 below its maximum, between theta and `outer` (moved out if
    needed).
    """
    model, rest = judges.units, [other for other in blamed.chosen if other != blamed.chosen[at]]
    start = np.delete(blamed.theta, at)

    def drop(value: float) -> float:
        return blamed.loglik - model.profile(blamed.chosen[at], value, rest, start) - _INTERVAL

    while outer > theta and drop(outer) < 0 and outer < 2 * 16.0:
        outer *= 2
    if drop(outer) <= 0:
        return outer
    from scipy.optimize import brentq  # takes half a second to load: only when there is a suspect

    return float(brentq(drop, theta, outer, xtol=1e-4 * max(theta, 1e-6), rtol=1e-6))


def _runners(judges: Judges, blamed: Blamed, rules: Rules, most: int = 8) -> tuple[Runner, ...]:
    """The components that looked worst on their own and are not blamed."""
    alone = judges.evidence(judges.fit([]), rules)
    left = judges.evidence(blamed, rules)
    order = sorted(range(len(alone.component)), key=lambda at: (-alone.evidence[at], alone.component[at]))
    lost = judges.seen.per_component(judges.seen.failures)
    runners: list[Runner] = []
    for at in order:
        component = int(alone.component[at])
        if component in blamed.chosen or not rules.allowed[component] or alone.evidence[at] < 1.0:
            continue
        runners.append(
            Runner(
                component,
                judges.seen.names[component],
                float(lost[component]),
                float(judges.seen.carried[component]),
                float(alone.evidence[at]),
                float(left.evidence[at]),
                _reason(judges, blamed, rules, component, float(left.theta[at]), float(left.evidence[at])),
            )
        )
        if len(runners) == most:
            break
    return tuple(runners)


def _reason(judges: Judges, blamed: Blamed, rules: Rules, component: int, theta: float, left: float) -> str:
    """Why a component is cleared, in words."""
    rows = judges.units.member_rows(component)
    lost = judges.seen.failures[rows].sum()
    shares = [
        (judges.seen.failures[np.intersect1d(rows, judges.units.member_rows(other))].sum(), other)
        for other in blamed.chosen
    ]
    needed = rules.threshold[component]
    if shares and left < needed:
        share, other = max(shares)
        if share >= 0.5 * lost:
            return f"{share:.0f} of its {lost:.0f} failures lie on paths through {judges.seen.names[other]}"
    hosts = _hosts(judges, component)
    if hosts is not None and hosts < rules.witnesses[component]:
        return f"all its failures are on {hosts} host{'s' if hosts != 1 else ''}"
    if theta < rules.smallest:
        return "what is left for it is below the smallest rate that counts"
    if left < needed:
        return f"evidence of {left:.1f} where {needed:.1f} is needed"
    return "too few witnesses speak against it"
