"""The default method: blamed components, their probability and size, and the assumptions behind them.

Assumptions are checked on the window: history, sampling, noise, topology.

The score of a suspect is how often a component with that much evidence was at fault in simulations. `SCORES` is the
one place where that calibration lives. It was made by `python -m tests.benchmarks.accuracy --calibrate --trials 3000`
on tuning seeds (below `FIRST_REPORTING_SEED` of the simulator): windows of preset M, half of them healthy, the others
faint, gray or several faults at once, with independent and with clumped backgrounds, the bar lowered by 3 nats so
that doubtful components are seen too. Each pair is the middle of a step of evidence over the threshold at margin 0,
in nats, and the share of suspects in that step that were at fault (made monotone); between the pairs the log-odds are
interpolated. Like every such figure it holds for a world with as many faults as the simulated one: half of all
windows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from analyzers.builtin.deepview.baseline import (
    ENOUGH_HISTORY,
    TOTAL,
    Baseline,
    Noise,
    cells,
    from_history,
    learn,
    remains,
    still,
    upper,
)
from analyzers.builtin.deepview.observed import (
    Observed,
    alike,
    component_sets,
    exposure,
    holds_any,
    kinds_of,
    observe,
    over_paths,
)
from analyzers.builtin.deepview.selection import Blamed, Judges, Rules, select, weigh
from analyzers.builtin.stats.probability import probability_at, q_values
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Assumption, Estimate, Params, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

REPLACEABLE = 3.0
"""Nats within which another component explains the failures as well: a likelihood ratio of 20."""

_SHARED = (
    0.7  # of the units on either of two components that pass both, if records of a few paths may be wrong
)

_COLD = 5  # times the evidence that makes one window enough, as long as history is too short to know normal

_KNOWN, _UNKNOWN = 1.0, 3.0
"""Multiples of the baseline that a suspect must add: where history says how much components vary, its evidence is
already less by that; where it does not, or failures rose everywhere, as unevenly as never before, components that are
merely worse than others must not stand out."""

_LITTLE, _WORSE = 0.1, 2.0
"""Share of units up to which a failure as old as the history is no fault that can be told from a habit; times the usual
share from which on it is worse than that habit."""

_AS_BEFORE = "it has failed so in most of the windows before"

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
    lasting: tuple[Charge, ...] = ()
    """Charges that were dropped: as old as the history, and of too few attempts to tell a fault from a habit."""


def blame(window: Window, params: Params) -> Outcome:
    """Judge one window. `params` are those of `analyzer.PARAMS`."""
    seen = observe(window.sums)
    rules = _rules(seen, window, params)
    baseline = from_history(seen, window) or from_window(seen, rules)
    known = baseline.windows >= ENOUGH_HISTORY and baseline.risen <= 1.0
    times = _KNOWN if known else _UNKNOWN
    rules = replace(rules, noise=baseline.noise, times=times)
    # Where hosts are known, clumps are the witnesses' business: a rate of units that holds the clumps of history
    # would hide faint failures, and without them it only makes the witnesses' figure the smaller one.
    usual = baseline.units if seen.testimony is None else min(baseline.units, baseline.witnesses)
    judges = Judges(seen, usual, baseline.witnesses)
    blamed, parts = _wholes(judges, select(judges, rules), rules)
    records, below = _records(judges, blamed), _possibly_below(judges, blamed)
    checked = check_assumptions(window, judges, blamed, rules, baseline, records, below)
    first = alike(component_sets(window.sums["paths"]))
    charges = _charges(judges, blamed, parts, records, below, rules, baseline, params, first, checked)
    runners = _runners(judges, blamed, rules)
    outcome = Outcome(seen, baseline, rules.threshold, charges, runners, checked)
    return _without_habits(outcome) if window.input == "path_outcome" else outcome


def _without_habits(outcome: Outcome) -> Outcome:
    """The outcome without charges of components that fail few attempts and as they did in all of the history: a fault
    that is older than the history cannot be told from a habit (a unit that fails is none). Less than a quarter is
    charged with less certainty then, and anybody so where others stood out in nearly all of the history.
    """
    base = outcome.baseline
    usual = {
        one.name: base.lasting({one.name, *one.ambiguous}, outcome.seen, one.component)
        for one in outcome.charges
    }
    lasting = {
        one.name: share
        for one in outcome.charges
        if (share := usual[one.name]) is not None and one.estimate.low <= min(_WORSE * share, TOTAL)
    }
    doubted = {
        one.name
        for one in outcome.charges
        if one.estimate.low < TOTAL and base.restless({one.name, *one.ambiguous})
    } | lasting.keys()
    if not doubted:
        return outcome
    little = tuple(one for one in outcome.charges if one.name in lasting and one.estimate.low < _LITTLE)
    charges = _best_first(
        replace(one, score=min(one.score or 0.0, FOLLOWING), sure=False) if one.name in doubted else one
        for one in outcome.charges
        if one not in little
    )
    assumptions = tuple(
        Assumption("history", False, _too_much_before(base, lasting)) if one.name == "history" else one
        for one in outcome.assumptions
    )
    cleared = (
        Runner(one.component, one.name, one.lost, one.carried, one.evidence, one.evidence, _AS_BEFORE)
        for one in little
    )
    return replace(
        outcome,
        charges=charges,
        runners=(*cleared, *outcome.runners),
        assumptions=assumptions,
        lasting=little,
    )


def _too_much_before(base: Baseline, lasting: Mapping[str, float]) -> str:
    if not lasting:
        return (
            f"Components stood out in {base.faulty} of {base.windows} windows: nothing tells what is usual."
        )
    first = min(lasting, key=lambda name: (-lasting[name], name))
    also = f" and {so_many(len(lasting) - 1, 'other')}" if len(lasting) > 1 else ""
    return (
        f"{first}{also} stood out in most of the {base.windows} windows before, too, failing "
        f"{percent(lasting[first])}: usual there, or older than the history."
    )


def from_window(seen: Observed, rules: Rules) -> Baseline:
    """A cold start: what remains of this window once its own suspects are taken out."""
    judges, faulty = _faulty(seen, rules)
    left = remains(seen, seen.witness)
    known = learn(cells([(seen, left)], seen.names), seen.names, np.ones(len(seen.names)))
    known = Noise(known.spread, known.noise, np.ones(len(seen.names)))
    return Baseline(
        upper(judges.units.fit_base(faulty)[0], seen.total),
        upper(judges.witnesses.fit_base(faulty)[0], seen.total),
        known,
        0,
    )


def _faulty(seen: Observed, rules: Rules) -> tuple[Judges, list[int]]:
    """Components to blame when the background is unknown: select, take the background of the rest, select
    again.
    """
    total = max(seen.total, 1.0)
    units, witnesses = (seen.failures.sum() + 0.5) / total, (seen.witness.sum() + 0.5) / total
    chosen: list[int] = []
    judges = Judges(seen, units, witnesses)
    for _ in range(4):
        found = select(judges, rules).chosen
        if set(found) <= set(chosen):
            break
        chosen = found
        units = judges.units.fit_base(chosen)[0] + 0.5 / total
        witnesses = judges.witnesses.fit_base(chosen)[0] + 0.5 / total
        judges = Judges(seen, units, witnesses)
    return judges, chosen


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
    return Rules(np.maximum(threshold, 1.0), still(len(seen.names)), smallest, _UNKNOWN, witnesses, allowed)


def _wholes(judges: Judges, blamed: Blamed, rules: Rules) -> tuple[Blamed, dict[int, list[int]]]:
    """The blamed with a component in the place of those below it, where these are nearly all of it, and which they
    were: one fault of the whole is likelier than several at once, and the rows do not tell. Paths that are recorded
    under another parent than most with their component say nothing of what lies below what.
    """
    seen, parts = judges.seen, dict[int, list[int]]()
    if len(blamed.chosen) < 2:
        return blamed, parts
    regular = ~odd_parents(seen).path
    carried = exposure(seen, regular)
    held = {one: exposure(seen, regular & holds_any(seen.paths, [one])) for one in blamed.chosen}
    candidates = {j for one in held for j in np.flatnonzero(held[one] >= _WHOLE * carried[one]).tolist()}
    for whole in sorted(candidates - set(held), key=lambda j: (seen.carried[j], j)):
        rate = -np.expm1(-blamed.theta)
        below = {
            one: float(rate[at])
            for at, one in enumerate(blamed.chosen)
            if one in held and held[one][whole] >= _WHOLE * carried[one]
        }
        covered = exposure(seen, regular & holds_any(seen.paths, below))[whole] if len(below) > 1 else 0.0
        alike_rates = min(below.values(), default=0.0) >= _SIMILAR * max(below.values(), default=0.0)
        if rules.allowed[whole] and alike_rates and covered >= _NEARLY * carried[whole] > 0:
            joined = judges.fit([*(one for one in blamed.chosen if one not in below), whole])
            blamed, parts[whole] = weigh(judges, joined, rules), sorted(below)
    return blamed, parts


def _charges(
    judges: Judges,
    blamed: Blamed,
    parts: Mapping[int, list[int]],
    records: Assumption,
    below: Mapping[int, int],
    rules: Rules,
    baseline: Baseline,
    params: Params,
    first: Ints,
    checked: tuple[Assumption, ...],
) -> tuple[Charge, ...]:
    seen = judges.seen
    p_values = [tail(evidence) for evidence in blamed.evidence.tolist()]
    adjusted = q_values(np.array(p_values), int(rules.allowed.sum())).tolist()
    lost = seen.per_component(seen.failures)
    unmet = {one.name for one in checked if not one.holds}
    doubtful = not records.holds or "noise" in unmet
    leading = max(
        (blamed.evidence[at] for at, one in enumerate(blamed.chosen) if one not in below), default=0.0
    )
    charges, scores = list[Charge](), dict[int, float]()
    for at, component in sorted(enumerate(blamed.chosen), key=lambda one: one[1] in below):
        evidence = float(blamed.evidence[at])
        ambiguous = _ambiguous(judges, blamed, at, rules, first)
        ambiguous = tuple(sorted({*ambiguous, *(seen.names[one] for one in parts.get(component, ()))}))
        if component in below:
            ambiguous = tuple(sorted({*ambiguous, seen.names[below[component]]}))
        if not records.holds:
            ambiguous = tuple(sorted({*ambiguous, *_nearly_alike(judges, blamed, component)}))
        needed = float(rules.threshold[component])
        surplus = evidence - needed
        score = probability(
            surplus + float(params["margin"]),
            unmet,
            leftover=doubtful and evidence < leading,
            hosts=seen.testimony is not None,
        )
        scores[component] = min(score, scores[below[component]]) if component in below else score
        margin = float(params["sure_margin"]) * (1 if baseline.windows >= ENOUGH_HISTORY else _COLD)
        charge = Charge(
            component,
            seen.names[component],
            evidence,
            needed,
            p_values[at],
            adjusted[at],
            scores[component],
            surplus >= margin and component not in below,
            _estimate(judges, blamed, at),
            ambiguous,
            float(lost[component]),
            float(seen.carried[component]),
            _hosts(judges, component),
            baseline.units * float(seen.carried[component]),
        )
        charges.append(charge)
    return _best_first(charges)


def _best_first(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    return tuple(
        sorted(charges, key=lambda one: (-(one.score or 0.0), not one.sure, -one.evidence, one.name))
    )


def tail(evidence: float) -> float:
    """P-value of a likelihood ratio at the edge of theta >= 0: half a chi-square with one degree (Chernoff
    1954).
    """
    return float(0.5 * erfc(math.sqrt(max(evidence, 0.0))))


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
    """Number of hosts that lost units on the component's paths, or None where hosts are not known."""
    testimony = judges.seen.testimony
    if testimony is None:
        return None
    beneath = np.isin(testimony.row, judges.units.member_rows(component))
    return len(np.unique(testimony.host[beneath]))


