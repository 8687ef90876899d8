"""Simulated benchmark results of a fleet of GPU nodes, healthy and with gray nodes among them.

A node has a level of its own for every metric (nodes differ a little, and for good), and its runs scatter around that
level. The usual values are those that SuperBench's repository publishes for nodes with eight A100 (averages over
hundreds to thousands of nodes), the scatter is our choice. A defect makes the runs of one or several metrics of a node
worse by a share. What looks like trouble and is none has names of its own: `BENIGN`.

Seeds below `FIRST_REPORTING_SEED` are for choosing and calibrating; published figures use seeds from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.truth import happened

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its usual value; `scatter` is the deviation of single runs, as a share."""

    benchmark: str
    name: str
    usual: float
    higher: bool
    scatter: float


METRICS = (
    Metric("gemm-flops", "fp16_tc_flops", 280_435.0, True, 0.004),
    Metric("mem-bw", "h2d_bw", 25.92, True, 0.006),
    Metric("kernel-launch", "event_time", 0.0057, False, 0.02),
    Metric("nccl-bw", "allreduce_8589934592_busbw", 235.05, True, 0.008),
    Metric("ib-loopback", "ib_write_8388608_bw", 23.9, True, 0.005),
    Metric("gpt_models/pytorch-gpt2-large", "fp16_train_step_time", 198.0, False, 0.012),
)
GPU = (0, 2, 5)
"""Metrics that one sick GPU spoils together."""

EVENTS = MappingProxyType(
    {
        "upgrade": "upgrade",
        "drain": "drain",
        "clock_step": "clock_step",
        "agent_crash": "crash",
        "missing_rows": "missing",
        "stale_topology": "two_skus",
    }
)
"""Names here of the events of the benign suite."""
BENIGN = ("upgrade", "rollout", "drain", "missing", "crash", "warm_up", "clock_step", "two_skus", "hot_aisle")
"""upgrade: all are 6 % worse at once. rollout: half of them. drain: only a third was measured. missing: 5 % of the rows
are not there. crash: some nodes have one to three runs. warm_up: the first tenth of all runs is 20 % worse. clock_step:
one reading of some nodes is a hundred times off. two_skus: half of the fleet is another machine, 12 % slower, and
nobody says so. hot_aisle: a seventh of the nodes is 3 % slower.
"""


@dataclass(frozen=True, slots=True)
class Preset:
    """`spread` is how much nodes differ, as a share; with `tails` they differ by Student's t of 5 degrees."""

    nodes: int = 200
    runs: int = 30
    spread: float = 0.005
    tails: bool = False
    metrics: tuple[Metric, ...] = METRICS


@dataclass(frozen=True, slots=True)
class Defect:
    """Node number `node` is worse by `severity` in a share `often` of the runs of its `metrics` (by number)."""

    node: int
    metrics: tuple[int, ...]
    severity: float
    often: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """`level[n, m]` is node n's own level of metric m, as a multiple of the usual value."""

    preset: Preset
    level: Floats

    def name(self, node: int) -> str:
        return f"node/gpu-{node:04d}"


def build(preset: Preset, rng: np.random.Generator) -> Fleet:
    shape = preset.nodes, len(preset.metrics)
    apart = rng.standard_t(5, shape) if preset.tails else rng.standard_normal(shape)
    return Fleet(preset, 1 + preset.spread * apart)


def draw_defects(
    fleet: Fleet, rng: np.random.Generator, severity: float, often: float = 1.0, most: float = 0.1036
) -> tuple[Defect, ...]:
    """Up to a share `most` of the nodes, at least one; a third of them has a sick GPU (several metrics), the others
    are worse in one metric. The default is the share that the authors found defective in production.
    """
    count = int(rng.integers(1, max(2, round(most * fleet.preset.nodes)) + 1))
    chosen = rng.permutation(fleet.preset.nodes)[:count].tolist()
    many = len(fleet.preset.metrics)
    return tuple(
        Defect(node, GPU if rng.random() < 1 / 3 else (int(rng.integers(many)),), severity, often)
        for node in sorted(chosen)
    )


def results(
    fleet: Fleet, rng: np.random.Generator, defects: Sequence[Defect] = (), benign: str = ""
) -> Floats:
    """One round of results; shape (nodes, metrics, runs), NaN where nothing was measured."""
    preset = fleet.preset
    shape = preset.nodes, len(preset.metrics), preset.runs
    scatter = np.array([metric.scatter for metric in preset.metrics])
    slower = np.ones(shape)
    for defect in defects:
        hit = rng.random(preset.runs) < defect.often
        for metric in defect.metrics:
            slower[defect.node, metric, hit] *= 1 - defect.severity
    if benign:
        slower *= _benign(preset, rng, benign)
    pace = fleet.level[:, :, None] * (1 + scatter[None, :, None] * rng.standard_normal(shape)) * slower
    higher = np.array([metric.higher for metric in preset.metrics])[None, :, None]
    usual = np.array([metric.usual for metric in preset.metrics])[None, :, None]
    return np.asarray(usual * np.where(higher, pace, 1 / pace))


