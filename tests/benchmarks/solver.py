"""Time and memory of Deepview's solvers, against scikit-learn's sparse Lasso on the same window in the same
run.

python -m tests.benchmarks.solver [--largest COMPONENTS]

Regions from 288 to 100,000 components (about 1.2 million paths), each with two faulty components and a
background of one failure in ten thousand units. Both solve the same non-negative Lasso; objectives are
compared as scikit-learn defines them. "Plan kept" is a window after the first one of a topology: what depends
on the paths alone is there.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from analyzers.builtin.deepview import ANALYZER, published
from analyzers.builtin.deepview.observed import Observed, observe
from analyzers.builtin.deepview.published import outcomes
from analyzers.builtin.deepview.selection import Model
from analyzers.contract import Paths, Window, check_params
from analyzers.simulators.deepview import (
    FIRST_REPORTING_SEED,
    INDEPENDENT,
    Fault,
    background,
    strike,
    window,
    with_history,
)
from analyzers.simulators.fleet import PRESETS, Fleet, build, large
from tests.benchmarks.glance import told
from tests.benchmarks.growth import peak_memory

Row = dict[str, Any]
Floats = NDArray[np.float64]

SIZES = (288, 2_000, 20_000, 100_000)
FASTER_FROM = 20_000


@dataclass(frozen=True, eq=False)
class Region:
    components: int
    fleet: Fleet
    window: Window
    seen: Observed
    failing: NDArray[np.int32]
    z: Floats
    alpha: float


def region(components: int, severity: float = 0.2) -> Region:
    """A region with a faulty ToR and a faulty storage cluster; the penalty is a twentieth of the largest
    useful.
    """
    rng = np.random.default_rng(FIRST_REPORTING_SEED + components)
    fleet = build(PRESETS["288"] if components == 288 else large(components), rng)
    faults = [
        Fault(str(rng.choice(fleet.of_kind(kind))), severity, 0, 60) for kind in ("tor", "storage_cluster")
    ]
    failures = background(fleet, rng, INDEPENDENT, 0, 60).plus(*(strike(fleet, rng, one) for one in faults))
    made = window(fleet, failures, 0, 60)
    seen = observe(made.sums)
    failing, z = outcomes(made, seen)
    pull = published.correlations(published.Plan.of(fleet.paths), failing, z)
    return Region(components, fleet, made, seen, failing, z, float(pull.max()) / len(fleet.paths) / 20)


def timed(
    work: Callable[[], Any],
    least: int = 3,
    seconds: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Any]:
    """Median seconds of repeated calls, and the last result."""
    took: list[float] = []
    result: Any = None
    while len(took) < least or (sum(took) < seconds and len(took) < 50):
        began = clock()
        result = work()
        took.append(clock() - began)
    return median(took), result


def sparse(paths: Paths) -> Any:
    data = np.ones(len(paths.indices))
    row = np.repeat(np.arange(len(paths)), np.diff(paths.indptr))
    return csc_matrix((data, (row, paths.indices)), shape=(len(paths), len(paths.names)))


def peer(matrix: Any, z: Floats, alpha: float, tolerance: float) -> tuple[float, float]:
    """Scikit-learn's time and objective; its tolerance is relative to the sum of squares."""
    model = Lasso(alpha=alpha, positive=True, fit_intercept=False, tol=tolerance, max_iter=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        took, _ = timed(lambda: model.fit(matrix, z), seconds=2.0)
    residual = z - matrix @ model.coef_
    return took, float(residual @ residual / (2 * len(z)) + alpha * model.coef_.sum())


def compare(one: Region) -> list[Row]:
    paths = one.fleet.paths
    full = np.zeros(len(paths))
    full[one.failing] = one.z
    matrix = sparse(paths)
    theirs, best = peer(matrix, full, one.alpha, 1e-7)
    cold, _ = timed(lambda: published.solve(published.Plan.of(paths), one.failing, one.z, one.alpha))
    plan = published.Plan.of(paths)
    published.solve(plan, one.failing, one.z, one.alpha)
    kept, solution = timed(lambda: published.solve(plan, one.failing, one.z, one.alpha))
    one_pass, _ = timed(lambda: int(paths.indices.sum()))
    gap = (solution.objective - best) / best
    label = f"{one.components:,} components, {len(paths):,} paths"
    note = (
        f"ours {kept * 1e3:.2f} ms (cold {cold * 1e3:.1f}), scikit-learn {theirs * 1e3:.1f} ms, one numpy "
        f"pass over the incidence {one_pass * 1e3:.2f} ms; {len(one.failing):,} failing paths"
    )
    bar = ">= 5" if one.components >= FASTER_FROM else None
    return [
        {
            "name": f"Lasso speed-up, {label}",
            "value": round(theirs / kept, 1),
            "unit": "x",
            "bar": bar,
            "note": note,
        },
        {
            "name": f"Lasso objective above scikit-learn's, {label}",
            "value": float(f"{gap:.2g}"),
            "unit": "relative",
            "bar": "<= 1e-6",
            "note": "below zero: ours is the smaller",
        },
    ]


def memory(one: Region) -> Row:
    """Peak of new memory while planning and solving, against the incidence itself."""
    paths = one.fleet.paths

    def solve() -> None:
        published.solve(published.Plan.of(paths), one.failing, one.z, one.alpha)

    peak = peak_memory(solve)
    incidence = paths.indices.nbytes + paths.indptr.nbytes
    return {
        "name": f"Peak memory of plan and solve, {one.components:,} components",
        "value": round(peak, 1),
        "unit": "MB",
        "bar": None,
        "note": f"{peak * 2**20 / incidence:.1f} times the incidence ({incidence / 2**20:.0f} MB)",
    }


def growth(one: Region) -> Row:
    """Time of the likelihood's search over all components when four times as many paths fail."""
    seen = one.seen

    def search(rows: int) -> float:
        chosen = np.arange(seen.rows) < rows
        mine = chosen[seen.row]
        args = seen.row[mine], seen.column[mine], seen.failures[:rows]
        model = Model(*args, seen.carried, seen.total, 1e-4)
        return timed(lambda: model.steps(model.eta([], np.zeros(0))))[0]

    few, many = search(seen.rows // 4), search(seen.rows)
    return {
        "name": f"Likelihood search, time when failing paths grow 4x, {one.components:,} components",
        "value": round(many / few, 2),
        "unit": "x",
        "bar": None,
        "note": f"{many * 1e3:.1f} ms for {seen.rows:,} failing of {len(one.fleet.paths):,} paths",
    }


def whole_analysis(components: int, bar: str | None) -> tuple[Row, int, float]:
    """The whole of `analyze`, charts and tables included, with twelve windows of history; its paths and its seconds."""
    rng = np.random.default_rng(FIRST_REPORTING_SEED + 1)
    fleet = build(PRESETS["288"] if components == 288 else large(components), rng)
    fault = Fault(str(rng.choice(fleet.of_kind("tor"))), 0.3, 720, 780)
    failures = background(fleet, rng, INDEPENDENT, 0, 780).plus(strike(fleet, rng, fault))
    made = with_history(fleet, failures, 780)
    params = check_params(ANALYZER, {})
    took, verdict = timed(lambda: ANALYZER.analyze(made, params), clock=time.process_time)
    wall, _ = timed(lambda: ANALYZER.analyze(made, params))
    right = verdict.suspects[0].component == fault.component
    row = {
        "name": f"Whole analysis with history, {components:,} components",
        "value": round(took, 4),
        "unit": "s of CPU",
        "bar": bar,
        "note": f"{wall:.4f} s by the clock; {len(fleet.paths):,} paths; names the "
        f"{'right' if right else 'WRONG'} component",
    }
    if components >= FASTER_FROM:
        peak = peak_memory(ANALYZER.analyze, made, params)
        seconds = f"{took:.2f} ({len(fleet.paths):,} paths, with history)"
        row |= told("deepview", seconds=seconds, memory=f"{peak:.0f} MB (the same)")
    return row, len(fleet.paths), took


def main(largest: int = SIZES[-1]) -> list[Row]:
    usual, few, quick = whole_analysis(288, "< 0.1")
    rows: list[Row] = [usual]
    for size in (size for size in SIZES if size <= largest):
        one = region(size)
        rows += compare(one)
        if size >= FASTER_FROM:
            rows += [growth(one), memory(one)]
    if largest >= FASTER_FROM:
        biggest, many, slow = whole_analysis(FASTER_FROM, None)
        exponent = math.log(slow / quick) / math.log(many / few)
        growing = {
            "name": "growth exponent of a whole analysis in paths",
            "value": round(exponent, 2),
            "bar": "<= 1.2",
        }
        rows += [biggest, growing | told("deepview", growth=f"{exponent:.2f} (paths)")]
    return rows


if __name__ == "__main__":
    from tests.benchmarks.__main__ import line

    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    for row in main(parser.parse_args().largest):
        print(line(row), flush=True)
