"""Simulated wear of GPU nodes: spares that run out, incidents that follow, and what validation finds in time.

A node has parts with spares (rows of memory, lanes of links, fans). Spares are used up at random, faster on some nodes,
and faster after each incident (repairs are not perfect). While spares last nothing is felt; once a part has none left
the node is gray, its benchmark shows it, and incidents become likely. The rates are our choice: they set every ratio
that is made from such a trace, so that ratios only compare policies on the same trace.

What happens to whom is drawn beforehand (`Luck`), so that policies are compared on the same luck.
Seeds below `FIRST_REPORTING_SEED` are for choosing; published figures use seeds from there on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
STEP_HOURS = 12.0
ROUND_STEPS = 56
"""Every four weeks all nodes are benchmarked, and nothing is done about it: where coverage is learnt from."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PARTS = ("memory", "links", "fans")
SPARES = np.array([6, 4, 3])
BENCHMARKS = ("gemm-flops", "nccl-bw", "gpu-burn", "gpt_models", "mem-bw", "kernel-launch")
HOURS = np.array([1.0, 0.8, 0.5, 2.5, 0.7, 0.2])
"""Duration of each benchmark."""
FINDS = np.array(
    [
        [0.90, 0.00, 0.10],
        [0.00, 0.95, 0.00],
        [0.10, 0.00, 0.95],
        [0.60, 0.50, 0.30],
        [0.70, 0.00, 0.00],
        [0.00, 0.00, 0.00],
    ]
)
"""The probability that a benchmark (row) shows that a part (column) has no spares left."""
COVARIATES = ("corrected_errors", "link_retries", "temperature", "age_days")


@dataclass(frozen=True, slots=True)
class Rates:
    """Per day, unless said otherwise. `wear` is spares used per part, `again` how much faster they go after each
    incident, `sudden` incidents out of nothing, `gray` incidents of a part without spares. `repair_hours` is how long a
    node is away after an incident, and `mended` the probability that a part without spares is then made good.
    """

    nodes: int = 200
    days: int = 180
    wear: float = 0.02
    again: float = 1.1
    sudden: float = 0.0005
    gray: float = 0.1
    repair_hours: float = 24.0
    mended: float = 0.85


SHIFTED = Rates(wear=0.025, sudden=0.0008, gray=0.08)
"""Another fleet, for trying what was learnt on the first."""


@dataclass(frozen=True, slots=True, eq=False)
class Luck:
    """Random numbers drawn beforehand; the first axis is time in steps, the second nodes."""

    pace: Floats
    used: Floats
    strikes: Floats
    mends: Floats
    found: Floats
    noise: Floats
    age: Floats


def draw(rates: Rates, rng: np.random.Generator) -> Luck:
    steps = round(rates.days * 24 / STEP_HOURS)
    shape = steps, rates.nodes
    return Luck(
        pace=rng.gamma(2.0, 0.5, rates.nodes),
        used=rng.random((*shape, len(PARTS))),
        strikes=rng.random(shape),
        mends=rng.random((*shape, len(PARTS))),
        found=rng.random((*shape, len(BENCHMARKS), len(PARTS))),
        noise=rng.standard_normal((*shape, 3)),
        age=rng.uniform(0, 900, rates.nodes),
    )


@dataclass(slots=True, eq=False)
class Fleet:
    """The state at one moment; arrays have shape (nodes,) or (nodes, parts). Policies must not read `spares`."""

    spares: Ints
    incidents: Ints
    since: Floats
    away: Floats

    @property
    def gray(self) -> Mask:
        gray: Mask = np.any(self.spares <= 0, axis=1)
        return gray


Policy = Callable[[int, Fleet, Floats], Mask]
"""Benchmarks to run on each node, shape (nodes, benchmarks), from the step, the state and the covariates."""


