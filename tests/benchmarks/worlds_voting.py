"""`voting` on worlds of its second generator and on worlds of which nearly all is drawn, beside simpler methods.

python -m tests.benchmarks.worlds_voting [--trials N] [--first SEED]

Worlds of `tests.worlds.voting_drawn` come first: nothing was tuned on them. The table of what was stated and what was
true holds suspects of both generators: of these worlds, and of windows of the simulator at the usual bar, half of them
healthy. Cases that break an assumption of the method have a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from analyzers.builtin.voting.analyzer import USUAL_MARGIN
from analyzers.builtin.voting.charges import probability
from analyzers.simulators.deepview import FIRST_REPORTING_SEED
from tests.benchmarks.script import script
from tests.benchmarks.voting import doubtful
from tests.benchmarks.worlds import report
from tests.worlds.voting import CASES

FIRST_SEED, TRIALS = 5_000, 12
SIMULATED = 8
"""Windows of the simulator for each world of a case."""
SAMPLINGS = ("all", "failing", "untraced")
BARS = MappingProxyType(
    {
        **{
            f"{case}_{sampling} {what}": ">= 0.95"
            for case in ("bad1", "bad6", "bad14")
            for sampling in SAMPLINGS
            for what in ("recall", "precision")
        },
        **{f"healthy_{sampling} false blames a window": "<= 0.05" for sampling in SAMPLINGS},
    }
)
STRESS = tuple(
    case
    for case in CASES
    if case.partition("_")[0] in ("noisy", "congestion", "sink", "cut", "limited", "switches")
)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    """Rows of every case; `trials` worlds each."""
    return list(rows(trials, first))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    simulated = doubtful(SIMULATED * trials, FIRST_REPORTING_SEED + first, USUAL_MARGIN)
    beside = [(probability(surplus), right) for surplus, right in simulated]
    rivals, worlds = "tests.benchmarks.worlds_rivals:VOTING", ("voting_drawn", "voting")
    return report("voting", rivals, BARS, trials, first, worlds=worlds, stress=STRESS, beside=beside)


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
