"""Selection of the components to blame: likelihood ratios with swaps, joint refit and backward pruning.

Evidence is in nats (log-likelihood gained). Clumps are what makes false incidents: a host that dies takes
twenty units with it and looks like twenty independent failures. So every component is judged twice, on units
and on witnesses (hosts, each counting once), and the smaller figure counts. The stop is an information
criterion: evidence must exceed the log of how many chances a healthy day gives to be fooled.

The model behind it is non-negative and binomial with a survival-log link, on failing rows only. A unit survives the
window if every component on its path lets it: `P(fail) = 1 - exp(-eta)` with `eta_i = b + sum_j X_ij theta_j`,
`theta >= 0`. This is Deepview's product model (Zhang et al., NSDI 2018) without its log transform. For failing rows F
and `N_j` units carried by component j,

    loglik = sum_{i in F} e_i log(expm1(eta_i)) - sum_j N_j theta_j - N b

which is concave in theta. Healthy rows are in `N_j` alone.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.baseline import SPOKEN, Noise, evidence, speaking
from analyzers.builtin.deepview.observed import (
    Observed,
    attempts_of,
    exposure,
    holds_any,
    over_paths,
    path_of_rows,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST = 40
"""Blamed components at most; a window that needs more is not explained by blaming components."""

_APART = 3  # paths without a blamed component that are enough to judge by
_NEARLY_ALL = 0.75  # of a component's paths, and so many, are no chance even where others fail as often
_MANY = 5
_SEVERE = 5.0  # standard deviations beyond what is expected that make a single path speak for itself
_STRANGE = 0.05  # of the attempts that fail beyond that, if it is to be strange
_HARDLY = 0.08  # of the failures that a blamed component should leave on a path
_PLAIN = 40.0  # such failures, so that it is strange if there are hardly any
_CONTRAST = 8.0  # nats between the share of a component's paths that fail and that of others
_ALIKE = (
    5.0  # expected failures of a path from which on it shows how unevenly a blamed component fails its paths
)
_UNEVEN = 0.8  # the most: what differs more is a component blamed in the place of several others
_SEVERAL = 16  # such paths, so that their quartiles say something
_WITHIN = (
    0.75  # of a component's paths that hold a blamed one, from which on the others rather hold it as well
)
_EXCHANGE = 0.5  # nats that a swap must gain, so that ties do not wander
_PER_HOST = 3.0  # times what a blamed component's hosts typically lost that one of them counts there at most
_BENEATH = 0.06  # log standard deviation of rates beneath a blamed component, at most (tuning seeds)


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Rules for a component that may be blamed.

    `threshold[j]` is the evidence needed against component j, in nats; `noise` is how unevenly components fail in
    health; `smallest` is the least theta worth an incident, and `times` the least multiple of the baseline;
    `witnesses[j]` is how many of them must speak against j;
    `allowed[j]` is false for all but one of components that are always together.
    """

    threshold: Floats
    noise: Noise
    smallest: float
    times: float
    witnesses: Floats
    allowed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """For each component of `component`: theta of units, likelihood gained, evidence, and whether the rules allow to
    blame it.

    `gain` says which component explains more, and `evidence`, what usual deviations leave of it, whether that is
    enough.
    """

    component: Ints
    theta: Floats
    units: Floats
    gain: Floats
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
        self.at = path_of_rows(seen)
        self.tried = attempts_of(seen, self.at)

    def hearing(self, chosen: list[int]) -> Model:
        """Witnesses, given that some components are blamed.

        A host counts once for what is not explained. For what lies beneath a blamed component, where units
        fail one by one, it counts up to three times what the component's hosts typically lost: a ToR that is worse
        than its failing cluster can still be heard, and a host that died there is no ToR.
        """
        testimony = self.seen.testimony
        if testimony is None or not chosen:
            return self.witnesses
        explained = np.zeros(self.seen.rows, dtype=bool)
        typical = np.zeros(self.seen.rows)
        for component in chosen:
            beneath = np.zeros(self.seen.rows, dtype=bool)
            beneath[self.units.member_rows(component)] = True
            explained |= beneath
            typical[beneath] = np.maximum(typical[beneath], testimony.typical(beneath))
        most = np.ones(2 * testimony.hosts)
        group = 2 * testimony.host + explained[testimony.row]
        np.maximum.at(most, group, _PER_HOST * typical[testimony.row])
        return self.witnesses.counting(testimony.capped(self.seen.rows, group, most), self.witnesses.base)

    def fit(self, chosen: list[int]) -> Blamed:
        theta, loglik = self.units.fit(chosen)
        return Blamed(chosen, theta, np.zeros(len(chosen)), loglik)

    def evidence(self, blamed: Blamed, rules: Rules) -> Evidence:
        """Evidence that every other component could add to those already blamed."""
        eta = self.units.eta(blamed.chosen, blamed.theta)
        steps = self.units.steps(eta)
        hearing = self.hearing(blamed.chosen)
        fitted = hearing.fit(blamed.chosen)[0]
        second = hearing.steps(hearing.eta(blamed.chosen, fitted))
        unusual = self._unusual(hearing, blamed.chosen, fitted, rules.noise)[steps.component]
        gain = np.minimum(steps.gain, second.gain)
        found = np.minimum(gain, unusual)
        large = steps.theta >= np.maximum(rules.smallest, rules.times * self.units.base)
        enough = self._responsibility(hearing, eta, steps.theta) >= rules.witnesses[steps.component]
        eligible = large & enough & rules.allowed[steps.component]
        eligible &= found >= rules.threshold[steps.component]
        eligible &= ~np.isin(steps.component, blamed.chosen)
        return Evidence(steps.component, steps.theta, steps.gain, gain, found, eligible)

    def adds(self, component: int, rest: Blamed, loglik: float, rules: Rules) -> float:
        """The evidence for a component that is blamed together with `rest`; `loglik` is that of all."""
        hearing = self.hearing(rest.chosen)
        joint, together = hearing.fit([*rest.chosen, component])
        second = together - hearing.fit(rest.chosen)[1]
        unusual = self._unusual(hearing, rest.chosen, joint[:-1], rules.noise)[component]
        return max(0.0, min(loglik - rest.loglik, second, float(unusual)))

    def _unusual(self, hearing: Model, chosen: list[int], theta: Floats, noise: Noise) -> Floats:
        """The evidence for each component, given those chosen, that usual deviations leave; shape (components,).

        Paths with and without a chosen component are judged apart: what a chosen one fails would hide the others. A
        gray failure hits the paths of its component unevenly, so a component with few of them may fail more by that.
        """
        seen, base = self.seen, hearing.base
        if not chosen:
            lost = seen.per_component(hearing.weight)
            return evidence(lost, base * seen.carried * noise.lift, noise.spread, noise.noise)
        beneath = holds_any(seen.paths, chosen)
        clear = seen.clear_of(chosen)
        apart = exposure(seen, ~beneath)
        result = evidence(
            seen.per_component(hearing.weight * clear), apart * base * noise.lift, noise.spread, noise.noise
        )
        result[self._nested(chosen)] = 0.0
        each = np.zeros(len(seen.names))
        each[chosen] = theta
        summed = np.concatenate([[0.0], np.cumsum(each[seen.paths.indices])])
        eta = base + summed[seen.paths.indptr[1:]] - summed[seen.paths.indptr[:-1]]
        usual = seen.tried * beneath * -np.expm1(-eta)
        fitted = over_paths(seen.paths, usual)
        lost = seen.per_component(hearing.weight * (1 - clear))
        over = (
            over_paths(seen.paths, usual**2) / np.maximum(fitted, _TINY) ** 2
        )  # 1 / paths, if all are alike
        within = np.sqrt(
            np.minimum(noise.noise, _BENEATH) ** 2 + self._unevenness(hearing, usual) ** 2 * over
        )
        return np.asarray(result + evidence(lost, fitted, noise.spread, within))

    def _nested(self, chosen: list[int]) -> Bools:
        """Components that hold a chosen one on nearly all of their paths, but not on all; shape (components,).

        The few others are rather recorded wrongly and hold it as well: they are no evidence of their own.
        """
        seen = self.seen
        nested = np.zeros(len(seen.names), dtype=bool)
        for one in chosen:
            both = over_paths(seen.paths, holds_any(seen.paths, [one]).astype(np.float64))
            nested |= (both >= _WITHIN * seen.paths_on) & (both < seen.paths_on)
        return nested

    def uneven(self, component: int, theta: float) -> float:
        """Unevenness of a blamed component's paths: the standard deviation of a path's rate over the mean."""
        held = holds_any(self.seen.paths, [component])
        return self._unevenness(self.units, self.seen.tried * held * -math.expm1(-theta - self.units.base))

    def _unevenness(self, hearing: Model, usual: Floats) -> float:
        """Unevenness of the chosen over their paths: the robust standard deviation of failures over those expected,
        beyond what counting explains; 0 where too few paths tell. `usual` is what is expected of each path.
        """
        known = self.at >= 0
        lost = np.bincount(self.at[known], hearing.weight[known], minlength=len(usual))
        counted = usual >= _ALIKE
        if counted.sum() < _SEVERAL:
            return 0.0
        low, high = np.quantile(lost[counted] / usual[counted], (0.25, 0.75)).tolist()
        counting = float(np.median(1 / usual[counted]))
        return min(float(np.sqrt(max(((high - low) / 1.349) ** 2 - counting, 0.0))), _UNEVEN)

    def wide(self, component: int, theta: float, blamed: Blamed) -> bool:
        """Whether the paths of a component fail as widely as if it was at fault, and others do not as often.

        Where a few paths fail badly among many that do not, they are rather recorded under the wrong component. How
        badly it would fail is read from its paths without a blamed component, if there are three; then those with one
        must fail more than that one explains.
        """
        seen = self.seen
        own = np.zeros(seen.rows, dtype=bool)
        own[self.units.member_rows(component)] = True
        usual = self.tried * -np.expm1(-self.units.eta(blamed.chosen, blamed.theta))
        free = seen.clear_of(blamed.chosen) > 0
        mine = holds_any(seen.paths, [component]) & (seen.tried > 0)
        clear = ~holds_any(seen.paths, blamed.chosen) if blamed.chosen else np.ones(len(mine), dtype=bool)
        share, paths = -math.expm1(-theta), int((mine & clear).sum())
        if paths:
            tried = float(seen.tried[mine & clear].sum())
            share = min(max(float((seen.failures - usual)[own & free].sum()) / tried, share), 1.0)
        if paths >= _APART and not self._widely(own & free, mine & clear, usual, share):
            return False
        if blamed.chosen and not self._beyond(own & ~free, usual, share):
            return False
        return not paths or self._set_apart(own, free, mine, clear, usual, share)

    def _widely(self, own: Bools, mine: Bools, usual: Floats, share: float) -> bool:
        """Whether as many paths fail as would if each failed `share`, by half."""
        spoke = self._spoke(usual, share) & own
        tried = self.seen.tried[mine]
        expected = speaking(np.array([float(len(tried))]), np.array([tried.sum()]), np.array([share]))[0]
        return bool(spoke.sum() >= SPOKEN * expected)

    def _beyond(self, own: Bools, usual: Floats, share: float) -> bool:
        """Whether paths that hold a blamed component too fail more than those of others that hold one."""
        counted = usual >= 5.0
        ratio = self.seen.failures[counted & ~own] / usual[counted & ~own]
        usual = usual * max(1.0, float(np.median(ratio))) if len(ratio) else usual
        more = np.maximum(self.tried - usual, 0.0) * share
        able = own & (more >= 2 * np.sqrt(usual))
        spoke = able & (self.seen.failures >= usual + 0.25 * more)
        return bool(able.sum() < _APART or spoke.sum() >= SPOKEN * able.sum())

    def _set_apart(
        self, own: Bools, free: Bools, mine: Bools, clear: Bools, usual: Floats, share: float
    ) -> bool:
        """Whether its free paths fail more often than other free ones, if several of these fail badly."""
        spoke = self._spoke(usual, share) & free
        badly = spoke & ~own & (self.seen.failures - usual >= _SEVERE * np.sqrt(usual + 1))
        hits, paths = float((spoke & own).sum()), float((mine & clear).sum())
        if badly.sum() < 2 or hits >= max(_NEARLY_ALL * paths, _MANY):
            return True
        others, elsewhere = float((spoke & ~own).sum()), float((clear & ~mine).sum())
        return _contrast(hits, paths, others, elsewhere) >= _CONTRAST

    def _spoke(self, usual: Floats, share: float) -> Bools:
        """The failing rows that lost at least a quarter of what they would if their paths failed `share`."""
        least = np.maximum(0.25 * np.maximum(self.tried - usual, 0.0) * share, 2 * np.sqrt(usual))
        return np.asarray(self.seen.failures >= usual + least)

    def strays(self, blamed: Blamed) -> tuple[int, int, int, int]:
        """Paths that fail badly without a blamed component, paths that hardly fail with one, all that fail badly or
        should, and all paths.
        """
        seen = self.seen
        usual = self.tried * -np.expm1(-self.units.eta(blamed.chosen, blamed.theta))
        free = seen.clear_of(blamed.chosen) > 0
        worst = -math.expm1(-float(blamed.theta.max())) if blamed.chosen else 1.0
        strange = max(_STRANGE, 0.25 * worst) * self.tried
        badly = free & (seen.failures >= usual + _SEVERE * np.sqrt(usual + 1) + strange)
        failing, paths = int(badly.sum()), int((seen.tried > 0).sum())
        if not blamed.chosen:
            return failing, 0, failing, paths
        each = np.zeros(len(seen.names))
        each[blamed.chosen] = blamed.theta
        summed = np.concatenate([[0.0], np.cumsum(each[seen.paths.indices])])
        eta = summed[seen.paths.indptr[1:]] - summed[seen.paths.indptr[:-1]]
        should = int((seen.tried * -np.expm1(-eta) >= _PLAIN).sum())
        fail = (
            ~free
            & (usual - self.tried * -math.expm1(-self.units.base) >= _PLAIN)
            & (seen.failures >= _HARDLY * usual)
        )
        return failing, max(should - int(fail.sum()), 0), should + failing, paths

    def _responsibility(self, hearing: Model, eta: Floats, theta: Floats) -> Floats:
        """Number of witnesses that each component's theta would answer for (the rest is explained already)."""
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
        best = _best(judges, found, blamed)
        if best is None:
            break
        blamed = judges.fit([*blamed.chosen, int(found.component[best])])
        blamed = _prune(judges, _exchange(judges, blamed, rules), rules)
        if frozenset(blamed.chosen) in seen:
            break
        seen.add(frozenset(blamed.chosen))
    weighed = weigh(judges, blamed, rules)
    order = sorted(range(len(weighed.chosen)), key=lambda at: (-weighed.evidence[at], weighed.chosen[at]))
    return Blamed(
        [weighed.chosen[at] for at in order],
        weighed.theta[order],
        weighed.evidence[order],
        weighed.loglik,
    )


