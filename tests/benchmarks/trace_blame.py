"""Accuracy of `trace_blame` on recorded traces with injected faults, and on simulated ones.

    python -m tests.benchmarks.trace_blame [--trials N] [--first SEED] [--calibrate]

*Recorded*: see `trace_blame_recorded` (needs `TRACES_DIR`).

*Simulated* (`analyzers.simulators.traces`): windows of a minute after six healthy minutes, seeds from
`FIRST_REPORTING_SEED` on. A fault counts as found if the faulty service, or one of its instances, comes first;
`exact` wants the true component, instance or service. Anything else that is named is a false blame.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.trace_blame.analyzer import HISTORY
from analyzers.contract import Window
from analyzers.simulators.trace_rows import case, truth_of
from analyzers.simulators.trace_rows import window as cut
from analyzers.simulators.traces import (
    BENIGN,
    FAULTS,
    FIRST_REPORTING_SEED,
    build_system,
    draw_fault,
    record,
)
from tests.benchmarks.glance import told
from tests.benchmarks.real_traces import directory
from tests.benchmarks.scoring import monotone, spread, windows_row, windows_until
from tests.benchmarks.script import script
from tests.benchmarks.trace_blame_recorded import recorded_rows, verdict_on
from tests.benchmarks.trace_blame_stretches import rows as stretch_rows
from tests.benchmarks.worlds import reliability
from tests.benchmarks.worlds_trace_blame import SIMPLE

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    seed: int
    fault: str | None = None
    benign: str | None = None
    margin: float = 3.0


@dataclass(frozen=True, slots=True)
class Told:
    """Result of one simulated window; `evidence` are (log odds, at fault) of everything named."""

    found: bool = False
    exact: bool = False
    named: int = 0
    false: int = 0
    inconclusive: bool = False
    evidence: tuple[tuple[float, bool], ...] = ()
    stated: tuple[tuple[float, bool], ...] = ()
    beside: tuple[tuple[str, bool, bool], ...] = ()
    """Simpler methods on the same window: the name, whether it names the faulty service, and another one."""


def run(job: Job) -> Told:
    window, system, fault = case(job.seed, job.fault, job.benign)
    verdict = verdict_on(window, margin=job.margin)
    names = [one.component for one in verdict.suspects]
    if fault is None:
        guilty, true = set[str](), ""
    else:
        true = truth_of(system, fault)
        guilty = {f"service/{system.services[fault.service]}"}
        guilty |= {f"instance/{pod}" for pod in system.replicas[fault.service]}
    table = next((one for one in verdict.evidence if one.title == "Blamed"), None)
    weighed = tuple((float(row[2]), row[0] in guilty) for row in table.rows) if table else ()
    leads = {names[0], *verdict.suspects[0].ambiguous_with} if names else set[str]()
    return Told(
        found=bool(names) and names[0] in guilty,
        exact=true in leads,
        named=len(names),
        false=sum(name not in guilty for name in names),
        inconclusive=verdict.status == "inconclusive",
        evidence=weighed,
        stated=tuple(
            (one.score, bool({one.component, *one.ambiguous_with} & guilty))
            for one in verdict.suspects
            if one.score is not None
        ),
        beside=tuple(
            (name, any(one in guilty for one in said), any(one not in guilty for one in said))
            for name, method in SIMPLE.items()
            for said in [method(window)]
        ),
    )


def beside(seen: Sequence[Told], place: int) -> str:
    """Rate at which each simpler method names the faulty service (1), or another one (2), with intervals."""
    found = []
    for name in SIMPLE:
        hits = sum(one[place] is True for each in seen for one in each.beside if one[0] == name)
        low, high = wilson(hits, len(seen))
        found.append(f"{name} {hits / len(seen):.3f} [{low:.3f}, {high:.3f}]")
    return ", ".join(found)


def simulated_rows(trials: int, first: int) -> Iterator[Row]:
    stated: list[tuple[float, bool]] = []
    for kind in FAULTS:
        seen = spread(run, [Job(first + n, kind) for n in range(trials)])
        stated += [pair for one in seen for pair in one.stated]
        yield fault_row(kind, seen)
    healthy = spread(run, [Job(first + n) for n in range(2 * trials)])
    stated += [pair for one in healthy for pair in one.stated]
    yield false_row("healthy", healthy, "<= 0.02")
    yield from reliability("trace_blame, simulator", stated, of="trace_blame")
    for kind in FAULTS:
        taken = spread(until_ticket, [Job(first + n, kind) for n in range(trials)])
        row = windows_row(f"simulated, {kind}: windows until an incident", taken, "windows")
        never = sum(one is None for one in taken)
        late = f", {never} of {len(taken)} never" if never else ""
        yield row | told("trace_blame", _called(kind), time=f"{row['value']} window{late}")
    for benign in BENIGN:
        seen = spread(run, [Job(first + n, benign=benign) for n in range(trials)])
        yield false_row(benign.replace("_", " "), seen, None)


def _called(kind: str) -> str:
    return f"simulated, {kind.replace('_', ' ')}"


def fault_row(kind: str, seen: Sequence[Told]) -> Row:
    found, named = sum(one.found for one in seen), sum(one.named for one in seen)
    false, exact = sum(one.false for one in seen), sum(one.exact for one in seen)
    low, high = wilson(found, len(seen))
    p_low, p_high = wilson(named - false, named)
    return {
        "name": f"simulated F1, {kind}",
        "value": round(2 * found / max(1, len(seen) + found + false), 3),
        "unit": "",
        "bar": None,
        **told(
            "trace_blame",
            _called(kind),
            precision=[named - false, named],
            recall=[found, len(seen)],
            undecided=[sum(one.inconclusive for one in seen), len(seen)],
        ),
        "note": f"recall {found / len(seen):.3f} [{low:.3f}, {high:.3f}], precision "
        f"{(named - false) / max(1, named):.3f} [{p_low:.3f}, {p_high:.3f}], exact component "
        f"{exact / len(seen):.3f}, quiet {sum(not one.named for one in seen)}, {len(seen)} windows; "
        f"beside it recall {beside(seen, 1)}, "
        f"windows with a wrong name {beside(seen, 2)}",
    }


def false_row(name: str, seen: Sequence[Told], bar: str | None) -> Row:
    accused = sum(bool(one.named) for one in seen)
    low, high = wilson(accused, len(seen))
    undecided = [sum(one.inconclusive for one in seen), len(seen)]
    calm = told("trace_blame", healthy=[accused, len(seen)], healthy_undecided=undecided)
    return (calm if name == "healthy" else {}) | {
        "name": f"simulated false blames per window, {name}",
        "value": round(sum(one.false for one in seen) / len(seen), 4),
        "unit": "",
        "bar": bar,
        "interval": [low, high],
        "note": f"windows that accuse anyone {accused} of {len(seen)} [{low:.4f}, {high:.4f}], "
        f"inconclusive {sum(one.inconclusive for one in seen)}; beside it {beside(seen, 2)}",
    }


WATCHED = 5
"""Windows for which a fault lasts where it is asked how many it takes until an incident."""


def until_ticket(job: Job) -> int | None:
    """Windows from the first that is faulty until an incident, each judged by the six before it, faulty ones
    included.
    """
    rng = np.random.default_rng([job.seed, 9])
    system = build_system(rng, 12, 150.0, 3)
    fault = draw_fault(system, rng, str(job.fault))
    guilty = {f"service/{system.services[fault.service]}"}
    guilty |= {f"instance/{pod}" for pod in system.replicas[fault.service]}
    windows: list[Window] = []
    seen = []
    for minute in range(HISTORY + WATCHED):
        past = tuple(replace(one, history=()) for one in windows[-HISTORY:])
        windows.append(cut(record(system, rng, minute, fault if minute >= HISTORY else None), minute, past))
        if minute >= HISTORY:
            suspects = [one for one in verdict_on(windows[-1]).suspects if one.component in guilty]
            seen.append((bool(suspects), any(one.sure for one in suspects)))
    return windows_until(seen)


def _sized(requests: float) -> tuple[int, float, float]:
    """Spans of window and history, seconds of the analysis, and peak megabytes of the whole process, in which
    making the window has its share.
    """
    window, _, _ = case(1, "network_delay", history=1, services=40, requests=requests)
    rows = window.sums["spans"].rows + window.history[0].sums["spans"].rows
    began = time.process_time()
    verdict_on(window)
    seconds = time.process_time() - began
    return rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def growth_rows(sizes: Sequence[float] = (4_000, 16_000, 70_000)) -> list[Row]:
    measured = []
    for requests in sizes:
        with get_context("spawn").Pool(1) as pool:
            measured.append(pool.apply(_sized, (requests,)))
    (low, fast, _), (high, slow, megabytes) = measured[0], measured[-1]
    note = ", ".join(f"{rows:,} spans {seconds:.1f} s" for rows, seconds, _ in measured)
    exponent = math.log(slow / fast) / math.log(high / low)
    shown = told(
        "trace_blame",
        seconds=f"{slow:.1f} ({high:,} spans)",
        memory=f"{megabytes:,.0f} MB (the same, and the simulation)",
        growth=f"{exponent:.2f} (spans)",
    )
    return [
        {
            "name": "growth exponent of the seconds in spans",
            "value": round(exponent, 2),
            "unit": "",
            "bar": "<= 1.2",
            "note": note,
            **shown,
        },
        {"name": "spans analysed per second", "value": round(high / slow), "unit": "1/s", "bar": None},
        {
            "name": "peak memory of the process",
            "value": round(megabytes),
            "unit": "MB",
            "bar": None,
            "note": f"at {high:,} spans, the simulation that made them included",
        },
    ]


def calibration(trials: int) -> list[tuple[float, float]]:
    """Pairs of log odds and the share truly at fault, from tuning seeds."""
    kinds = (*FAULTS, *(None,) * len(FAULTS))
    jobs = [Job(n, kinds[n % len(kinds)], margin=-2.0) for n in range(trials)]
    pairs = [pair for one in spread(run, jobs) for pair in one.evidence]
    return monotone(pairs)


def main(trials: int = 40, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return list(figures(trials, first))


def figures(trials: int, first: int) -> Iterator[Row]:
    root = directory()
    if root is None:
        print("recorded traces: TRACES_DIR is not set; nothing to read")
    else:
        yield from recorded_rows(root)
        yield from stretch_rows(root, SIMPLE)
    yield from simulated_rows(trials, first)
    yield from growth_rows()


if __name__ == "__main__":
    script(figures, 40, FIRST_REPORTING_SEED, calibration)
