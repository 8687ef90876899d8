"""Healthy windows here: the usual failures of units, share of witnesses that speak, and unevenness.

From the preceding windows, of which any may hold faults. The rate is taken at its upper bound: half the true rate
makes false blames, twice the rate costs almost nothing. It follows the window as far as rates have moved from window
to window before.

First `remains` takes out of each window the components and paths that stand out of it. Every component is compared
with the paths that avoid it, in the same window: no baseline is needed, so that a fault in every window of the
history is found as well as one in a single window. A component stands out if it fails several times as often as the
rest, as most of its paths do. The worst is taken out with its paths, and the rest is compared again. Too much taken
out costs some exposure; too little would be learnt as normal.

Then three figures, all from medians over components and windows:

- `spread`: the variance over the mean of witnesses where few fail (clumps: one host takes several units down);
- `noise`: the standard deviation of the logarithm of a component's rate, which no number of attempts makes smaller;
- `lift`: a component's own usual level against the others, within what is usual between components. What lies beyond
  that is no habit, however long it lasts. Where history shows that components of a kind fail more while they carry
  more than their usual share (a load shock of some clients), it holds what their load of this window promises, too.

Evidence for a component is then what remains after the most likely such deviation: with E failures expected, O seen,
spread p and noise t it is `min over z >= 0 of z^2 / 2 t^2 + (O log(O / E') - O + E') / p` with `E' = E exp(z)`, the
Poisson log-likelihood ratio where t = 0, and `log(O / E)^2 / 2 t^2` where E is large.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.observed import (
    Observed,
    attempts_of,
    exposure,
    holds_any,
    kinds_of,
    observe,
    path_of_rows,
)
from analyzers.contract import Window

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TIMES = 4.0
"""A component stands out that fails so many times as often as the paths without it."""

SPOKEN = 0.4
"""Least share of the paths expected to fail that must, if a component is at fault: else a few of its paths are, and
those may be recorded under the wrong component."""

_NATS = 6.0  # above log(components)
_LEAST = 4.0  # failures
_MOST = 20  # components taken out of one window
_SKEW = 0.8  # shape of the gamma law of units over paths, for how many paths are expected to fail
_HEAVY = 10.0  # times what is expected on a path, from which on its further failures say nothing of the rate


@dataclass(frozen=True, slots=True, eq=False)
class Remains:
    """A window without what stands out: `columns` were taken out, failing most of the time in `shares` of their units.

    `carried` and `total` are what is left, `weight` of shape (rows,) what failing rows still count, and `rate` the
    failures per unit of it.
    """

    columns: list[int]
    shares: list[float]
    carried: Floats
    total: float
    weight: Floats

    @property
    def rate(self) -> float:
        return float(self.weight.sum()) / self.total if self.total > 0 else 0.0


def speaking(paths_on: Floats, carried: Floats, theta: Floats) -> Floats:
    """Expected number of a component's paths that fail at all if it fails each unit with rate theta."""
    each = theta * carried / np.maximum(paths_on, 1)
    return np.asarray(paths_on * (1 - (1 + each / _SKEW) ** -_SKEW))


def remains(seen: Observed, weight: Floats, least_share: float = 0.0) -> Remains:
    """The window without the components that stand out by failing `least_share` of their units or more."""
    carried, total, left = seen.carried.copy(), seen.total, weight.copy()
    columns: list[int] = []
    shares: list[float] = []
    while len(columns) < _MOST:
        lost = seen.per_component(left)
        worst = _worst(seen, left, lost, carried, total, least_share)
        if worst is None:
            break
        columns.append(worst)
        shares.append(float(min(1.0, lost[worst] / carried[worst])))
        left = left * seen.clear_of([worst])
        keep = ~holds_any(seen.paths, columns)
        carried, total = exposure(seen, keep), float(seen.tried[keep].sum())
    return Remains(columns, shares, carried, total, _without_strays(seen, left, total))


