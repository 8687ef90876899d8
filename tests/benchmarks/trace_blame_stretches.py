"""Recorded stretches, spans alone and spans with logs, each judged by other fault-free stretches of its application.

Needs `TRACES_DIR` (Yu et al., *Nezha*, FSE 2023). The minutes of a fault are cut at its injection: traces that start
before it are a calm stretch, those after it a faulty one. The history of both are calm stretches of other faults, in
`HISTORIES` different choices, so that no recording is judged by itself. Intervals count faults, not judged windows.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analyzers import offline
from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.trace_blame import ANALYZER
from analyzers.builtin.trace_blame.analyzer import KNOWN
from analyzers.contract import Window
from ingest.integrations import spans
from ingest.integrations.logs import lines
from ingest.integrations.logs.templates import Record, Templates, count_rows
from ingest.integrations.span_rows import service_of, span_rows
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS
from tests.benchmarks.real_traces import APPS, ENOUGH, Fault, faults_of, split
from tests.benchmarks.trace_blame_recorded import Row, verdict_on
from tests.benchmarks.worlds import reliability

Method = Callable[[Window], Sequence[str]]

HISTORIES = 3
TIMED = ("cpu_contention", "cpu_consumed", "network_delay")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Windows recorded before a fault was injected (None: too little), and after it; with logs or without."""

    fault: Fault
    calm: Window | None
    faulty: Window | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Answer on one window: the service that comes first with what was stated, all others, and the truth (empty:
    fault-free).
    """

    app: str
    kind: str
    fault: str
    first: str
    others: tuple[str, ...]
    stated: tuple[tuple[float, bool], ...]
    status: str
    true: str


def stretches(root: Path, app: str, logs: bool) -> list[Stretch]:
    """All of an application; with `logs` those that have log files."""
    found = []
    for fault in faults_of(root, app):
        files = [root / app / "logs-faulty" / path.name for path in fault.files]
        if logs and not all(path.exists() for path in files):
            continue
        records = [one for path in files for one in _records(path)] if logs else None
        calm, faulty = split(fault)
        at = fault.epoch * 10**9
        before = None if records is None else [one for one in records if one.time < at]
        after = None if records is None else [one for one in records if one.time >= at]
        found.append(
            Stretch(
                fault,
                _window(calm, before) if len(calm) >= ENOUGH else None,
                _window(faulty, after) if faulty else None,
            )
        )
    return found


def _records(path: Path) -> list[Record]:
    return lines.parse(gzip.decompress(path.read_bytes()))[0]


def _window(traces: Sequence[spans.Trace], records: Sequence[Record] | None) -> Window:
    """Through the text that `manage.py convert` writes, and the reader of files."""
    rows = {"span": span_rows(span for trace in traces for span in trace.spans)}
    if records is not None:
        rows["log_count"] = count_rows(records, Templates())
    tables = {
        kind: decode_ndjson(
            KINDS[kind], "".join(json.dumps(row) + "\n" for row in each).encode(), offline.REGION, Bounds()
        )
        for kind, each in rows.items()
    }
    (window,) = offline.windows(ANALYZER, offline.choose_input(ANALYZER, list(tables)), tables)
    return replace(window, history=())


def cases(found: Sequence[Stretch]) -> Iterator[tuple[Stretch, Window, bool]]:
    """Every window with a history, and whether it is faulty."""
    for place, one in enumerate(found):
        others = [other.calm for other in (*found[place + 1 :], *found[:place]) if other.calm is not None]
        for turn in range(HISTORIES):
            history = tuple(sorted(others[turn::HISTORIES][:KNOWN], key=lambda each: each.start))
            for window, faulty in ((one.calm, False), (one.faulty, True)):
                if window is not None:
                    yield one, replace(window, history=history), faulty


def judged(root: Path, app: str, logs: bool) -> Iterator[Judged]:
    for one, window, faulty in cases(stretches(root, app, logs)):
        verdict = verdict_on(window)
        true = service_of(one.fault.instance.removeprefix("instance/")) if faulty else ""
        names = [_service(suspect.component) for suspect in verdict.suspects]
        stated = tuple(
            (suspect.score or 0.0, name == true)
            for suspect, name in zip(verdict.suspects, names, strict=True)
        )
        kind = one.fault.kind if faulty else "calm"
        first = names[0] if names else ""
        yield Judged(app, kind, one.fault.injected_at, first, tuple(names[1:]), stated, verdict.status, true)


def simple(root: Path, app: str, methods: Mapping[str, Method]) -> Iterator[tuple[str, Judged]]:
    """The simpler methods on the same windows; they read spans."""
    for one, window, faulty in cases(stretches(root, app, logs=False)):
        true = service_of(one.fault.instance.removeprefix("instance/")) if faulty else ""
        kind = one.fault.kind if faulty else "calm"
        for name, method in methods.items():
            first, *others = [_service(said) for said in method(window)] or [""]
            status = "named" if first else "quiet"
            yield name, Judged(app, kind, one.fault.injected_at, first, tuple(others), (), status, true)


def _service(component: str) -> str:
    kind, _, name = component.partition("/")
    return name if kind == "service" else service_of(name)


def figures(label: str, found: Sequence[Judged], barred: bool) -> Iterator[Row]:
    """Calm windows that blame somebody, right among the named, and faults by kind, over the faults of `found`."""
    calm, faulty = ([one for one in found if (one.true == "") == quiet] for quiet in (True, False))
    yield _row(
        f"{label}: calm stretches that blame somebody", calm, lambda one: bool(one.first), "<= .03", barred
    )
    named = [one for one in found if one.first]
    yield _row(f"{label}: right among named", named, lambda one: one.first == one.true, ">= .9", barred)
    timed, told = ([one for one in faulty if (one.kind in TIMED) == timely] for timely in (True, False))
    yield _row(f"{label}: CPU, network first", timed, lambda one: one.first == one.true, ">= .85", barred)
    yield _row(f"{label}: exception, return first", told, lambda one: one.first == one.true, ">= .6", barred)
    for kind in sorted({one.kind for one in faulty}):
        mine = [one for one in faulty if one.kind == kind]
        yield _row(f"{label}: {kind} first", mine, lambda one: one.first == one.true, "", False)


def _row(name: str, found: Sequence[Judged], holds: Callable[[Judged], bool], bar: str, barred: bool) -> Row:
    """A share, with the interval of as many trials as there are faults behind it."""
    if not found:
        return {"name": name, "value": "not recorded", "note": "no such windows in this data"}
    hits, faults = sum(map(holds, found)), len({(one.app, one.fault) for one in found})
    low, high = wilson(round(hits * faults / len(found)), faults)
    undecided = sum(one.status == "inconclusive" for one in found)
    return {
        "name": name,
        "value": round(hits / len(found), 3),
        "bar": bar if barred else None,
        "interval": [low, high],
        "note": f"{hits} of {len(found)}, {faults} recordings [{low:.3f}, {high:.3f}], inconclusive {undecided}",
    }


def rows(root: Path, methods: Mapping[str, Method]) -> Iterator[Row]:
    """Both applications, spans alone and with logs where they are recorded, and the simpler methods."""
    stated: list[tuple[float, bool]] = []
    for logs, method in ((False, "spans alone"), (True, "spans and logs")):
        for app in APPS:
            found = list(judged(root, app, logs))
            stated += [pair for one in found for pair in one.stated]
            yield from figures(f"recorded, {app}, {method}", found, barred=len(found) >= ENOUGH)
    yield from reliability("recorded", stated)
    for name in methods:
        found = [one for app in APPS for said, one in simple(root, app, methods) if said == name]
        yield from figures(f"recorded, {name}", found, barred=False)
