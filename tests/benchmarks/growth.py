"""Cost of an analyzer as its window grows: seconds of the processor, memory, and the exponent of growth."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec

from analyzers.contract import Analyzer, Window, check_params

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds and MB for the largest window, and the power of the size by which time grows from smallest to it."""

    seconds: float
    peak: float
    exponent: float


def measure_growth(
    analyzer: Analyzer, window_of_size: Callable[[int], Window], sizes: Sequence[int]
) -> Growth:
    """The cost of windows of these sizes, ascending. Memory is measured apart: its trace would slow the clock."""
    params, took = check_params(analyzer, {}), list[float]()
    for size in sizes:
        window = window_of_size(size)
        began = time.process_time()
        analyzer.analyze(window, params)
        took.append(time.process_time() - began)
    peak = peak_memory(analyzer.analyze, window, params)
    return Growth(took[-1], peak, math.log(took[-1] / took[0]) / math.log(sizes[-1] / sizes[0]))


def peak_memory(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> float:
    """Peak of the memory that `work` allocates, in MiB. It runs several times slower meanwhile."""
    tracemalloc.start()
    try:
        work(*args, **kwargs)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