def _worst(
    seen: Observed, left: Floats, lost: Floats, carried: Floats, total: float, least_share: float
) -> int | None:
    """The component with most evidence against it, compared with the paths that avoid it; None if there is none."""
    outside = total - carried
    rest = (left.sum() - lost + 0.5) / np.maximum(outside, 1.0)
    usual = rest * carried
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(lost > usual, lost * np.log(lost / usual) - lost + usual, 0.0)
        share = np.where(carried > 0, lost / carried, 0.0)
    can = (lost >= _LEAST) & (lost > TIMES * usual) & (outside > 0.02 * total) & (share >= least_share)
    can &= gain > _NATS + np.log(len(carried))
    if not can.any():
        return None
    active = (
        left[seen.row]
        > np.maximum(0.25 * share[seen.column], 2 * rest[seen.column])
        * _mean_tried(seen, carried)[seen.column]
    )
    spoke = np.bincount(seen.column, active, minlength=len(carried))
    can &= spoke >= SPOKEN * speaking(seen.paths_on.astype(float), carried, share)
    return int(np.argmax(np.where(can, gain, -1.0))) if can.any() else None


def _mean_tried(seen: Observed, carried: Floats) -> Floats:
    """Half of the mean units on a path of each component."""
    return np.asarray(0.5 * carried / np.maximum(seen.paths_on, 1))


def _without_strays(seen: Observed, left: Floats, total: float) -> Floats:
    """The rows' weights, each at most ten times what is expected on its path (and five)."""
    if total <= 0 or not (left > 5.0).any():
        return left
    tried = attempts_of(seen, path_of_rows(seen))
    bounded = left
    for _ in range(6):
        bounded = np.minimum(left, 5.0 + _HEAVY * tried * bounded.sum() / total)
    return bounded


ENOUGH_HISTORY = 3
"""Windows of history from which on unevenness over time is worth estimating."""

PRIOR = 0.1
"""Noise that is taken for granted, as from `_PRIOR_CELLS` components in a window."""

TOTAL = 0.25
"""A component that fails such a share of its units is at fault: no clump of usual size does that."""

_PRIOR_CELLS = 10.0
_COUNTED = 2.0  # expected failures from which on a logarithm says something
_SPARSE = 20.0  # expected failures up to which clumps matter more than noise
_KIND = 4  # components of a kind from which on it may be more even than the others
_TAIL = 1.2  # heavier than a normal law
_HABIT = 2.0  # standard deviations between components within which a level is a habit
_STEPS = 4.0  # standard deviations that make a clump
_OFTEN = 0.25  # of the windows, from which on a component's clumps are its fault
_HOST = (
    25.0  # failures of the largest clump that is learnt: faults of history teach no more caution than that
)
_CELLS = 30  # components and windows that tell whether rates follow load
_SURELY = 3.0  # standard errors from which on they do
_STEEPEST = 5.0  # power of the load that a rate may follow
_DOUBT = 0.25  # standard deviation of what load promises, as a share of it
_QUANTILES = 0.6745, 1.645  # of the size of a normal deviate: the median and the ninth decile
_FEW = 2.0  # expected failures as which a dispersion of 2 is taken for granted


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """`spread`, `noise` and `lift` of shape (components,)."""

    spread: Floats
    noise: Floats
    lift: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Failures and what was expected, by window and component, nan where a component stood out or was absent; `load` is
    the logarithm of the share of all units that it carried, nan where it was absent.
    """

    failed: Floats
    expected: Floats
    load: Floats


def still(count: int) -> Noise:
    """No unevenness at all but what is taken for granted."""
    return Noise(np.ones(count), np.full(count, PRIOR), np.ones(count))


def cells(windows: list[tuple[Observed, Remains]], names: tuple[str, ...]) -> Cells:
    """Failures of components beside those expected by the window's own rate; shape (windows, components)."""
    shape = len(windows), len(names)
    failed, expected, load = (np.full(shape, np.nan) for _ in range(3))
    number = {name: i for i, name in enumerate(names)}
    for at, (one, left) in enumerate(windows):
        place = np.array([number.get(name, -1) for name in one.names])
        here = (place >= 0) & (one.carried > 0)
        load[at, place[here]] = np.log(one.carried[here] / one.total)
        known = (place >= 0) & (left.carried > 0)
        known[left.columns] = False
        failed[at, place[known]] = one.per_component(left.weight)[known]
        expected[at, place[known]] = left.rate * left.carried[known]
    return Cells(failed, expected, load)


