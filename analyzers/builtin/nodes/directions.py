"""Which way a benchmark's metric gets worse, known by the words of its name.

`higher` (throughput, bandwidth) is worse when it falls, `lower` (time, latency) when it rises, and `zero` (return
codes, uncorrected errors) when it is anything but 0. The words are those of SuperBench's metrics, old and new
(https://microsoft.github.io/superbenchmark, Micro-benchmarks and Model Benchmarks). The metric's words speak before
the benchmark's, the last word first: `nccl-bw/allreduce_8_time` is a time.
"""

from __future__ import annotations

import re
from typing import Literal

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
