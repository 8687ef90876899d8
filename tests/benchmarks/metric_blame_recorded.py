"""Top-1 of `metric_blame` on recorded applications with injected faults, beside BARO and PRISM.

    PETSHOP_DIR=... TRACES_DIR=... python -m tests.benchmarks.metric_blame_recorded

`PETSHOP_DIR` is the directory `low_traffic` of amazon-science/petshop-root-cause-analysis: windows of five readings (25
minutes), five hours of the recording without issues before each, per metric of the symptom. The eight issues of `train`
were looked at while the method was made; those of `test` were not.

`TRACES_DIR` has the metrics of the pods of Online Boutique and TrainTicket (Yu et al., *Nezha*, FSE 2023): windows of
the six readings (six minutes) that follow an injection. Injections are eight minutes apart, so history are the 72
readings of the day that are nearest to the window and in no fault. The call graph is that of the fault-free spans.

Twins are windows without a fault, with the same length of history directly before. BARO and PRISM are told of the
fault and always name a component; `metric_blame` is not and may name none: "named" counts its verdicts, "ranked first"
its ranking, which also exists where it abstains.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from analyzers.builtin.metric_blame import ANALYZER
from analyzers.builtin.metric_blame.blame import judge
from analyzers.builtin.metric_blame.change import changes
from analyzers.builtin.metric_blame.series import observe
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import Params, Window, check_params
from analyzers.offline import choose_input
from ingest.integrations import metric_columns, spans
from ingest.telemetry.windows.offline import read_file, reduce
from tests.benchmarks.metric_blame_rivals import BASELINES

Row = dict[str, Any]

APPLICATIONS = ("online-boutique", "train-ticket")
PAST = 12
SETTLED = 7
"""Readings from an injection on that are no history."""
PARAMS = check_params(ANALYZER, {})
OURS = ("named", "ranked first")


@dataclass(frozen=True, slots=True)
class Shape:
    """Readings in a window, and the time between them."""

    readings: int
    apart: timedelta

    @property
    def length(self) -> timedelta:
        return self.readings * self.apart


PETSHOP = Shape(5, timedelta(minutes=5))
NEZHA = Shape(6, timedelta(minutes=1))


@dataclass(frozen=True, slots=True)
class Case:
    """Window with the component at fault, empty in a twin; `group` is the subsystem that figures are given for."""

    group: str
    truth: str
    window: Window


def answers_of(case: Case, params: Params = PARAMS) -> dict[str, str]:
    """The component that each method puts first, empty where it names none."""
    verdict = ANALYZER.analyze(case.window, params)
    seen = observe(case.window, params)
    outcome = judge(seen, changes(seen, seen.columns(float(params["persist_seconds"])), 12))
    found = {
        OURS[0]: verdict.suspects[0].component if verdict.suspects else "",
        OURS[1]: outcome.candidates[0].component.name if outcome.candidates else "",
    }
    return found | {name: "".join(method(case.window)) for name, method in BASELINES.items()}


def petshop(directory: Path) -> Iterator[Case]:
    normal = metric_columns.parse(gzip.decompress((directory / "noissue/metrics.csv.gz").read_bytes()))
    with (directory / "graph.csv").open() as file:
        header, *lines = list(csv.reader(file))
    calls = {
        line[0]: [to for to, on in zip(header[1:], line[1:], strict=True) if float(on)] for line in lines
    }
    for part in ("train", "test"):
        for issue in sorted((directory / part).iterdir()):
            target = json.loads((issue / "target.json").read_text())
            table = metric_columns.parse((issue / "metrics.csv").read_bytes())
            group = f"PetShop low_traffic, {part}, {target['target']['metric']}"
            yield Case(group, _named(target["root_cause"]["node"]), window_of(table, normal, calls, PETSHOP))
    yield from _twins("PetShop low_traffic", normal, calls, PETSHOP)


def nezha(root: Path, application: str) -> Iterator[Case]:
    directory = root / application
    day = _day(directory / "metrics-faulty")
    calls = _calls(directory / "normal")
    faults = json.loads((directory / "faults.json").read_text())
    starts = [_at(day, fault["epoch"]) for fault in faults]
    faulty = {at + more for at in starts for more in range(SETTLED)}
    calm = [at for at in range(len(day.times)) if at not in faulty]
    for at, fault in zip(starts, faults, strict=True):
        nearest = sorted(sorted(calm, key=lambda one: abs(one - at))[: PAST * NEZHA.readings])
        past = _at_readings(day, nearest)
        window = window_of(_part(day, at, at + NEZHA.readings), past, calls, NEZHA)
        yield Case(f"{application}, {fault['fault']}", _named(_service(fault["pod"])), window)
    begins = max(starts) + SETTLED
    yield from _twins(application, _part(day, begins, len(day.times)), calls, NEZHA)


def _at_readings(day: metric_columns.Table, readings: Sequence[int]) -> metric_columns.Table:
    """The readings as if they followed each other."""
    last = day.times[readings[-1]]
    apart = NEZHA.apart // timedelta(microseconds=1) * 1000
    times = tuple(last - apart * (len(readings) - 1 - place) for place in range(len(readings)))
    return replace(day, times=times, cells=tuple(day.cells[at] for at in readings))


def _day(directory: Path) -> metric_columns.Table:
    """Metrics of all pods, a reading a minute; NaN where a pod has none."""
    columns: dict[tuple[str, str], dict[int, float]] = {}
    for path in sorted(directory.glob("*_metric.csv.gz")):
        service = _service(path.name.removesuffix("_metric.csv.gz"))
        for row in csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines()):
            minute = round(int(row["TimeStamp"]) / 60)
            for name, text in row.items():
                if name not in ("Time", "TimeStamp", "PodName") and text:
                    columns.setdefault((service, name), {})[minute] = float(text)
    minutes = sorted({minute for cells in columns.values() for minute in cells})
    return metric_columns.Table(
        tuple(name for _, name in columns),
        tuple({"service": service} for service, _ in columns),
        tuple(minute * 60 * 10**9 for minute in minutes),
        tuple(tuple(cells.get(minute, float("nan")) for cells in columns.values()) for minute in minutes),
        (),
    )


def _calls(directory: Path) -> dict[str, list[str]]:
    found = [
        span
        for path in sorted(directory.iterdir())
        for span in spans.parse(gzip.decompress(path.read_bytes()))
    ]
    pods = {span.span: _service(span.instance) for span in found}
    calls: dict[str, set[str]] = defaultdict(set)
    for span in found:
        caller = pods.get(span.parent or "", "")
        if caller and caller != pods[span.span]:
            calls[caller].add(pods[span.span])
    return {caller: sorted(called) for caller, called in sorted(calls.items())}


def _service(pod: str) -> str:
    return pod.removeprefix("instance/").rsplit("-", 2)[0]


def _at(day: metric_columns.Table, epoch: int) -> int:
    """The first reading after a moment."""
    return next(at for at, time in enumerate(day.times) if time > epoch * 10**9)


def _part(table: metric_columns.Table, begin: int, end: int) -> metric_columns.Table:
    return replace(table, times=table.times[begin:end], cells=table.cells[begin:end])


def _twins(
    group: str, normal: metric_columns.Table, calls: Mapping[str, Sequence[str]], shape: Shape
) -> Iterator[Case]:
    for at in range(PAST * shape.readings, len(normal.times) - shape.readings + 1, shape.readings):
        now, past = _part(normal, at, at + shape.readings), _part(normal, 0, at)
        yield Case(f"{group}, twins", "", window_of(now, past, calls, shape))


def window_of(
    now: metric_columns.Table,
    past: metric_columns.Table,
    calls: Mapping[str, Sequence[str]],
    shape: Shape,
) -> Window:
    """The readings of `now` with the last of `past`, moved to just before them."""
    kept = _part(past, max(0, len(past.times) - PAST * shape.readings), len(past.times))
    shift = timedelta(microseconds=(min(now.times) - max(kept.times)) // 1000) - shape.apart
    rows = [*metric_columns.rows(kept, shift), *metric_columns.rows(now)]
    for row in rows:
        row["labels"] = {**row["labels"], "service": row["labels"]["service"].replace(" ", "_")}
    topology = [
        {"time": 0, "component": _named(caller), "depends_on": [_named(to) for to in called]}
        for caller, called in calls.items()
    ]
    tables = {"metric": _read("metric", rows), "topology": _read("topology", topology)}
    one = choose_input(ANALYZER, tables)
    start = datetime.fromtimestamp(min(now.times) // 10**9, UTC)
    windows = []
    for back in range(PAST, -1, -1):
        begin = start - back * shape.length
        sums = reduce(one, tables, begin, begin + shape.length)
        windows.append(Window(begin, begin + shape.length, "recorded", one.name, sums))
    return replace(windows[-1], history=tuple(windows[:-1]))


def _read(kind: str, rows: Sequence[Row]) -> Any:
    return read_file(kind, "-", BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


def _named(node: str) -> str:
    return "service/" + node.replace(" ", "_")


def figures(cases: Iterator[Case]) -> Iterator[Row]:
    found: dict[str, list[tuple[str, dict[str, str]]]] = defaultdict(list)
    for case in cases:
        found[case.group].append((case.truth, answers_of(case)))
    for group, judged in found.items():
        twins = group.endswith("twins")
        for method in OURS if not twins else OURS[:1]:
            if twins:
                hits = sum(bool(answers[method]) for _, answers in judged)
                yield share(f"metric_blame: {group} that name a component", hits, len(judged))
                continue
            right = sum(answers[method] == truth for truth, answers in judged)
            beside = "; ".join(
                f"{name} {sum(answers[name] == truth for truth, answers in judged)}" for name in BASELINES
            )
            wrong = sum(answers[method] not in ("", truth) for truth, answers in judged)
            yield share(
                f"metric_blame: {group}, {method}", right, len(judged), note=f"{wrong} wrong; {beside}"
            )


def share(name: str, hits: int, of: int, bar: str | None = None, note: str = "") -> Row:
    low, high = wilson(hits, of)
    text = f"[{low:.3f}, {high:.3f}], {hits} of {of}" + (f"; {note}" if note else "")
    return {
        "name": name,
        "value": round(hits / of, 4) if of else 0.0,
        "unit": "",
        "bar": bar,
        "interval": [low, high],
        "note": text,
    }


def rows() -> Iterator[Row]:
    if os.environ.get("PETSHOP_DIR"):
        yield from figures(petshop(Path(os.environ["PETSHOP_DIR"])))
    if os.environ.get("TRACES_DIR"):
        for application in APPLICATIONS:
            yield from figures(nezha(Path(os.environ["TRACES_DIR"]), application))


if __name__ == "__main__":
    from tests.benchmarks.__main__ import line

    for row in rows():
        print(line(row), flush=True)
