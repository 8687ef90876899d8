"""`availability` on half a year of up and down times that shares no code with its simulator, beside simple methods.

python -m tests.benchmarks.worlds_availability [--trials N] [--first SEED]

A trial is one world of each case, of six months of 30 days; nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.stats import poisson

from analyzers.builtin.paths import texts, whole
from analyzers.contract import Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import report

Row = dict[str, Any]
Lost = Mapping[str, tuple[float, int]]

FIRST, TRIALS = 1_000, 3
ALLOWED = 1e-3
"""Share that may be lost: the default target of three nines."""

BARS: Mapping[str, str] = MappingProxyType(
    {"all cases false blames a window": "<= 0.05", "all cases precision": ">= 0.9"}
)
"""Over all cases: 18 months of one, with one that accuses by chance, cannot tell .05 from .2."""
FEW = 10
"""Units below which a local outlier factor has no neighbours."""


def lost(window: Window) -> Lost:
    """Unplanned minutes down and outages of each unit that is known, clipped to the window."""
    low, high = window.start.timestamp() * 1e6, window.end.timestamp() * 1e6
    fleet = window.sums.get("fleet")
    found = {str(name): (0.0, 0) for name in (texts(fleet, "component") if fleet is not None else ())}
    for sums, name in ((window.sums.get("uptimes"), "unit"), (window.sums.get("outages"), "device")):
        if sums is None:
            continue
        down = (
            [one == "down" for one in texts(sums, "state")] if name == "unit" else whole(sums, "planned") == 0
        )
        columns = texts(sums, name), whole(sums, "start"), whole(sums, "end"), down
        for unit, start, end, counts in zip(*columns, strict=True):
            spent = (min(float(end), high) - max(float(start), low)) / 6e7
            minutes, times = found.get(str(unit), (0.0, 0))
            found[str(unit)] = (minutes + spent, times + 1) if counts and spent > 0 else (minutes, times)
    return found


def below_target(window: Window) -> Sequence[str]:
    """Whatever lost more than the target allows."""
    allowed = ALLOWED * window.length.total_seconds() / 60
    return sorted(unit for unit, (minutes, _) in lost(window).items() if minutes > allowed)


def three_sigma(window: Window) -> Sequence[str]:
    """Of these, what lost more than the mean and three standard deviations."""
    found = lost(window)
    minutes = np.array([one[0] for one in found.values()])
    limit = float(minutes.mean() + 3 * minutes.std()) if len(minutes) else 0.0
    return [unit for unit in below_target(window) if found[unit][0] > limit]


def poisson_ratio(window: Window) -> Sequence[str]:
    """Of these, what was down improbably more often than all together (Bonferroni)."""
    found = lost(window)
    usual = max(sum(times for _, times in found.values()) / max(len(found), 1), 1e-9)
    level = 0.05 / max(len(found), 1)
    return [unit for unit in below_target(window) if poisson.sf(found[unit][1] - 1, usual) < level]


def outlier_factor(window: Window) -> Sequence[str]:
    """Of these, a local outlier factor above 2 of minutes and outages (Breunig et al., 2000)."""
    from sklearn.neighbors import LocalOutlierFactor

    found = lost(window)
    if len(found) < FEW:
        return []
    table = np.log1p(np.array(list(found.values()), dtype=np.float64))
    table += np.random.default_rng(0).normal(0, 0.05, table.shape)  # most have no outage at all
    factor = LocalOutlierFactor(n_neighbors=min(20, len(found) - 1)).fit(table)
    apart = {unit for unit, far in zip(found, -factor.negative_outlier_factor_ > 2, strict=True) if far}
    return [unit for unit in below_target(window) if unit in apart]


BASELINES: Mapping[str, Callable[[Window], Sequence[str]]] = MappingProxyType(
    {
        "below target": below_target,
        "three sigma": three_sigma,
        "Poisson": poisson_ratio,
        "local outlier factor": outlier_factor,
    }
)


def rows(trials: int, first: int) -> Iterator[Row]:
    yield from report("availability", "tests.benchmarks.worlds_availability:BASELINES", BARS, trials, first)


def main(trials: int = TRIALS, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST)
