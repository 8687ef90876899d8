"""What a healthy window looks like here: how often units fail, how often witnesses speak, and how unevenly.

From the preceding windows, each without the components that stand out in it; without history from the window itself.
The rate is taken at its upper bound: half the true rate makes false blames, twice the rate costs almost nothing. It
follows the window as far as rates have moved from window to window before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview import noise
from analyzers.builtin.deepview.noise import ENOUGH_HISTORY, TOTAL, Noise, Remains, remains
from analyzers.builtin.deepview.observed import Observed, observe
from analyzers.builtin.deepview.selection import Judges, Rules, select
from analyzers.contract import Window

Floats = NDArray[np.float64]

_Z = 1.645  # one-sided 95 %
_ODD = 3.0  # a window whose rate is so many times the median of all is left out
_DRIFT = 2.0  # standard deviations that the rate may have moved since
_COUNTED = 2.0  # failures expected of a component from which on its rate can be compared
_EVERYWHERE = 8  # such components that show whether failures rose everywhere
_PEAK = 5.0  # times the usual rate that a peak may raise it
_STEADY = 0.05  # the least of them


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Failures of units and of witnesses per unit and window, and how unevenly components fail.

    `excluded` are the components taken out of one of the `windows`, and `faulty` is how many of these held any.
    `risen` is how many times the usual rate nearly all components fail in the window itself.
    """

    units: float
    witnesses: float
    noise: Noise
    windows: int
    excluded: tuple[str, ...] = ()
    faulty: int = 0
    risen: float = 1.0


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
        spread = noise.clumps(usable, seen.names, together)
    known = noise.learn(noise.cells(left, seen.names), seen.names, spread)
    return Baseline(
        moved * _more([one for one, _ in left], rests),
        moved,
        known,
        len(left),
        tuple(sorted({one.names[j] for one, rest in left for j in rest.columns})),
        sum(bool(rest.columns) for _, rest in left),
        max(1.0, risen / most),
    )


def from_window(seen: Observed, rules: Rules) -> Baseline:
    """A cold start: what remains of this window once its own suspects are taken out."""
    judges, faulty = _faulty(seen, rules)
    left = remains(seen, seen.witness)
    known = noise.learn(noise.cells([(seen, left)], seen.names), seen.names, np.ones(len(seen.names)))
    known = Noise(known.spread, known.noise, np.ones(len(seen.names)))
    return Baseline(
        _upper(judges.units.fit_base(faulty)[0], seen.total),
        _upper(judges.witnesses.fit_base(faulty)[0], seen.total),
        known,
        0,
    )


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
        return _upper(rate, float(totals[normal].sum())), noise.PRIOR
    log = np.log((counts + 0.5) / (rate * totals + 0.5))
    spread = 1.4826 * float(np.median(np.abs(log - np.median(log))))
    drift = float(np.sqrt(max(spread**2 - float(np.median(1 / (rate * totals + 0.5))), _STEADY**2)))
    return _upper(rate, float(totals[normal].sum())), drift


def _risen(seen: Observed, now: Remains, usual: float) -> float:
    """How many times the usual rate all but a quarter of the components fail at least, once what stands out is gone.

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
    """How many units fail for every witness, where nothing stands out."""
    witnesses = sum(float(one.weight.sum()) for one in left)
    units = sum(float(one.failures[rest.weight > 0].sum()) for one, rest in zip(windows, left, strict=True))
    return max(1.0, units / witnesses) if witnesses > 0 else 1.0


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


def _upper(rate: float, exposure: float) -> float:
    """One-sided 95 % upper bound of a rate from rate * exposure failures."""
    count = rate * exposure
    return float((count + _Z * np.sqrt(count + 0.5) + 0.5) / max(exposure, 1.0))
