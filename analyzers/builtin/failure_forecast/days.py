"""Nodes by days: features, symptoms and failures as arrays."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.failure_forecast.analyzer import DAY
from analyzers.builtin.metric_series import Columns, columns_of, means
from analyzers.builtin.paths import texts, whole
from analyzers.builtin.stats.intervals import microseconds
from analyzers.contract import Paths, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

MICROSECOND = timedelta(microseconds=1)
LABELS = ("node", "nodename", "hostname", "Hostname", "host", "host_name", "host.name", "instance")
WEEK = 7
"""Columns (days) of the node's own past."""
RARE = 3
"""Least rows of a symptom."""
LIMIT = 3.0
"""Distance from the fleet, in usual deviations, from which a metric counts as a symptom; features are cut at twice
its square."""
_MOST = 2 * LIMIT**2


@dataclass(frozen=True, slots=True, eq=False)
class Days:
    """`values` has shape (nodes, days, features), `symptoms` (nodes, days, symptoms); `ends` are the ends of the days
    in microseconds since 1970. `incidents` are (node, time, kind) by time, `seen` says where a node
    reported."""

    nodes: tuple[str, ...]
    ends: Ints
    names: tuple[str, ...]
    values: Floats
    symptom_names: tuple[str, ...]
    symptoms: Mask
    seen: Mask
    incidents: tuple[tuple[int, int, str], ...]

    def failing(self, horizon: int) -> Mask:
        """Days whose end an incident follows within `horizon` microseconds; shape (nodes, days)."""
        found = np.zeros((len(self.nodes), len(self.ends)), dtype=bool)
        for node, at, _ in self.incidents:
            found[node] |= (self.ends <= at) & (at < self.ends + horizon)
        return found


def days_of(window: Window, not_incidents: frozenset[str], label: str) -> Days:
    windows = (*window.history, window)
    columns = columns_of(windows, DAY, 1)
    series = _series(windows, columns, label)
    errors, attempts, incidents = _errors(windows), _attempts(windows), _incidents(windows)
    names = {node for node, _ in series} | {node for node, _, _ in (*errors, *attempts)}
    nodes = tuple(sorted(names | {node for node, _, _ in incidents}))
    place = {name: i for i, name in enumerate(nodes)}
    starts = np.array([microseconds(one) for one in columns.starts], dtype=np.int64)
    shape = len(nodes), len(starts)
    table = _Table(shape)
    by_metric: dict[str, Floats] = defaultdict(lambda: np.full(shape, np.nan))
    for (node, metric), values in series.items():
        by_metric[metric][place[node]] = values
    for metric in sorted(by_metric):
        table.add_metric(metric, by_metric[metric])
    common = Counter(symptom for _, symptom, _ in errors)
    for symptom in sorted(one for one, count in common.items() if count >= RARE):
        at = [(place[node], when) for node, other, when in errors if other == symptom]
        table.add_errors(symptom, _counts(at, starts, shape))
    if attempts:
        tried = _counts([(place[node], when) for node, _, when in attempts], starts, shape)
        failed = _counts(
            [(place[n], when) for n, failed, when in attempts if failed == "failed"], starts, shape
        )
        table.add_attempts(tried, failed)
    own = [(place[node], at, kind) for node, at, kind in incidents if kind not in not_incidents]
    table.add_incidents(_counts([(node, at) for node, at, _ in own], starts, shape))
    ends = starts + DAY // MICROSECOND
    return Days(
        nodes,
        np.asarray(ends, dtype=np.int64),
        tuple(table.names),
        np.stack(table.columns, axis=2),
        tuple(table.symptom_names),
        np.stack(table.symptoms, axis=2) if table.symptoms else np.zeros((*shape, 0), dtype=bool),
        table.seen,
        tuple(sorted(own, key=lambda one: (one[1], one[0], one[2]))),
    )


