"""Quantiles of the time to mitigate beside simpler ones: pinball loss and coverage, in the order of time.

python -m tests.benchmarks.time_to_mitigate [--trials N] [--first SEED]

The second half of each history is predicted at the opening of each incident, in blocks of 25, from incidents that were
resolved before the block. The loss is the mean over the levels .1, .5 and .9; the figure is its share of that of the
median of the past, and the interval is over histories. Coverage is the share of times between the quantiles .1 and .9:
0.8 is right. `gradient boosting` is scikit-learn's, on kind, team, severity and hour, on the logarithm of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from analyzers.builtin.stats.probability import wilson
from incidents.domain.similarity.text import Described
from incidents.similarity.time_to_mitigate import LEVELS, Timed, TimeToMitigate
from tests.benchmarks.script import script
from tests.worlds.incident_times import CASES, KINDS, TEAMS, Past, make

FIRST_SEED, TRIALS = 4_000, 8
BLOCK = 25
Quantiles = NDArray[np.float64]
Method = Callable[[Sequence[Past], Sequence[Past]], Quantiles]


def ours(past: Sequence[Past], asked: Sequence[Past]) -> Quantiles:
    model = TimeToMitigate([_timed(one, one.opened_at + timedelta(seconds=one.seconds)) for one in past])
    return np.array([model.estimate(_timed(one, None), 0.0).seconds for one in asked])


def _timed(one: Past, resolved: Any) -> Timed:
    return Timed(Described(one.title, one.component), one.team, one.severity, one.opened_at, resolved)


def median(past: Sequence[Past], asked: Sequence[Past]) -> Quantiles:
    return np.full((len(asked), len(LEVELS)), np.median([one.seconds for one in past]))


def quantiles(past: Sequence[Past], asked: Sequence[Past]) -> Quantiles:
    return np.tile(np.quantile([one.seconds for one in past], LEVELS), (len(asked), 1))


def by_kind(past: Sequence[Past], asked: Sequence[Past]) -> Quantiles:
    """Of the past of the kind and team, of all where that has fewer than ten."""
    rows = []
    for one in asked:
        mine = [old.seconds for old in past if _cell(old) == _cell(one)]
        rows.append(np.quantile(mine if len(mine) >= 10 else [old.seconds for old in past], LEVELS))
    return np.array(rows)


def _cell(one: Past) -> tuple[str, str]:
    return one.component.partition("/")[0], one.team


def boosting(past: Sequence[Past], asked: Sequence[Past]) -> Quantiles:
    kinds, teams = sorted(KINDS), sorted(TEAMS)

    def facts(of: Sequence[Past]) -> NDArray[np.float64]:
        pairs = [(_cell(one), one) for one in of]
        return np.array(
            [
                [kinds.index(kind), teams.index(team), one.severity == "critical", one.opened_at.hour]
                for (kind, team), one in pairs
            ],
            float,
        )

    found = []
    for level in LEVELS:
        model = HistGradientBoostingRegressor(
            loss="quantile", quantile=level, max_iter=60, categorical_features=[0, 1], random_state=0
        )
        model.fit(facts(past), np.log([one.seconds for one in past]))
        found.append(np.exp(model.predict(facts(asked))))
    return np.sort(np.array(found).T, axis=1)


METHODS: dict[str, Method] = {
    "estimate": ours,
    "median of the past": median,
    "quantiles of the past": quantiles,
    "quantiles by kind and team": by_kind,
    "gradient boosting": boosting,
}


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    for case in CASES:
        losses: dict[str, list[float]] = {name: [] for name in METHODS}
        covered = dict.fromkeys(METHODS, 0)
        count = 0
        for seed in range(first, first + trials):
            history = make(seed, case)
            truth, said = _predicted(history)
            count += len(truth)
            for name, predicted in said.items():
                losses[name].append(_pinball(predicted, truth))
                covered[name] += int(((predicted[:, 0] <= truth) & (truth <= predicted[:, -1])).sum())
        of_median = np.array(losses["median of the past"])
        for name in METHODS:
            share = np.array(losses[name]) / of_median
            half = 1.96 * share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else 0.0
            low, high = wilson(covered[name], count)
            coverage = f"coverage {covered[name] / count:.3f} [{low:.3f}, {high:.3f}] of {count}"
            yield {
                "name": f"time to mitigate: {case}, {name}",
                "value": round(float(share.mean()), 3),
                "bar": "<= 1" if name == "estimate" else None,
                "interval": [share.mean() - half, share.mean() + half],
                "note": f"±{half:.3f} over {trials} histories; {coverage}",
            }


def _predicted(history: Sequence[Past]) -> tuple[NDArray[np.float64], dict[str, Quantiles]]:
    said: dict[str, list[Quantiles]] = {name: [] for name in METHODS}
    half = len(history) // 2
    for start in range(half, len(history), BLOCK):
        asked = history[start : start + BLOCK]
        now = asked[0].opened_at
        past = [one for one in history[:start] if one.opened_at + timedelta(seconds=one.seconds) <= now]
        for name, method in METHODS.items():
            said[name].append(method(past, asked))
    truth = np.array([one.seconds for one in history[half:]])
    return truth, {name: np.concatenate(found) for name, found in said.items()}


def _pinball(said: Quantiles, truth: NDArray[np.float64]) -> float:
    levels, off = np.array(LEVELS), truth[:, None] - said
    return float(np.maximum(levels * off, (levels - 1) * off).mean())


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
