"""`skeletonhunter` on jobs of its second generator, beside ratios of lost and of late probes by component.

python -m tests.benchmarks.worlds_skeletonhunter [--trials N] [--first SEED]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from analyzers.builtin.paths import incidence, whole
from analyzers.contract import Paths, Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Method, report
from tests.benchmarks.worlds_rivals import ratio_of
from tests.worlds.skeletonhunter import CASES

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


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    yield from report(
        "skeletonhunter", "tests.benchmarks.worlds_skeletonhunter:BASELINES", BARS, trials, first
    )


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
