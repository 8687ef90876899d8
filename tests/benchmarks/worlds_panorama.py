"""`panorama` on systems that share no code with its simulator, beside a vote and two tests of shares.

python -m tests.benchmarks.worlds_panorama [--trials N] [--first SEED]

A trial is one world of each case; nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.stats import poisson

from analyzers.builtin.paths import texts
from analyzers.contract import Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Job, figures, judge, reliability
from tests.worlds.panorama import CASES

Row = dict[str, Any]
Counts = dict[str, tuple[float, float]]

FIRST = 1000
BARS = MappingProxyType(
    {
        **{
            f"{case} false blames a window": "<= 0.05"
            for case in ("healthy", "healthy_errors_2", "healthy_errors_5", "restart", "rolling_deploy")
        },
        "crash recall": ">= 0.95",
        "gray recall": ">= 0.95",
        "gray_lasting recall": ">= 0.95",
        "gray_errors_5 precision": ">= 0.9",
    }
)


def counts(window: Window, by: str = "subject") -> Counts:
    """Failed and all answers of each subject; what was asked and not answered failed."""
    sums, found = window.sums["seen"], dict[str, np.ndarray]()
    place = {"healthy": 0, "unhealthy": 1, "pending": 2}
    for name, status, times in zip(
        texts(sums, by), texts(sums, "status"), np.asarray(sums.values["times"]), strict=True
    ):
        found.setdefault(str(name), np.zeros(3))[place[str(status)]] += times
    waiting = {name: max(0.0, one[2] - one[0] - one[1]) for name, one in found.items()}
    return {name: (one[1] + waiting[name], one[0] + one[1] + waiting[name]) for name, one in found.items()}


def robust_z(window: Window) -> Sequence[str]:
    """Share of failed answers more than 3.5 robust deviations above the median of the windows before."""
    past = [counts(one) for one in window.history]
    out = []
    for name, (failed, total) in counts(window).items():
        before = [one[name][0] / one[name][1] for one in past if name in one and one[name][1]]
        middle = float(np.median(before)) if before else 0.0
        spread = max(0.01, 1.4826 * float(np.median(np.abs(np.asarray(before) - middle))) if before else 0.01)
        if total and failed / total > middle + 3.5 * spread:
            out.append(name)
    return out


def poisson_ratio(window: Window) -> Sequence[str]:
    """Three times as many failures as the windows before promise, and improbable so (1 in 1,000 windows)."""
    past = [counts(one) for one in window.history]
    now, out = counts(window), []
    for name, (failed, total) in now.items():
        before = [one[name] for one in past if name in one]
        share = (sum(one[0] for one in before) + 0.5) / (sum(one[1] for one in before) + 100)
        if failed > 3 * share * total and poisson.sf(failed - 1, share * total) < 0.001 / len(now):
            out.append(name)
    return out


def majority(window: Window) -> Sequence[str]:
    """Most observers of a subject see most of their calls to it fail."""
    sums, cells = window.sums["seen"], dict[tuple[str, str], np.ndarray]()
    columns = (texts(sums, name) for name in ("observer", "subject", "status"))
    for observer, subject, status, times in zip(*columns, np.asarray(sums.values["times"]), strict=True):
        one = cells.setdefault((str(observer), str(subject)), np.zeros(2))
        if status != "pending":
            one[int(status == "unhealthy")] += times
    votes: dict[str, list[bool]] = {}
    for (_, subject), one in cells.items():
        votes.setdefault(subject, []).append(bool(one[1] > one[0]))
    return [subject for subject, cast in votes.items() if 2 * sum(cast) > len(cast)]


BASELINES: Mapping[str, Callable[[Window], Sequence[str]]] = MappingProxyType(
    {"majority": majority, "robust z": robust_z, "poisson ratio": poisson_ratio}
)


def rows(trials: int, first: int) -> Iterator[Row]:
    jobs = [
        Job(
            "panorama",
            case,
            first + n,
            "analyzers.builtin.panorama:ANALYZER",
            "tests.benchmarks.worlds_panorama:BASELINES",
        )
        for case in CASES
        for n in range(trials)
    ]
    judged = judge(jobs)
    yield from figures("panorama", judged, BARS)
    stated = [pair for one in judged.values() for pair in one.stated]
    yield from reliability("panorama", stated, of="panorama")


def main(trials: int = 9, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, 9, FIRST)