def _benign(preset: Preset, rng: np.random.Generator, event: str) -> Floats:
    """Factor on the pace of every run; NaN where nothing was measured."""
    nodes, metrics, runs = preset.nodes, len(preset.metrics), preset.runs
    factor = np.ones((nodes, metrics, runs))
    order = rng.permutation(nodes)
    if event == "upgrade":
        factor *= 0.94
    elif event == "rollout":
        factor[order[: nodes // 2], :, :] *= 0.94
    elif event == "drain":
        factor[order[nodes // 3 :]] = np.nan
    elif event == "missing":
        factor[rng.random((nodes, metrics)) < 0.05] = np.nan
    elif event == "crash":
        for node in order[: max(1, nodes // 30)].tolist():
            factor[node, :, int(rng.integers(1, 4)) :] = np.nan
    elif event == "warm_up":
        factor[:, :, : max(1, runs // 10)] *= 0.8
    elif event == "clock_step":
        for node in order[: max(1, nodes // 20)].tolist():
            factor[node, int(rng.integers(metrics)), int(rng.integers(runs))] *= 0.01
    elif event == "two_skus":
        factor[order[: nodes // 2]] *= 0.88
    elif event == "hot_aisle":
        factor[order[: nodes // 7]] *= 0.97
    else:
        raise ValueError(f"no benign event {event!r}; there are {', '.join(BENIGN)}")
    return factor


def window(
    fleet: Fleet, measured: Floats, day: int = 0, history: Sequence[Window] = (), sku: str = ""
) -> Window:
    """The sums of one day's results, as the validator's input declares them."""
    start = EPOCH + day * DAY
    sums = {"samples": samples_of(fleet, measured, start, sku)}
    return Window(start, start + DAY, "simulated", "benchmark", sums, tuple(history))


def samples_of(fleet: Fleet, measured: Floats, start: datetime, sku: str = "") -> Sums:
    """Every value of every node and metric, in the order of their names, of a round that begins at `start`."""
    metrics = fleet.preset.metrics
    by_name = sorted(range(len(metrics)), key=lambda m: (metrics[m].benchmark, metrics[m].name))
    keys: list[tuple[str, str, str]] = []
    values: list[float] = []
    times: list[int] = []
    taken: list[int] = []
    for node in range(fleet.preset.nodes):
        at = _microseconds(taken_at(start, node))
        for m in by_name:
            distinct, counts = np.unique(measured[node, m][~np.isnan(measured[node, m])], return_counts=True)
            keys += [(fleet.name(node), metrics[m].benchmark, metrics[m].name)] * len(distinct)
            values += distinct.tolist()
            times += counts.tolist()
            taken += [at] * len(distinct)
    nodes, benchmarks, names = zip(*keys, strict=True) if keys else ((), (), ())
    columns: dict[str, Any] = {
        "node": nodes,
        "benchmark": benchmarks,
        "metric": names,
        "sku": (sku,) * len(keys),
        "time": np.array(taken, dtype=np.int64),
        "value": np.array(values, dtype=np.float64),
    }
    return Sums(columns, {"times": np.array(times, dtype=np.int64)}, len(keys))


def joined(parts: Sequence[Sums]) -> Sums:
    """The samples of several rounds, or of several fleets, as one table."""
    keys: dict[str, Any] = {
        name: tuple(text for part in parts for text in cast("Sequence[str]", part.keys[name]))
        for name in ("node", "benchmark", "metric", "sku")
    }
    for name in ("time", "value"):
        keys[name] = np.concatenate([np.asarray(part.keys[name]) for part in parts])
    times = np.concatenate([part.values["times"] for part in parts])
    return Sums(keys, {"times": times}, len(times))


def taken_at(start: datetime, node: int) -> datetime:
    """Nodes are validated one after the other, every half minute."""
    return start + timedelta(seconds=30 * (node + 1))


def rows_of(fleet: Fleet, measured: Floats, start: datetime, sku: str = "") -> list[dict[str, Any]]:
    """The same results as `benchmark` rows, one for each node and metric."""
    rows = []
    for node in range(fleet.preset.nodes):
        at = taken_at(start, node).isoformat().replace("+00:00", "Z")
        for m, metric in enumerate(fleet.preset.metrics):
            values = measured[node, m][~np.isnan(measured[node, m])].tolist()
            if values:
                row = {
                    "time": at,
                    "node": fleet.name(node),
                    "benchmark": metric.benchmark,
                    "metric": metric.name,
                    "values": values,
                }
                rows.append({**row, "sku": sku} if sku else row)
    return rows


def _microseconds(when: datetime) -> int:
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def scenario(
    name: str, seed: int, severity: float, gray: int, event: str = ""
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Rows by kind and the truth: one round of results, with `gray` nodes worse by `severity` in one GPU benchmark."""
    rng = np.random.default_rng(seed)
    fleet = build(Preset(), rng)
    metric = int(rng.choice(GPU))
    nodes = sorted(rng.permutation(fleet.preset.nodes)[:gray].tolist())
    measured = results(
        fleet, rng, [Defect(node, (metric,), severity) for node in nodes], EVENTS.get(event, "")
    )
    start, end = (when.isoformat().replace("+00:00", "Z") for when in (EPOCH, EPOCH + DAY))
    sick = METRICS[metric]
    faults = [
        {
            "component": fleet.name(node),
            "kind": "gray",
            "benchmark": sick.benchmark,
            "metric": sick.name,
            "severity": severity,
            "start": start,
            "end": end,
        }
        for node in nodes
    ]
    truth = {"scenario": name, "seed": seed, "start": start, "end": end, "faults": faults}
    truth["benign"] = happened(event, start, end)
    return {"benchmark": rows_of(fleet, measured, EPOCH)}, truth
