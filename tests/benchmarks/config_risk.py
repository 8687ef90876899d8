"""Probabilities of `config_risk` on simulated histories of changes, beside logistic regression and the usual share.

python -m tests.benchmarks.config_risk [--trials N] [--first SEED]

Learnt from the first seven tenths of each history, as known when the rest begins, and asked of the rest. The regression
reads the same columns, standardised, with the ridge of least log loss in the same time-ordered folds. Intervals are
those of a mean over histories; those of stated probabilities come from drawing whole histories again. `simulator` is
`analyzers.simulators.changes.risk`, the others are cases of the second generator, on which nothing was tuned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.config_risk import ANALYZER
from analyzers.builtin.config_risk.features import Facts, columns_of, facts_of
from analyzers.builtin.config_risk.model import Model, TooLittleHistoryError, fit, folds
from analyzers.builtin.config_risk.records import HOUR, changes_in, settled
from analyzers.builtin.stats.calibration import log_loss
from analyzers.builtin.stats.intervals import microseconds
from analyzers.contract import Window
from analyzers.offline import choose_input, windows
from analyzers.simulators.changes.risk import FIRST_REPORTING_SEED, history
from ingest.telemetry.windows.offline import read_file
from tests.benchmarks.glance import WITHIN_STRESS
from tests.benchmarks.scoring import RARE, spread
from tests.benchmarks.script import script
from tests.benchmarks.worlds import reliability
from tests.worlds.config_risk import CASES, make

Row = dict[str, Any]
Floats = NDArray[np.float64]
SIMULATOR = "simulator"
LEARNT = 0.7
HORIZON = 48 * HOUR
RIDGES = (0.003, 0.03, 0.3, 3.0)
METHODS = ("config_risk", "logistic regression", "usual share", "always no")
WORLD_SEED = 4100
STRESS = ("begins_late", "mended")
"""Cases of the second generator in which the past no longer tells of the future."""
RESAMPLED = 4_000


@dataclass(frozen=True, slots=True)
class Job:
    case: str
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """PR-AUC and Brier score by method; what was stated and what happened, change by change. Nothing was stated
    where there was too little history (`refused`)."""

    area: Mapping[str, float]
    brier: Mapping[str, float]
    stated: tuple[tuple[float, bool], ...]
    refused: bool = False


def window_of(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Window:
    tables = {
        kind: read_file(kind, "-", BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in of_kind)))
        for kind, of_kind in rows.items()
    }
    return next(iter(windows(ANALYZER, choose_input(ANALYZER, tables), tables, None)))


def run_trial(job: Job) -> Result:
    rows = history(job.seed, False)[0] if job.case == SIMULATOR else make(job.seed, job.case).rows
    window = window_of(rows)
    changes = [one for one in settled(changes_in(window), microseconds(window.end), HORIZON) if one.outcome]
    cut = int(LEARNT * len(changes))
    begin = changes[cut].at
    past = [one for one in changes[:cut] if one.known_at < begin]
    facts = facts_of(changes)[cut:]
    bad = np.array([one.is_bad for one in changes[cut:]], dtype=np.float64)
    try:
        model = fit(past, 60, 8)
    except TooLittleHistoryError:
        return Result({}, {}, (), refused=True)
    said = {
        METHODS[0]: np.array([model.risk(one).probability for one in facts]),
        METHODS[1]: regression(model, facts),
        METHODS[2]: np.full(len(bad), model.usual),
        METHODS[3]: np.zeros(len(bad)),
    }
    return Result(
        {name: precision_area(p, bad) for name, p in said.items()},
        {name: float(np.mean((p - bad) ** 2)) for name, p in said.items()},
        tuple(zip(said[METHODS[0]].tolist(), (bad > 0).tolist(), strict=True)),
    )


def regression(model: Model, facts: Sequence[Facts]) -> Floats:
    """Answer of logistic regression, with the ridge of least log loss in the folds of the tree."""
    from sklearn.linear_model import LogisticRegression

    columns, values = columns_of(model.facts, fine=True)
    centre, scale = values.mean(axis=0), values.std(axis=0) + 1e-9
    x = (values - centre) / scale
    bad = np.array([one.is_bad for one in model.past])

    def learnt(rows: NDArray[np.bool_], ridge: float) -> Any:
        return LogisticRegression(C=ridge, max_iter=500).fit(x[rows], bad[rows])

    def loss(ridge: float) -> float:
        said = np.full(len(bad), np.nan)
        for teach, tested in folds(model.past):
            if bad[teach].any():
                said[tested] = learnt(teach, ridge).predict_proba(x[tested])[:, 1]
        return log_loss(said, bad)

    best = min(RIDGES, key=loss)
    new = np.array([[column.value(one) for column in columns] for one in facts])
    fitted = learnt(np.ones(len(bad), dtype=bool), best)
    return np.asarray(fitted.predict_proba((new - centre) / scale)[:, 1])


def precision_area(said: Floats, bad: Floats) -> float:
    """Area under precision and recall (average precision); NaN where nothing was bad."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(bad, said)) if bad.any() else float("nan")


