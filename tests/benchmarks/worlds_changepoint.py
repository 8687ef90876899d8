"""`changepoint` on metrics of its second generator, beside a limit and a robust z, and whether intervals hold onsets.

python -m tests.benchmarks.worlds_changepoint [--trials N] [--first SEED]

A world has an hour before the fault begins and the hour in which it does. An interval of minutes holds an onset that
lies from the begin of its first minute to the end of its last; the first onset of a component is judged. Cases in which
the component also changed for another reason (a shift of all, a day before) are left out of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.changepoint import ANALYZER
from analyzers.builtin.changepoint.series import observe
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Window, check_params
from analyzers.runner import judge
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script
from tests.benchmarks.worlds import report
from tests.worlds import Fault
from tests.worlds.changepoint import CASES, PLANS, make

FIRST_SEED, TRIALS = 9_000, 8
BARS: Mapping[str, str] = MappingProxyType({f"{case} false blames a window": "<= 0.05" for case in CASES})
TIMED = tuple(case for case, plan in PLANS.items() if plan.metrics and plan.benign != "fleet")
MINUTE = timedelta(minutes=1)


def limit(window: Window) -> Sequence[str]:
    """A median of the hour half above or below that of the day before."""
    return _named(window, lambda usual, now: abs(np.median(now) - np.median(usual)) > 0.5 * np.median(usual))


def robust_z(window: Window) -> Sequence[str]:
    """Five minutes in a row that are each more than four robust deviations from the median of the day before."""

    def far(usual: NDArray[np.float64], now: NDArray[np.float64]) -> bool:
        width = max(1.4826 * float(np.median(abs(usual - np.median(usual)))), 1e-9)
        out = abs(now - np.median(usual)) > 4 * width
        return bool(np.convolve(out, np.ones(5), "valid").max(initial=0) >= 5)

    return _named(window, far)


def _named(
    window: Window, test: Callable[[NDArray[np.float64], NDArray[np.float64]], bool | np.bool_]
) -> Sequence[str]:
    seen = observe(window, check_params(ANALYZER, {}))
    named = set()
    for identity, values in zip(seen.series, seen.values, strict=True):
        usual, now = values[: seen.now], values[seen.now :]
        usual, now = usual[np.isfinite(usual)], now[np.isfinite(now)]
        if len(usual) >= 30 and len(now) and test(usual, now):
            named.add(identity.component)
    return sorted(named)


BASELINES: Mapping[str, Callable[[Window], Sequence[str]]] = MappingProxyType(
    {"half off the median of the day": limit, "robust z, five minutes": robust_z}
)


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    yield from report("changepoint", "tests.benchmarks.worlds_changepoint:BASELINES", BARS, trials, first)
    jobs = [(case, first + n) for case in TIMED for n in range(trials)]
    found = [(case, one) for (case, _), each in zip(jobs, spread(onsets, jobs), strict=True) for one in each]
    for kind in ("step", "ramp"):
        chosen = [one for case, one in found if bool(PLANS[case].ramp) == (kind == "ramp")]
        if chosen:
            yield _coverage(f"changepoint: {kind}, interval holds the onset", chosen)
    for case in TIMED:
        if of_case := [one for name, one in found if name == case]:
            yield _coverage(f"changepoint: {case}, interval holds the onset", of_case)


def _coverage(name: str, found: Sequence[tuple[bool, float, float]]) -> dict[str, Any]:
    hits = sum(held for held, _, _ in found)
    low, high = wilson(hits, len(found))
    off = np.array([distance for _, distance, _ in found])
    note = (
        f"{hits} of {len(found)} [{low:.3f}, {high:.3f}]; off by {np.median(off):.1f} min in the median, by more than "
        f"2 min in {int((abs(off) > 2).sum())}; intervals of {np.median([wide for _, _, wide in found]):.0f} min"
    )
    return {
        "name": name,
        "value": round(hits / len(found), 4),
        "bar": None,
        "interval": [low, high],
        "note": note,
    }


def onsets(job: tuple[str, int]) -> list[tuple[bool, float, float]]:
    """For each fault that was found in the window in which it began: whether the interval holds its onset, how many
    minutes the best guess is late, and how many minutes the interval is long."""
    world = make(job[1], job[0])
    found = []
    for window in world.windows(ANALYZER):
        faults = [one for one in world.faults if window.start <= one.start < window.end]
        verdict = judge(ANALYZER, window, {})
        tables = [one for one in verdict["evidence"] if one["title"] == "Onsets"]
        changes = [row for table in tables for row in table["rows"]]
        found += [one for fault in faults if (one := _timed(fault, changes)) is not None]
    return found


def _timed(fault: Fault, changes: Sequence[Sequence[Any]]) -> tuple[bool, float, float] | None:
    mine = [[datetime.fromisoformat(at) for at in row[2:5]] for row in changes if row[0] == fault.component]
    if not mine:
        return None
    begin, best, end = min(mine, key=lambda each: each[1])
    late = (best + MINUTE / 2 - fault.start) / MINUTE
    return begin <= fault.start < end + MINUTE, late, (end - begin) / MINUTE + 1


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
