"""What a healthy hour looks like here: how often units fail, how often witnesses speak, and how unevenly.

From the preceding windows, with components that were at fault in them taken out; without history from the
window itself. The rate is taken at its upper bound: half the true rate makes false blames, twice the rate
costs almost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview.observed import Observed, carried_clear_of, kinds_of, observe, pooled
from analyzers.builtin.deepview.selection import Judges, Rules, select
from analyzers.contract import Window

Floats = NDArray[np.float64]

ENOUGH_HISTORY = 3
"""Windows of history from which on the over-dispersion is worth estimating."""

_Z = 1.645  # one-sided 95 %
_STRICT = 5.0  # nats above the threshold for taking a component out of history


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Failures of units and of witnesses per unit and window, and the over-dispersion of witnesses by
    component.
    """

    units: float
    witnesses: float
    spread: Floats
    windows: int
    excluded: tuple[str, ...] = ()


def from_history(seen: Observed, window: Window, rules: Rules) -> Baseline | None:
    """The baseline that the preceding windows give, or None if they carry nothing."""
    usable = [(past, one) for past in window.history if (one := observe(past.sums)).total > 0]
    if not usable:
        return None
    together = pooled([one for _, one in usable], seen.names)
    if together.total <= 0:
        return None
    rough = np.ones_like(rules.spread)
    if together.testimony is None:  # clumps are no faults: taking them out would make history look tame
        rough = _rough_spread([one for _, one in usable], seen.names)
    strict = Rules(rules.threshold + _STRICT, rough, rules.smallest, rules.witnesses, rules.allowed)
    judges, faulty = _faulty(together, strict)
    excluded = tuple(seen.names[j] for j in faulty)
    windows = [_clean(past, one, excluded) for past, one in usable]
    exposure = sum(one.total for one in windows)
    if exposure < 0.2 * together.total:  # what was at fault lies on nearly every path: fit it away instead
        return Baseline(
            _upper(judges.units.fit_base(faulty)[0], together.total, 1.0),
            _upper(judges.witnesses.fit_base(faulty)[0], together.total, 1.0),
            np.ones(len(seen.names)),
            len(usable),
            excluded,
        )
    units = np.array([one.failures.sum() for one in windows])
    witnesses = np.array([one.witness.sum() for one in windows])
    share = np.array([one.total for one in windows]) / exposure
    spread = _spread(windows, seen.names, witnesses.sum() / exposure)
    return Baseline(
        _upper(units.sum() / exposure, exposure, _dispersion(units, share)),
        _upper(witnesses.sum() / exposure, exposure, _dispersion(witnesses, share)),
        spread,
        len(usable),
        excluded,
    )


def from_window(seen: Observed, rules: Rules) -> Baseline:
    """A cold start: what remains of this window once its own suspects are taken out."""
    judges, faulty = _faulty(seen, rules)
    return Baseline(
        _upper(judges.units.fit_base(faulty)[0], seen.total, 1.0),
        _upper(judges.witnesses.fit_base(faulty)[0], seen.total, 1.0),
        np.ones(len(seen.names)),
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


def _clean(past: Window, seen: Observed, excluded: tuple[str, ...]) -> Observed:
    """The window without the paths that hold an excluded component."""
    if not excluded:
        return seen
    columns = [i for i, name in enumerate(seen.names) if name in set(excluded)]
    clear = seen.clear_of(columns)
    carried, total = carried_clear_of(past.sums, excluded)
    told = seen.testimony
    heard = None if told is None else replace(told, failures=told.failures * clear[told.row])
    return replace(seen, carried=carried, total=total, failures=seen.failures * clear, testimony=heard)


def _upper(rate: float, exposure: float, dispersion: float) -> float:
    """One-sided 95 % upper bound of a rate from rate * exposure failures."""
    count = rate * exposure
    return float((count + _Z * np.sqrt(dispersion * (count + 0.5)) + 0.5) / max(exposure, 1.0))


def _dispersion(counts: Floats, share: Floats) -> float:
    """Variance over mean of counts per window, at least 1."""
    if len(counts) < ENOUGH_HISTORY:
        return 1.0
    expected = counts.sum() * share
    return float(
        max(
            1.0, ((counts - expected) ** 2).sum() / max(expected.sum(), 1.0) * len(counts) / (len(counts) - 1)
        )
    )


def _spread(windows: list[Observed], names: tuple[str, ...], rate: float) -> Floats:
    """Over-dispersion of witnesses per component, equal within a kind, at least 1; shape (components,).

    Pearson's statistic pooled over the components of a kind and the windows, drawn towards 1 as by 20
    expected witnesses that behaved.
    """
    if len(windows) < ENOUGH_HISTORY or rate <= 0:
        return np.ones(len(names))
    squares, expected = _deviations(windows, names, rate)
    by_kind = (squares.sum(axis=0) + 20.0) / (expected.sum(axis=0) + 20.0)
    return np.asarray(np.maximum(1.0, by_kind)[kinds_of(names)[1]])


def _rough_spread(windows: list[Observed], names: tuple[str, ...]) -> Floats:
    """The same from windows that may hold faults: the upper quartile over windows, so that few are none."""
    rate = float(np.median([one.witness.sum() / one.total for one in windows]))
    if len(windows) < ENOUGH_HISTORY or rate <= 0:
        return np.ones(len(names))
    squares, expected = _deviations(windows, names, rate)
    by_kind = np.quantile((squares + 1.0) / (expected + 1.0), 0.75, axis=0)
    return np.asarray(np.maximum(1.0, by_kind)[kinds_of(names)[1]])


def _deviations(windows: list[Observed], names: tuple[str, ...], rate: float) -> tuple[Floats, Floats]:
    """Squared deviations of witnesses from their mean, and the means, summed by window and kind."""
    kinds, kind_of = kinds_of(names)
    number = dict(zip(names, kind_of.tolist(), strict=True))
    squares, expected = np.zeros((len(windows), len(kinds))), np.zeros((len(windows), len(kinds)))
    for at, one in enumerate(windows):
        kind = np.array([number.get(name, -1) for name in one.names])
        mean = rate * one.carried
        off = (one.per_component(one.witness) - mean) ** 2
        known = kind >= 0
        squares[at] = np.bincount(kind[known], off[known], minlength=len(kinds))
        expected[at] = np.bincount(kind[known], mean[known], minlength=len(kinds))
    return squares, expected
