"""`netbouncer` on worlds of its second generator, beside simpler methods on the same windows.

python -m tests.benchmarks.worlds_netbouncer [--trials N] [--first SEED]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.benchmarks.script import script
from tests.benchmarks.worlds import Job, figures, judge, reliability
from tests.worlds.netbouncer import CASES

FIRST_SEED, TRIALS = 5_000, 12
BARS: dict[str, str] = {}


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    """Rows of every case; `trials` worlds each."""
    return list(rows(trials, first))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    jobs = [
        Job(
            "netbouncer",
            case,
            first + n,
            "analyzers.builtin.netbouncer:ANALYZER",
            "tests.benchmarks.worlds_rivals:NETBOUNCER",
        )
        for case in CASES
        for n in range(trials)
    ]
    cases = judge(jobs)
    yield from figures("netbouncer", cases, BARS)
    stated = [pair for one in cases.values() for pair in one.stated]
    yield from reliability("netbouncer", stated)


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
