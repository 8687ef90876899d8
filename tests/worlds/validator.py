"""Benchmark results of GPU fleets, for `validator`.

Topology: nodes of 8 GPUs in aisles of 16, of one or two SKUs. Daily validation rounds; the first days are history.
The suite, its units, its base values and the noise between repetitions follow a results file that SuperBench published
(microsoft/superbenchmark, tests/data; A100): GEMM .6 % between GPUs, copies 1 %, kernel launch 3 %, InfiniBand and NCCL
.2 %, training steps .5 %.

Noise: a node has a level that it keeps (`spread`, shared by metrics that share a resource, bounded at two spreads), a
part that moves from day to day (AR(1), a third of the spread), and repetitions with a Student t (5 degrees of freedom)
error. Spreads of .2 to 3 % are those of fleets that are power-capped or cooled unevenly (Sinha et al., "Not All GPUs
Are Created Equal", SC 2022, has 8 % on average and 22 %
at most; Xiong et al., "SuperBench", USENIX ATC 2024, has 10.36 % of the nodes defective and 5 % as the usual bar).

A defect is a level relative to the fleet: "-6 %" measures 6 % under the median of its SKU in the metrics of its first
resource, and half of that where that resource is the second one. It is planted only in a resource with a metric where
this is 1 % (`VISIBLE`) beyond the worst level of a healthy node and three standard errors of a median, so nothing
planted hides in spread or noise.

A common cause is one `Fault` whose kind begins with `common_`: its component is the first node that it reached and
`acceptable` all others. Naming some of them is right; one incident is what it should be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
HISTORY = 3
JUDGED = 2
DAYS = HISTORY + JUDGED
VISIBLE = 0.01
BOUND = 2.0
AISLE = 16

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """`noise` is the relative error of a repetition, `resource` what the metric loads, `runs` its repetitions."""

    benchmark: str
    name: str
    base: float
    noise: float
    resource: str
    lower_is_better: bool = False
    runs: int = 8
    second: str = ""


SUITE = (
    Metric("gemm-flops", "fp16_tc_flops", 279_540.0, 0.006, "compute"),
    Metric("gemm-flops", "fp64_flops", 9_029.0, 0.0015, "compute"),
    Metric("mem-bw", "h2d_bw", 25.9, 0.01, "pcie"),
    Metric("mem-bw", "d2d_bw", 1_117.0, 0.004, "hbm"),
    Metric("kernel-launch", "event_time", 0.0058, 0.03, "host", lower_is_better=True),
    Metric("nccl-bw", "allreduce_8589934592_busbw", 235.4, 0.002, "nvlink", runs=4),
    Metric("nccl-bw", "allreduce_1048576_time", 76.1, 0.02, "nvlink", lower_is_better=True, runs=4),
    Metric("ib-loopback", "ib_write_8388608_bw", 23.93, 0.002, "nic", runs=4),
    Metric("gpt_models/pytorch-gpt2-large", "fp16_train_step_time", 194.5, 0.005, "compute", True, 32, "hbm"),
    Metric(
        "bert_models/pytorch-bert-large",
        "fp16_train_throughput",
        154.8,
        0.005,
        "compute",
        runs=16,
        second="hbm",
    ),
)
LATENCIES = (
    *(one for one in SUITE if one.lower_is_better),
    Metric("ib-loopback", "ib_write_8_latency", 2.1, 0.015, "nic", lower_is_better=True),
    Metric("disk-benchmark", "nvme0n1_rand_read_lat_us", 88.0, 0.02, "host", lower_is_better=True),
)
# What a resource of the second SKU measures, relative to the first.
OTHER_SKU = {"compute": 1.42, "hbm": 1.31, "pcie": 1.9, "host": 1.08, "nvlink": 1.5, "nic": 1.02}
SKUS = ("ndv4-a100-40", "ndv5-a100x")


@dataclass(frozen=True)
class Plan:
    """A fleet. `gray` are the depths of planted defects; shares are from 0 to 1."""

    says: str
    nodes: int = 64
    spread: float = 0.01
    gray: tuple[float, ...] = ()
    better: int = 0
    suite: tuple[Metric, ...] = SUITE
    one_value: bool = False
    other_sku: float = 0.0
    mislabelled: float = 0.0
    unlabelled: bool = False
    missing: float = 0.0
    noise: float = 1.0
    tails: float = 0.0
    bimodal: float = 0.0
    failed: float = 0.0
    absent: float = 0.0
    retried: float = 0.0
    sick_history: bool = False
    special: str = ""


PLANS = {
    **{f"healthy_{n}": Plan(f"{n} healthy nodes, spread 1 %", n) for n in (3, 8, 16, 24, 64, 256)},
    "healthy_tight": Plan("64 healthy nodes, spread .2 %", spread=0.002),
    "healthy_wide": Plan("64 healthy nodes, spread 3 %", spread=0.03),
    "healthy_one_value": Plan("64 healthy nodes, one value a metric", one_value=True),
    "gray_3": Plan("three nodes of 64 at -3 %, spread .5 %", spread=0.005, gray=(0.03,) * 3),
    "gray_6": Plan("three nodes of 64 at -6 %, spread 1 %", gray=(0.06,) * 3),
    "gray_10": Plan("three nodes of 64 at -10 %, spread 1 %", gray=(0.10,) * 3),
    "gray_20": Plan("three nodes of 64 at -20 %, spread 1 %", gray=(0.20,) * 3),
    "gray_10_of_256": Plan("eight nodes of 256 at -10 %, spread 1 %", 256, gray=(0.10,) * 8),
    **{f"gray_10_of_{n}": Plan(f"one node of {n} at -10 %", n, gray=(0.10,)) for n in (3, 8, 16, 24)},
    "gray_6_of_8": Plan("one node of 8 at -6 %", 8, gray=(0.06,)),
    "tight_gray_3": Plan("two nodes of 64 at -3 %, spread .2 %", spread=0.002, gray=(0.03,) * 2),
    "wide_gray_10": Plan("two nodes of 64 at -10 %, spread 2 %", spread=0.02, gray=(0.10,) * 2),
    "wide_gray_20": Plan("two nodes of 64 at -20 %, spread 3 %", spread=0.03, gray=(0.20,) * 2),
    "many_gray": Plan(
        "26 nodes of 256 at -6 to -20 %, as Anubis found", 256, gray=(0.06, 0.10, 0.20) * 8 + (0.06, 0.10)
    ),
    "better_one": Plan("one node 8 % better than a healthy fleet of 64", better=1),
    "better_ten": Plan("ten nodes 8 % better than a healthy fleet of 64", better=10),
    "better_one_gray_6": Plan("one node 8 % better, two at -6 %", better=1, gray=(0.06,) * 2),
    "better_ten_gray_6": Plan("ten nodes 8 % better, two at -6 %", better=10, gray=(0.06,) * 2),
    "better_ten_gray_10": Plan("ten nodes 8 % better, two at -10 %", better=10, gray=(0.10,) * 2),
    "one_value_gray_10": Plan("two nodes at -10 %, one value a metric", one_value=True, gray=(0.10,) * 2),
    "one_value_gray_6": Plan("two nodes at -6 %, one value a metric", one_value=True, gray=(0.06,) * 2),
    "latency_healthy": Plan("64 healthy nodes, only metrics where lower is better", suite=LATENCIES),
    "latency_gray_10": Plan(
        "two nodes 11 % slower, only metrics where lower is better", suite=LATENCIES, gray=(0.10,) * 2
    ),
    "one_gpu": Plan("a metric for each GPU; one GPU of 512 is at -10 %", special="ranks", gray=(0.10,)),
    "mislabelled": Plan(
        "two SKUs, 5 % of the labels wrong, all healthy", 96, other_sku=0.4, mislabelled=0.05
    ),
    "mislabelled_gray_10": Plan(
        "two SKUs, 5 % of the labels wrong, two nodes at -10 %",
        96,
        other_sku=0.4,
        mislabelled=0.05,
        gray=(0.10,) * 2,
    ),
    "mixed_skus": Plan("two SKUs without labels, all healthy", 64, other_sku=0.35, unlabelled=True),
    "mixed_skus_gray_10": Plan(
        "two SKUs without labels, two nodes at -10 %", 64, other_sku=0.35, unlabelled=True, gray=(0.10,) * 2
    ),
    "hot_aisle": Plan(
        "16 neighbours of 64 lose 5 % of compute from the first judged day on", special="hot_aisle"
    ),
    "driver_update": Plan(
        "half of 64 nodes lose 4 % of compute from the first judged day on", special="driver"
    ),
    "drift_healthy": Plan("the whole fleet loses .7 % of compute a day (inlet temperature)", special="drift"),
    "drift_gray": Plan(
        "two nodes decline by 3 % a day, to -12 % on the last day", special="decline", gray=(0.12,) * 2
    ),
    "missing": Plan(
        "a third of the (node, benchmark) pairs were not run, two nodes at -10 %",
        missing=0.33,
        gray=(0.10,) * 2,
    ),
    "missing_healthy": Plan("a third of the (node, benchmark) pairs were not run, all healthy", missing=0.33),
    "heavy_tails": Plan("1 run of 30 is 10 to 60 % worse on any node, all healthy", tails=0.033),
    "heavy_tails_gray_10": Plan(
        "1 run of 30 is 10 to 60 % worse on any node, two at -10 %", tails=0.033, gray=(0.10,) * 2
    ),
    "bimodal_healthy": Plan("30 % of the runs of any node land on the far NUMA node, -12 %", bimodal=0.3),
    "bimodal_gray_20": Plan(
        "30 % of the runs of any node at -12 %, two nodes at -20 %", bimodal=0.3, gray=(0.20,) * 2
    ),
    "pinned_numa": Plan(
        "30 % of the runs of any node at -12 %, two nodes always", bimodal=0.3, special="pinned"
    ),
    "intermittent": Plan("two nodes where a fifth of the runs takes 40 % longer", special="intermittent"),
    "failed_runs": Plan("zeros from 3 % of the benchmarks that ran, on any node, once", failed=0.03),
    "failed_benchmark": Plan(
        "one node of 16 fails a benchmark every day: return code 1, no values", 16, special="failing"
    ),
    "failed_benchmark_3": Plan(
        "one node of 3 fails a benchmark every day: return code 1, no values", 3, special="failing"
    ),
    "churn": Plan(
        "each node is drained on a fifth of the days, 5 % of the benchmarks run twice; two nodes at -10 %",
        absent=0.2,
        retried=0.05,
        gray=(0.10,) * 2,
    ),
    "sick_history": Plan(
        "a quarter of the fleet was at -15 % until judged days; two at -10 %",
        sick_history=True,
        gray=(0.10,) * 2,
    ),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Fleet:
    """Parts that a world is built from. `factor` (node, metric, day) is above 1 where a node is better than usual."""

    plan: Plan
    rng: np.random.Generator
    suite: tuple[Metric, ...]
    names: list[str]
    other: NDArray[np.bool_]
    labels: list[str]
    factor: Floats
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sick: dict[int, str] = field(default_factory=dict)
    wrong: frozenset[int] = frozenset()

    def metrics_of(self, resource: str) -> list[int]:
        return [i for i, one in enumerate(self.suite) if one.resource == resource]


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    fleet = _fleet(plan, np.random.default_rng([seed, crc32(case.encode())]))
    _better(fleet)
    _gray(fleet)
    _special(fleet)
    if plan.sick_history:
        _sick_history(fleet)
    rows = {"benchmark": _rows(fleet)}
    if plan.special == "hot_aisle":
        rows["topology"] = _topology(fleet)
    return World(case, seed, rows, DAY, START + HISTORY * DAY, tuple(fleet.faults), tuple(fleet.notes))


def _fleet(plan: Plan, rng: np.random.Generator) -> Fleet:
    suite = _ranked(plan.suite) if plan.special == "ranks" else plan.suite
    names = [f"node/dc1-a{i // AISLE:02d}-n{i % AISLE:02d}" for i in range(plan.nodes)]
    other = rng.random(plan.nodes) < plan.other_sku
    labelled = other ^ (rng.random(plan.nodes) < plan.mislabelled)
    labels = ["" if plan.unlabelled else SKUS[int(one)] for one in labelled]
    fleet = Fleet(plan, rng, suite, names, other, labels, _levels(plan, suite, rng))
    if plan.other_sku:
        fleet.notes.append(f"{int(other.sum())} of {plan.nodes} nodes are of the second SKU")
    fleet.wrong = frozenset(np.flatnonzero(other != labelled).tolist())
    if fleet.wrong:
        fleet.notes.append(f"wrong labels: {', '.join(names[i] for i in sorted(fleet.wrong))}")
    return fleet


def _ranked(suite: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """The per-GPU metrics of a suite, one metric a GPU, each measured once."""
    chosen = [one for one in suite if one.resource in ("compute", "hbm", "pcie") and not one.second]
    return tuple(
        Metric(one.benchmark, f"{one.name}:{rank}", one.base, one.noise, one.resource, one.lower_is_better, 1)
        for one in chosen
        for rank in range(8)
    )


def _levels(plan: Plan, suite: tuple[Metric, ...], rng: np.random.Generator) -> Floats:
    """Healthy factors, shape (node, metric, day): what a node keeps, and what moves from day to day."""
    resources = sorted({one.resource for one in suite})
    of_node = rng.standard_normal(plan.nodes)
    of_resource = {one: rng.standard_normal(plan.nodes) for one in resources}
    log = np.empty((plan.nodes, len(suite), DAYS))
    for i, one in enumerate(suite):
        kept = 0.4 * of_node + 0.7 * of_resource[one.resource] + 0.6 * rng.standard_normal(plan.nodes)
        moving = np.empty((plan.nodes, DAYS))
        moving[:, 0] = rng.standard_normal(plan.nodes)
        for day in range(1, DAYS):
            moving[:, day] = 0.7 * moving[:, day - 1] + 0.71 * rng.standard_normal(plan.nodes)
        log[:, i, :] = np.clip(kept[:, None] + moving / 3, -BOUND, BOUND)
    return np.asarray(np.exp(plan.spread * log) * np.exp(0.002 * rng.standard_normal((1, len(suite), DAYS))))


def _better(fleet: Fleet) -> None:
    """A newer stepping or a colder place: these nodes are 8 % better in compute and memory."""
    chosen = fleet.rng.choice(fleet.plan.nodes, fleet.plan.better, replace=False)
    for i in fleet.metrics_of("compute") + fleet.metrics_of("hbm"):
        fleet.factor[chosen, i, :] *= 1.08
    if fleet.plan.better:
        fleet.notes.append(f"better: {', '.join(fleet.names[i] for i in sorted(chosen))}")
        fleet.sick.update({int(i): "better" for i in chosen})


def _gray(fleet: Fleet) -> None:
    plan, rng = fleet.plan, fleet.rng
    free = [i for i in range(plan.nodes) if i not in fleet.sick and i not in fleet.wrong]
    chosen = rng.choice(free, len(plan.gray), replace=False)
    for node, depth in zip(chosen.tolist(), plan.gray, strict=True):
        resource = str(rng.choice(_resources(fleet, depth)))
        metrics = fleet.metrics_of(resource)
        if plan.special == "ranks":
            rank = f":{int(rng.integers(8))}"
            metrics = [i for i in metrics if fleet.suite[i].name.endswith(rank)]
        from_day = 1 if plan.special == "decline" else int(rng.choice([0, HISTORY]))
        _plant(fleet, node, metrics, depth, from_day, resource)


def _resources(fleet: Fleet, depth: float) -> list[str]:
    """Resources in which a defect of this depth shows. Without labels a SKU must be further away than the defect."""
    plan, found = fleet.plan, set()
    for one in fleet.suite:
        runs = 1 if plan.one_value else one.runs
        error = 1.25 * one.noise / np.sqrt(runs) + (0.055 / np.sqrt(runs) if plan.bimodal else 0.0)
        apart = abs(OTHER_SKU[one.resource] - 1)
        if depth >= BOUND * plan.spread + 3 * error + VISIBLE and not (
            plan.unlabelled and 0.05 < apart < 0.2
        ):
            found.add(one.resource)
    if not found:
        raise ValueError(f"a defect of {depth} hides in a spread of {plan.spread}")
    return sorted(found)


def _plant(fleet: Fleet, node: int, metrics: list[int], depth: float, from_day: int, kind: str) -> None:
    """Sets the level of a node to `1 - depth` of its fleet; half the depth where the resource is the second one."""
    days = np.arange(from_day, DAYS)
    depths = np.full(len(days), depth)
    if fleet.plan.special == "decline":
        depths = depth * (1 + np.arange(len(days))) / len(days)
    wobble = np.exp(0.002 * fleet.rng.standard_normal((len(metrics), len(days))))
    fleet.factor[node, metrics, from_day:] = (1 - depths) * wobble
    for i, one in enumerate(fleet.suite):
        if one.second == kind:
            fleet.factor[node, i, from_day:] *= 1 - depths / 2
    fleet.sick[node] = kind
    fleet.faults.append(Fault(fleet.names[node], kind, START + from_day * DAY, START + DAYS * DAY))
    shown = ", ".join(fleet.suite[i].name for i in metrics[:3])
    fleet.notes.append(f"{fleet.names[node]}: -{depth:.0%} in {shown}, from day {from_day}")


def _special(fleet: Fleet) -> None:
    special, compute, rng = fleet.plan.special, fleet.metrics_of("compute"), fleet.rng
    if special == "hot_aisle":
        first = AISLE * int(rng.integers(fleet.plan.nodes // AISLE))
        nodes = np.arange(first, first + AISLE)
        aisle = f"aisle/a{first // AISLE:02d}"
        _common(fleet, nodes, compute, 0.05, "common_hot_aisle", (aisle,))
    elif special == "driver":
        _common(
            fleet,
            np.sort(rng.permutation(fleet.plan.nodes)[: fleet.plan.nodes // 2]),
            compute,
            0.04,
            "common_driver",
        )
    elif special == "drift":
        fleet.factor[:, compute, :] *= 1 - 0.007 * np.arange(DAYS)
        fleet.notes.append("benign: the drift is that of the room")
    elif special in ("pinned", "intermittent"):
        for node in rng.choice(fleet.plan.nodes, 2, replace=False).tolist():
            fleet.sick[node] = special
            fleet.faults.append(Fault(fleet.names[node], special, START, START + DAYS * DAY))
    elif special == "failing":
        node = int(rng.integers(fleet.plan.nodes))
        fleet.sick[node] = special
        fleet.faults.append(Fault(fleet.names[node], special, START + HISTORY * DAY, START + DAYS * DAY))


def _common(
    fleet: Fleet,
    nodes: NDArray[np.int64],
    metrics: list[int],
    depth: float,
    kind: str,
    more: tuple[str, ...] = (),
) -> None:
    for i in metrics:
        own = np.exp(0.004 * fleet.rng.standard_normal(len(nodes)))
        fleet.factor[nodes, i, HISTORY:] *= ((1 - depth) * own)[:, None]
    first, *others = (fleet.names[i] for i in nodes)
    start, end = START + HISTORY * DAY, START + DAYS * DAY
    fleet.faults.append(Fault(first, kind, start, end, (*others, *more)))
    fleet.notes.append(f"one cause, {len(nodes)} nodes: -{depth:.0%} in compute")


def _sick_history(fleet: Fleet) -> None:
    """Failures of days that are over, most of them repaired: a quarter of the fleet, different ones each day."""
    for day in range(HISTORY):
        free = [i for i in range(fleet.plan.nodes) if i not in fleet.sick]
        for node in fleet.rng.choice(free, fleet.plan.nodes // 4, replace=False).tolist():
            resource = str(fleet.rng.choice(sorted({one.resource for one in fleet.suite})))
            fleet.factor[node, fleet.metrics_of(resource), day] *= 0.85
            fleet.faults.append(
                Fault(fleet.names[node], resource, START + day * DAY, START + (day + 1) * DAY)
            )


def _rows(fleet: Fleet) -> list[dict[str, Any]]:
    rng, plan = fleet.rng, fleet.plan
    rows: list[dict[str, Any]] = []
    benchmarks = sorted({one.benchmark for one in fleet.suite})
    ran = rng.random((plan.nodes, len(benchmarks))) >= plan.missing
    for node, benchmark in enumerate(rng.integers(0, len(benchmarks), plan.nodes)):
        ran[node, benchmark] = True
    _run_for_faults(fleet, ran, benchmarks)
    broken = {name: benchmarks[int(rng.integers(len(benchmarks)))] for name in fleet.names}
    for day in range(DAYS):
        for node, name in enumerate(fleet.names):
            if rng.random() < plan.absent and not (node in fleet.sick and day >= HISTORY):
                continue
            at = START + day * DAY + timedelta(seconds=int(rng.integers(3_600, 70_000)))
            for number, benchmark in enumerate(benchmarks):
                fails = _fails(fleet, node, day) and broken[name] == benchmark
                for _ in range((1 + int(rng.random() < plan.retried)) * int(ran[node, number])):
                    at += timedelta(seconds=int(rng.integers(30, 300)))
                    rows += _results(fleet, node, benchmark, day, at, fails)
    return rows


def _fails(fleet: Fleet, node: int, day: int) -> bool:
    return fleet.sick.get(node) == "failing" and day >= HISTORY


def _results(
    fleet: Fleet, node: int, benchmark: str, day: int, at: datetime, fails: bool
) -> list[dict[str, Any]]:
    """The rows of one run of one benchmark; one that fails has only its return code."""
    common = {
        "time": at.isoformat(),
        "node": fleet.names[node],
        "benchmark": benchmark,
        "sku": fleet.labels[node],
    }
    rows = []
    if fleet.plan.special == "failing":
        rows.append({**common, "metric": "return_code", "values": [float(fails)]})
    if not fails:
        zeros = bool(fleet.rng.random() < fleet.plan.failed)
        rows += [{**common, **one} for one in _measured(fleet, node, benchmark, day, zeros)]
    return rows


def _run_for_faults(fleet: Fleet, ran: NDArray[np.bool_], benchmarks: list[str]) -> None:
    """Benchmarks that show a planted defect are noted as run."""
    for node, resource in fleet.sick.items():
        for one in fleet.suite:
            if one.resource == resource:
                ran[node, benchmarks.index(one.benchmark)] = True


def _measured(fleet: Fleet, node: int, benchmark: str, day: int, zeros: bool) -> list[dict[str, Any]]:
    """The metrics of one benchmark on one node and day."""
    rng, plan, found = fleet.rng, fleet.plan, []
    for i, one in enumerate(fleet.suite):
        if one.benchmark != benchmark:
            continue
        runs = 1 if plan.one_value else one.runs
        log = np.log(fleet.factor[node, i, day] * (OTHER_SKU[one.resource] if fleet.other[node] else 1.0))
        speed = log + one.noise * plan.noise * 0.775 * rng.standard_t(5, runs)
        speed += np.where(rng.random(runs) < plan.tails, np.log1p(-rng.uniform(0.1, 0.6, runs)), 0.0)
        if plan.bimodal:
            share = 1.0 if fleet.sick.get(node) == "pinned" else plan.bimodal
            speed += np.where(rng.random(runs) < share, np.log(0.88), 0.0)
        if fleet.sick.get(node) == "intermittent":
            speed -= np.where(rng.random(runs) < 0.2, np.log(1.4), 0.0)
        values = one.base * np.exp(-speed if one.lower_is_better else speed)
        if zeros:
            values[rng.random(runs) < 0.7] = 0.0
        found.append({"metric": one.name, "values": [float(f"{value:.6g}") for value in values]})
    return found


def _topology(fleet: Fleet) -> list[dict[str, Any]]:
    return [
        {"time": START.isoformat(), "component": name, "parents": [f"aisle/{name.split('-')[1]}"]}
        for name in fleet.names
    ]
