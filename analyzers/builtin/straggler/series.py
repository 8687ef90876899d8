"""Series of node metrics as tables of peers by time, and iteration times of jobs, from the sums of `metric` rows."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.metric_series import columns_of, growth_of, means, slices_of
from analyzers.builtin.nodes.samples import direction_of, words_given, words_of
from analyzers.builtin.paths import numbered
from analyzers.builtin.straggler.analyzer import COHORT, NODE, SLICE
from analyzers.contract import Params, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_COLUMNS = 720
"""Columns of one window: longer windows have wider ones."""

_PACE = words_given("iteration iterations iter iters step")
_TIMES = words_given("time times duration seconds sec secs s ms us milliseconds latency")
_OF_THE_PACE = _PACE | words_given("clock clocks flop flops tflops mfu compute forward backward kernel gemm")
_BUSY = words_given("util utilization utilisation active activity duty occupancy power busy")
_HOST = words_given(
    "cpu disk disks fs filesystem io iops iowait load load1 load5 load15 mem memory read reads swap write writes "
    "written"
)
_HIGHER = words_given("clock clocks mfu")
_COUNTER = "_total"

Cohort = tuple[tuple[str, str], ...]
"""Labels that peers share, with their values, sorted."""


class Identity(NamedTuple):
    """Identity of a series: `node` is empty where no label names one; `member` are the labels that are left."""

    cohort: Cohort
    node: str
    member: str


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One metric of peers. `values` has shape (series, columns), NaN where nothing was measured; `owner` is the place
    of each series' node in `nodes`; `members` are what else names it. `side` is 1 where more is worse, -1 where less
    is, 0 where nothing says. Readings are usually `gap` columns apart. `wanted` is the parameter `iteration_metric`.
    """

    name: str
    cohort: Cohort
    nodes: tuple[str, ...]
    owner: Ints
    members: tuple[str, ...]
    values: Floats
    side: int
    gap: int = 1
    wanted: str = ""

    @property
    def of_the_pace(self) -> bool:
        """Whether the metric says how fast a node works."""
        return self.side != 0 and not _OF_THE_PACE.isdisjoint(words_of(self.name))

    @property
    def of_the_load(self) -> bool:
        """Whether the metric says how much of its time a node works."""
        return not _BUSY.isdisjoint(words_of(self.name))

    @property
    def of_iterations(self) -> bool:
        """Whether the metric is the time that an iteration takes each node."""
        return is_iteration_time(self.name, self.wanted)

    @property
    def of_the_host(self) -> bool:
        """Whether the metric says what a node's host does, of which its accelerators may know nothing."""
        return not _HOST.isdisjoint(words_of(self.name)) and "gpu" not in words_of(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Pace:
    """Iteration times of one job; shape (columns,), NaN where no iteration ended. `nodes` that told of them."""

    job: Cohort
    values: Floats
    nodes: frozenset[str]

    @property
    def shown(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.job) or "the job"


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Contents of the window and its history. Column c begins at `starts[c]` and is `width` long; the window's own
    begin at column `now`.
    """

    starts: tuple[datetime, ...]
    width: timedelta
    now: int
    grids: tuple[Grid, ...]
    paces: tuple[Pace, ...]
    nodes: tuple[str, ...]
    series: int

    def columns(self, seconds: float) -> int:
        """Number of columns in so many seconds, at least one."""
        return max(1, round(seconds / self.width.total_seconds()))


def observe(window: Window, params: Params) -> Observed:
    windows = (*window.history, window)
    pooled = max(1, -(-slices_of(windows, SLICE)[-1] // MOST_COLUMNS))
    columns = columns_of(windows, SLICE, pooled)
    identify = _Identifier(str(params["node_label"]), str(params["peer_labels"]))
    keys, values = means(
        [one.sums["series"] for one in windows], columns, lambda name, labels: (name, identify(labels))
    )
    places = {key: at for at, key in enumerate(keys)}
    grids, paces = _grouped(places, values, params)
    nodes = tuple(sorted({one.node for _, one in places if one.node}))
    return Observed(columns.starts, columns.width, columns.now, grids, paces, nodes, len(places))


class _Identifier:
    """Reads labels, each text once."""

    def __init__(self, node_label: str, peer_labels: str) -> None:
        self._node = [node_label] if node_label else NODE.split(",")
        more = [one.strip() for one in peer_labels.split(",") if one.strip()]
        self._cohort = frozenset([*COHORT.split(","), *(one.lower() for one in more)])
        self._known: dict[str, Identity] = {}

    def __call__(self, labels: str) -> Identity:
        found = self._known.get(labels)
        if found is None:
            found = self._known[labels] = self._read(json.loads(labels))
        return found

    def _read(self, labels: Mapping[str, str]) -> Identity:
        by_name = {name.lower(): (name, value) for name, value in labels.items()}
        label = next((name.lower() for name in self._node if by_name.get(name.lower(), ("", ""))[1]), None)
        node = "" if label is None else _component(label, by_name[label][1])
        cohort = tuple(sorted(by_name[name] for name in by_name if name in self._cohort and name != label))
        rest = sorted(by_name[name] for name in by_name if name not in self._cohort and name != label)
        return Identity(cohort, node, ", ".join(f"{name} {value}" for name, value in rest))


def _component(label: str, value: str) -> str:
    kind, slash, name = value.partition("/")
    if kind and slash and name:
        return value
    if label in ("worker", "rank"):
        return f"{label}/{value}"
    return f"node/{re.sub(r':[0-9]+$', '', value)}"


def _grouped(
    places: Mapping[tuple[str, Identity], int], values: Floats, params: Params
) -> tuple[tuple[Grid, ...], tuple[Pace, ...]]:
    wanted, least = str(params["iteration_metric"]), int(params["min_nodes"])
    groups: dict[tuple[str, Cohort], list[Identity]] = defaultdict(list)
    for name, one in sorted(places):
        groups[name, one.cohort].append(one)
    grids, paces = [], []
    for (name, cohort), members in groups.items():
        table = values[[places[name, one] for one in members]]
        if is_iteration_time(name, wanted):
            named = frozenset(one.node for one in members if one.node)
            paces.append(Pace(cohort, _median(table), named))
        grid = _grid(name, cohort, members, table, wanted)
        if len(grid.nodes) >= least:
            grids.append(grid)
    return tuple(grids), tuple(paces)


def is_iteration_time(name: str, wanted: str = "") -> bool:
    """Whether a metric holds times of iterations: it is the one that is wanted, or its words say so."""
    if wanted:
        return name == wanted
    words = set(words_of(name))
    return not words.isdisjoint(_PACE) and not words.isdisjoint(_TIMES) and not name.endswith(_COUNTER)


def _grid(name: str, cohort: Cohort, members: Sequence[Identity], table: Floats, wanted: str) -> Grid:
    retained = [at for at, one in enumerate(members) if one.node]
    nodes, owner = numbered([members[at].node for at in retained])
    taken = table[retained]
    if name.endswith(_COUNTER):
        taken = growth_of(taken)
    side = {"higher": -1, "lower": 1}.get(direction_of("", name, higher=_HIGHER) or "", 0)
    return Grid(
        name,
        cohort,
        nodes,
        owner,
        tuple(members[at].member for at in retained),
        taken,
        side,
        _gap(taken),
        wanted,
    )


def _gap(table: Floats) -> int:
    """Usual number of columns between two readings of a series."""
    there = np.isfinite(table)
    series, column = np.nonzero(there)
    if len(series) < 2:
        return 1
    gaps = np.diff(column)[np.diff(series) == 0]
    return max(1, round(float(np.median(gaps)))) if len(gaps) else 1


def _median(table: Floats) -> Floats:
    """The median of each column over what was measured; NaN where nothing was."""
    found = np.full(table.shape[1], np.nan)
    there = np.isfinite(table).any(axis=0)
    found[there] = np.nanmedian(table[:, there], axis=0)
    return found