class _Table:
    """Columns of features and of symptoms, each of shape (nodes, days)."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.names: list[str] = []
        self.columns: list[Floats] = []
        self.symptom_names: list[str] = []
        self.symptoms: list[Mask] = []
        self.seen = np.zeros(shape, dtype=bool)

    def add(self, name: str, values: Floats) -> None:
        self.names.append(name)
        self.columns.append(np.nan_to_num(values))

    def add_symptom(self, name: str, where: Mask) -> None:
        self.symptom_names.append(name)
        self.symptoms.append(where)

    def add_metric(self, name: str, values: Floats) -> None:
        """Distance from the fleet's median of the day, and change against the node's own week before."""
        there = np.isfinite(values)
        self.seen |= there
        if there.sum() < there.size / 10:
            return
        with np.errstate(all="ignore"):
            middle = np.array(
                [np.median(c[np.isfinite(c)]) if np.isfinite(c).any() else np.nan for c in values.T]
            )
            away = values - middle
            spread = 1.4826 * float(np.median(np.abs(away[there]))) or float(np.std(away[there])) or 1.0
        far = np.clip(away / spread, -_MOST, _MOST)
        moved = np.clip(far - _before(far), -_MOST, _MOST)
        self.add(name, far)
        self.add(f"change of {name} in a week", moved)
        self.add_symptom(f"high {name}", np.nan_to_num(far) > LIMIT)
        self.add_symptom(f"low {name}", np.nan_to_num(far) < -LIMIT)

    def add_errors(self, symptom: str, counts: Floats) -> None:
        self.seen |= counts > 0
        week = _sum(counts, WEEK)
        self.add(f"{symptom} in a day", np.log1p(counts))
        self.add(f"{symptom} in a week", np.log1p(week))
        self.add_symptom(symptom, week > 0)

    def add_attempts(self, tried: Floats, failed: Floats) -> None:
        self.seen |= tried > 0
        share = float(failed.sum() / max(1.0, tried.sum()))
        tries, fails = _sum(tried, WEEK), _sum(failed, WEEK)
        own = (fails + 2 * share) / (tries + 2)
        self.add("failed job attempts in a week (share)", own)
        self.add_symptom("failing jobs", (fails >= 2) & (own > 3 * share))

    def add_incidents(self, counts: Floats) -> None:
        self.add("incidents so far", np.log1p(np.cumsum(counts, axis=1)))
        self.add("incidents in a week", np.log1p(_sum(counts, WEEK)))


def within_a_week(seen: Mask) -> Mask:
    """Days with anything seen in the week up to them; shape (nodes, days)."""
    return np.asarray(_sum(seen.astype(np.float64), WEEK) > 0)


def _before(values: Floats) -> Floats:
    """The mean of the week before each day, NaN without any."""
    there = np.isfinite(values)
    total, count = _sum(np.where(there, values, 0.0), WEEK, 1), _sum(there.astype(float), WEEK, 1)
    with np.errstate(all="ignore"):
        return np.where(count > 0, total / count, np.nan)


def _sum(values: Floats, days: int, lag: int = 0) -> Floats:
    """Sums over the last `days` days that end `lag` days ago."""
    total = np.cumsum(np.pad(values, ((0, 0), (days + lag, 0))), axis=1)
    width = values.shape[1]
    return np.asarray(total[:, days : days + width] - total[:, :width])


def _counts(at: Sequence[tuple[int, int]], starts: Ints, shape: tuple[int, int]) -> Floats:
    found = np.zeros(shape)
    if at:
        node = np.array([one for one, _ in at])
        day = np.searchsorted(starts, np.array([when for _, when in at]), side="right") - 1
        np.add.at(found, (node, np.maximum(day, 0)), 1.0)
    return found


def _series(windows: Sequence[Window], columns: Columns, label: str) -> dict[tuple[str, str], Floats]:
    if "series" not in windows[-1].sums:
        return {}

    def key_of(name: str, labels: str) -> tuple[str, str]:
        found = json.loads(labels)
        return next(
            (node_of(found[one]) for one in ((label,) if label else LABELS) if found.get(one)), ""
        ), name

    keys, values = means([one.sums["series"] for one in windows], columns, key_of)
    return {key: row for key, row in zip(keys, values, strict=True) if key[0]}


def node_of(name: str) -> str:
    """`node/gpu-17` for itself, for `gpu-17`, `gpu-17:9100` and for `slot/gpu-17:3`."""
    kind, slash, bare = name.partition("/")
    if slash and kind != "slot":
        return name
    return f"node/{(bare if slash else name).partition(':')[0]}"


def _errors(windows: Sequence[Window]) -> list[tuple[str, str, int]]:
    return [
        (node_of(unit), symptom or "failure", at)
        for sums in (one.sums["errors"] for one in windows if "errors" in one.sums)
        for unit, symptom, at in zip(
            texts(sums, "unit"), texts(sums, "symptom"), whole(sums, "time").tolist(), strict=True
        )
    ]


def _attempts(windows: Sequence[Window]) -> list[tuple[str, str, int]]:
    return [one for window in windows if "attempts" in window.sums for one in _attempts_of(window)]


def _attempts_of(window: Window) -> Iterator[tuple[str, str, int]]:
    sums = window.sums["attempts"]
    nodes, ends = sums.keys["nodes"], whole(sums, "end").tolist()
    assert isinstance(nodes, Paths)
    for row, outcome in enumerate(texts(sums, "outcome")):
        for node in nodes[row]:
            yield node, outcome, ends[row]


def _incidents(windows: Sequence[Window]) -> list[tuple[str, int, str]]:
    return [
        (node, at, kind)
        for sums in (one.sums["incidents"] for one in windows)
        for node, at, kind in zip(
            texts(sums, "node"), whole(sums, "time").tolist(), texts(sums, "kind"), strict=True
        )
    ]
