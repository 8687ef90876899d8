"""`validator` on fleets that share no code with its simulator, beside three rules of a few lines.

python -m tests.benchmarks.worlds_validator [--trials N] [--first SEED]

A trial is one world of each case, of two judged days; nothing was tuned on them. Cases whose bar is .97 have four times
as many, so that the interval of a method without an error lies above it. Small fleets are judged a second time with the
usual values as SuperBench's baseline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.samples import Sample, direction_of, samples
from analyzers.contract import Window
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Job, figures, judge, reliability
from tests.worlds.validator import CASES, SUITE

Row = dict[str, Any]
Floats = NDArray[np.float64]

FIRST = 1000
_TENTHS = (
    "gray_10",
    "gray_20",
    "gray_10_of_256",
    "better_ten_gray_10",
    "one_value_gray_10",
    "latency_gray_10",
)
_MORE = 4
_SMALL = ("healthy_3", "healthy_8", "healthy_16", "gray_10_of_3", "gray_10_of_8", "gray_10_of_16")
BARS = MappingProxyType(
    {
        **{f"{case} {what}": ">= 0.97" for case in _TENTHS for what in ("precision", "recall")},
        **{f"{case} F1": ">= 0.85" for case in ("gray_6", "better_one_gray_6", "better_ten_gray_6")},
        **{f"{case} false blames a window": "<= 0.05" for case in CASES if "healthy" in case},
        **{
            f"{case} false blames a window": "<= 0.05" for case in ("better_one", "better_ten", "mislabelled")
        },
    }
)
_WITH_BASELINE = MappingProxyType(
    {
        **{
            f"{case} {what}": ">= 0.97"
            for case in _SMALL
            if "gray" in case
            for what in ("precision", "recall")
        },
        **{f"{case} false blames a window": "<= 0.05" for case in _SMALL if "healthy" in case},
    }
)


def worse(window: Window) -> Iterator[tuple[Sample, Floats]]:
    """For each metric of each kind of machine how much worse the mean of each node is than the median, as a share."""
    for stratum, sample in samples(window.sums["samples"]).items():
        direction = direction_of(stratum.benchmark, stratum.metric)
        if direction in ("higher", "lower"):
            means = sample.quantiles(64).mean(axis=1)
            share = means / np.median(means) - 1 if np.median(means) > 0 else np.zeros(len(means))
            yield sample, -share if direction == "higher" else share


def five_percent(window: Window) -> Sequence[str]:
    """5 % worse than the median, as rules of SuperBench have it."""
    return sorted({sample.nodes[at] for sample, off in worse(window) for at in np.flatnonzero(off > 0.05)})


def robust_z(window: Window) -> Sequence[str]:
    """More than 5 robust deviations (of the median of distances) worse than the median, and 3 %."""
    named = set()
    for sample, off in worse(window):
        width = 1.4826 * float(np.median(np.abs(off)))
        named |= {sample.nodes[at] for at in np.flatnonzero(off > max(0.03, 5 * width))}
    return sorted(named)


def outlier_factor(window: Window) -> Sequence[str]:
    """A local outlier factor above 1.5 in a metric (Breunig et al., 2000), 3 % or more worse than the median."""
    from sklearn.neighbors import LocalOutlierFactor

    named = set()
    for sample, off in worse(window):
        if len(off) > 3:
            found = LocalOutlierFactor(n_neighbors=min(20, len(off) - 1)).fit(off[:, None])
            odd = (-found.negative_outlier_factor_ > 1.5) & (off > 0.03)
            named |= {sample.nodes[at] for at in np.flatnonzero(odd)}
    return sorted(named)


BASELINES: Mapping[str, Callable[[Window], Sequence[str]]] = MappingProxyType(
    {"5 % below the median": five_percent, "robust z": robust_z, "local outlier factor": outlier_factor}
)


def rows(trials: int, first: int) -> Iterator[Row]:
    analyzer, baselines = (
        "analyzers.builtin.validator:ANALYZER",
        "tests.benchmarks.worlds_validator:BASELINES",
    )
    judged = judge(
        [
            Job("validator", case, first + n, analyzer, baselines)
            for case in CASES
            for n in range(trials * (_MORE if case in _TENTHS else 1))
        ]
    )
    yield from figures("validator", judged, BARS)
    given = (("baseline", json.dumps({f"{one.benchmark}/{one.name}": one.base for one in SUITE})),)
    small = [Job("validator", case, first + n, analyzer, "", given) for case in _SMALL for n in range(trials)]
    for row in figures("validator", judge(small), _WITH_BASELINE, "baseline"):
        yield {name: row[name] for name in ("name", "value", "bar", "interval", "note") if name in row}
    stated = [pair for one in judged.values() for pair in one.stated]
    yield from reliability("validator", stated, of="validator")


def main(trials: int = 8, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, 8, FIRST)