def _best(judges: Judges, found: Evidence, blamed: Blamed) -> int | None:
    """The eligible component that explains most; the first by name of equals."""
    order = np.flatnonzero(found.eligible)
    for at in order[np.argsort(-found.gain[order], kind="stable")].tolist():
        if judges.wide(int(found.component[at]), float(found.theta[at]), blamed):
            return int(at)
    return None


def _contrast(hits: float, trials: float, others: float, elsewhere: float) -> float:
    """Nats by which `hits` of `trials` is more than `others` of `elsewhere`, both with half a hit of doubt."""
    usual = (others + 0.5) / (elsewhere + 1.0)
    share = min(hits / max(trials, 1.0), 1 - 1e-9)
    if share <= usual:
        return 0.0
    return trials * (share * math.log(share / usual) + (1 - share) * math.log((1 - share) / (1 - usual)))


def _exchange(judges: Judges, blamed: Blamed, rules: Rules) -> Blamed:
    """Replace a chosen component by a better one, for each once: a first choice may be a poor stand-in for
    two.
    """
    if len(blamed.chosen) < 2:
        return blamed
    for component in list(blamed.chosen):
        rest = judges.fit([other for other in blamed.chosen if other != component])
        found = judges.evidence(rest, rules)
        best = _best(judges, found, rest)
        if best is None or int(found.component[best]) == component:
            continue
        swapped = judges.fit([*rest.chosen, int(found.component[best])])
        if swapped.loglik > blamed.loglik + _EXCHANGE:
            blamed = swapped
    return blamed


