"""`skeletonhunter` on jobs of its second generator, beside ratios of lost and of late probes by component.

python -m tests.benchmarks.worlds_skeletonhunter [--trials N] [--first SEED]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.builtin.paths import incidence, whole
from analyzers.builtin.skeletonhunter import ANALYZER
from analyzers.contract import Paths, Window
from analyzers.runner import judge
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Method, report, share_of
from tests.benchmarks.worlds_rivals import ratio_of
from tests.worlds.skeletonhunter import CASES, TYPES, make

FIRST_SEED, TRIALS = 7_000, 6
BARS: Mapping[str, str] = MappingProxyType({f"{case} false blames a window": "<= 0.05" for case in CASES})
LATER = 4
"""Bins above the median: an answer that takes about half as long again."""


def ratios(window: Window) -> list[str]:
    """Components whose probes are lost, else late, improbably more often than those of all."""
    lost, answers = window.sums["paths"], window.sums["path_answers"]
    ways, hops = lost.keys["hops"], answers.keys["hops"]
    assert isinstance(ways, Paths)
    assert isinstance(hops, Paths)
    named = ratio_of(incidence(ways, lost.values["sent"], lost.values["lost"]))
    bins, counts = whole(answers, "bin"), np.asarray(answers.values["answers"])
    if named or not len(bins):
        return named
    order = np.argsort(bins)
    middle = bins[order][np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)]
    return ratio_of(incidence(hops, counts, counts * (bins > middle + LATER)))


BASELINES: Mapping[str, Method] = MappingProxyType({"ratio": ratios})


def located(given: tuple[str, int]) -> tuple[bool, bool, int]:
    """Of a fault of a type: whether it leads a suspect, whether it stands in one, and how many others are named."""
    kind, seed = given
    world = make(seed, kind)
    window = next(world.windows(ANALYZER))
    (fault,) = world.faults_between(window.start, window.end)
    suspects = judge(ANALYZER, window, {})["suspects"]
    groups = [{one["component"], *one["ambiguous_with"]} for one in suspects]
    return (
        any(one["component"] == fault.component for one in suspects),
        any(fault.component in group for group in groups),
        sum(not group & {fault.component, *fault.acceptable} for group in groups),
    )


def types(trials: int, first: int) -> Iterator[dict[str, Any]]:
    """The 19 published types with both layers probed, as the ping list asks."""
    jobs = [(kind, first + n) for n in range(trials) for kind in TYPES]
    found = spread(located, jobs)
    label = "skeletonhunter, second generator, 19 types, both layers"
    yield share_of(f"{label}: located exactly", sum(one[0] for one in found), len(found), ">= 0.957")
    yield share_of(f"{label}: located within a suspect", sum(one[1] for one in found), len(found))
    yield share_of(f"{label}: somebody else named", sum(one[2] > 0 for one in found), len(found))
    for kind in TYPES:
        mine = [one[0] for job, one in zip(jobs, found, strict=True) if job[0] == kind]
        yield share_of(f"{label}: {kind} located exactly", sum(mine), len(mine))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    yield from report(
        "skeletonhunter", "tests.benchmarks.worlds_skeletonhunter:BASELINES", BARS, trials, first
    )
    yield from types(trials, first)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
