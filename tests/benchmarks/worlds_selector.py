"""`selector` on incidents that share no code with its simulator, beside a logistic regression on two columns.

python -m tests.benchmarks.worlds_selector [--trials N] [--first SEED]

A trial is one world of each case. After each of its judged weeks the probability of an incident within a day is taken
of every node at risk; nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import texts, whole
from analyzers.builtin.selector import ANALYZER
from analyzers.builtin.selector.trial import scored
from analyzers.contract import Window
from analyzers.runner import judge as run_analyzer
from tests.benchmarks.glance import told
from tests.benchmarks.scoring import RARE, spread
from tests.benchmarks.script import script
from tests.benchmarks.worlds import reliability
from tests.worlds import World
from tests.worlds.selector import CASES, make

Row = dict[str, Any]
Floats = NDArray[np.float64]

FIRST = 1000
HORIZON = 24.0
DAY = timedelta(hours=HORIZON)
EVERYBODY = {"most_nodes": 100_000, "target_probability": 1e-6, "horizon_hours": HORIZON}
SIGHTINGS = frozenset({"observed", "validated", "repaired", "retired", "drained"})
METHODS = ("selector", "two columns")
TARGET = next(float(one.default) for one in ANALYZER.params if one.name == "target_probability")


@dataclass(frozen=True)
class Stated:
    """Probability of each node by each method, and whether it had an incident; windows without an answer."""

    stated: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in METHODS})
    happened: list[bool] = field(default_factory=list)
    undecided: int = 0
    unmet: int = 0
    windows: int = 0


def run_world(job: tuple[str, int]) -> Stated:
    case, seed = job
    world = make(seed, case)
    found, undecided, unmet, windows = Stated(), 0, 0, 0
    for window in world.windows(ANALYZER):
        windows += 1
        verdict = run_analyzer(ANALYZER, window, EVERYBODY)
        unmet += any(not one["holds"] for one in verdict["assumptions"])
        nodes = [one for one in verdict["evidence"] if one["title"] == "Nodes to validate"]
        if not nodes:
            undecided += 1
            continue
        said = {row[0]: float(row[1]) for row in nodes[0]["rows"]}
        plain = two_columns(window, sorted(said))
        struck = struck_after(world, window)
        for node in sorted(said):
            found.stated["selector"].append(said[node])
            found.stated["two columns"].append(plain[node])
            found.happened.append(node in struck)
    return Stated(found.stated, found.happened, undecided, unmet, windows)


def struck_after(world: World, window: Window) -> set[str]:
    """The nodes that have an incident within the horizon after the window."""
    soon = world.faults_between(window.end, window.end + DAY)
    return {one.component for one in soon if one.start >= window.end}


def two_columns(window: Window, nodes: list[str]) -> dict[str, float]:
    """Logistic regression (scikit-learn) on incidents so far and days since the last, over the days of the past."""
    from sklearn.linear_model import LogisticRegression

    times: dict[str, list[float]] = {node: [] for node in nodes}
    for one in (*window.history, window):
        sums = one.sums["incidents"]
        for node, at, kind in zip(texts(sums, "node"), whole(sums, "time"), texts(sums, "kind"), strict=True):
            if kind not in SIGHTINGS and node in times:
                times[node].append(float(at) / 3.6e9)
    end = window.end.timestamp() / 3600
    begin = min(one.start for one in (*window.history, window)).timestamp() / 3600
    days = np.arange(begin + HORIZON, end - HORIZON + 1, HORIZON)
    columns: list[Floats] = []
    now: list[Floats] = []
    struck: list[NDArray[np.bool_]] = []
    for node in nodes:
        own = np.sort(times[node])
        for at, into in ((days, columns), (np.array([end]), now)):
            so_far = np.searchsorted(own, at, side="right")
            last = np.where(so_far > 0, own[np.maximum(so_far - 1, 0)] if len(own) else begin, begin)
            into.append(np.column_stack([np.log1p(so_far), np.log1p((at - last) / 24)]))
        struck.append(np.searchsorted(own, days + HORIZON) > np.searchsorted(own, days, side="right"))
    hits = np.concatenate(struck)
    if not hits.any():
        return dict.fromkeys(nodes, 0.0)
    model = LogisticRegression().fit(np.concatenate(columns), hits)
    said = model.predict_proba(np.concatenate(now))[:, 1]
    return dict(zip(nodes, said.tolist(), strict=True))


def rows(trials: int, first: int) -> Iterator[Row]:
    jobs = [(case, first + n) for case in CASES for n in range(trials)]
    by_case: dict[str, list[Stated]] = {case: [] for case in CASES}
    for (case, _), one in zip(jobs, spread(run_world, jobs), strict=True):
        by_case[case].append(one)
    every: list[tuple[float, bool]] = []
    for case, found in by_case.items():
        happened = np.array([hit for one in found for hit in one.happened], dtype=bool)
        undecided, windows = sum(one.undecided for one in found), sum(one.windows for one in found)
        if not len(happened) or not happened.any():
            note = f"inconclusive in {undecided} of {windows} windows"
            yield {
                "name": f"selector: {case} concordance",
                "value": "no incident was predicted",
                "note": note,
            }
            continue
        tried = {
            name: scored(np.array([p for one in found for p in one.stated[name]]), happened)
            for name in METHODS
        }
        mine, plain = (tried[name] for name in METHODS)
        every += [
            (p, hit) for one in found for p, hit in zip(one.stated["selector"], one.happened, strict=True)
        ]
        unmet = sum(one.unmet for one in found)
        yield {
            "name": f"selector: {case} concordance",
            "value": round(mine.concordance or 0.0, 3),
            "note": f"two columns {plain.concordance or 0.0:.3f}; {mine.incidents} incidents of "
            f"{mine.predictions:,} node days; inconclusive in {undecided}, an assumption unmet in {unmet} of {windows} "
            "windows",
            **_cells(case, found, happened, [undecided, windows]),
        }
        yield {
            "name": f"selector: {case} incidents per predicted",
            "value": round(mine.incidents / max(mine.expected, 1e-9), 2),
            "note": f"two columns {plain.incidents / max(plain.expected, 1e-9):.2f}; Brier skill {mine.skill:.4f}, "
            f"two columns {plain.skill:.4f}",
        }
    yield from reliability("selector", every, edges=RARE)
    yield from reliability("selector, second generator", every, of="selector")


def _cells(case: str, found: list[Stated], happened: NDArray[np.bool_], undecided: list[int]) -> Row:
    """Row of the analyzers at a glance: who is above the default target, and whether an incident followed."""
    pairs = {}
    for name in METHODS:
        above = np.array([p for one in found for p in one.stated[name]]) >= TARGET
        hits = int((above & happened).sum())
        pairs[name] = [hits, int(above.sum()), hits, int(happened.sum())]
    mine, plain = (pairs[name] for name in METHODS)
    return told(
        "selector",
        f"second generator: {case}",
        precision=mine[:2],
        recall=mine[2:],
        undecided=undecided,
        beside={"two columns": plain},
    )


def main(trials: int = 6, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, 6, FIRST)