def _prune(judges: Judges, blamed: Blamed, rules: Rules) -> Blamed:
    """Drop, weakest first, what the others explain by now."""
    while len(blamed.chosen) > 1:
        weighed = weigh(judges, blamed, rules)
        surplus = weighed.evidence - rules.threshold[blamed.chosen]
        weakest = int(np.argmin(surplus))
        tiny = np.flatnonzero(weighed.theta < rules.smallest)
        if surplus[weakest] >= 0 and not len(tiny):
            return weighed
        gone = weakest if surplus[weakest] < 0 else int(tiny[0])
        blamed = judges.fit([other for at, other in enumerate(blamed.chosen) if at != gone])
    return blamed


def weigh(judges: Judges, blamed: Blamed, rules: Rules) -> Blamed:
    """Fill in what each chosen component adds to the others, all of them refitted without it."""
    evidence = []
    for component in blamed.chosen:
        rest = judges.fit([other for other in blamed.chosen if other != component])
        evidence.append(judges.adds(component, rest, blamed.loglik, rules))
    return replace(blamed, evidence=np.array(evidence))


CEILING = 16.0
"""Largest theta: a component that fails all but one in nine million."""

_TINY = 1e-12


def log_expm1(x: Floats) -> Floats:
    """log(exp(x) - 1), exact for small and large x > 0."""
    return np.asarray(x + np.log(-np.expm1(-x)))


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """For each component that a failing row holds: the best theta for it alone, and the log-likelihood
    gained.
    """

    component: Ints
    theta: Floats
    gain: Floats


