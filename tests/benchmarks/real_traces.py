"""Rank that Deepview gives the true instance on spans recorded from real applications with injected faults.

Reads the data that `TRACES_DIR` points to (spans and faults of Yu et al., *Nezha*, FSE 2023); the project
does not hold it. Every fault is one window: the traces that start after the injection, in the minutes that
the data set lists for it. Traces of those minutes that start before it are fault-free, and show how often an
innocent is blamed.

`python -m tests.benchmarks.real_traces` prints the tables.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analyzers import offline, registry
from analyzers.contract import Window
from analyzers.runner import judge
from ingest.integrations import spans
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS

APPS = ("online-boutique", "train-ticket")
ENOUGH = 20
"""Traces that a fault-free stretch must hold to be judged."""


def directory() -> Path | None:
    """Directory of the recorded traces, if there is one."""
    return Path(os.environ["TRACES_DIR"]) if os.environ.get("TRACES_DIR") else None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was injected into one instance; `files` are its minutes as far as they are there."""

    app: str
    injected_at: str
    epoch: int
    instance: str
    kind: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answer of the verdict on one window about the true instance.

    `place` is its rank if it leads its entry, else None. `shared` is the rank of the entry that names it,
    be it beside others that the data cannot tell apart, and `group` the size of that entry.
    """

    status: str
    traces: int
    failed: int
    place: int | None
    shared: int | None
    group: int
    named: tuple[str, ...]


Halves = tuple[list[spans.Trace], list[spans.Trace]]
"""Traces before the injection, and after it."""

Judge = Callable[[Sequence[spans.Trace], str | None], Outcome]


@cache
def traces_of(files: tuple[Path, ...]) -> tuple[spans.Trace, ...]:
    """The traces in all these files together: minutes overlap, and a trace may lie in two of them."""
    found = [span for path in files for span in spans.parse(gzip.decompress(path.read_bytes()))]
    return tuple(spans.traces(found, spans.Holes()))


def faults_of(root: Path, app: str) -> list[Fault]:
    return [
        Fault(
            app,
            fault["injected_at"],
            fault["epoch"],
            f"instance/{fault['pod']}",
            fault["fault"],
            tuple(
                p for minute in fault["minutes"] if (p := root / app / "faulty" / f"{minute}.csv.gz").exists()
            ),
        )
        for fault in json.loads((root / app / "faults.json").read_text())
    ]


def normal_of(root: Path, app: str) -> tuple[spans.Trace, ...]:
    """The fault-free minutes that the data set sets apart."""
    return traces_of(tuple(sorted((root / app / "normal").glob("*.csv.gz"))))


def split(fault: Fault) -> Halves:
    """The traces of the fault's minutes that start before the injection, and those that start after it."""
    both, injected = traces_of(fault.files), fault.epoch * 10**9
    return (
        [trace for trace in both if trace.root.start < injected],
        [trace for trace in both if trace.root.start >= injected],
    )


def rows_of(traces: Iterable[spans.Trace], normal: spans.Normal) -> Rows:
    """The traces as checked rows, through the text that `manage.py convert` writes."""
    rows = spans.path_outcomes(traces, normal, spans.Holes())
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return decode_ndjson(KINDS["path_outcome"], body, offline.REGION, Bounds())


def window_of(rows: Rows, history: tuple[Window, ...] = ()) -> Window:
    analyzer = registry.get("deepview")
    one = offline.choose_input(analyzer, ["path_outcome"])
    (window,) = offline.windows(analyzer, one, {"path_outcome": rows})
    return Window(window.start, window.end, window.region, window.input, window.sums, history)


