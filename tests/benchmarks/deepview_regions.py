"""Regions of attempts over paths without hosts, for tuning Deepview: uneven rates, faulty history, wrong records.

python -m tests.benchmarks.deepview_regions [--trials N] [--calibrate]

What `analyzers.simulators.deepview` lacks: rates that differ between components and move from window to window (a
log-normal level of each component times an AR(1) course, gamma-mixed paths, a daily swing), histories of which any
window may hold faults, and components of paths recorded wrongly. `calibration.ATTEMPTS` was made here; figures are
reported on `tests.worlds.deepview`, which shares nothing with this.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import Verdict, Window, check_params
from analyzers.simulators.tables import sums_of
from tests.benchmarks.scoring import Tally, monotone, note_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Faults = dict[int, float]

START = datetime(2026, 3, 2, tzinfo=UTC)
PAST = 12
NOISES = ("even", "uneven", "heavy")
HISTORIES = ("calm", "half", "lasting", "six")
KINDS = ("healthy", "stop", "gray", "faint", "several")


@dataclass(frozen=True)
class Case:
    """`kind` of fault in the judged window, the `history` before it, the `noise`, and the share of wrong records."""

    kind: str
    history: str = "calm"
    noise: str = "uneven"
    wrong: float = 0.0


class Region:
    """A region and its course; `passes` and `recorded` have shape (paths, components)."""

    def __init__(self, seed: int, case: Case) -> None:
        rng = self.rng = np.random.default_rng([seed, 77, len(case.kind)])
        sets = _sets(rng)
        self.names = sorted({name for one in sets for name in one})
        self.kinds = [name.partition("/")[0] for name in self.names]
        self.passes = np.array([[name in one for name in self.names] for one in sets])
        self.tried = np.maximum(1, rng.lognormal(np.log(10 ** rng.uniform(1.3, 3.6)), 0.8, len(sets)))
        self.base = 10 ** rng.uniform(-4, -2.3)
        low, high = {"even": (0.0, 0.0), "uneven": (0.0, 0.3), "heavy": (0.2, 0.6)}[case.noise]
        self.between, self.within = rng.uniform(low, high), rng.uniform(low, high)
        self.shape = {"even": 1e9, "uneven": rng.uniform(1, 5), "heavy": rng.uniform(0.4, 2)}[case.noise]
        self.bursts = int(rng.integers(0, 3)) if case.noise == "heavy" else 0
        self.level = self.between * rng.standard_normal(len(self.names))
        self.course, self.memory = self.within * rng.standard_normal(len(self.names)), rng.uniform(0, 0.9)
        self.phase, self.swing = (
            rng.uniform(0, 2 * np.pi),
            0.0 if case.noise == "even" else rng.uniform(0, 0.5),
        )
        self.recorded = self._recorded(case.wrong)

    def _recorded(self, share: float) -> Flags:
        said = self.passes.copy()
        for row, column in np.argwhere(self.passes & (self.rng.random(self.passes.shape) < share)).tolist():
            same = [j for j, kind in enumerate(self.kinds) if kind == self.kinds[column] and j != column]
            if same:
                said[row, column] = False
                said[row, self.rng.choice(same)] = True
        return said

    def faults(self, kind: str) -> Faults:
        """Components with the share of attempts that they fail: 15 failures at least, and beyond what noise does."""
        rng, found = self.rng, Faults()
        spread = float(np.hypot(self.between, self.within))
        usual = self.base * np.exp(1.5 * spread**2) * 2.5 * np.exp(3.25 * spread)
        wanted = int(rng.integers(2, 5)) if kind == "several" else int(kind != "healthy")
        for _ in range(2000):
            if len(found) == wanted:
                break
            tier = str(rng.choice(sorted(set(self.kinds))))
            column = int(rng.choice([j for j, one in enumerate(self.kinds) if one == tier]))
            low, high = {"stop": (-0.3, 0), "gray": (-2, -1), "faint": (-2.7, -2), "several": (-2, 0)}[kind]
            share = float(10 ** rng.uniform(low, high))
            if share * self.tried[self.passes[:, column]].sum() >= 15 and share >= usual:
                found[column] = share
        return found

    def window(self, at: int, faults: Faults, history: tuple[Window, ...] = ()) -> Window:
        rng, paths = self.rng, len(self.tried)
        self.course = self.memory * self.course
        self.course += np.sqrt(1 - self.memory**2) * self.within * rng.standard_normal(len(self.names))
        day = np.sin(self.phase + at / 24 * 2 * np.pi)
        rate = self.base * (1 + self.swing * day) * np.exp(self.passes @ (self.level + self.course))
        rate *= rng.gamma(self.shape, 1 / self.shape, paths) if self.shape < 1e6 else 1.0
        alive = 1 - np.minimum(rate, 0.5)
        for column, share in faults.items():
            alive = alive * np.where(self.passes[:, column], 1 - share, 1.0)
        tried = rng.poisson(self.tried * (1 + 0.3 * day))
        failed = rng.binomial(tried, 1 - alive)
        for _ in range(int(rng.poisson(self.bursts))):
            rows = np.flatnonzero(self.passes[:, rng.integers(len(self.names))])
            np.add.at(failed, rng.choice(rows, int(rng.integers(1, 21))), 1)
        return self._told(at, tried, np.minimum(failed, tried), history)

    def _told(
        self, at: int, tried: NDArray[np.int64], failed: NDArray[np.int64], history: tuple[Window, ...]
    ) -> Window:
        told: dict[tuple[str, ...], list[int]] = {}
        for row in np.flatnonzero(tried).tolist():
            one = told.setdefault(tuple(np.array(self.names)[self.recorded[row]].tolist()), [0, 0])
            one[0] += int(tried[row])
            one[1] += int(failed[row])
        bad = {path: lost for path, (_, lost) in told.items() if lost}
        sums = {
            "paths": sums_of(list(told), {"attempts": [one for one, _ in told.values()]}),
            "failing": sums_of(list(bad), {"failures": list(bad.values())}),
            "over_time": sums_of(list(bad), {"failures": list(bad.values())}, slices=[3] * len(bad)),
        }
        start = START + timedelta(hours=at)
        return Window(start, start + timedelta(hours=1), "tuning", "path_outcome", sums, history)


def _sets(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """The paths of a region of a shape of its own: clusters, perhaps racks, perhaps two spines, storage."""
    clusters, storage = int(rng.integers(6, 17)), int(rng.integers(5, 15))
    racks = rng.integers(1, 6, clusters) if rng.random() < 0.6 else np.zeros(clusters, dtype=np.int64)
    spines = rng.random() < 0.5
    sets = []
    for c, s in product(range(clusters), range(storage)):
        for t in range(max(1, int(racks[c]))):
            if rng.random() < 0.12:
                continue
            one = {f"compute_cluster/c{c:02}", f"storage_cluster/s{s:02}"}
            one |= {f"tor/c{c:02}-t{t}"} if racks[c] else set()
            one |= {f"t2/d{c % 2}", f"t2/d{s % 2}"} if spines else set()
            sets.append(tuple(sorted(one)))
    return sorted(sets)


def trial(seed: int, case: Case) -> tuple[set[str], Window] | None:
    """The components at fault and the window with its history; None where no fault would be visible."""
    region = Region(seed, case)
    now = region.faults(case.kind)
    if case.kind != "healthy" and not now:
        return None
    past = [Faults() for _ in range(PAST)]
    if case.history == "half":
        past = [
            region.faults(str(region.rng.choice(KINDS[1:]))) if region.rng.random() < 0.5 else {}
            for _ in past
        ]
    elif case.history == "six":
        for at in region.rng.permutation(PAST)[:6].tolist():
            past[at] = region.faults("stop")
    elif case.history == "lasting":
        since = int(region.rng.integers(0, PAST - 2))
        past = [now if at >= since else {} for at in range(PAST)]
    history = tuple(region.window(at, faults) for at, faults in enumerate(past))
    return {region.names[column] for column in now}, region.window(PAST, now, history)


def judged(case: Case, trials: int, first: int = 0) -> tuple[Tally, list[tuple[float, bool]]]:
    """Tally of a case, and evidence above what was needed of each suspect with whether it was right."""
    tally, pairs, params = Tally(), list[tuple[float, bool]](), check_params(ANALYZER, {})
    for seed in range(first, first + trials):
        made = trial(seed, case)
        if made is None:
            continue
        truth, window = made
        verdict = ANALYZER.analyze(window, params)
        groups = [{one.component, *one.ambiguous_with} for one in verdict.suspects]
        found = set[str]().union(*groups) & truth
        wrong = sum(not group & truth for group in groups)
        tally = tally.plus(Tally(1, len(found), wrong, len(truth - found), int(wrong > 0)))
        pairs += zip(_surplus(verdict), (bool(group & truth) for group in groups), strict=True)
    return tally, pairs


def _surplus(verdict: Verdict) -> list[float]:
    rows = {row[0]: row for one in verdict.evidence if one.title == "Blamed" for row in one.rows}
    return [float(rows[one.component][7]) - float(rows[one.component][8]) for one in verdict.suspects]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--calibrate", action="store_true", help="print points of evidence and share at fault"
    )
    arguments = parser.parse_args()
    every: list[tuple[float, bool]] = []
    for noise, history, kind, wrong in product(NOISES, HISTORIES, KINDS, (0.0, 0.05)):
        if history == "lasting" and kind == "healthy":
            continue
        tally, pairs = judged(Case(kind, history, noise, wrong), arguments.trials, arguments.first)
        every += [] if wrong else pairs
        accused = f"{tally.accused} of {tally.windows} accuse an innocent"
        print(f"{noise}, {history}, {kind}, wrong {wrong}: {note_of(tally)}, {accused}", flush=True)
    if arguments.calibrate:
        print(*monotone(every), sep="\n")