def figures(trials: int, first: int) -> Iterator[Row]:
    second: list[Sequence[tuple[float, bool]]] = []
    usual, stressed = list[tuple[float, bool]](), list[tuple[float, bool]]()
    for case in (SIMULATOR, *CASES):
        start = first if case == SIMULATOR else WORLD_SEED
        results = spread(run_trial, [Job(case, start + n) for n in range(trials)])
        found = [one for one in results if not one.refused]
        if len(found) < len(results):
            yield _row(f"{case}: too little history", len(results) - len(found), None, f"of {len(results)}")
        if not found:
            continue
        for name in METHODS:
            area = np.array([one.area[name] for one in found])
            yield _mean(f"{case}: PR-AUC, {name}", area[np.isfinite(area)])
            yield _mean(f"{case}: Brier, {name}", np.array([one.brier[name] for one in found]))
        yield from _kept_word(case, [one.stated for one in found])
        if case != SIMULATOR:
            second += [one.stated for one in found]
        for one in found:
            (stressed if case in STRESS else usual).extend(one.stated)
    if second:
        yield from _kept_word("second generator", second)
    yield from reliability("config_risk, both generators, fine", usual, edges=RARE)
    yield from reliability("config_risk, both generators", usual, of="config_risk")
    yield from reliability(
        "config_risk, under stress", stressed, WITHIN_STRESS, of="config_risk", stress=True
    )


def _kept_word(case: str, histories: Sequence[Sequence[tuple[float, bool]]]) -> Iterator[Row]:
    """Share that happened by what was stated. Changes of one history share its tree and its rules, so whole histories
    are drawn again for the intervals: of the share, and of the share less what was stated."""
    for low, high in ((0.0, 0.05), (0.05, 0.2), (0.2, 1.01)):
        parts = [[pair for pair in one if low <= pair[0] < high] for one in histories]
        sums = np.array(
            [[len(part), sum(p for p, _ in part), sum(bad for _, bad in part)] for part in parts if part]
        )
        if not len(sums):
            continue
        count, said, hits = sums.sum(axis=0)
        drawn = np.random.default_rng(0).integers(len(sums), size=(RESAMPLED, len(sums)))
        counts, saids, hit = sums[drawn].sum(axis=1).T
        share = np.quantile(hit / counts, [0.025, 0.975])
        apart = np.quantile((hit - saids) / counts, [0.025, 0.975])
        name = f"{case}: happened where {low:g} to {min(high, 1):g} was stated"
        note = (
            f"{hits:.0f} of {count:.0f} in {len(sums)} histories, stated {said / count:.3f} in the mean; happened less "
            f"stated {(hits - said) / count:+.3f} [{apart[0]:+.3f}, {apart[1]:+.3f}]"
        )
        yield _row(name, hits / count, (float(share[0]), float(share[1])), note)


def _mean(name: str, values: Floats) -> Row:
    if not len(values):
        return _row(name, float("nan"), None, "nothing bad")
    error = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    mean = float(values.mean())
    return _row(name, mean, (mean - error, mean + error), f"{len(values)} histories")


def _row(name: str, value: float, interval: tuple[float, float] | None, note: str) -> Row:
    ends = None if interval is None else [round(interval[0], 4), round(interval[1], 4)]
    return {"name": name, "value": round(value, 4), "interval": ends, "unit": "", "bar": "", "note": note}


def main(trials: int = 10, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return list(figures(trials, first))


if __name__ == "__main__":
    script(figures, 10, FIRST_REPORTING_SEED)
