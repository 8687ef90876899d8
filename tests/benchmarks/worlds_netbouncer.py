"""`netbouncer` on worlds of its second generator, beside simpler methods on the same windows.

python -m tests.benchmarks.worlds_netbouncer [--trials N] [--first SEED]

The table of what was stated and what was true holds suspects of both generators: of these worlds, and of epochs of the
simulator with 1 to 10 % bad links, noise and bursts. Cases that break an assumption of the method have a table of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from analyzers.builtin.netbouncer.analysis import probability
from tests.benchmarks.netbouncer import Job, run_trial
from tests.benchmarks.scoring import spread
from tests.benchmarks.script import script
from tests.benchmarks.worlds import report
from tests.worlds.netbouncer import CASES

FIRST_SEED, TRIALS = 5_000, 12
SIMULATED, FIRST_SIMULATED = 10, 7_000_000
"""Epochs of the simulator for each world of a case, and their first seed."""
HARD = ("bursts", "leafspine_bursts", "missing", "pairs_missing", "noisy", "unequal", "faint")
HEALTHY = tuple(case for case in CASES if case.endswith("healthy"))
BARS = MappingProxyType(
    {
        **{
            f"{case} {what}": f">= {bar}"
            for case in ("link", "links", "links_5pct", "stopped_link", "prober", "device", "always", "half")
            for what, bar in (("precision", 0.99), ("recall", 0.995))
        },
        **{f"{case} false blames a window": "<= 0.05" for case in HEALTHY},
    }
)


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    """Rows of every case; `trials` worlds each."""
    return list(rows(trials, first))


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    bad = (0, 3, 14, 28, 0)
    jobs = [
        Job(FIRST_SIMULATED + first + n, bad[n % 5], setting=(("noise", (1e-5, 1e-4)[n % 2]),))
        for n in range(SIMULATED * trials)
    ]
    beside = [(probability(nats), right) for one in spread(run_trial, jobs) for nats, right in one.surplus]
    return report(
        "netbouncer",
        "tests.benchmarks.worlds_rivals:NETBOUNCER",
        BARS,
        trials,
        first,
        stress=HARD,
        beside=beside,
    )


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
