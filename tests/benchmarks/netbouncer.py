"""NetBouncer on simulated Clos networks: links missed and wrongly named, false alarms, time.

    python -m tests.benchmarks.netbouncer

The setting of Tan et al. (NSDI 2019): k = 8 (288 links, 512 paths, one prober a ToR), 100 probes a path, loss
U(0.02, 1); beside it the paper's single penalty and the Boolean methods on the same epochs. Seeds from 2,000,000 on.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from analyzers.builtin.incidence import Incidence, incidence
from analyzers.builtin.netbouncer import ANALYZER
from analyzers.builtin.netbouncer.stages import judge
from analyzers.builtin.tomography import METHODS, bad_paths, names_of, solve
from analyzers.contract import Paths
from analyzers.params import check_params
from analyzers.simulators.bounces import Bounced, bounce, sums_of
from tests.benchmarks.scoring import wilson

Row = dict[str, Any]
FIRST_SEED = 2_000_000
TRIALS = 200
DEFAULTS = check_params(ANALYZER, {})
Named = Callable[[Incidence], list[tuple[str, ...]]]


def ours(min_loss: float = 0.02, penalty: float = 0.0) -> Named:
    def name(seen: Incidence) -> list[tuple[str, ...]]:
        links = np.ones(seen.components, dtype=bool)
        found = judge(seen, links, min_loss, penalty, float(DEFAULTS["alpha"]))
        return [(seen.names[one.component], *seen.alike[one.component]) for one in found.blamed]

    return name


def boolean(method: str) -> Named:
    def name(seen: Incidence) -> list[tuple[str, ...]]:
        return [names_of(seen, found) for found in solve(method, bad_paths(seen, 0.005))]

    return name


def seen_of(one: Bounced) -> Incidence:
    sums = sums_of(one)
    hops = sums.keys["hops"]
    assert isinstance(hops, Paths)
    return incidence(hops, sums.values["sent"], sums.values["lost"])


def measured(label: str, name: Named, bad: int, bars: bool, **setting: Any) -> list[Row]:
    """Share of bad links missed and of named links that are good, over `TRIALS` epochs."""
    missed = truly = wrong = named = 0
    for trial in range(TRIALS):
        one = bounce(8, bad, np.random.default_rng(FIRST_SEED + trial), **setting)
        entries = name(seen_of(one))
        truth = set(one.bad)
        missed += sum(not any(link in entry for entry in entries) for link in truth)
        wrong += sum(not truth & set(entry) for entry in entries)
        truly, named = truly + len(truth), named + len(entries)
    bar = "<= 0.005" if bars else None
    return [_share(f"{label}: missed", missed, truly, bar), _share(f"{label}: wrong", wrong, named, bar)]


def _share(name: str, hits: int, trials: int, bar: str | None) -> Row:
    low, high = wilson(hits, trials)
    note = f"{hits} of {trials}, 95 % {low:.4f} to {high:.4f}"
    return {"name": name, "value": round(hits / max(1, trials), 4), "unit": "", "bar": bar, "note": note}


def healthy() -> list[Row]:
    plain = missing = 0
    for trial in range(TRIALS):
        rng = np.random.default_rng(FIRST_SEED + trial)
        one = bounce(8, 0, rng)
        plain += bool(ours()(seen_of(one)))
        missing += bool(ours()(seen_of(one.kept(0.05, rng))))
    return [
        _share("healthy epochs in which someone is blamed", plain, TRIALS, "<= 0.05"),
        _share("the same with 5 % of the rows missing", missing, TRIALS, "<= 0.05"),
    ]


def speed() -> list[Row]:
    rows: list[Row] = []
    taken: list[tuple[int, float]] = []
    for k in (16, 32, 48):
        links = k * k * k // 2 + k * k // 2  # of them k * k / 2 to the probers
        sums = sums_of(bounce(k, links // 100, np.random.default_rng(FIRST_SEED)))
        hops = sums.keys["hops"]
        assert isinstance(hops, Paths)
        began = time.process_time()
        ours()(incidence(hops, sums.values["sent"], sums.values["lost"]))
        seconds = time.process_time() - began
        taken.append((len(hops), seconds))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        rows.append(
            {
                "name": f"k = {k}: {len(hops.names):,} links, {len(hops):,} paths, 1 % bad",
                "value": round(seconds, 2),
                "unit": "s of CPU",
                "bar": "< 60" if k == 48 else None,
                "note": f"peak {memory} MB with the simulation; the paper's has 82,944 links, 27,648 to servers",
            }
        )
    (small, quick), (large, slow) = taken[0], taken[-1]
    growth = math.log(slow / quick) / math.log(large / small)
    rows.append({"name": "growth exponent in paths", "value": round(growth, 2), "unit": "", "bar": "<= 1.2"})
    return rows


def main() -> list[Row]:
    rows: list[Row] = []
    for share, bad, bars in ((1, 3, False), (5, 14, True), (10, 29, False)):
        rows += measured(f"{share} % bad", ours(), bad, bars)
    rows += measured(
        "5 % bad, loss U(.001, .02), 1,000 probes", ours(0.001), 14, False, low=0.001, high=0.02, probes=1000
    )
    rows += measured("5 % bad, the published penalty (lambda 1)", ours(penalty=1.0), 14, False)
    for method in METHODS:
        rows += measured(f"5 % bad, {method}", boolean(method), 14, False)
    return [*rows, *healthy(), *speed()]


if __name__ == "__main__":
    for row in main():
        print(row)