def learn(table: Cells, names: tuple[str, ...], spread: Floats, now: Floats | None = None) -> Noise:
    """Noise and habits of the components, drawn towards those of all kinds together; `now` is the logarithm of the
    share of all units that each carries in the window to be judged, shape (components,), nan for none.
    """
    kind_of = kinds_of(names)[1]
    counted = table.expected >= _COUNTED
    with np.errstate(invalid="ignore", divide="ignore"):
        log = np.log((table.failed + 0.5) / (table.expected + 0.5))
        log = np.where(counted, log, np.nan)
    log -= _shift(log, kind_of)
    often = np.isfinite(log).sum(axis=0) >= ENOUGH_HISTORY
    level, error = _levels(table, log, often)
    known = bool(often.any())  # else there are no windows that could stray from others
    moved = log - level if known else np.full_like(log, np.nan)
    promised = np.zeros(len(kind_of))
    if now is not None and known:
        follows, load, at_now = _by_load(table, moved, kind_of, now)
        moved = moved - np.where(np.isfinite(load), follows * load, 0.0)
        promised = follows * at_now
    within = _by_kind(moved, 1 / np.where(counted, table.expected, np.nan), kind_of)
    between = _by_kind(level[None, :], error[None, :] ** 2, kind_of, upwards=not known)
    finite = np.isfinite(level)
    pull = between**2 / (between**2 + np.where(finite, error, 1.0) ** 2)
    habit = np.where(finite, np.clip(pull * np.where(finite, level, 0.0), 0.0, _HABIT * between), 0.0)
    own = np.where(finite, np.sqrt(1 - pull) * between, between)
    return Noise(spread, np.hypot(_TAIL * np.hypot(within, own), _DOUBT * promised), np.exp(habit + promised))


def _by_load(
    table: Cells, moved: Floats, kind_of: NDArray[np.int64], now: Floats
) -> tuple[Floats, Floats, Floats]:
    """The power of its load that a component's rate follows, by kind, 0 where history shows none; the logarithm of the
    load over its usual one, beside that of its peers, in the windows before, and what of it is above the usual now.
    """
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # components that were in no window have no median
        every = np.vstack([table.load, now]) - np.nanmedian(table.load, axis=0)
    every -= _shift(every, kind_of)
    load, at_now = every[:-1], np.maximum(np.nan_to_num(every[-1]), 0.0)
    power = np.zeros(len(kind_of))
    for kind in range(int(kind_of.max(initial=-1)) + 1):
        mine = kind_of == kind
        x, y = load[:, mine], moved[:, mine]
        known = np.isfinite(x) & np.isfinite(y)
        weight = 1 / (1 / np.maximum(table.expected[:, mine][known], _COUNTED) + PRIOR**2)
        x, y = x[known], y[known]
        moment = float(weight @ x**2)
        if len(x) < _CELLS or moment <= 0:
            continue
        slope = float(weight @ (x * y)) / moment
        error = math.sqrt(float(weight**2 @ (x * (y - slope * x)) ** 2)) / moment
        if slope > _SURELY * error:
            power[mine] = min(slope, _STEEPEST)
    return power, load, at_now


def _shift(log: Floats, kind_of: NDArray[np.int64]) -> Floats:
    """The median of each kind in each window, where it has four members or more; shape of `log`."""
    shift = np.zeros_like(log)
    for kind in range(int(kind_of.max(initial=-1)) + 1):
        mine = np.flatnonzero(kind_of == kind)
        for at in range(len(log)):
            values = log[at, mine]
            values = values[np.isfinite(values)]
            if len(values) >= 4:
                shift[at, mine] = np.median(values)
    return shift


def _levels(table: Cells, log: Floats, often: Bools) -> tuple[Floats, Floats]:
    """Each component's usual logarithm over the windows, and its standard error; nan where too little failed. The
    median of those that failed `often` enough, else of all windows together.
    """
    level, error = np.full(log.shape[1], np.nan), np.full(log.shape[1], np.nan)
    failed, expected = np.nansum(table.failed, axis=0), np.nansum(table.expected, axis=0)
    if often.any():
        level[often] = np.nanmedian(log[:, often], axis=0)
        error[often] = 1.25 / np.sqrt(expected[often])
    pooled = ~often & (expected >= _COUNTED)
    level[pooled] = np.log((failed[pooled] + 0.5) / (expected[pooled] + 0.5))
    error[pooled] = 1 / np.sqrt(expected[pooled])
    return level, error


