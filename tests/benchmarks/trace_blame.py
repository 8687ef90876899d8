"""How often `trace_blame` is right: on recorded traces with injected faults, and on simulated ones.

    python -m tests.benchmarks.trace_blame [--trials N] [--first SEED] [--calibrate]

*Recorded* (needs `TRACES_DIR`; Yu et al., *Nezha*, FSE 2023): every fault is one window, the traces that start
after the injection; the history is the one fault-free minute of the application. The method was made on those
faults for which the first byte of sha256("APP INJECTED_AT") is odd; those with an even one were looked at once,
at the end. Traces that start before the injection are the fault-free windows.

*Simulated* (`analyzers.simulators.traces`): windows of a minute after six healthy minutes, seeds from
`FIRST_REPORTING_SEED` on. A fault counts as found if the faulty service, or one of its instances, comes first;
`exact` wants the true component, instance or service. Anything else that is named is a false blame.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from analyzers import offline
from analyzers.builtin.trace_blame import ANALYZER
from analyzers.builtin.trace_blame.analysis import HISTORY
from analyzers.builtin.wilson import wilson
from analyzers.contract import Verdict, Window
from analyzers.params import check_params
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
from ingest.doors import spans
from ingest.doors.span_rows import service_of, span_rows
from ingest.telemetry.check import Bounds
from ingest.telemetry.decode_json import decode_ndjson
from ingest.telemetry.kinds import KINDS
from tests.benchmarks.glance import told
from tests.benchmarks.real_traces import APPS, ENOUGH, Fault, directory, faults_of, normal_of, split
from tests.benchmarks.scoring import monotone, spread, windows_row, windows_until

Row = dict[str, Any]

PUBLISHED = {"online-boutique": 0.929, "train-ticket": 0.867}


@dataclass(frozen=True, slots=True)
class Place:
    """What a verdict said about the true service: its rank among the suspects, None if it is not named."""

    fault: Fault
    status: str
    rank: int | None
    first: str | None
    others: int


def held_out(fault: Fault) -> bool:
    """Whether the fault was kept aside while the method was made."""
    return hashlib.sha256(f"{fault.app} {fault.injected_at}".encode()).digest()[0] % 2 == 0


def window_of(traces: Iterable[spans.Trace], history: tuple[Window, ...] = ()) -> Window:
    """Through the text that `manage.py convert --to span` writes, and the reader of files."""
    rows = span_rows(span for trace in traces for span in trace.spans)
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    table = decode_ndjson(KINDS["span"], body, offline.REGION, Bounds())
    (window,) = offline.windows(ANALYZER, ANALYZER.inputs[0], {"span": table})
    return Window(window.start, window.end, window.region, window.input, window.sums, history)


def verdict_on(window: Window, **more: object) -> Verdict:
    return ANALYZER.analyze(window, check_params(ANALYZER, more))


def recorded(root: Any, whole: bool = False) -> Iterator[tuple[Place, Verdict | None]]:
    """Each fault's place, with the verdict on the fault-free stretch before it, if that is long enough.

    `whole` takes the minutes of the fault as they are, with what came before the injection.
    """
    for app in APPS:
        history = (window_of(normal_of(root, app)),)
        for fault in faults_of(root, app):
            calm, faulty = split(fault)
            if not faulty:
                continue
            place = _placed(fault, verdict_on(window_of([*calm, *faulty] if whole else faulty, history)))
            yield place, verdict_on(window_of(calm, history)) if len(calm) >= ENOUGH else None


def _placed(fault: Fault, verdict: Verdict) -> Place:
    true = service_of(fault.instance.removeprefix("instance/"))
    named = [_service(one.component) for one in verdict.suspects]
    rank = named.index(true) + 1 if true in named else None
    return Place(fault, verdict.status, rank, named[0] if named else None, sum(one != true for one in named))


def _service(component: str) -> str:
    kind, _, name = component.partition("/")
    return name if kind == "service" else service_of(name)


def recorded_rows(root: Any) -> list[Row]:
    found = list(recorded(root))
    places = [place for place, _ in found]
    rows = [_recorded_row(places, "all", ">= 0.75")]
    groups = {app: [one for one in places if one.fault.app == app] for app in APPS}
    groups |= {kind: [one for one in places if one.fault.kind == kind] for kind in _kinds(places)}
    groups["made on these"] = [one for one in places if not held_out(one.fault)]
    groups["kept aside"] = [one for one in places if held_out(one.fault)]
    rows += [_recorded_row(group, name, None) for name, group in groups.items()]
    mixed = [place for place, _ in recorded(root, whole=True)]
    rows.append(_recorded_row(mixed, "whole minutes, up to four fifths of them before the fault", None))
    calm = [(place, verdict) for place, verdict in found if verdict is not None]
    rows += [
        _calm_row(calm, "all", "<= 0"),
        _calm_row([one for one in calm if held_out(one[0].fault)], "kept aside", None),
    ]
    return [*rows, _normal_row(root)]


def _kinds(places: Sequence[Place]) -> list[str]:
    return sorted({one.fault.kind for one in places})


def _recorded_row(places: Sequence[Place], name: str, bar: str | None) -> Row:
    first, three = (sum(one.rank is not None and one.rank <= top for one in places) for top in (1, 3))
    quiet, others = sum(one.status == "quiet" for one in places), sum(one.others for one in places)
    low, high = wilson(first, len(places))
    published = f"; Nezha's authors, with logs and metrics: {PUBLISHED[name]}" if name in PUBLISHED else ""
    return {
        "name": f"recorded: true service first, {name}",
        "value": round(first / max(1, len(places)), 3),
        "unit": "",
        "bar": bar,
        **_recorded_cells(places, name),
        "note": f"{first} of {len(places)} [{low:.3f}, {high:.3f}], first three {three}, quiet {quiet}, "
        f"others named {others}{published}",
    }


def _recorded_cells(places: Sequence[Place], name: str) -> Row:
    """What the analyzers at a glance show: each application, on its recorded faults."""
    if name not in PUBLISHED:
        return {}
    first, others = sum(one.rank == 1 for one in places), sum(one.others for one in places)
    undecided = sum(one.status == "inconclusive" for one in places)
    return told(
        "trace_blame",
        f"recorded, {name}",
        precision=[first, first + others],
        recall=[first, len(places)],
        undecided=[undecided, len(places)],
        time="one window a fault is recorded",
        published=f"{PUBLISHED[name]} (their data, with logs and metrics)",
    )


def _calm_row(calm: Sequence[tuple[Place, Verdict]], name: str, bar: str | None) -> Row:
    blamed = sum(bool(verdict.suspects) for _, verdict in calm)
    low, high = wilson(blamed, len(calm))
    return {
        "name": f"recorded: fault-free stretches that blame someone, {name}",
        "value": blamed,
        "unit": "",
        "bar": bar,
        "note": f"of {len(calm)} with at least {ENOUGH} traces [{max(0.0, low):.3f}, {high:.3f}]",
    }


def _normal_row(root: Any) -> Row:
    """Each half of a fault-free minute, judged with the other as its history."""
    blamed = judged = 0
    for app in APPS:
        traces = normal_of(root, app)
        halves = traces[: len(traces) // 2], traces[len(traces) // 2 :]
        for now, before in (halves, halves[::-1]):
            verdict = verdict_on(window_of(now, (window_of(before),)))
            judged += verdict.status != "inconclusive"
            blamed += bool(verdict.suspects)
    return {
        "name": "recorded: halves of fault-free minutes that blame someone",
        "value": blamed,
        "unit": "",
        "bar": "<= 0",
        "note": f"of {judged} judged by the other half",
    }


@dataclass(frozen=True, slots=True)
class Job:
    seed: int
    fault: str | None = None
    benign: str | None = None
    margin: float = 3.0


@dataclass(frozen=True, slots=True)
class Told:
    """What one simulated window gave; `evidence` are (log odds, at fault) of everything named."""

    found: bool = False
    exact: bool = False
    named: int = 0
    false: int = 0
    inconclusive: bool = False
    evidence: tuple[tuple[float, bool], ...] = ()


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
    )


def simulated_rows(trials: int, first: int) -> Iterator[Row]:
    for kind in FAULTS:
        yield fault_row(kind, spread(run, [Job(first + n, kind) for n in range(trials)]))
    healthy = spread(run, [Job(first + n) for n in range(2 * trials)])
    yield false_row("healthy", healthy, "<= 0.02")
    for kind in FAULTS:
        taken = spread(until_ticket, [Job(first + n, kind) for n in range(trials)])
        row = windows_row(f"simulated, {kind}: windows until a ticket", taken, "windows")
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
        f"{exact / len(seen):.3f}, quiet {sum(not one.named for one in seen)}, {len(seen)} windows",
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
        "note": f"windows that accuse anyone {accused} of {len(seen)} [{low:.4f}, {high:.4f}], "
        f"inconclusive {sum(one.inconclusive for one in seen)}",
    }


WATCHED = 5
"""Windows for which a fault lasts where it is asked how many it takes until a ticket."""


def until_ticket(job: Job) -> int | None:
    """Windows from the first that is faulty until a ticket, each judged by the six before it, faulty ones included."""
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
    yield from simulated_rows(trials, first)
    yield from growth_rows()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED)
    parser.add_argument("--calibrate", action="store_true")
    arguments = parser.parse_args()
    if arguments.calibrate:
        for pair in calibration(arguments.trials):
            print(pair)
    else:
        from tests.benchmarks.__main__ import line

        for row in figures(arguments.trials, arguments.first):
            print(line(row), flush=True)