class Model:
    """Failing rows with a weight each (units, or witnesses) against what each component carries.

    `row` and `column` are the entries of the incidence of failing rows; `weight` has shape (rows,), `carried`
    shape (components,), `base` is the background eta of every row (> 0).
    """

    def __init__(
        self, row: Ints, column: Ints, weight: Floats, carried: Floats, total: float, base: float
    ) -> None:
        self.weight = weight
        self.carried = carried
        self.total = total
        self.base = max(base, _TINY)
        order = np.argsort(column, kind="stable")
        self.component, self.start = np.unique(column[order], return_index=True)
        self.row = row[order]
        self.local = np.repeat(np.arange(len(self.component)), np.diff([*self.start, len(order)]))
        self.position = np.full(len(carried), -1, dtype=np.int64)
        self.position[self.component] = np.arange(len(self.component))

    def counting(self, weight: Floats, base: float) -> Model:
        """The same rows with other weights and another background."""
        other = copy.copy(self)
        other.weight = weight
        other.base = max(base, _TINY)
        return other

    def member_rows(self, component: int) -> Ints:
        """The failing rows that hold a component."""
        at = self.position[component]
        if at < 0:
            return np.zeros(0, dtype=np.int64)
        end = self.start[at + 1] if at + 1 < len(self.start) else len(self.row)
        return self.row[self.start[at] : end]

    def eta(self, chosen: list[int], theta: Floats) -> Floats:
        """Of every failing row; shape (rows,)."""
        eta = np.full(len(self.weight), self.base)
        for component, value in zip(chosen, theta, strict=True):
            eta[self.member_rows(component)] += value
        return eta

    def loglik(self, chosen: list[int], theta: Floats) -> float:
        """Up to the constant that neither theta nor the choice of components changes."""
        linear = float(self.carried[chosen] @ theta) if chosen else 0.0
        return float(self.weight @ log_expm1(self.eta(chosen, theta))) - linear

    def steps(self, eta: Floats) -> Steps:
        """Steps that each component could add to `eta`, all at once by Newton's method from the left.

        The derivative is convex and falls, so a Newton step from the left of the root never passes it. The
        start is the root if all of the component's rows had its largest eta, which lies to the left.
        """
        if not len(self.component):
            return Steps(self.component, np.zeros(0), np.zeros(0))
        weight, at = self.weight[self.row], eta[self.row]
        size = len(self.component)
        lost = np.bincount(self.local, weight, minlength=size)
        carried = np.maximum(self.carried[self.component], lost)
        share = np.minimum(lost / np.maximum(carried, _TINY), -np.expm1(-CEILING))
        theta = np.clip(-np.log1p(-share) - np.maximum.reduceat(at, self.start), 0.0, CEILING)
        for _ in range(60):
            alive = -np.expm1(-(at + theta[self.local]))
            slope = np.bincount(self.local, weight / alive, minlength=size) - carried
            bend = np.bincount(self.local, weight * (1 - alive) / alive**2, minlength=size)
            new = np.clip(theta + slope / np.maximum(bend, _TINY), 0.0, CEILING)
            moved = float(np.max(np.abs(new - theta) / (theta + 1e-6)))
            theta = new
            if moved < 1e-7:
                break
        rise = log_expm1(at + theta[self.local]) - log_expm1(at)
        gain = np.bincount(self.local, weight * rise, minlength=size) - carried * theta
        return Steps(self.component, theta, np.maximum(gain, 0.0))

    def fit(self, chosen: list[int], start: Floats | None = None) -> tuple[Floats, float]:
        """The best theta >= 0 of the chosen together, shape (chosen,), and its log-likelihood."""
        if not chosen:
            return np.zeros(0), self.loglik([], np.zeros(0))
        pattern, weight = self._patterns(chosen)
        first = np.full(len(chosen), 1e-3) if start is None else np.clip(start, 1e-6, CEILING)
        return _newton(pattern, weight, self.carried[chosen], first, np.full(len(weight), self.base))

    def fit_base(self, chosen: list[int]) -> tuple[float, Floats, float]:
        """Background and theta together: the background is a component that every unit depends on."""
        pattern, weight = self._patterns(chosen)
        pattern = np.hstack([pattern, np.ones((len(weight), 1))])
        carried = np.append(self.carried[chosen], self.total)
        first = np.append(np.full(len(chosen), 1e-3), self.weight.sum() / max(self.total, 1.0))
        theta, value = _newton(pattern, weight, carried, first, np.full(len(weight), _TINY))
        return float(theta[-1]), theta[:-1], value

    def profile(self, component: int, theta: float, others: list[int], start: Floats) -> float:
        """The log-likelihood with one component's theta held and the others' refitted from `start`."""
        pattern, weight = self._patterns([component, *others])
        base = self.base + theta * pattern[:, 0]
        linear = float(self.carried[component]) * theta
        if not others:
            return float(weight @ log_expm1(base)) - linear
        first = np.clip(start, 1e-6, CEILING)
        return _newton(pattern[:, 1:], weight, self.carried[others], first, base)[1] - linear

    def _patterns(self, chosen: list[int]) -> tuple[Floats, Floats]:
        """Sets of the chosen that a row can hold, shape (patterns, chosen), and the weight of the rows that do.

        Rows that hold the same of the chosen have the same eta: together they are one.
        """
        code = np.zeros(len(self.weight), dtype=np.int64)
        for at, component in enumerate(chosen):
            code[self.member_rows(component)] |= 1 << at
        codes, group = np.unique(code, return_inverse=True)
        pattern = (codes[:, None] >> np.arange(len(chosen))) & 1
        return pattern.astype(np.float64), np.bincount(group, self.weight).astype(np.float64)