def _by_kind(
    deviation: Floats, variance: Floats, kind_of: NDArray[np.int64], *, upwards: bool = False
) -> Floats:
    """The standard deviation beyond what counting explains, robust, per component by kind; shape (components,)."""
    every = _robust(deviation, variance, PRIOR**2, upwards)
    result = np.zeros(len(kind_of))
    for kind in range(int(kind_of.max(initial=-1)) + 1):
        mine = kind_of == kind
        own = _robust(deviation[:, mine], variance[:, mine], every, upwards)
        result[mine] = np.sqrt(own if mine.sum() >= _KIND else max(own, every))
    return result


def _robust(deviation: Floats, variance: Floats, prior: float, upwards: bool) -> float:
    """The squared deviation by the median, or by the ninth decile where tails are heavy, each less its own variance of
    counting, drawn towards `prior`.

    Only deviations `upwards` tell where each is of a single window: the logarithm of few failures strays far below,
    and components that fail less than others excuse nobody.
    """
    known = np.isfinite(deviation) & np.isfinite(variance)
    count = int(known.sum())
    if not count:
        return prior
    size, shares = (np.maximum(deviation, 0.0), (0.75, 0.95)) if upwards else (deviation, (0.5, 0.9))
    found = max(
        float(np.quantile((size[known] / z) ** 2 - variance[known], share))
        for share, z in zip(shares, _QUANTILES, strict=True)
    )
    return (max(found, 0.0) * count + prior * _PRIOR_CELLS) / (count + _PRIOR_CELLS)


def clumps(windows: list[Observed], names: tuple[str, ...], together: bool) -> Floats:
    """Over-dispersion of failures per component, equal within a kind, at least 1.

    From components of which few failures are expected, without those at fault: clumps hit one component here and
    another there, and none of them often. Where clumps come in every other window but in another kind each time, no
    kind shows them often; then the largest of each window count together, up to the size of a host.

    The mean over windows where units fail `together` (on hosts that are not told), else the median: attempts need no
    such caution: whatever stands out of a window is a fault there, and faults in half of the windows teach nothing.
    """
    if len(windows) < ENOUGH_HISTORY:
        return np.ones(len(names))
    off, mean = _deviations(windows, names, TOTAL if together else 0.0)
    often = (off > _STEPS * np.sqrt(mean + 1.0)).sum(axis=0) > max(2.0, _OFTEN * len(windows))
    off[:, often], mean[:, often] = 0.0, 0.0
    kinds, kind_of = kinds_of(names)
    squares, expected = np.zeros((len(windows), len(kinds))), np.zeros((len(windows), len(kinds)))
    for at in range(len(windows)):
        squares[at] = np.bincount(kind_of, np.minimum(off[at], _HOST) ** 2, minlength=len(kinds))
        expected[at] = np.bincount(kind_of, mean[at], minlength=len(kinds))
    if together:
        ratio = np.quantile((squares + 2 * _FEW) / (expected + _FEW), 0.75, axis=0)
    else:
        ratio = np.median((squares + 2 * _FEW) / (expected + _FEW), axis=0)
    largest = np.where(off > _STEPS * np.sqrt(mean + 1.0), off, 0.0).max(axis=1, initial=0.0)
    anywhere = 1.0 + 2 / 3 * min(float(np.median(largest)), _HOST)
    return np.asarray(np.maximum(anywhere, np.minimum(ratio, 1.0 + 2 / 3 * _HOST))[kind_of])


def _deviations(windows: list[Observed], names: tuple[str, ...], least_share: float) -> tuple[Floats, Floats]:
    """Failures beyond what the window lets expect, and that, 0 where a component is absent, at fault (stands out and
    fails `least_share` of its units) or often fails; shape (windows, components).
    """
    number = {name: i for i, name in enumerate(names)}
    off, mean = np.zeros((len(windows), len(names))), np.zeros((len(windows), len(names)))
    for at, one in enumerate(windows):
        left = remains(one, one.failures, least_share)
        place = np.array([number.get(name, -1) for name in one.names])
        expected = left.rate * left.carried
        few = (place >= 0) & (expected <= _SPARSE) & (left.carried > 0)
        few[left.columns] = False
        off[at, place[few]] = (one.per_component(left.weight) - expected)[few]
        mean[at, place[few]] = expected[few]
    return off, mean