def verdict_on(window: Window, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return judge(registry.get("deepview"), window, params)


def outcome(verdict: dict[str, Any], rows: Rows, true: str | None) -> Outcome:
    suspects = verdict["suspects"]
    place = next((one["rank"] for one in suspects if one["component"] == true), None)
    holding = [one for one in suspects if true in (one["component"], *one["ambiguous_with"])]
    failures = rows.columns["failures"]
    return Outcome(
        verdict["status"],
        rows.count,
        int(np.asarray(failures).sum()),
        place,
        holding[0]["rank"] if holding else None,
        1 + len(holding[0]["ambiguous_with"]) if holding else 0,
        tuple(one["component"] for one in suspects),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """Conversion of spans, and whether the fault-free minute is given to the method as history."""

    operations: spans.Operations = "entry"
    history: bool = False


CHOICES = {
    "as converted by default": Choice(),
    "root operations alone": Choice("root"),
    "with the fault-free minute as history": Choice(history=True),
}


def judged(
    root: Path, choice: Choice = CHOICES["as converted by default"]
) -> Iterator[tuple[Fault, Outcome]]:
    """The verdict on every fault, in order of time."""
    for fault, (_, faulty), judge_one in _windows(root, choice):
        if faulty:
            yield fault, judge_one(faulty, fault.instance)


def judged_calm(
    root: Path, choice: Choice = CHOICES["as converted by default"]
) -> Iterator[tuple[Fault, Outcome]]:
    """The verdict on every fault-free stretch before an injection that holds enough traces."""
    for fault, (calm, _), judge_one in _windows(root, choice):
        if len(calm) >= ENOUGH:
            yield fault, judge_one(calm, None)


def _windows(root: Path, choice: Choice) -> Iterator[tuple[Fault, Halves, Judge]]:
    for app in APPS:
        calm = normal_of(root, app)
        normal = spans.learn(calm, choice.operations)
        history = (window_of(rows_of(calm, normal)),) if choice.history else ()

        def judge_one(
            traces: Sequence[spans.Trace],
            true: str | None,
            normal: spans.Normal = normal,
            history: tuple[Window, ...] = history,
        ) -> Outcome:
            rows = rows_of(traces, normal)
            return outcome(verdict_on(window_of(rows, history)), rows, true)

        for fault in faults_of(root, app):
            yield fault, split(fault), judge_one


def tally(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Counts of faults whose true instance came first, in the first three, shared an entry, or was missed."""
    return {
        "faults": len(outcomes),
        "first": sum(one.place == 1 for one in outcomes),
        "first entry": sum(one.shared == 1 for one in outcomes),
        "first three": sum(one.place is not None and one.place <= 3 for one in outcomes),
        "first three entries": sum(one.shared is not None and one.shared <= 3 for one in outcomes),
        "only others": sum(one.status == "named" and one.shared is None for one in outcomes),
        "quiet": sum(one.status == "quiet" for one in outcomes),
        "inconclusive": sum(one.status == "inconclusive" for one in outcomes),
    }


def main() -> list[dict[str, Any]]:
    """Prints what every fault got; a row is a choice and a group with their counts."""
    root = directory()
    if root is None:
        print("real traces: TRACES_DIR is not set; nothing to read")
        return []
    figures = []
    for name, choice in CHOICES.items():
        found = list(judged(root, choice))
        if name == next(iter(CHOICES)):
            _print_faults(found)
        figures += [{"choice": name, **row} for row in _groups(found)]
        for app in APPS:
            calm = [one for fault, one in judged_calm(root, choice) if fault.app == app]
            blamed = sum(one.status == "named" for one in calm)
            figures.append(
                {"choice": name, "group": f"{app}, fault-free", "windows": len(calm), "blamed": blamed}
            )
    return figures


def _groups(found: Sequence[tuple[Fault, Outcome]]) -> list[dict[str, Any]]:
    groups: dict[str, list[Outcome]] = {}
    for fault, one in found:
        for group in ("all", fault.app, fault.kind):
            groups.setdefault(group, []).append(one)
    return [{"group": group, **tally(outcomes)} for group, outcomes in groups.items()]


def _print_faults(found: Sequence[tuple[Fault, Outcome]]) -> None:
    print(f"{'fault':62} traces failed  verdict       place  entry (size)  named")
    for fault, one in found:
        what = f"{fault.app} {fault.injected_at[11:]} {service(fault.instance)} {fault.kind}"
        entry = f"{one.shared} ({one.group})" if one.shared else "–"
        named = ", ".join(service(name) for name in one.named)
        counts = f"{one.traces:6} {one.failed:6}  {one.status:12}  {one.place or '–':5}"
        print(f"{what:62} {counts}  {entry:12}  {named}")


def _print_figures(figures: Sequence[dict[str, Any]]) -> None:
    for row in figures:
        counts = ", ".join(
            f"{value} {name}" for name, value in row.items() if name not in ("choice", "group")
        )
        print(f"{row['choice']:38} {row['group']:28} {counts}")


def service(instance: str) -> str:
    """The service of a pod `instance/<service>-<replica set>-<pod>`."""
    return instance.removeprefix("instance/").rsplit("-", 2)[0]


if __name__ == "__main__":
    _print_figures(main())
