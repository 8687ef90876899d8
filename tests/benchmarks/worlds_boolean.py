"""`boolean` on worlds of its second generator, beside simpler methods on the same windows.

python -m tests.benchmarks.worlds_boolean [--trials N] [--first SEED]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tests.benchmarks.script import script
from tests.benchmarks.worlds import report
from tests.worlds.boolean import CASES

FIRST_SEED, TRIALS = 5_000, 12
BARS: Mapping[str, str] = MappingProxyType(
    {
        **{f"{case} {what}": ">= 0.95" for case in CASES for what in ("recall", "precision")},
        **{f"{case} false blames a window": "<= 0.05" for case in CASES},
    }
)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    """Rows of every case; `trials` worlds each."""
    return list(rows(trials, first))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    return report("boolean", "tests.benchmarks.worlds_rivals:BOOLEAN", BARS, trials, first)


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