def evidence(failed: Floats, expected: Floats, spread: Floats, noise: Floats) -> Floats:
    """Nats that remain after the most likely usual deviation; 0 where no more failed than expected."""
    more = failed > expected
    usual = np.maximum(np.where(more, expected, 1.0), 1e-12)
    seen = np.where(more, failed, 1.0)
    top = np.log(np.maximum(seen / usual, 1.0))
    z, square = top.copy(), np.maximum(noise, 1e-3) ** 2
    for _ in range(50):  # Newton from the right of the root of a rising convex function never passes it
        grown = usual * np.exp(z)
        step = (z / square - (seen - grown) / spread) / (1 / square + grown / spread)
        z = np.maximum(z - step, 0.0)
        if float(np.max(np.abs(step), initial=0.0)) < 1e-9:
            break
    grown = usual * np.exp(z)
    left = z**2 / (2 * square) + (seen * (top - z) - seen + grown) / spread
    return np.where(more, np.maximum(left, 0.0), 0.0)


_Z = 1.645  # one-sided 95 %
_ODD = 3.0  # a window whose rate is so many times the median of all is left out
_DRIFT = 2.0  # standard deviations that the rate may have moved since
_EVERYWHERE = 8  # such components that show whether failures rose everywhere
_PEAK = 5.0  # times the usual rate that a peak may raise it
_STEADY = 0.05  # the least of them
_LONG = 6  # windows that tell what lasts
_NEARLY_ALL = 0.8
_MOSTLY = 0.5  # of what a component fails is on paths of others that stood out: the same failure


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Failures of units and of witnesses per unit and window, and how unevenly components fail.

    `excluded` are the components taken out of one of the `windows`, and `faulty` is how many of these held any.
    `risen` is how many times the usual rate nearly all components fail in the window itself. `stood_out` has for each
    of the windows, oldest first, the share of its units that each component failed that was taken out; `shares` what
    every component failed in each of them, with all that stood out: shape (windows, components), 0 where absent.
    """

    units: float
    witnesses: float
    noise: Noise
    windows: int
    excluded: tuple[str, ...] = ()
    faulty: int = 0
    risen: float = 1.0
    stood_out: tuple[Mapping[str, float], ...] = ()
    shares: Floats | None = None

    def lasting(self, names: Collection[str], seen: Observed, component: int) -> float | None:
        """The share of its units that one of `names` usually failed, if some stood out in half of the windows before,
        the oldest third of them included: a habit, or a failure that is older than the history. None otherwise.

        A failure that lasts may stand out under another name in each window, where several components share its
        paths: a window counts, too, in which `component` failed about as much as now and most of what it fails now is
        on paths of what stood out there.
        """
        own = seen.row[seen.column == component]
        lost = float(seen.failures[own].sum())
        now = lost / max(float(seen.carried[component]), 1.0)
        number = {name: i for i, name in enumerate(seen.names)}
        found = []
        for at, one in enumerate(self.stood_out):
            share = max((share for name, share in one.items() if name in names), default=0.0)
            before = float(self.shares[at, component]) if self.shares is not None else 0.0
            if not share and one and now <= TIMES * before <= TIMES**2 * now:
                held = 1 - seen.clear_of([number[name] for name in one if name in number])
                share = before if float((seen.failures * held)[own].sum()) >= _MOSTLY * lost else 0.0
            found.append(share)
        out = [share for share in found if share > 0]
        if len(found) < _LONG or 2 * len(out) < len(found) or not any(found[: len(found) // 3]):
            return None
        return float(np.median(out))

    def restless(self, names: Collection[str]) -> bool:
        """Whether others than `names` stood out in nearly all windows before, so that nothing tells what is usual."""
        others = sum(not one.keys() <= set(names) for one in self.stood_out)
        return len(self.stood_out) >= _LONG and others >= _NEARLY_ALL * len(self.stood_out)


def from_history(seen: Observed, window: Window) -> Baseline | None:
    """The baseline that the preceding windows give, or None if they carry nothing."""
    usable = [one for past in window.history if (one := observe(past.sums)).total > 0]
    left = [(one, remains(one, one.witness)) for one in usable]
    left = [(one, rest) for one, rest in left if rest.total > 0]
    if not left:
        return None
    together = window.input == "placement" and seen.testimony is None
    least = TOTAL if together else 0.0  # hosts that are not told take their units down: that is usual, too
    rests = [remains(one, one.witness, least) for one, _ in left] if together else [rest for _, rest in left]
    usual, drift = _rate(rests)
    now = remains(seen, seen.witness, least)
    risen = _risen(seen, now, usual)
    most = float(np.exp(_DRIFT * drift))
    moved = usual * max(min(max(now.rate / usual, 1.0), most), risen)
    spread = np.ones(len(seen.names))
    if seen.testimony is None:
        spread = clumps(usable, seen.names, together)
    with np.errstate(divide="ignore"):
        load = np.where(seen.carried > 0, np.log(seen.carried / seen.total), np.nan)
    known = learn(cells(left, seen.names), seen.names, spread, load)
    return Baseline(
        moved * _more([one for one, _ in left], rests),
        moved,
        known,
        len(left),
        tuple(sorted({one.names[j] for one, rest in left for j in rest.columns})),
        sum(bool(rest.columns) for _, rest in left),
        max(1.0, risen / most),
        tuple(
            {one.names[j]: share for j, share in zip(rest.columns, rest.shares, strict=True)}
            for one, rest in left
        ),
        _shares([one for one, _ in left], seen.names),
    )


def _shares(windows: list[Observed], names: tuple[str, ...]) -> Floats:
    """The share of its units that each component failed in each window, 0 where absent; shape (windows, components)."""
    number = {name: i for i, name in enumerate(names)}
    shares = np.zeros((len(windows), len(names)))
    for at, one in enumerate(windows):
        place = np.array([number.get(name, -1) for name in one.names])
        known = (place >= 0) & (one.carried > 0)
        shares[at, place[known]] = one.per_component(one.failures)[known] / one.carried[known]
    return shares


def _rate(windows: list[Remains]) -> tuple[float, float]:
    """The upper bound of the rate over windows, and the standard deviation of its logarithm from one to the next."""
    rates = np.array([one.rate for one in windows])
    totals = np.array([one.total for one in windows])
    counts = rates * totals
    middle = float(np.median(rates))
    normal = counts <= _ODD * middle * totals + 5.0
    if not normal.any():
        normal[:] = True
    rate = float(counts[normal].sum() / totals[normal].sum())
    if len(windows) < ENOUGH_HISTORY:
        return upper(rate, float(totals[normal].sum())), PRIOR
    log = np.log((counts + 0.5) / (rate * totals + 0.5))
    spread = 1.4826 * float(np.median(np.abs(log - np.median(log))))
    drift = float(np.sqrt(max(spread**2 - float(np.median(1 / (rate * totals + 0.5))), _STEADY**2)))
    return upper(rate, float(totals[normal].sum())), drift


def _risen(seen: Observed, now: Remains, usual: float) -> float:
    """Multiple of the usual rate that all but a quarter of the components fail at least, once what stands out is
    gone.

    A load peak raises all of them, a fault those on its paths. At least 1, at most what a fault of a component on
    every path may not exceed unseen.
    """
    expected = usual * now.carried
    counted = expected >= _COUNTED
    counted[now.columns] = False
    if counted.sum() < _EVERYWHERE:
        return 1.0
    ratio = seen.per_component(now.weight)[counted] / expected[counted]
    return min(max(1.0, float(np.quantile(ratio, 0.25))), _PEAK)


def _more(windows: list[Observed], left: list[Remains]) -> float:
    """Number of failed units for every witness, where nothing stands out."""
    witnesses = sum(float(one.weight.sum()) for one in left)
    units = sum(float(one.failures[rest.weight > 0].sum()) for one, rest in zip(windows, left, strict=True))
    return max(1.0, units / witnesses) if witnesses > 0 else 1.0


def upper(rate: float, exposure: float) -> float:
    """One-sided 95 % upper bound of a rate from rate * exposure failures."""
    count = rate * exposure
    return float((count + _Z * np.sqrt(count + 0.5) + 0.5) / max(exposure, 1.0))
