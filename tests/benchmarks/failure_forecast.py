"""Alarms of `failure_forecast` on simulated fleets, beside its logistic regression alone and always no.

python -m tests.benchmarks.failure_forecast [--trials N] [--first SEED]

Each history is cut at seven tenths of its days: the method sees what is before and is then asked at the end of every
later day, with what is known then, without learning again; days before the cut choose and calibrate. Alarms are the
likeliest nodes of each day, one in a hundred node-days. Every node taught something before the cut, so that rows differ
by time; inside the method, held-out rows differ by node too. `simulator` is `analyzers.simulators.forecasts.nodes`, the
others are cases of the second generator, on which nothing was tuned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.failure_forecast import ANALYZER
from analyzers.builtin.failure_forecast.days import Days, days_of, within_a_week
from analyzers.builtin.failure_forecast.model import (
    REGRESSION,
    TREES,
    Forecast,
    TooLittleError,
    calibrated,
    forecast,
    learn,
    precision_area,
)
from analyzers.builtin.stats.intervals import HOUR
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Window
from analyzers.offline import choose_input, windows
from analyzers.simulators.forecasts.nodes import FIRST_REPORTING_SEED, scenario
from ingest.telemetry.windows.offline import read_file
from tests.benchmarks.scoring import RARE, spread
from tests.benchmarks.script import script
from tests.benchmarks.worlds import reliability
from tests.worlds.failure_forecast import CASES, make

Row = dict[str, Any]
Floats = NDArray[np.float64]
SIMULATOR = "simulator"
UNANNOUNCED = "simulator without signs"
TAUGHT = 0.7
HORIZON = 48 * HOUR
BUDGET = 0.01
NOT_INCIDENTS = frozenset({"observed"})
WORLD_SEED = 5100
CHOSEN, NO = "chosen learner", "always no"
METHODS = (CHOSEN, REGRESSION, TREES, NO)


@dataclass(frozen=True, slots=True)
class Job:
    case: str
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """By method: the area, and (alarms, right ones). `failing` are later node-days before an incident of `node_days`;
    `abstains` says that the method gives no forecast. `stated` holds the probability of each later node-day of a node
    that reports, and whether an incident followed; empty if it abstains."""

    areas: Mapping[str, float]
    alarms: Mapping[str, tuple[int, int]]
    failing: int
    node_days: int
    abstains: bool
    stated: tuple[tuple[float, bool], ...]


def window_of(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Window:
    tables = {
        kind: read_file(kind, "-", BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in of_kind)))
        for kind, of_kind in rows.items()
        if of_kind
    }
    return next(iter(windows(ANALYZER, choose_input(ANALYZER, tables), tables, None)))


def run_trial(job: Job) -> Result:
    if job.case in (SIMULATOR, UNANNOUNCED):
        rows: Mapping[str, Sequence[Mapping[str, Any]]] = scenario(job.case, job.seed, job.case == SIMULATOR)[
            0
        ]
    else:
        rows = make(job.seed, job.case).rows
    days = days_of(window_of(rows), NOT_INCIDENTS, "")
    failing = days.failing(HORIZON)
    cut = int(TAUGHT * len(days.ends))
    last = len(days.ends) - 3  # what follows the last days is not known
    teach = np.zeros(failing.shape, dtype=bool)
    teach[:, : cut - 2] = True  # their outcomes are known at the cut
    asked = np.zeros(failing.shape, dtype=bool)
    asked[:, cut:last] = True
    happened = failing[asked]
    found = _at_cut(days, cut)
    abstains, chosen = found is None or not found.trial.holds, REGRESSION if found is None else found.learner
    said = {
        name: learn(name, days.values[teach], failing[teach])(days.values[asked])
        for name in (REGRESSION, TREES)
    }
    said[CHOSEN] = said[chosen]
    said[NO] = np.zeros(len(happened))
    most = max(1, round(BUDGET * len(happened)))
    alarms = {}
    for name in METHODS[:3]:
        first = np.argsort(-said[name], kind="stable")[:most]
        alarms[name] = (most, int(happened[first].sum()))
    areas = {
        name: precision_area(p, happened) if happened.any() else float("nan") for name, p in said.items()
    }
    stated: list[tuple[float, bool]] = []
    if found is not None and not abstains:
        reports = within_a_week(days.seen)[asked]
        told = calibrated(said[CHOSEN][reports], found.shift, found.slope, found.ceiling)
        stated = list(zip(told.tolist(), happened[reports].tolist(), strict=True))
    return Result(areas, alarms, int(happened.sum()), len(happened), abstains, tuple(stated))


def _at_cut(days: Days, cut: int) -> Forecast | None:
    """The forecast at the cut, if there is enough to learn from."""
    end = int(days.ends[cut - 1])
    seen = Days(
        days.nodes,
        days.ends[:cut],
        days.names,
        days.values[:, :cut],
        days.symptom_names,
        days.symptoms[:, :cut],
        days.seen[:, :cut],
        tuple(one for one in days.incidents if one[1] < end),
    )
    try:
        return forecast(seen, HORIZON, end, 1000 * BUDGET, 15)
    except TooLittleError:
        return None


def figures(trials: int, first: int) -> Iterator[Row]:
    stated: list[tuple[float, bool]] = []
    for case in (SIMULATOR, UNANNOUNCED, *CASES):
        start = WORLD_SEED if case in CASES else first
        found = spread(run_trial, [Job(case, start + n) for n in range(trials)])
        for name in METHODS:
            areas = np.array([one.areas[name] for one in found if np.isfinite(one.areas[name])])
            error = 1.96 * float(areas.std(ddof=1)) / len(areas) ** 0.5 if len(areas) > 1 else 0.0
            ends = float(areas.mean()) - error, float(areas.mean()) + error
            yield _row(f"{case}: PR-AUC, {name}", float(areas.mean()), ends, f"{len(areas)} fleets")
        failing = sum(one.failing for one in found)
        for name in METHODS[:3]:
            raised = sum(one.alarms[name][0] for one in found)
            right = sum(one.alarms[name][1] for one in found)
            note = f"{right} of {raised}"
            yield _row(
                f"{case}: precision at the budget, {name}", right / raised, wilson(right, raised), note
            )
            note = f"{right} of {failing} node-days before an incident"
            yield _row(f"{case}: recall at the budget, {name}", right / failing, wilson(right, failing), note)
        abstained = sum(one.abstains for one in found)
        yield _row(
            f"{case}: abstains", abstained / trials, wilson(abstained, trials), f"{abstained} of {trials}"
        )
        stated += [pair for one in found for pair in one.stated]
    yield from reliability("failure_forecast, both generators, fine", stated, edges=RARE)
    yield from reliability("failure_forecast, both generators", stated, of="failure_forecast")


def _row(name: str, value: float, interval: tuple[float, float], note: str) -> Row:
    ends = [round(interval[0], 4), round(interval[1], 4)]
    return {"name": name, "value": round(value, 4), "interval": ends, "unit": "", "bar": "", "note": note}


def main(trials: int = 4, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return list(figures(trials, first))


if __name__ == "__main__":
    script(figures, 4, FIRST_REPORTING_SEED)
