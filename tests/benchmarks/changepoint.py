"""How soon and how often changes of level are found beside CUSUM and PELT, and how often tests of changes are right.

python -m tests.benchmarks.changepoint [--trials N] [--first SEED]

Series: an hour of searched minutes after four hours of history, all of them in units of the same robust reference; a
step begins at a minute between 15 and 35. The bar of each method is the one that `ALARMS` of as many healthy series
passed, from tuning seeds; figures are of other seeds. PELT (`ruptures`, normal cost) segments what is known each
minute, and its bar is the penalty. Incidents: 24 services of which one changes, or all, and one change beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import ruptures
from numpy.typing import NDArray

from analyzers.builtin.changepoint import ANALYZER
from analyzers.builtin.stats.changepoint import reference_of, run_lengths
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import check_params
from analyzers.runner import judge
from analyzers.simulators.changes.metrics import EPOCH, FIRST_REPORTING_SEED, MINUTE, fleet, window_of
from incidents.domain.incident.onset import judge_change, onset, shifts_in

Floats = NDArray[np.float64]
Row = dict[str, Any]

BEFORE, INSIDE, SETTLED = 240, 60, 5
ALARMS = 0.01
NOISES = ("normal", "student", "dependent", "counts", "spikes")
STEPS = (1.5, 3.0)
PENALTIES = np.geomspace(2, 200, 25)


def series(
    rng: np.random.Generator, noise: str, count: int, step: float = 0.0
) -> tuple[Floats, NDArray[np.int64]]:
    """Series in units of their reference, of the searched minutes, and the minute of each step."""
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
    return (values[:, BEFORE:] - usual.level[:, None]) / usual.scale[:, None], onsets


def bocpd(scaled: Floats, rho: float) -> Floats:
    """Log odds at each minute."""
    count = len(scaled)
    known = np.full(count, BEFORE)
    return run_lengths(scaled, np.full(count, rho), known, settled=SETTLED).odds


def cusum(scaled: Floats, _: float) -> Floats:
    """Two-sided, with half a standard deviation of allowance (Page, Biometrika 1954)."""
    found, up, down = np.zeros_like(scaled), np.zeros(len(scaled)), np.zeros(len(scaled))
    for at in range(scaled.shape[1]):
        up = np.maximum(0, up + scaled[:, at] - 0.5)
        down = np.maximum(0, down - scaled[:, at] - 0.5)
        found[:, at] = np.maximum(up, down)
    return found


def pelt(scaled: Floats, _: float) -> Floats:
    """The largest penalty at which the series up to each minute still has a change; looked at every third minute."""
    found = np.zeros_like(scaled)
    for row, values in enumerate(scaled):
        for at in range(9, scaled.shape[1], 3):
            model = ruptures.Pelt(model="l2", min_size=SETTLED, jump=1).fit(values[: at + 1, None])
            for penalty in PENALTIES:
                if len(model.predict(penalty)) == 1:
                    break
                found[row, at:] = np.maximum(found[row, at:], penalty)
    return found


METHODS: dict[str, Callable[[Floats, float], Floats]] = {"changepoint": bocpd, "CUSUM": cusum, "PELT": pelt}


def detection(trials: int, first: int) -> Iterator[Row]:
    for noise in NOISES:
        rho = 0.6 if noise == "dependent" else 0.0
        for name, method in METHODS.items():
            bar = np.quantile(
                method(series(np.random.default_rng([1, 5]), noise, trials)[0], rho).max(axis=1), 1 - ALARMS
            )
            healthy = method(series(np.random.default_rng([first, 1]), noise, trials)[0], rho)
            alarms = int((healthy.max(axis=1) > bar).sum())
            for step in STEPS:
                scaled, onsets = series(np.random.default_rng([first, 2]), noise, trials, step)
                over = method(scaled, rho) > bar
                over[np.arange(INSIDE) < onsets[:, None]] = False
                found = over.any(axis=1)
                delays = np.argmax(over, axis=1)[found] - onsets[found]
                yield _share(
                    f"changepoint: {name}, {noise}, step {step:g} sd: found",
                    int(found.sum()),
                    trials,
                    f"median delay {np.median(delays) if len(delays) else np.nan:.0f} min; false alarms "
                    f"{_interval(alarms, trials)}",
                )


@dataclass(frozen=True)
class Story:
    """What happens to one of 24 services, and the change beside it, from the onset on in minutes."""

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
    shifts = shifts_in(verdict["evidence"])
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
