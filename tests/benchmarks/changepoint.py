"""Delay and recall of changes of level beside CUSUM and PELT, and accuracy of the tests of changes.

python -m tests.benchmarks.changepoint [--trials N] [--first SEED]

Series are in units of the same robust reference for all methods. Those of `simulator` are an hour of searched minutes
after four hours of history, with a step at a minute between 15 and 35; those of `second generator` are the metrics of
its worlds, two hours searched after a day, with the onsets of its faults. The bar of each method is the one that
`ALARMS` of the same healthy series pass, so that all have as many false alarms; tuning seeds are other ones. PELT
(`ruptures`, squared distance) segments what is known each minute, and its bar is the penalty. A step that was not found
counts as an endless delay.
Incidents: 24 services of which one changes, or all, and one change beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import ruptures
from numpy.typing import NDArray
from scipy.stats import binom

from analyzers.builtin.changepoint import ANALYZER
from analyzers.builtin.changepoint.detect import prepare
from analyzers.builtin.changepoint.series import observe
from analyzers.builtin.stats.changepoint import reference_of, run_lengths
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import check_params
from analyzers.runner import judge
from analyzers.simulators.changes.metrics import EPOCH, FIRST_REPORTING_SEED, MINUTE, fleet, window_of
from incidents.domain.incident.onset import judge_change, onset, shifts_in
from tests.benchmarks.scoring import spread
from tests.worlds.changepoint import PLANS, make

Floats = NDArray[np.float64]
Row = dict[str, Any]

BEFORE, INSIDE, SETTLED = 240, 60, 5
ALARMS = 0.01
NOISES = ("normal", "student", "dependent", "counts", "spikes")
STEPS = (1.5, 3.0)
PENALTIES = np.geomspace(2, 2000, 200)
FEWEST = 9
"""Readings from which on PELT is asked."""
HEALTHY = ("healthy", "healthy_ten", "healthy_correlated", "healthy_missing", "healthy_spikes")
FAULTY = ("latency", "errors", "memory", "queue", "rate", "host_load", "all_metrics", "faint", "after_faults")


@dataclass(frozen=True)
class Series:
    """Searched readings in units of their reference, NaN where there is none; `rho` and `known` are those of the
    reference. `onsets` are columns, -1 where nothing changes."""

    scaled: Floats
    rho: Floats
    known: NDArray[np.int64]
    onsets: NDArray[np.int64]


def series(rng: np.random.Generator, noise: str, count: int, step: float = 0.0) -> Series:
    size = (count, BEFORE + INSIDE)
    values = rng.normal(size=size)
    if noise == "student":
        values = rng.standard_t(3, size=size)
    if noise == "dependent":
        for at in range(1, size[1]):
            values[:, at] = 0.6 * values[:, at - 1] + 0.8 * values[:, at]
    onsets = rng.integers(15, 36, count)
    after = np.arange(size[1]) >= BEFORE + onsets[:, None]
    if noise == "counts":
        values = rng.poisson(np.where(after, 2 + step * 2**0.5, 2.0)).astype(float)
    else:
        values = values + step * after
    if noise == "spikes":
        values[rng.random(size) < 0.01] += 12
    usual = reference_of(values[:, :BEFORE])
    scaled = (values[:, BEFORE:] - usual.level[:, None]) / usual.scale[:, None]
    return Series(scaled, usual.rho, usual.samples, onsets if step else np.full(count, -1))


def series_of_world(job: tuple[str, int]) -> Series:
    """Of the last window of a world: all of a healthy one, else those that a fault moved."""
    world = make(job[1], job[0])
    *_, window = world.windows(ANALYZER)
    seen = observe(window, check_params(ANALYZER, {}))
    ready = prepare(seen, 30)
    begun = {
        one.component: (one.start - seen.starts[seen.first]) // seen.width
        for one in world.faults
        if one.start >= window.start
    }
    moved = {name for each in PLANS[job[0]].metrics for name in each}
    chosen, onsets = list[int](), list[int]()
    for row, at in enumerate(ready.judged.tolist()):
        one = seen.series[at]
        if not moved or (one.component in begun and one.name in moved):
            chosen.append(row)
            onsets.append(begun.get(one.component, -1))
    usual = ready.usual
    return Series(
        ready.scaled[chosen, seen.first :],
        usual.rho[chosen],
        usual.samples[chosen],
        np.array(onsets, dtype=np.int64),
    )


def joined(parts: Sequence[Series]) -> Series:
    fields = ("scaled", "rho", "known", "onsets")
    return Series(*(np.concatenate([getattr(one, name) for one in parts]) for name in fields))


def bocpd(one: Series) -> Floats:
    """Log odds at each minute."""
    return run_lengths(one.scaled, one.rho, one.known, settled=SETTLED).odds


def cusum(one: Series) -> Floats:
    """Two-sided, with half a standard deviation of allowance (Page, Biometrika 1954)."""
    found, up, down = np.zeros_like(one.scaled), np.zeros(len(one.scaled)), np.zeros(len(one.scaled))
    for at in range(one.scaled.shape[1]):
        now = one.scaled[:, at]
        there = np.isfinite(now)
        up = np.where(there, np.maximum(0, up + now - 0.5), up)
        down = np.where(there, np.maximum(0, down - now - 0.5), down)
        found[:, at] = np.maximum(up, down)
    return found


def pelt(one: Series) -> Floats:
    """The largest penalty at which the series up to each minute still has a change. The linear kernel is the squared
    distance to the mean of a segment."""
    found = np.zeros_like(one.scaled)
    for row, values in enumerate(one.scaled):
        there, most = np.isfinite(values), 0
        for at in range(FEWEST, len(values)):
            known = values[: at + 1][there[: at + 1]]
            if len(known) >= 2 * SETTLED:
                model = ruptures.KernelCPD(kernel="linear", min_size=SETTLED).fit(known[:, None])
                while most < len(PENALTIES) and len(model.predict(pen=PENALTIES[most])) > 1:
                    most += 1
            found[row, at] = PENALTIES[most - 1] if most else 0
    return found


METHODS: dict[str, Callable[[Series], Floats]] = {"changepoint": bocpd, "CUSUM": cusum, "PELT": pelt}


def detection(trials: int, first: int) -> Iterator[Row]:
    for noise in NOISES:
        healthy = series(np.random.default_rng([first, 1]), noise, 5 * trials)
        steps = {
            f"step {step:g} sd": series(np.random.default_rng([first, 2]), noise, trials, step)
            for step in STEPS
        }
        yield from _compared(f"simulator, {noise}", healthy, steps)
    healthy = _worlds(HEALTHY, first, max(2, trials // 12))
    steps = {case: _worlds((case,), first, max(2, trials // 12)) for case in FAULTY}
    yield from _compared("second generator", healthy, {"all steps": joined([*steps.values()]), **steps})


def _worlds(cases: Sequence[str], first: int, worlds: int) -> Series:
    jobs = [(case, first + number) for case in cases for number in range(worlds)]
    return joined(spread(series_of_world, jobs))


def _compared(where: str, healthy: Series, steps: Mapping[str, Series]) -> Iterator[Row]:
    for name, method in METHODS.items():
        found_in_healthy = method(healthy).max(axis=1)
        bar = np.quantile(found_in_healthy, 1 - ALARMS)
        alarms = int((found_in_healthy > bar).sum())
        for step, changed in steps.items():
            over = method(changed) > bar
            over[np.arange(over.shape[1]) < changed.onsets[:, None]] = False
            found = over.any(axis=1)
            delays = np.where(found, np.argmax(over, axis=1) - changed.onsets, np.inf)
            yield _share(
                f"changepoint: {where}, {step}: {name} found",
                int(found.sum()),
                len(found),
                f"median delay {_median(delays)} min; false alarms {_interval(alarms, len(healthy.onsets))}",
            )


def _median(delays: Floats) -> str:
    """With a 95 % interval of order statistics."""
    ordered, count = np.sort(delays), len(delays)
    low, high = (int(binom.ppf(share, count, 0.5)) for share in (0.025, 0.975))
    middle, least, most = (ordered[min(max(at, 0), count - 1)] for at in (count // 2, low - 1, high))
    return f"{middle:g} [{least:g}, {most:g}]"


@dataclass(frozen=True)
class Story:
    """Course of one of 24 services, and the change beside it, from the onset on in minutes."""

    kind: str
    event: str
    change: tuple[float, float]
    right: str
    rollout: int = 1


STORIES = {
    "the change is the cause": Story("step", "", (-10, -1), "supported"),
    "a change in the day before, by chance": Story("step", "", (-1440, 0), "not supported"),
    "a change after the onset": Story("step", "", (2, 20), "contradicted"),
    "a shift of the whole fleet after a change": Story("", "fleet_shift", (-10, -1), "contradicted"),
    "one of twelve that were changed fails": Story("step", "", (-10, -1), "not supported", 12),
}
RATE = 1 / 24
"""Changes of one service an hour."""


def told(seed: int, story: Story) -> str:
    """The verdict on the change."""
    rng = np.random.default_rng([seed, 11])
    made = fleet(rng, story.kind, story.event, services=24, hours=5)
    verdict = judge(ANALYZER, window_of(made), check_params(ANALYZER, {}))
    shifts = shifts_in(verdict)
    name = f"service/{made.name(made.at)}"
    at = EPOCH + made.onset * MINUTE
    began = onset((name,), shifts, None, None, EPOCH + made.minutes * MINUTE)
    changed = at + timedelta(minutes=float(rng.uniform(*story.change)))
    others = [f"service/{made.name((made.at + n) % 24)}" for n in range(1, story.rollout)]
    return judge_change(dict.fromkeys([name, *others], changed), began, shifts, RATE).verdict


def change_tests(trials: int, first: int) -> Iterator[Row]:
    for name, story in STORIES.items():
        verdicts = [told(first + seed, story) for seed in range(trials)]
        right = sum(
            one != "supported" if story.right == "not supported" else one == story.right for one in verdicts
        )
        counts = ", ".join(f"{one} {verdicts.count(one)}" for one in sorted(set(verdicts)))
        yield _share(f"test of changes: {name}: {story.right}", right, trials, counts)


def _share(name: str, hits: int, of: int, note: str) -> Row:
    return {
        "name": name,
        "value": round(hits / of, 4),
        "unit": "",
        "bar": None,
        "note": f"{_interval(hits, of)}; {note}",
    }


def _interval(hits: int, of: int) -> str:
    low, high = wilson(hits, of)
    return f"{hits} of {of} [{low:.3f}, {high:.3f}]"


def main(trials: int = 100, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return [*detection(trials, first), *change_tests(trials, first)]


if __name__ == "__main__":
    from tests.benchmarks.__main__ import line

    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED, help="first seed")
    arguments = parser.parse_args()
    for rows in (change_tests, detection):
        for row in rows(arguments.trials, arguments.first):
            print(line(row), flush=True)