def _estimate(judges: Judges, blamed: Blamed, at: int) -> Estimate:
    """The share of its units that a component fails, with the 95 % interval of the profile likelihood."""
    theta = float(blamed.theta[at])
    low = _crossing(judges, blamed, at, 0.0, theta)
    high = _crossing(judges, blamed, at, max(2 * theta, 1e-6), theta)
    low, high = min(low, theta), max(high, theta)
    rate, least, most = (float(-math.expm1(-value)) for value in (theta, low, high))
    return Estimate(rate, least, most)


def _crossing(judges: Judges, blamed: Blamed, at: int, outer: float, theta: float) -> float:
    """Rate at which the profile log-likelihood is 1.92 below its maximum, between theta and `outer` (moved out if
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
    """Reason why a component is cleared, in words."""
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
        return "remaining failure rate below min_rate"
    if left < needed:
        return f"evidence of {left:.1f} where {needed:.1f} is needed"
    return "too few witnesses"


_UNMATCHED = 0.05
"""Share of failures that may be of units placed nowhere, or of components on no path."""

_WHOLLY = 0.8
"""Share of paths on which every attempt failed from which on only failures are told, not attempts."""

_GONE = 0.2
"""Share of the usual attempts whose components may be missing from the window."""

_LEFT = 3.0
"""Nats that are left for a component of which the noise is as learnt in one case of twenty at most."""

_RESTLESS = 0.08
"""Share of components that may show so much."""

_RULE = 0.85
"""Share of paths that must obey a rule of which component lies below which, for it to be one."""

_ONE_EACH = 0.8
"""Share of paths with exactly one component of a kind, for the kind to have such rules."""

_SAMPLED = 20_000
"""Paths that are looked at for such rules."""

_RISEN = 1.25
"""Times the highest rate that history lets expect which nearly all components may fail."""

_LARGER, _BELOW, _LEAST, _TOTAL = 1.5, 0.8, 0.25, 0.9
"""Bounds: the multiple of load of a component of which another may be part; the share of attempts on common paths
from which one lies below the other by what the rows say; the least part of a rate that unevenness leaves; the rate
from which on all may fail, and a few healthy paths be recorded there."""

_WHOLE, _NEARLY, _SIMILAR = 0.95, 0.9, 0.25
"""The share of a component's attempts from which on it lies below another one, the share of that one's attempts from
which on several below it are nearly all of it, and the least of their rates as a share of the highest."""

_STRAY = 0.04
"""Share of the paths that fail badly or should that may do so with nobody blamed on them, or not though somebody is."""


def check_assumptions(
    window: Window,
    judges: Judges,
    blamed: Blamed,
    rules: Rules,
    baseline: Baseline,
    records: Assumption,
    below: Mapping[int, int],
) -> tuple[Assumption, ...]:
    """The four assumptions with the figures that were checked; `records` is what the paths say of the topology, `below`
    who may be recorded under another parent.
    """
    return (
        _history(baseline),
        _sampling(window, judges),
        _noise(judges, blamed, rules, baseline),
        _topology(judges, records, below),
    )


def _history(baseline: Baseline) -> Assumption:
    if baseline.windows < ENOUGH_HISTORY:
        detail = (
            f"{so_many(baseline.windows, 'window')} of history, {ENOUGH_HISTORY} are needed for a baseline."
        )
        return Assumption("history", False, detail)
    holds = 2 * baseline.faulty <= baseline.windows
    left_out = (
        f"components stood out in {baseline.faulty} of {baseline.windows} windows and were left out there."
    )
    return Assumption("history", holds, left_out[0].upper() + left_out[1:])


def _sampling(window: Window, judges: Judges) -> Assumption:
    seen = judges.seen
    lost = window.sums["failing"].unmatched + seen.unknown
    failed = float(seen.failures.sum())
    if lost > _UNMATCHED * (lost + failed) and lost >= 3:
        return Assumption(
            "sampling", False, f"{so_many(lost, 'failure')} of {lost + failed:.0f} lie on no known path."
        )
    wholly = int((seen.failures >= judges.tried).sum())
    used = int((seen.tried > 0).sum())
    if used and wholly >= _WHOLLY * used:
        return Assumption(
            "sampling", False, f"Every attempt failed on {wholly} of {used} paths: successes may be missing."
        )
    gone, usual = _gone(window, seen)
    detail = f"{percent(gone)} of the usual {usual:,.0f} attempts were on components that are absent from this window."
    return Assumption("sampling", gone <= _GONE, detail)


def _gone(window: Window, seen: Observed) -> tuple[float, float]:
    """The share of the last window's attempts on paths with a component that is absent now, and these attempts."""
    if not window.history:
        return 0.0, seen.total
    before = window.history[-1].sums["paths"]
    sets = component_sets(before)
    tried = np.asarray(before.values["attempts"], dtype=np.float64)
    present = {name for name, carried in zip(seen.names, seen.carried.tolist(), strict=True) if carried > 0}
    absent = [j for j, name in enumerate(sets.names) if name not in present]
    if not absent or tried.sum() <= 0:
        return 0.0, float(tried.sum())
    return float(tried[holds_any(sets, absent)].sum() / tried.sum()), float(tried.sum())


