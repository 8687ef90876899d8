"""The Boolean baselines on a fat tree, as deTector was evaluated (Peng et al., ATC 2017).

python -m tests.benchmarks.boolean [--trials N] [--first SEED]

An 18-ary fat tree (2,916 links between switches) is probed over paths between ToRs that are drawn at random until the
probe matrix is 2-identifiable: no two sets of at most two links lie on the same set of paths. 1 to 50 links fail with
a loss of U(1e-4, 1), good ones lose U(0, 1e-6), every path carries 100 probes. deTector's own matrices are chosen to
be small, ours is not; so the published figures stand beside ours and are not the same experiment. Accuracy is, as
there, the share of failed links that are named.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from analyzers.builtin.boolean import ANALYZER
from analyzers.builtin.paths import METHODS, bad_paths, incidence, mixed, solve
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Sums, Window, check_params
from analyzers.simulators.deepview import EPOCH, FIRST_REPORTING_SEED
from analyzers.simulators.fabric import Fabric, build, draw_links, fat_tree, send
from analyzers.simulators.routes import Routes, path_table, routes_of
from tests.benchmarks.glance import counts, other, told
from tests.benchmarks.growth import peak_memory
from tests.benchmarks.scoring import Tally, note_of, spread
from tests.benchmarks.script import script

Row = dict[str, Any]
Ints = NDArray[np.int64]

FAILED = (1, 2, 5, 10, 20, 50)
PROBES = 100
BAD_PATH = 1e-3
"""Loss of a path above which it is bad: healthy networks lose 1e-4 to 1e-5 (Guo et al., SIGCOMM 2015)."""


@dataclass(frozen=True)
class Job:
    seed: int
    failed: int


def between_tors(fabric: Fabric, rng: np.random.Generator, count: int) -> Routes:
    """Random equal-cost paths between ToRs (one host each, whose own links are left out)."""
    src = rng.integers(0, fabric.hosts, count)
    dst = (src + rng.integers(1, fabric.hosts, count)) % fabric.hosts
    table = fabric.route(src, dst, rng).padded()
    return routes_of(np.where(table < fabric.hosts, -1, table))


def identifiable(routes: Routes, links: Ints) -> int:
    """2 if all sets of at most two links lie on different sets of paths, 1 if all single ones do, else 0. Sets of paths
    are compared by sums of 64-bit hashes.
    """
    column = np.full(int(links.max()) + 1, -1, dtype=np.int64)
    column[links] = np.arange(len(links))
    shape = (len(routes), len(links))
    ones = csr_matrix(
        (np.ones(len(routes.indices), np.uint64), column[routes.indices], routes.indptr), shape=shape
    )
    marks = mixed(np.arange(len(routes)))
    marked = csr_matrix(
        (np.repeat(marks, np.diff(routes.indptr)), column[routes.indices], routes.indptr), shape=shape
    )
    both = csr_matrix(ones.T @ marked).toarray()
    single = both.diagonal()
    if len(np.unique(single)) < len(single) or (single == 0).any():
        return 0
    first, second = np.triu_indices(len(links), 1)
    union = single[first] + single[second] - both[first, second]
    every = np.concatenate([single, union])
    return 2 if len(np.unique(np.sort(every))) == len(every) else 1


@cache
def tree() -> tuple[Fabric, Routes, Ints, int]:
    """The 18-ary fat tree, a 2-identifiable probe matrix on it, the links between switches, and its identifiability."""
    fabric, rng = build(fat_tree(18, hosts=1), directed=False), np.random.default_rng(1)
    links = fabric.links_of(["tor-t1", "t1-t2"])
    for paths in range(4_000, 20_000, 2_000):
        routes = between_tors(fabric, rng, paths)
        degree = identifiable(routes, links)
        if degree == 2:
            break
    return fabric, routes, links, degree


def probed(fabric: Fabric, routes: Routes, rng: np.random.Generator, failed: Ints) -> tuple[Sums, Ints]:
    """The sums of one window of probes, and how many each path lost."""
    loss = rng.uniform(0, 1e-6, len(fabric.links))
    loss[failed] = rng.uniform(1e-4, 1, len(failed))
    sent = np.full(len(routes), PROBES)
    lost = send(routes, sent, loss, rng).lost
    paths, row = path_table(fabric.links, routes)
    values = {
        name: np.bincount(row, column, minlength=len(paths)).astype(np.int64)
        for name, column in (("attempts", sent), ("failures", lost))
    }
    return Sums({"hops": paths, "layer": ("underlay",) * len(paths)}, values, len(paths)), lost


def run_trial(job: Job) -> dict[str, Tally]:
    """Answer of each method on one window; whether the analyzer would say that it cannot tell is asked with PLL."""
    fabric, routes, _, _ = tree()
    rng = np.random.default_rng([job.seed, job.failed])
    failed = draw_links(fabric, rng, job.failed, ("tor-t1", "t1-t2"))
    sums, _ = probed(fabric, routes, rng, failed)
    seen = incidence(sums.keys["hops"], sums.values["attempts"], sums.values["failures"])  # type: ignore[arg-type]
    truth = {fabric.links[link] for link in failed.tolist()}
    bad = bad_paths(seen, BAD_PATH)
    tallies = {
        method: Tally.of([seen.names[one.component] for one in solve(method, bad, least=1)], truth)
        for method in METHODS
    }
    window = Window(EPOCH, EPOCH, "simulated", "probe", {"paths": sums})
    verdict = ANALYZER.analyze(window, check_params(ANALYZER, {"method": "pll"}))
    tallies["pll"].undecided = int(verdict.status == "inconclusive")
    return tallies


def accuracy(trials: int, first: int) -> Iterator[Row]:
    fabric, routes, links, degree = tree()
    note = f"{len(links)} links, {len(routes)} paths, {fabric.hosts} ToRs"
    yield {
        "name": "identifiability of the probe matrix",
        "value": degree,
        "unit": "",
        "bar": ">= 1",
        "note": note,
    }
    whole: dict[str, Tally] = {}
    counts_of = {failed: max(4, trials * 8 // (8 + failed)) for failed in FAILED}
    # All in one go: each process finds its matrix once.
    for tallies in spread(
        run_trial, [Job(first + n, failed) for failed, count in counts_of.items() for n in range(count)]
    ):
        for method, tally in tallies.items():
            whole[method] = whole.get(method, Tally()).plus(tally)
    beside = {method: other(tally) for method, tally in whole.items() if method != "pll"}
    shown = told(
        "boolean",
        "PLL, 1 to 50 failed links",
        **counts(whole["pll"]),
        beside=beside,
        published="PLL .9887 to .9899 (their simulation, 48-ary)",
    )
    published = "; published for PLL 0.9887 to 0.9899 (48-ary, 2-identifiable), 0.903 to 0.947 (18-ary, 1-identifiable)"
    for method, tally in whole.items():
        bar = ">= 0.985" if method == "pll" else None
        note = note_of(tally) + (published if method == "pll" else "")
        yield {"name": f"accuracy, {method}, 1 to 50 links", "value": round(tally.recall, 4), "unit": "", "bar": bar,
               "note": note, **(shown if method == "pll" else {})}  # fmt: skip
        wrong = tally.false / max(1, tally.found + tally.false)
        low, high = wilson(tally.false, tally.found + tally.false)
        note = f"[{low:.4f}, {high:.4f}]" + (
            "; published for PLL 0.0001 to 0.0002" if method == "pll" else ""
        )
        yield {"name": f"share of false among named, {method}, 1 to 50 links", "value": round(wrong, 4), "unit": "",
               "bar": None, "note": note}  # fmt: skip


def largest() -> Iterator[Row]:
    """Time at 82,944 links (48-ary, the links of servers included), 50 of them failing."""
    fabric, rng = build(fat_tree(48), directed=False), np.random.default_rng(FIRST_REPORTING_SEED)
    src = np.repeat(np.arange(fabric.hosts), 4)
    dst = (src + rng.integers(1, fabric.hosts, len(src))) % fabric.hosts
    routes = fabric.route(src, dst, rng)
    sums, _ = probed(fabric, routes, rng, draw_links(fabric, rng, 50))
    began = time.process_time()
    seen = incidence(sums.keys["hops"], sums.values["attempts"], sums.values["failures"])  # type: ignore[arg-type]
    read = time.process_time() - began
    for method in METHODS:
        began = time.process_time()
        found = solve(method, bad_paths(seen, BAD_PATH), least=1)
        took = time.process_time() - began
        published = "; published for PLL: < 1 s" if method == "pll" else ""
        note = f"{sums.rows} paths, {len(found)} named; {read:.2f} s more to read the paths{published}"
        yield {"name": f"seconds at 82,944 links, {method}", "value": round(took, 3), "unit": "s",
               "bar": "<= 1" if method == "pll" else None, "note": note}  # fmt: skip


def cost() -> Iterator[Row]:
    """Growth of the analyzer's time with the paths, and its memory."""
    fabric, rng = build(fat_tree(18, hosts=1), directed=False), np.random.default_rng(FIRST_REPORTING_SEED)
    params, rows, seconds = check_params(ANALYZER, {"method": "pll"}), [], []
    for count in (10_000, 30_000, 90_000, 270_000):
        sums, _ = probed(
            fabric, between_tors(fabric, rng, count), rng, draw_links(fabric, rng, 10, ("tor-t1",))
        )
        window = Window(EPOCH, EPOCH, "simulated", "probe", {"paths": sums})
        took = []
        for _ in range(3):
            began = time.process_time()
            ANALYZER.analyze(window, params)
            took.append(time.process_time() - began)
        rows.append(sums.rows)
        seconds.append(min(took))
    slope = float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])
    note = f"{rows[0]:,} to {rows[-1]:,} paths: {', '.join(f'{one:.2f}' for one in seconds)} s"
    shown = told("boolean", seconds=f"{seconds[-1]:.2f} ({rows[-1]:,} paths)", growth=f"{slope:.2f} (paths)")
    yield {"name": "growth exponent of time in paths", "value": round(slope, 3), "unit": "", "bar": "<= 1.2",
           "note": note, **shown}  # fmt: skip
    peak = peak_memory(ANALYZER.analyze, window, params)
    yield {
        "name": "peak memory",
        "value": round(peak, 1),
        "unit": "MB",
        "bar": None,
        "note": f"{rows[-1]:,} paths",
        **told("boolean", memory=f"{peak:.0f} MB (the same)"),
    }


def main(trials: int = 60, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return list(figures(trials, first))


def figures(trials: int, first: int) -> Iterator[Row]:
    yield from accuracy(trials, first)
    yield from largest()
    yield from cost()


if __name__ == "__main__":
    script(figures, 60, FIRST_REPORTING_SEED)
