"""Skeletons of `skeletonhunter` on the traffic of its second generator: right, none stated, or wrong.

python -m tests.benchmarks.worlds_nic_traffic [--trials N] [--first SEED]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzers.builtin.skeletonhunter import ANALYZER
from analyzers.builtin.stats.probability import wilson
from analyzers.runner import judge
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script
from tests.worlds.nic_traffic import CASES, degrees, make

FIRST_SEED, TRIALS = 8_000, 3
FINE = ("fine", "fine_data_parallel", "fine_zero", "fine_two_groups")
"""Dense cases whose counters are read often enough for stages of a quarter of a second."""
Row = dict[str, Any]


def run(job: tuple[int, str]) -> str:
    """`right`, `none` or `wrong`: degrees of a dense job as they are, no skeleton, or other degrees."""
    seed, case = job
    (window,) = make(seed, case).windows(ANALYZER)
    found = judge(ANALYZER, window, {})["measures"]
    if found.get("dp") is None:
        return "none"
    return "right" if (found["dp"], found["pp"], found["tp"]) == degrees(case) else "wrong"


def share(name: str, hits: int, tries: int, bar: str | None = None) -> Row:
    low, high = wilson(hits, tries)
    value = round(hits / max(1, tries), 4)
    return {
        "name": name,
        "value": value,
        "unit": "",
        "bar": bar,
        "note": f"[{low:.3f}, {high:.3f}], {hits} of {tries}",
    }


def rows(trials: int, first: int) -> Iterator[Row]:
    jobs = [(first + n, case) for case in CASES for n in range(trials)]
    made = list(zip(jobs, spread(run, jobs), strict=True))
    for case in CASES:
        mine = [outcome for (_, other), outcome in made if other == case]
        counts = {word: mine.count(word) for word in ("right", "none", "wrong")}
        yield share(f"{case}: wrong degrees", counts["wrong"], len(mine)) | {
            "note": ", ".join(f"{count} {word}" for word, count in counts.items())
        }
    dense = [outcome for (_, case), outcome in made if degrees(case) is not None]
    others = [outcome for (_, case), outcome in made if degrees(case) is None]
    fine = [outcome for (_, case), outcome in made if case in FINE]
    yield share(
        "dense jobs, counters read five times a second: right", fine.count("right"), len(fine), ">= 0.95"
    )
    yield share("dense jobs, all: wrong degrees", dense.count("wrong"), len(dense), "<= 0.05")
    yield share("dense jobs, all: right", dense.count("right"), len(dense))
    yield share("mixtures of experts, inference: no skeleton", others.count("none"), len(others), ">= 0.95")


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
