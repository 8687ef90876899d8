"""Incidents of nodes over half a year, for `selector`.

A node has a renewal process: the hazard of its next incident depends on the time since the last (Weibull), on a frailty
of its own (log-normal), on covariates that are told every week, on the season, and in some cases on recent incidents.
Time between failures of clusters is Weibull with a shape of .7 to .8 (Schroeder and Gibson, DSN 2006); a few lemon
nodes have most of the incidents (Kokolis et al., "Revisiting Reliability in Large-Scale ML Research Clusters", HPCA
2025); the paper on SuperBench (USENIX ATC 2024) finds hazards that are not proportional. The mean time between the
incidents of a node is 40 days unless a case says otherwise.

Rows: `observed` tells that a node is in service and its covariates, at first and every week; `retired` and `drained`
end that; every other kind is an incident. Windows of a week: 26 of history, four judged.

Truth: every incident from the end of the first judged window on is a `Fault` of kind `incident` that begins at its time
and lasts an hour. `faults_between(window.end, window.end + horizon)` is thus what really followed a window. `risk(seed,
case)` has for the end of each judged window the probability of an incident within 24 hours of every node in service,
from the hazard that made the rows; frailty and the covariates of the new week are in it, and no row tells them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import gamma
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

WEEK = timedelta(days=7)
START = datetime(1970, 1, 1, tzinfo=UTC) + 2_860 * WEEK
HISTORY = 26
JUDGED = 4
HOURS = 168
HORIZON = 24
END = (HISTORY + JUDGED) * HOURS + HORIZON
KINDS = ("gpu_ecc", "nvlink", "ib_flap", "xid79", "host_crash", "disk")
USUAL = {"fp16_flops": 279_540.0, "h2d_bw": 25.9, "busbw": 235.4}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """`days` between incidents of a usual node, `weights` of the covariates in the log of the hazard (U: squared)."""

    says: str
    nodes: int = 200
    days: float = 40.0
    shape: float = 1.0
    frailty: float = 0.3
    lemons: float = 0.0
    weights: tuple[float, ...] = ()
    squared: bool = False
    told: bool = True
    season: float = 0.0
    burst: float = 0.0
    racks: float = 0.0
    jump: float = 1.0
    comes_and_goes: float = 0.0
    lost: float = 0.0
    doubled: float = 0.0
    gray: float = 0.0


PLANS = {
    "exponential": Plan("a constant hazard that hardly differs by node", frailty=0.0),
    "frail": Plan("constant hazards that differ by node (sigma 1)", frailty=1.0),
    "weibull_infant": Plan("a hazard that falls after an incident (shape .6)", shape=0.6),
    "weibull_wear": Plan("a hazard that grows since the last repair (shape 2.5)", shape=2.5, days=25.0),
    "lemons": Plan("4 % of the nodes have 15 times as many incidents", lemons=0.04, days=80.0),
    "lemons_infant": Plan(
        "lemons, and a hazard that falls after an incident", lemons=0.04, shape=0.7, days=80.0
    ),
    "covariates": Plan("two of five covariates matter much", weights=(1.2, 0.8)),
    "covariates_wear": Plan("two covariates matter, and the hazard grows", weights=(1.2, 0.8), shape=2.0),
    "covariates_useless": Plan("five covariates are told, none matters", weights=(0.0, 0.0), frailty=0.6),
    "covariate_squared": Plan("nodes too hot and too cold fail", weights=(0.35, 0.0), squared=True),
    "seasonal": Plan("hazards triple from Friday to Sunday", season=2.0),
    "bursts": Plan("an incident makes another within a day or two likely", burst=0.01),
    "racks": Plan("now and then the 16 nodes of a rack fail together", racks=1.0),
    "jump": Plan("all hazards triple from the 21st week on", jump=3.0),
    "censored": Plan(
        "half of the nodes join late, leave early or are drained for weeks", comes_and_goes=0.5, frailty=0.6
    ),
    "silent_nodes": Plan("nodes without incidents are never told of", told=False, frailty=0.8),
    "small_fleet": Plan("twelve nodes", 12, frailty=0.6),
    "few_incidents": Plan("an incident a week in the whole fleet", 60, 400.0),
    "large_fleet": Plan(
        "600 nodes, covariates, lemons, decreasing hazard", 600, shape=0.75, lemons=0.02, weights=(0.7, 0.4)
    ),
    "double_reports": Plan(
        "a quarter of the incidents is told by two monitors, a tenth by none", doubled=0.25, lost=0.1
    ),
    "gray_benchmarks": Plan(
        "weekly benchmarks; nodes that measure 5 to 12 % less fail ten times as often", gray=0.08
    ),
}
CASES = {name: plan.says for name, plan in PLANS.items()}
COVARIATES = ("temperature_c", "ecc_per_day", "age_days", "fan_rpm", "rack_unit")


@dataclass
class Fleet:
    """Nodes and what drives their hazards; `last` is the hour of the last incident, times are hours since the start."""

    plan: Plan
    rng: np.random.Generator
    names: list[str]
    level: Floats
    told: Floats
    effect: Floats
    joins: Floats
    leaves: Floats
    last: Floats
    heat: Floats
    sick_from: Floats
    sick_metric: list[str]
    incidents: list[tuple[float, int, str]] = field(default_factory=list)
    risks: dict[datetime, dict[str, float]] = field(default_factory=dict)

    def there(self, hour: float) -> NDArray[np.bool_]:
        return (self.joins <= hour) & (hour < self.leaves)

    def hazard(self, hour: int, last: Floats, heat: Floats) -> Floats:
        """Incidents an hour of each node at an hour, given its last incident and the heat of recent ones."""
        plan = self.plan
        scale = plan.days * 24 / gamma(1 + 1 / plan.shape)
        since = np.maximum(hour - last, 1.0)
        found = plan.shape / scale * (since / scale) ** (plan.shape - 1)
        week = min(hour // HOURS, self.effect.shape[1] - 1)
        found = found * self.level * np.exp(self.effect[:, week])
        if plan.season and (hour // 24) % 7 in (1, 2, 3):
            found = found * (1 + plan.season)
        if hour >= 20 * HOURS:
            found = found * plan.jump
        found = found * np.where(hour >= self.sick_from, 10.0, 1.0)
        return np.asarray(np.minimum(found + plan.burst * heat, 0.5) * self.there(hour))


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    fleet = _lived(seed, case)
    rows = {"node_incident": _rows(fleet)}
    if fleet.plan.gray:
        rows["benchmark"] = _benchmarks(fleet)
    first = (HISTORY + 1) * HOURS
    faults = tuple(
        Fault(fleet.names[node], "incident", _when(hour), _when(hour + 1))
        for hour, node, _ in fleet.incidents
        if hour >= first
    )
    before = [node for hour, node, _ in fleet.incidents if hour < first]
    often = np.bincount(before, minlength=len(fleet.names))
    after = fleet.risks[_when(first)]
    notes = (
        f"{len(before)} incidents before the end of the first judged week, at most {int(often.max())} of one node",
        f"mean true risk of 24 hours: {np.mean(list(after.values())):.4f}",
    )
    return World(case, seed, rows, WEEK, START + HISTORY * WEEK, faults, notes)


def risk(seed: int, case: str) -> dict[datetime, dict[str, float]]:
    """The true probability of an incident within 24 hours, by end of judged window and node in service."""
    return _lived(seed, case).risks


def _lived(seed: int, case: str) -> Fleet:
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    fleet = _fleet(plan, rng)
    for hour in range(END):
        if hour % HOURS == 0 and hour // HOURS > HISTORY:
            fleet.risks[_when(hour)] = _risk(fleet, hour)
        chance = 1 - np.exp(-fleet.hazard(hour, fleet.last, fleet.heat))
        hit = np.flatnonzero(rng.random(plan.nodes) < chance).tolist()
        if plan.racks and rng.random() < plan.racks / HOURS:
            rack = int(rng.integers(max(1, plan.nodes // 16)))
            hit += [i for i in range(rack * 16, rack * 16 + 16) if i < plan.nodes and fleet.there(hour)[i]]
        fleet.heat *= np.exp(-1 / 18)
        for node in sorted(set(hit)):
            fleet.incidents.append((hour + float(rng.random()), node, str(rng.choice(KINDS))))
            fleet.last[node] = hour
            fleet.heat[node] += 1
    return fleet


def _fleet(plan: Plan, rng: np.random.Generator) -> Fleet:
    nodes, weeks = plan.nodes, HISTORY + JUDGED + 1
    names = [f"node/gpu-r{i // 16:02d}-{i % 16:02d}" for i in range(nodes)]
    level = np.exp(plan.frailty * rng.standard_normal(nodes) - plan.frailty**2 / 2)
    level[rng.choice(nodes, round(plan.lemons * nodes), replace=False)] *= 15
    standard, told = _covariates(nodes, weeks, rng)
    effect = np.zeros((nodes, weeks))
    for weight, column in zip(plan.weights, standard, strict=False):
        effect += weight * ((column**2 - 1) if plan.squared else column) - weight**2 / 2 * (not plan.squared)
    joins, leaves = np.zeros(nodes), np.full(nodes, np.inf)
    late = rng.random(nodes) < plan.comes_and_goes / 2
    joins[late] = rng.uniform(0, 25 * HOURS, int(late.sum()))
    early = rng.random(nodes) < plan.comes_and_goes / 2
    leaves[early] = joins[early] + rng.uniform(2 * HOURS, 25 * HOURS, int(early.sum()))
    sick_from = np.full(nodes, np.inf)
    chosen = rng.choice(nodes, round(plan.gray * nodes), replace=False)
    sick_from[chosen] = rng.uniform(8 * HOURS, 24 * HOURS, len(chosen))
    # What happened before the first row is not told: the last incident was up to a month ago.
    last = joins - rng.uniform(1, 30 * 24, nodes) * (joins == 0)
    metric = rng.choice(list(USUAL), nodes).tolist()
    return Fleet(
        plan, rng, names, level, told, effect, joins, leaves, last, np.zeros(nodes), sick_from, metric
    )


def _covariates(nodes: int, weeks: int, rng: np.random.Generator) -> tuple[list[Floats], Floats]:
    """Two standard columns of shape (node, week), and all five as they are told, shape (covariate, node, week)."""
    standard = []
    for _ in range(2):
        kept, moves = rng.standard_normal((nodes, 1)), rng.standard_normal((nodes, weeks))
        for week in range(1, weeks):
            moves[:, week] = 0.8 * moves[:, week - 1] + 0.6 * moves[:, week]
        standard.append(0.85 * kept + 0.53 * moves)
    age = rng.uniform(0, 900, (nodes, 1)) + 7 * np.arange(weeks)
    fan = 6_000 + 300 * standard[0] + 500 * rng.standard_normal((nodes, weeks))
    unit = np.repeat(rng.integers(1, 43, (nodes, 1)), weeks, axis=1).astype(float)
    told = np.stack([52 + 6 * standard[0], np.exp(0.9 * standard[1]), age, fan, unit])
    return standard, told


def _risk(fleet: Fleet, hour: int) -> dict[str, float]:
    """The probability of an incident within the horizon, as long as the node stays; racks are extra."""
    heat, total = fleet.heat.copy(), np.zeros(len(fleet.names))
    for ahead in range(hour, hour + HORIZON):
        total += fleet.hazard(ahead, fleet.last, heat)
        heat *= np.exp(-1 / 18)
    total += HORIZON * fleet.plan.racks / HOURS / max(1, fleet.plan.nodes // 16)
    there = fleet.there(hour)
    return {name: float(1 - np.exp(-total[i])) for i, name in enumerate(fleet.names) if there[i]}


def _rows(fleet: Fleet) -> list[dict[str, Any]]:
    plan, rng = fleet.plan, fleet.rng
    rows: list[tuple[float, dict[str, Any]]] = []
    for hour, node, kind in fleet.incidents:
        if rng.random() < plan.lost or hour >= (HISTORY + JUDGED) * HOURS:
            continue
        row = {"node": fleet.names[node], "kind": kind, **_measures(fleet, node, hour)}
        rows.append((hour, row))
        if rng.random() < plan.doubled:
            rows.append((hour + 0.2, {**row, "kind": "unreachable"}))
    for node, name in enumerate(fleet.names):
        joins, leaves = float(fleet.joins[node]), float(fleet.leaves[node])
        if plan.told:
            first = joins + float(rng.uniform(0, 3))
            weekly = [float(week * HOURS + rng.uniform(0, 4)) for week in range(HISTORY + JUDGED)]
            for hour in [first, *(one for one in weekly if first + 6 < one < leaves)]:
                rows.append((hour, {"node": name, "kind": "observed", **_measures(fleet, node, hour)}))
        if leaves < (HISTORY + JUDGED) * HOURS:
            rows.append((leaves, {"node": name, "kind": str(rng.choice(["retired", "drained"]))}))
    rows.sort(key=lambda pair: pair[0])
    return [{"time": _when(hour).isoformat(), **row} for hour, row in rows]


def _measures(fleet: Fleet, node: int, hour: float) -> dict[str, Any]:
    if not fleet.plan.weights:
        return {}
    week = min(int(hour) // HOURS, fleet.told.shape[2] - 1)
    values = fleet.told[:, node, week]
    return {
        "covariates": {name: round(float(value), 3) for name, value in zip(COVARIATES, values, strict=True)}
    }


def _benchmarks(fleet: Fleet) -> list[dict[str, Any]]:
    """A weekly round: a sick node measures 5 to 12 % less in one metric."""
    rng = fleet.rng
    rows: list[dict[str, Any]] = []
    depth = rng.uniform(0.05, 0.12, len(fleet.names))
    level = {metric: np.exp(0.005 * rng.standard_normal(len(fleet.names))) for metric in USUAL}
    for week in range(HISTORY + JUDGED):
        for node, name in enumerate(fleet.names):
            hour = week * HOURS + float(rng.uniform(4, 20))
            for metric, usual in USUAL.items():
                sick = hour >= fleet.sick_from[node] and fleet.sick_metric[node] == metric
                mean = usual * level[metric][node] * (1 - depth[node] * sick)
                values = mean * (1 + 0.005 * rng.standard_t(5, 4))
                one = {"node": name, "benchmark": f"weekly-{metric.split('_')[0]}", "metric": metric}
                rows.append(
                    {"time": _when(hour).isoformat(), **one, "values": [round(float(v), 4) for v in values]}
                )
    return rows


def _when(hour: float) -> datetime:
    return START + timedelta(seconds=round(hour * 3_600, 3))
