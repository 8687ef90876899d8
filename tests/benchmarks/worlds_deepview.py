"""Deepview on regions that share no code with its simulator (`tests.worlds.deepview`), beside two simple methods.

python -m tests.benchmarks.worlds_deepview [--trials N] [--first SEED] [--case NAME ...]

Half of the windows are faulty in the cases `half_*`, history included. Nothing was tuned on these worlds. Seeds from
`FIRST_REPORTING_SEED` on are for figures; below it anyone may look.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from tests.benchmarks.worlds import Job, Judged, figures, judge, reliability
from tests.worlds.deepview import CASES

Row = dict[str, Any]

FIRST_REPORTING_SEED = 2_000
BARS = {
    "half_stop F1": ">= .98",
    "half_gray F1": ">= .95",
    "half_several F1": ">= .93",
    "half_faint F1": ">= .75",
    "stop_day recall": ">= 1",
    "stop_day_10min recall": ">= 1",
    "stop_day_starved recall": ">= 1",
    "stop_from_start recall": ">= 1",
    "placed_stop recall": ">= 1",
}
STRESS = tuple(
    case for case in CASES if case.startswith(("wrong", "correlated", "heavy", "low", "missing", "unequal"))
)
FALSE_BLAMES = "<= .05"


def main(trials: int = 6, first: int = FIRST_REPORTING_SEED, cases: Sequence[str] = ()) -> list[Row]:
    """The rows of `trials` worlds a case; a world takes some seconds."""
    chosen = cases or tuple(CASES)
    jobs = [
        Job(
            "deepview",
            case,
            first + n,
            "analyzers.builtin.deepview:ANALYZER",
            baselines="tests.benchmarks.deepview_baselines:BASELINES",
        )
        for case in chosen
        for n in range(trials)
    ]
    return list(_rows(judge(jobs)))


def _rows(result: dict[str, Judged]) -> Iterator[Row]:
    bars = {f"{case} false blames a window": FALSE_BLAMES for case in result if case not in STRESS}
    yield from figures("deepview", result, {**bars, **BARS})
    usual = [one for case, judged in result.items() if case not in STRESS for one in judged.stated]
    stressed = [one for case, judged in result.items() if case in STRESS for one in judged.stated]
    yield from reliability("deepview, second generator", usual, of="deepview")
    yield from reliability(
        "deepview, second generator under stress", stressed, within=0.1, of="deepview", stress=True
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED)
    parser.add_argument("--case", nargs="*", default=())
    arguments = parser.parse_args()
    from tests.benchmarks.__main__ import line

    for row in main(arguments.trials, arguments.first, arguments.case):
        print(line(row), flush=True)