def _newton(
    pattern: Floats, weight: Floats, carried: Floats, theta: Floats, base: Floats
) -> tuple[Floats, float]:
    """Maximise the log-likelihood over theta >= 0 by projected Newton steps with backtracking.

    Nested columns make the Hessian singular; a small ridge keeps the step finite and the optimum where it is.
    """
    carried = np.maximum(carried, weight @ pattern)
    value = _value(pattern, weight, carried, theta, base)
    for _ in range(100):
        alive = -np.expm1(-(base + pattern @ theta))
        slope = pattern.T @ (weight / alive) - carried
        free = ((theta > 0) | (slope > 0)) & ((theta < CEILING) | (slope < 0))
        if not free.any():
            break
        part = pattern[:, free]
        bend = part.T @ (part * (weight * (1 - alive) / alive**2)[:, None])
        bend[np.diag_indices_from(bend)] += 1e-9 * (1.0 + np.diag(bend))
        step = np.zeros(len(theta))
        step[free] = np.linalg.solve(bend, slope[free])
        theta, gained = _advance(pattern, weight, carried, theta, step, value, base)
        value += gained
        if gained <= 1e-10 * (1.0 + abs(value)):
            break
    return theta, value


def _value(pattern: Floats, weight: Floats, carried: Floats, theta: Floats, base: Floats) -> float:
    return float(weight @ log_expm1(base + pattern @ theta)) - float(carried @ theta)


def _advance(
    pattern: Floats,
    weight: Floats,
    carried: Floats,
    theta: Floats,
    step: Floats,
    value: float,
    base: Floats,
) -> tuple[Floats, float]:
    """The first of halved steps that improves the log-likelihood, and by how much (0: none does)."""
    length = 1.0
    for _ in range(40):
        new = np.clip(theta + length * step, 0.0, CEILING)
        gained = _value(pattern, weight, carried, new, base) - value
        if gained > 0:
            return new, gained
        length /= 2
    return theta, 0.0
