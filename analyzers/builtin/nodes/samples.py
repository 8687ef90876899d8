"""Samples of nodes, taken out of the sums of `benchmark` rows: by metric and kind of machine, then by node.

The direction in which a metric gets worse is read off the words of its name: `higher` (throughput, bandwidth) is
worse when it falls, `lower` (time, latency) when it rises, and `zero` (return codes, uncorrected errors) when it is
anything but 0. The words are those of SuperBench's metrics, old and new (https://microsoft.github.io/superbenchmark,
Micro-benchmarks and Model Benchmarks). The metric's words speak before the benchmark's, the last word first:
`nccl-bw/allreduce_8_time` is a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.similarity import quantiles_of
from analyzers.builtin.paths import numbered, texts
from analyzers.contract import Sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Stratum(NamedTuple):
    """Stratum whose values are compared with each other only: one metric on one kind of machine (`sku` may be
    empty)."""

    benchmark: str
    metric: str
    sku: str

    @property
    def shown(self) -> str:
        return f"{self.benchmark}/{self.metric}" + (f" on {self.sku}" if self.sku else "")


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The samples of one stratum: `nodes` by name, sorted; node i's `values` begin at `starts[i]` and ascend; each
    occurred `times` times.
    """

    nodes: tuple[str, ...]
    values: Floats
    times: Ints
    starts: Ints

    @property
    def runs(self) -> Ints:
        """Number of runs of each node; shape (nodes,)."""
        return np.add.reduceat(self.times, self.starts) if len(self.starts) else np.empty(0, dtype=np.int64)

    def quantiles(self, size: int) -> Floats:
        """Shape (nodes, size)."""
        return quantiles_of(self.values, self.times, self.starts, size)[0]


def without_zeros(sample: Sample, before: Sample | None) -> Sample:
    """The sample without runs whose result is 0, which are runs that failed; as it is where most nodes have nothing
    else. A node all of whose runs failed stays if that was so `before`, too, or if nothing is known of before.
    """
    positive = sample.values > 0
    if positive.all() or not sample.nodes:
        return sample
    owner = np.repeat(np.arange(len(sample.nodes)), np.diff(np.append(sample.starts, len(sample.values))))
    alive = np.zeros(len(sample.nodes), dtype=bool)
    alive[owner[positive]] = True
    if 2 * int(alive.sum()) <= len(alive):
        return sample
    dead = (
        {}
        if before is None
        else {name: not one for name, one in zip(before.nodes, _alive(before), strict=True)}
    )
    stays = np.array([before is None or dead.get(name, False) for name in sample.nodes])
    valid = positive | (~alive & stays)[owner]
    nodes, starts = np.unique(owner[valid], return_index=True)
    names = tuple(sample.nodes[at] for at in nodes.tolist())
    return Sample(names, sample.values[valid], sample.times[valid], starts)


def _alive(sample: Sample) -> list[bool]:
    """Whether each node has a result that is not 0."""
    found: list[bool] = (np.maximum.reduceat(sample.values, sample.starts) > 0).tolist()
    return found


def samples(sums: Sums) -> dict[Stratum, Sample]:
    """The samples of the reduction `SAMPLES`, by stratum in order of names."""
    if not sums.rows:
        return {}
    keys = [numbered(texts(sums, name)) for name in ("benchmark", "metric", "sku", "node")]
    values = np.asarray(sums.keys["value"], dtype=np.float64)
    times = np.asarray(sums.values["times"], dtype=np.int64)
    codes = [code for _, code in keys]
    order = np.lexsort((values, *reversed(codes)))
    ordered = [code[order] for code in codes]
    values, times = values[order], times[order]
    found = {}
    for start, end in _runs(ordered[:3]):
        nodes = ordered[3][start:end]
        starts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
        names = tuple(keys[3][0][code] for code in nodes[starts].tolist())
        stratum = Stratum(*(key[0][code[start]] for key, code in zip(keys[:3], ordered[:3], strict=True)))
        found[stratum] = Sample(names, values[start:end], times[start:end], starts)
    return found


def _runs(columns: Sequence[Ints]) -> Iterator[tuple[int, int]]:
    """Stretches in which all columns stay the same: (start, end) of each."""
    rows = len(columns[0])
    changes = np.zeros(rows, dtype=bool)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(changes).tolist()
    yield from zip(starts, [*starts[1:], rows], strict=True)


Direction = Literal["higher", "lower", "zero"]

_HIGHER = (
    "algbw avgbw bandwidth bw busbw flops fp16 fp32 fp64 fps gbps gflops goodput ib int4 int8 iops ops qps samples "
    "speed tf32 tflops throughput tokens"
)
_LOWER = "cost delay duration elapsed lat latency overhead rtt seconds step steptime time times us"
HIGHER = frozenset(_HIGHER.split())
LOWER = frozenset(_LOWER.split())
ZERO = ("return_code", "uncorrected_ecc", "uncorrectable_error", "remap_failure")


def direction_of(
    benchmark: str, metric: str, higher: frozenset[str] = frozenset(), lower: frozenset[str] = frozenset()
) -> Direction | None:
    """The direction of a metric, None where no word of its names tells; `higher` and `lower` are words of the
    caller's own, which go first.
    """
    if any(word in metric for word in ZERO):
        return "zero"
    for name in (metric, benchmark):
        for word in reversed(words_of(name)):
            if word in higher or word in lower:
                return "higher" if word in higher else "lower"
            if word in HIGHER or word in LOWER:
                return "higher" if word in HIGHER else "lower"
    return None


def words_of(name: str) -> list[str]:
    """The words of a name in lower case, without the rank: `IB_write_bw:0` is `ib`, `write`, `bw`."""
    return [word for word in re.split(r"[^a-z0-9]+", re.sub(r":\d+$", "", name).lower()) if word]


def words_given(text: str) -> frozenset[str]:
    """The words of a parameter: `qps, score` is `qps` and `score`."""
    return frozenset(words_of(text))
