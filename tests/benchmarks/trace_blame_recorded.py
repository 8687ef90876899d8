"""Accuracy of `trace_blame` on recorded traces with injected faults.

Needs `TRACES_DIR` (Yu et al., *Nezha*, FSE 2023). Every fault is one window, the traces that start
after the injection; the history is the one fault-free minute of the application. The method was made on those
faults for which the first byte of sha256("APP INJECTED_AT") is odd; those with an even one were looked at once,
at the end. Traces that start before the injection are the fault-free windows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analyzers import offline
from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.trace_blame import ANALYZER
from analyzers.contract import Verdict, Window, check_params
from ingest.integrations import spans
from ingest.integrations.span_rows import service_of, span_rows
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS
from tests.benchmarks.glance import told
from tests.benchmarks.real_traces import APPS, ENOUGH, Fault, faults_of, normal_of, split

Row = dict[str, Any]


PUBLISHED = {"online-boutique": 0.929, "train-ticket": 0.867}


@dataclass(frozen=True, slots=True)
class Place:
    """Place of the true service in a verdict: its rank among the suspects, None if it is not named."""

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
    (window,) = offline.windows(ANALYZER, offline.choose_input(ANALYZER, ["span"]), {"span": table})
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
        "interval": [low, high],
        **_recorded_cells(places, name),
        "note": f"{first} of {len(places)} [{low:.3f}, {high:.3f}], first three {three}, quiet {quiet}, "
        f"others named {others}{published}",
    }


def _recorded_cells(places: Sequence[Place], name: str) -> Row:
    """Rows of the analyzers at a glance: each application, on its recorded faults."""
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
