"""`metric_blame` on the shop of its second generator, beside BARO.

python -m tests.benchmarks.worlds_metric_blame [--trials N] [--first SEED]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tests.benchmarks.script import script
from tests.benchmarks.worlds import report
from tests.worlds.metric_blame import CASES

FIRST_SEED, TRIALS = 7_000, 8
BARS: Mapping[str, str] = MappingProxyType({f"{case} false blames a window": "<= 0.05" for case in CASES})


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    yield from report("metric_blame", "tests.benchmarks.metric_blame_rivals:BASELINES", BARS, trials, first)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
