"""The analyzers at a glance: five tables in Markdown, made of what the parts of `make bench` measured: both generators
side by side, faults of the simulators, cases of second generators with those where an analyzer breaks, analyzers as a
whole, and whether stated probabilities are true.

python -m tests.benchmarks.glance [BENCH.JSON ...]

A row of a part may carry cells for these tables (`told`); `make bench` prints them at its end, this command from files
that it wrote, of which a later one takes the place of the parts that it has. What nobody measured says why.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from analyzers.builtin.stats.probability import wilson
from tests.benchmarks.scoring import EDGES, Tally

Row = dict[str, Any]
Cells = dict[str, Any]

ORDER = (
    "deepview",
    "voting",
    "boolean",
    "netbouncer",
    "pingmesh",
    "c4d",
    "panorama",
    "trace_blame",
    "validator",
    "tor_availability",
    "availability",
    "colocation",
    "selector",
    "config_risk",
    "failure_forecast",
    "straggler",
    "changepoint",
    "metric_blame",
    "perftracker",
    "skeletonhunter",
    "fusion",
)
SIDES = (
    "analyzer, all faults and cases",
    "simulator: precision",
    "recall",
    "second generator: precision",
    "recall",
    "simpler methods on the second generator: precision / recall",
    "stated minus true, both generators",
)
FAULTS = (
    "analyzer, fault",
    "precision",
    "recall",
    "F1",
    "time to detect, median",
    "inconclusive",
    "simpler methods: precision / recall",
    "the authors', their own result",
)
SECOND = (
    "analyzer, cases of the second generator",
    "precision",
    "recall",
    "F1",
    "inconclusive",
    "simpler methods: precision / recall",
)
BREAKS = 0.95
"""Precision and recall below which a case has a row of its own."""
RELIABILITY = (
    "analyzer: stated minus true, by what is stated",
    *(f"{low:g} to {high:g}" for low, high in pairwise(EDGES)),
)
ENOUGH, WITHIN, WITHIN_STRESS = 50, 0.05, 0.1
"""Suspects in a bin from which on it is held to what may be stated more than true, and how much that is: more where
an assumption of the method is broken."""
WHOLES = (
    "analyzer",
    "healthy that accuse anyone",
    "the same on the second generator",
    "inconclusive in them",
    "benign events that accuse anyone",
    "seconds (CPU)",
    "memory",
    "time grows as n to the",
)
NOBODY = "accuses nobody"
_SECOND, _NOBODY_NAMED = "second generator", "– (nobody named)"
WHY: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "deepview": {"time": "asked of stop and gray", "beside": "not asked of this kind"},
        "voting": {"time": "asked of one link"},
        "boolean": {"time": "each window by itself"},
        "netbouncer": {"time": "asked of 5 %", "beside": "asked at 5 %"},
        "pingmesh": {"time": "not asked of this kind", "beside": "it knows no such pattern"},
        "c4d": {"beside": "none known", **dict.fromkeys(("seconds", "memory", "growth"), "not measured")},
        "validator": {"time": "asked where all are found", "beside": "they know no day before"},
        "trace_blame": {"beside": "see Real traces: `deepview`"},
        "tor_availability": {"beside": "none known"},
        "availability": {"beside": "none known"},
        "colocation": {
            **dict.fromkeys(("precision", "f1", "time", "undecided"), "a ratio: how often its interval held"),
            "beside": "the bare ratio, at the right",
            **dict.fromkeys(("healthy", "healthy_second", "healthy_undecided", "benign"), NOBODY),
        },
        "straggler": {"time": "each window by itself"},
        "changepoint": {
            **dict.fromkeys(("precision", "f1", "time"), "series beside CUSUM and PELT, see its page"),
            **dict.fromkeys(("benign", "seconds", "memory", "growth"), "not measured"),
        },
        "perftracker": {"time": "one profile each"},
        "skeletonhunter": {
            "time": "each window by itself",
            "beside": "asked of the second generator",
            **dict.fromkeys(("memory", "growth"), "not measured"),
        },
        "selector": {
            **dict.fromkeys(("healthy", "healthy_second", "healthy_undecided", "benign"), NOBODY),
            "undecided": "probabilities are asked",
            "beside": "see Selector: costs of fixed plans",
        },
        "fusion": {
            **dict.fromkeys(("precision", "f1"), "asked who comes first"),
            **dict.fromkeys(("time", "undecided"), "that of its analyzers"),
            **dict.fromkeys(("seconds", "memory", "growth"), "a sum"),
            **dict.fromkeys(("healthy_undecided", "benign"), "those of its analyzers"),
        },
    }
)
"""Reason for a cell without a figure, by analyzer."""


def told(analyzer: str, fault: str = "", **cells: object) -> Row:
    """Cells for a row of a part to carry; without a fault they are of the analyzer as a whole. Pairs are (hits, of),
    and those told twice are added.

    Of a fault: `precision`, `recall`, `undecided`, `time`, `published`, and `beside`: other methods by name with
    (found, named, found, true). Faults whose name begins with `second generator` are cases of one, on worlds that
    share nothing with the simulators. Of an analyzer: `healthy`, `healthy_second`, `healthy_undecided`, `benign`,
    `seconds`, `memory`, `growth`, and `stated` and `stated_stress` as `scoring.by_bins` counts them.
    """
    return {"glance": {"analyzer": analyzer, "fault": fault, **cells}}


def counts(tally: Tally) -> Cells:
    """The cells of a tally of windows with a fault."""
    return {
        "precision": [tally.found, tally.found + tally.false],
        "recall": [tally.found, tally.found + tally.missed],
        "undecided": [tally.undecided, tally.windows],
    }


def other(tally: Tally) -> list[int]:
    """Another method on the same windows."""
    return [tally.found, tally.found + tally.false, tally.found, tally.found + tally.missed]


def lines(results: Mapping[str, Sequence[Row] | None]) -> Iterator[str]:
    """The tables; nothing where no part told anything."""
    gathered = gather(results)
    keys = [key for name in ORDER for key in gathered if key[0] == name]
    faults = [key for key in keys if key[1] and not key[1].startswith(_SECOND)]
    wholes = [key for key in keys if not key[1]]
    yield from _table(SIDES, _side_by_side(gathered))
    yield from _table(FAULTS, (_of_fault(key, gathered[key]) for key in faults))
    yield from _table(SECOND, _of_second({key: gathered[key] for key in keys if key[1].startswith(_SECOND)}))
    some = [key for key in wholes if set(gathered[key]) - {"stated", "stated_stress"}]
    yield from _table(WHOLES, (_of_whole(key[0], gathered[key]) for key in some))
    yield from _table(RELIABILITY, _of_stated({key[0]: gathered[key] for key in wholes}))


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    shown = [f"| {' | '.join(cells)} |" for cells in rows]
    if shown:
        yield from (f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *shown, "")


def gather(results: Mapping[str, Sequence[Row] | None]) -> dict[tuple[str, str], Cells]:
    """The cells by analyzer and fault, in the order in which the faults were told of."""
    gathered: dict[tuple[str, str], Cells] = {}
    for rows in results.values():
        for row in rows or ():
            if "glance" in row:
                cells = dict(row["glance"])
                key = cells.pop("analyzer"), cells.pop("fault")
                held = gathered.setdefault(key, {})
                for name, value in cells.items():
                    held[name] = _joined(held[name], value) if name in held else value
    return gathered


def _joined(old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        return {**old, **new}
    if isinstance(new, str):
        return new if new == old else f"{old}; {new}"
    return [a + b for a, b in zip(old, new, strict=True)]


def _side_by_side(gathered: Mapping[tuple[str, str], Cells]) -> Iterator[Iterator[str]]:
    """Analyzers measured on both generators: all faults of the simulator together, and all cases of the second one."""
    for name in ORDER:
        mine = {fault: cells for (of, fault), cells in gathered.items() if of == name and "recall" in cells}
        second = [cells for fault, cells in mine.items() if fault.startswith(_SECOND)]
        simulated = [cells for fault, cells in mine.items() if not fault.startswith(_SECOND)]
        if second and simulated:
            sums = [_summed(cells) for cells in (simulated, second)]
            shares = [_share(name, column, cells) for cells in sums for column in ("precision", "recall")]
            beside = "; ".join(_beside(*one) for one in sums[1]["beside"].items()) or "none asked"
            yield iter((f"`{name}`", *shares, beside, _stated_over_all(gathered.get((name, ""), {}))))


def _stated_over_all(cells: Cells) -> str:
    counts = [
        sum(pair) for pair in zip(cells.get("stated", ()), cells.get("stated_stress", ()), strict=False)
    ]
    counts = counts or list(cells.get("stated") or cells.get("stated_stress") or ())
    said, right, of = (sum(counts[at::3]) for at in range(3))
    return next(_bins((said, right, of), WITHIN)) if of else "– (states none)"


def _of_fault(key: tuple[str, str], cells: Cells) -> Iterator[str]:
    name, fault = key
    yield f"`{name}`, {fault}"
    yield _share(name, "precision", cells)
    yield _share(name, "recall", cells)
    yield _f1(name, cells)
    yield cells.get("time") or _why(name, "time")
    yield _share(name, "undecided", cells, counted=True)
    yield "; ".join(_beside(*one) for one in cells.get("beside", {}).items()) or _why(name, "beside")
    yield cells.get("published") or "none"


def _of_second(cases: Mapping[tuple[str, str], Cells]) -> Iterator[Iterator[str]]:
    """For each generator of an analyzer all cases together, then those with a precision or recall below `BREAKS`."""
    generators = dict.fromkeys((name, fault.partition(":")[0]) for name, fault in cases)
    for name, generator in generators:
        mine = {fault: cells for (of, fault), cells in cases.items() if of == name}
        mine = {fault: cells for fault, cells in mine.items() if fault.partition(":")[0] == generator}
        among = generator.removeprefix(_SECOND).strip()
        called = f"all {len(mine)} cases{f' {among}' if among else ''}"
        yield _of_case(name, called, _summed(list(mine.values())))
        for fault, cells in mine.items():
            shares = [cells[one][0] / cells[one][1] for one in ("precision", "recall") if cells[one][1]]
            if min(shares, default=1.0) < BREAKS:
                yield _of_case(name, fault.partition(": ")[2], cells)


def _summed(cases: Sequence[Cells]) -> Cells:
    """Pairs of all cases added, and those of other methods."""
    beside: dict[str, list[int]] = {}
    for cells in cases:
        for method, pairs in cells.get("beside", {}).items():
            beside[method] = _joined(beside.get(method, [0] * len(pairs)), pairs)
    columns = ("precision", "recall", "undecided")
    summed = {one: [sum(cells.get(one, (0, 0))[at] for cells in cases) for at in range(2)] for one in columns}
    return {**summed, "beside": beside}


def _of_case(name: str, case: str, cells: Cells) -> Iterator[str]:
    named = cells["precision"][1]
    yield f"`{name}`, {case}"
    yield _share(name, "precision", cells) if named else _NOBODY_NAMED
    yield _share(name, "recall", cells)
    yield _f1(name, cells) if named else _NOBODY_NAMED
    yield _share(name, "undecided", cells, counted=True)
    yield "; ".join(_beside(*one) for one in cells.get("beside", {}).items()) or "none asked"


def _of_stated(analyzers: Mapping[str, Cells]) -> Iterator[Iterator[str]]:
    for name, cells in analyzers.items():
        for column, where, most in (
            ("stated", "", WITHIN),
            ("stated_stress", ", under stress", WITHIN_STRESS),
        ):
            if column in cells:
                yield iter((f"`{name}`{where}", *_bins(cells[column], most)))


def _bins(counts: Sequence[float], most: float) -> Iterator[str]:
    """Excess of stated over true shares in each bin, of how many; in bold where that is above `most` of enough."""
    for said, right, of in zip(counts[::3], counts[1::3], counts[2::3], strict=True):
        if not of:
            yield "–"
            continue
        low, high = wilson(int(right), int(of))
        more = (said - right) / of
        cell = f"{_signed(more)} [{_signed(said / of - high)}, {_signed(said / of - low)}] of {int(of):,}"
        yield f"**{cell}**" if more > most and of >= ENOUGH else cell


def _signed(difference: float) -> str:
    text = f"{difference:+.2f}"
    return text.replace("0.", ".", 1) if text not in ("+0.00", "-0.00") else "0"


def _of_whole(name: str, cells: Cells) -> Iterator[str]:
    yield f"`{name}`"
    for column in ("healthy", "healthy_second", "healthy_undecided", "benign"):
        yield _share(name, column, cells, counted=True)
    for column in ("seconds", "memory", "growth"):
        yield cells.get(column) or _why(name, column)


def _why(name: str, column: str) -> str:
    reason = WHY.get(name, {}).get(column)
    return f"– ({reason})" if reason else "– (not measured)"


def _share(name: str, column: str, cells: Cells, *, counted: bool = False) -> str:
    """A share with its interval; `counted` as how many of how many."""
    hits, of = cells.get(column, (0, 0))
    if not of:
        return _why(name, column)
    low, high = wilson(hits, of)
    return f"{f'{hits:,} of {of:,}' if counted else bare(hits / of)} [{bare(low)}, {bare(high)}]"


def _f1(name: str, cells: Cells) -> str:
    """With the F1 of both lower and of both upper ends: wider than 95 %, because both seldom err the same way."""
    pairs = [cells.get(column, (0, 0)) for column in ("precision", "recall")]
    if not all(of for _, of in pairs):
        return _why(name, "f1")
    ends = zip(*(wilson(*pair) for pair in pairs), strict=True)
    low, high = (bare(harmonic(*end)) for end in ends)
    return f"{bare(harmonic(*(hits / of for hits, of in pairs)))} [{low}, {high}]"


def harmonic(one: float, two: float) -> float:
    return 2 * one * two / (one + two) if one + two else 0.0


def _beside(method: str, pairs: Sequence[int]) -> str:
    found, named, hits, true = pairs
    precision = bare(found / named) if named else "–"
    return f"{method} {precision} / {bare(hits / true) if true else '–'}"


def bare(share: float) -> str:
    """Three digits without the zero in front; four where three would round to 1 or to 0."""
    text = f"{share:.3f}"
    if text in ("0.000", "1.000"):
        text = f"{share:.4f}".rstrip("0").rstrip(".")
    return text.removeprefix("0") if text.startswith("0.") else text


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path, default=[Path("bench.json")])
    read: dict[str, Sequence[Row] | None] = {}
    for file in parser.parse_args().files:
        read |= json.loads(file.read_text())["results"]
    for text in lines(read):
        print(text)