def _noise(judges: Judges, blamed: Blamed, rules: Rules, baseline: Baseline) -> Assumption:
    found = judges.evidence(blamed, rules)
    open_ = rules.allowed[found.component] & ~np.isin(found.component, blamed.chosen)
    count, every = int((found.evidence[open_] >= _LEFT).sum()), int(rules.allowed.sum())
    if baseline.risen > _RISEN:
        detail = f"Nearly all components fail {baseline.risen:.1f} times as often as history lets expect."
        return Assumption("noise", False, detail)
    holds = count <= max(2.0, _RESTLESS * every)
    return Assumption(
        "noise", holds, f"{count} of {so_many(every, 'component')} fail more than usual and are not blamed."
    )


def _topology(judges: Judges, records: Assumption, below: Mapping[int, int]) -> Assumption:
    if not records.holds or not below:
        return records
    small, large = (judges.seen.names[one] for one in next(iter(below.items())))
    detail = f"{small} fails at the rate of {large}: possibly below it and recorded under another parent"
    return Assumption("topology", False, f"{detail} ({so_many(len(below), 'such component')}).")


def _records(judges: Judges, blamed: Blamed) -> Assumption:
    """The assumption that paths are recorded on the components which they pass, as far as the paths themselves tell."""
    odd = odd_parents(judges.seen, max(1, -(-len(judges.seen.paths) // _SAMPLED)))
    if odd.most:
        shown = so_many(odd.most, "path")
        detail = f"{shown} with a {odd.lower} name another {odd.upper} than most paths with it do."
        return Assumption("topology", False, detail)
    failing, healthy, plain, paths = judges.strays(blamed)
    misplaced = failing + healthy
    holds = misplaced <= (0 if blamed.chosen else 1) or misplaced <= _STRAY * plain
    detail = (
        f"{failing} of {so_many(paths, 'path')} fail badly without a blamed component, and {healthy} hardly fail with "
        "one."
    )
    return Assumption("topology", holds, detail)


def _possibly_below(judges: Judges, blamed: Blamed) -> dict[int, int]:
    """Blamed components that fail as they would if they lay below another one, by number, and the largest such one: it
    carries `_LARGER` times as much, they lie below one of its kind and not below it by what the rows say. Rows cannot
    tell a second fault from a wrong parent in the records: such a suspect is stated with the larger one in its place.
    """
    found = dict[int, int]()
    if len(blamed.chosen) < 2:
        return found
    seen, kind_of = judges.seen, kinds_of(judges.seen.names)[1]
    rates = [_estimate(judges, blamed, at) for at in range(len(blamed.chosen))]
    held = [exposure(seen, holds_any(seen.paths, [one])) for one in blamed.chosen]
    fewer = 1 / np.sqrt(_paths_in_effect(seen))
    for at in np.argsort(-seen.carried[blamed.chosen], kind="stable").tolist():
        large, one = blamed.chosen[at], rates[at]
        if large in found:
            continue
        peers = np.flatnonzero(kind_of == kind_of[large])
        uneven = judges.uneven(large, float(blamed.theta[at]))
        for row, small in enumerate(blamed.chosen):
            far = _LARGER * seen.carried[small] <= seen.carried[large]
            parents = held[row][peers[peers != small]].max(initial=0.0)
            if not far or not parents >= _BELOW * seen.carried[small] > held[row][large]:
                continue
            spread = 2 * uneven * fewer[small]
            low = one.low * _passing(seen, held[at], kind_of == kind_of[small]) * max(1 - spread, _LEAST)
            high = 1.0 if one.high >= _TOTAL else one.high * (1 + spread)
            if rates[row].low <= high and rates[row].high >= low:
                found.setdefault(small, large)
    return found


def _paths_in_effect(seen: Observed) -> Floats:
    """Number of equal paths that would vary as much in the mean as those of each component; shape (components,)."""
    squares = over_paths(seen.paths, seen.tried**2)
    return np.maximum(seen.carried**2 / np.maximum(squares, 1.0), 1.0)


def _passing(seen: Observed, held: Floats, kind: Bools) -> float:
    """The least share of attempts that components of a kind which lie below another one send through it: those that
    send half as much as any or more. `held` is what each sends through it.
    """
    share = (held / np.maximum(seen.carried, 1.0))[kind]
    most = float(share.max(initial=0.0))
    return float(share[share >= most / 2].min()) if most > 0 else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class OddParents:
    """Paths that break a rule which nearly all obey, such as that a rack is in one cluster: shape (paths,).

    `most` is how many break the rule that is broken most often, between components of the kinds `lower` and `upper`; 0
    for none.
    """

    path: Bools
    most: int = 0
    lower: str = ""
    upper: str = ""


def odd_parents(seen: Observed, step: int = 1) -> OddParents:
    """The paths that name another component of one kind than most paths with their component of another kind do, where
    few do: they are recorded wrongly. Of every `step`-th path.
    """
    kinds, kind_of = kinds_of(seen.names)
    owner = np.repeat(np.arange(len(seen.paths)), np.diff(seen.paths.indptr))
    looked = owner % step == 0
    owner, column = owner[looked] // step, seen.paths.indices[looked]
    shape = len(kinds), -(-len(seen.paths) // step)
    member = np.full(shape, -1, dtype=np.int64)
    member[kind_of[column], owner] = column
    parents = np.bincount(kind_of[column] * shape[1] + owner, minlength=shape[0] * shape[1]).reshape(shape)
    single = [
        k for k in range(len(kinds)) if (parents[k] == 1).mean() > _ONE_EACH and (kind_of == k).sum() > 1
    ]
    broken = np.zeros(shape[1], dtype=np.bool_)
    worst = 0, "", ""
    for below in single:
        for above in single:
            if (kind_of == above).sum() < (kind_of == below).sum():
                odd = _against(member[below], member[above], len(seen.names))
                broken |= odd
                names = kinds[below].replace("_", " "), kinds[above].replace("_", " ")
                worst = max(worst, (int(odd.sum()), *names))
    return OddParents(broken, *worst)


def _against(below: Ints, above: Ints, names: int) -> Bools:
    """The paths with another member of the upper kind than most paths of their lower one, if few have; (paths,)."""
    found = np.zeros(len(below), dtype=np.bool_)
    known = np.flatnonzero((below >= 0) & (above >= 0))
    pairs, place, counts = np.unique(
        below[known] * names + above[known], return_inverse=True, return_counts=True
    )
    lower, at = np.unique(pairs // max(names, 1), return_inverse=True)
    most = np.zeros(len(lower), dtype=np.int64)
    np.maximum.at(most, at, counts)
    obey, of = int(most.sum()), int(counts.sum())
    if of and _RULE * of <= obey < of:
        found[known] = (counts < most[at])[place]
    return found


SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.3),
    (-1.5, 0.484),
    (-0.5, 0.691),
    (0.75, 0.952),
    (2.25, 0.952),
    (4.5, 0.988),
    (9.0, 0.994),
    (18.5, 0.997),
    (25.0, 0.999),
)


ATTEMPTS: tuple[tuple[float, float], ...] = (
    (-2.5, 0.3),
    (0.0, 0.6),
    (1.5, 0.75),
    (4.5, 0.9),
    (9.0, 0.95),
    (18.0, 0.97),
    (37.0, 0.98),
    (75.0, 0.99),
)
"""The same where nothing says on which hosts units or attempts failed: what fails together counts as often as it fails,
and evidence is worth less. From regions whose rates are uneven over components, paths and time
(`tests.benchmarks.deepview_regions`)."""

CAPS: Mapping[str, float] = MappingProxyType(
    {"history": 0.97, "sampling": 0.85, "noise": 0.85, "topology": 0.95}
)
"""The most that is stated where an assumption does not hold. Of leading suspects where the topology was not as assumed,
46 of 49 were right [.83, .98] (seeds of the second generator used before)."""

FOLLOWING = 0.5
"""The most that is stated of a suspect that does not lead where paths are recorded wrongly or noise is not as assumed:
it may be what the leading one leaves unexplained. And of one that has failed so in all of the history."""


def probability(
    surplus: float, unmet: Collection[str] = (), *, leftover: bool = False, hosts: bool = True
) -> float:
    """The probability that a suspect is at fault, given its evidence above the threshold and the assumptions that do
    not hold. `leftover`: it may be what the leading suspect leaves unexplained; `hosts` says whether hosts were told.

    The figure is for the whole entry, the suspect or one of those that the data cannot tell apart from it:
    nothing in the data says which of them it is.
    """
    most = min((CAPS[name] for name in unmet), default=1.0)
    if leftover:
        most = min(most, FOLLOWING)
    return min(probability_at(SCORES if hosts else ATTEMPTS, surplus), most)