@dataclass(slots=True, eq=False)
class Trace:
    """Result of a policy. `incidents` are (step, node); `sightings` covariates and incidents so far by step;
    `findings` what benchmarks showed of a node that was then mended; `rounds` what all benchmarks would have shown
    of all nodes at a step. `up`, `validation` and `repair` are node hours of work, benchmarks and repair.
    """

    incidents: list[tuple[int, int]] = field(default_factory=list)
    sightings: list[tuple[int, Floats, Ints]] = field(default_factory=list)
    findings: list[tuple[int, int, Mask]] = field(default_factory=list)
    rounds: list[tuple[int, Mask]] = field(default_factory=list)
    gray: tuple[int, ...] = ()
    up: float = 0.0
    validation: float = 0.0
    repair: float = 0.0

    @property
    def mtbi(self) -> float:
        """Hours of work between incidents; with none, the hours."""
        return self.up / max(1, len(self.incidents))


def run(
    rates: Rates,
    luck: Luck,
    policy: Policy | None = None,
    oracle: bool = False,
    every: int = 2,
    sight: int = 14,
) -> Trace:
    """Run one policy over the luck: it decides every `every` steps, and covariates are kept every `sight` steps.

    `oracle` mends parts without spares the moment they have none, without a benchmark.
    """
    nodes = rates.nodes
    fleet = Fleet(
        np.tile(SPARES, (nodes, 1)), np.zeros(nodes, dtype=np.int64), np.zeros(nodes), np.zeros(nodes)
    )
    trace, days = Trace(), STEP_HOURS / 24
    for step in range(len(luck.strikes)):
        working = np.maximum(STEP_HOURS - fleet.away, 0.0) / STEP_HOURS
        fleet.away = np.maximum(fleet.away - STEP_HOURS, 0.0)
        trace.up += float(working.sum()) * STEP_HOURS
        wear = rates.wear * days * working * luck.pace * rates.again ** np.minimum(fleet.incidents, 4)
        fleet.spares -= luck.used[step] < -np.expm1(-wear)[:, None]
        if oracle:
            fleet.spares = np.where(fleet.spares <= 0, SPARES, fleet.spares)
        hazard = (rates.sudden + rates.gray * (fleet.spares <= 0).sum(axis=1)) * days * working
        struck = luck.strikes[step] < -np.expm1(-hazard)
        fleet.since = np.where(struck, 0.0, fleet.since + STEP_HOURS)
        trace.incidents += [(step, int(node)) for node in np.flatnonzero(struck)]
        fleet.incidents += struck
        fleet.away[struck] += rates.repair_hours
        trace.repair += rates.repair_hours * float(struck.sum())
        mended = struck[:, None] & (luck.mends[step] < rates.mended) & (fleet.spares <= 0)
        fleet.spares = np.where(mended, SPARES, np.maximum(fleet.spares, 0))
        seen = covariates(fleet, luck, step)
        if step % sight == 0:
            trace.sightings.append((step, seen, fleet.incidents.copy()))
        if step % ROUND_STEPS == ROUND_STEPS - 1:
            trace.rounds.append((step, np.asarray(_shown(fleet, luck, step)).max(axis=2)))
        if policy is not None and step % every == 0:
            _validate(policy(step, fleet, seen), fleet, luck, step, rates, trace)
    trace.gray = tuple(np.flatnonzero(fleet.gray).tolist())
    return trace


def _shown(fleet: Fleet, luck: Luck, step: int) -> Mask:
    """Benchmarks that would show a part of a node; shape (nodes, benchmarks, parts)."""
    shown: Mask = (luck.found[step] < FINDS) & (fleet.spares <= 0)[:, None, :]
    return shown


def _validate(chosen: Mask, fleet: Fleet, luck: Luck, step: int, rates: Rates, trace: Trace) -> None:
    """Run the chosen benchmarks; what they find is mended at once, for the time of a repair."""
    hours = chosen @ HOURS
    trace.validation += float(hours.sum())
    shown = _shown(fleet, luck, step) & chosen[:, :, None]
    found: Mask = np.any(shown, axis=1)
    for node in np.flatnonzero(np.any(found, axis=1)).tolist():
        trace.findings.append((step, node, np.any(shown[node], axis=1)))
    fleet.spares = np.where(found, SPARES, fleet.spares)
    repaired = rates.repair_hours * np.any(found, axis=1)
    trace.repair += float(repaired.sum())
    fleet.away += hours + repaired


