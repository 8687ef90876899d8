"""Coverage of the interval of `colocation` on its second generator, beside a bare ratio of rates.

python -m tests.benchmarks.worlds_colocation [--trials N] [--first SEED]

A trial is one world of each case, of three months. The bare ratio has the interval of independent failures (Katz et
al., Biometrics 1978). In `confounded` the rows hold no answer: far machines stand in worse clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.builtin.colocation import ANALYZER
from analyzers.builtin.stats.probability import wilson
from analyzers.runner import judge
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script
from tests.worlds.colocation import CASES, MONTH, MONTHS, START, make, ratio

Row = dict[str, Any]

FIRST, TRIALS = 3_000, 10
BAR = ">= 0.9"
UNANSWERABLE = frozenset({"confounded"})


@dataclass(frozen=True)
class Month:
    """Whether the interval holds the true ratio, and whether the bare one does; `width` of the first as a factor."""

    decided: bool
    held: bool
    held_bare: bool
    width: float


def holds_bare(measures: Mapping[str, Any], truth: float) -> bool:
    near, far = (measures[f"{side}_failures"] for side in ("near", "far"))
    if not (near and far):
        return True
    found = far / measures["far_unit_days"] / (near / measures["near_unit_days"])
    return abs(math.log(found / (1 + truth))) <= 1.96 * math.sqrt(1 / near + 1 / far)


def months(job: tuple[int, str]) -> list[Month]:
    seed, case = job
    found = []
    for window in make(seed, case).windows(ANALYZER):
        if window.start >= START + MONTHS * MONTH:  # rows that end with the last month touch one more
            continue
        verdict = judge(ANALYZER, window)
        measures, truth = verdict["measures"], ratio(case)
        plain = holds_bare(measures, truth)
        if verdict["status"] == "inconclusive":
            found.append(Month(False, False, plain, math.inf))
            continue
        low, high = measures["low"], measures["high"]
        found.append(Month(True, low <= truth <= high, plain, (1 + high) / (1 + low)))
    return found


def rows(trials: int, first: int) -> Iterator[Row]:
    for case in CASES:
        seen = [one for each in spread(months, [(first + n, case) for n in range(trials)]) for one in each]
        decided = [one for one in seen if one.decided]
        held, of = sum(one.held for one in decided), len(decided)
        widths = sorted(one.width for one in decided) or [math.inf]
        yield {
            "name": f"colocation: {case}, 95 % interval holds the true ratio",
            "value": round(held / max(1, of), 4),
            "bar": None if case in UNANSWERABLE or not of else BAR,
            "interval": list(wilson(held, of)) if of else [0.0, 1.0],
            "note": f"{held} of {of} months, inconclusive {len(seen) - of}; ends of the interval differ by a factor of "
            f"{widths[len(widths) // 2]:.2f} (median); beside it a bare ratio of rates "
            f"{sum(one.held_bare for one in seen)} of {len(seen)}",
        }


def main(trials: int = TRIALS, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST)