def covariates(fleet: Fleet, luck: Luck, step: int) -> Floats:
    """Monitored values of each node, with noise; shape (nodes, covariates)."""
    used = 1 - fleet.spares / SPARES
    noise = luck.noise[step]
    return np.column_stack(
        [
            np.maximum(0.0, 10 * used[:, 0] + 1.0 * noise[:, 0]),
            np.maximum(0.0, 8 * used[:, 1] + 1.0 * noise[:, 1]),
            55 + 15 * used[:, 2] + 2.0 * noise[:, 2],
            luck.age + step * STEP_HOURS / 24,
        ]
    )


def name_of(node: int) -> str:
    return f"node/gpu-{node:04d}"


def moment(step: int, node: int = 0) -> datetime:
    """The middle of a step; nodes are some seconds apart, as in life."""
    return EPOCH + timedelta(hours=STEP_HOURS * (step + 0.5), seconds=node)


def rows_of(trace: Trace) -> list[dict[str, Any]]:
    """`node_incident` rows: sightings of every node (kind `observed`) and incidents, in order of time."""
    rows = []
    for step, seen, _ in trace.sightings:
        for node, values in enumerate(seen.tolist()):
            measured = {name: round(value, 2) for name, value in zip(COVARIATES, values, strict=True)}
            rows.append((moment(step, node), node, "observed", measured))
    rows += [
        (moment(step, node) + timedelta(hours=1), node, "gpu_failure", {}) for step, node in trace.incidents
    ]
    made = []
    for at, node, kind, measured in sorted(rows, key=lambda row: (row[0], row[1])):
        row: dict[str, Any] = {
            "time": at.isoformat().replace("+00:00", "Z"),
            "node": name_of(node),
            "kind": kind,
        }
        made.append({**row, "covariates": measured} if measured else row)
    return made


def benchmark_rows(trace: Trace, rates: Rates, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The results of the rounds: a throughput around 100, a tenth less where a benchmark shows a defect, and how long
    each benchmark takes.
    """
    rows = []
    for step, shown in trace.rounds:
        at = moment(step).isoformat().replace("+00:00", "Z")
        for node in range(rates.nodes):
            for b, benchmark in enumerate(BENCHMARKS):
                values = 100 * (1 - 0.1 * shown[node, b]) * (1 + 0.005 * rng.standard_normal(4))
                row = {"time": at, "node": name_of(node), "benchmark": benchmark}
                rows.append({**row, "metric": "throughput", "values": [round(v, 3) for v in values.tolist()]})
                if node == 0:
                    rows.append({**row, "metric": "duration_hours", "values": [float(HOURS[b])]})
    return rows


def scenario(name: str, seed: int) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Rows by kind and the truth: half a year of a fleet that nobody validates; the faults are the nodes that are gray
    at its end.
    """
    rng = np.random.default_rng(seed)
    rates = Rates()
    trace = run(rates, draw(rates, rng))
    rows = {"node_incident": rows_of(trace), "benchmark": benchmark_rows(trace, rates, rng)}
    start, end = (
        when.isoformat().replace("+00:00", "Z") for when in (EPOCH, EPOCH + timedelta(days=rates.days))
    )
    faults = [{"component": name_of(node), "kind": "gray", "start": start, "end": end} for node in trace.gray]
    return rows, {"scenario": name, "seed": seed, "start": start, "end": end, "faults": faults}


def incident_sums(rows: list[dict[str, Any]]) -> Sums:
    """The same rows as the selector's reduction of them."""
    keyed = sorted(
        (
            row["node"],
            _microseconds(datetime.fromisoformat(row["time"])),
            row["kind"],
            json.dumps(row.get("covariates", {}), sort_keys=True, separators=(",", ":")),
        )
        for row in rows
    )
    nodes, times, kinds, measured = zip(*keyed, strict=True) if keyed else ((), (), (), ())
    keys: dict[str, Any] = {
        "node": nodes,
        "time": np.array(times, dtype=np.int64),
        "kind": kinds,
        "covariates": measured,
    }
    return Sums(keys, {"rows": np.ones(len(keyed), dtype=np.int64)}, len(keyed))


def _microseconds(when: datetime) -> int:
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
