"""Up and down times of virtual machines placed near to and far from their storage, for `colocation`.

Topology: hosts of 16 machines in clusters of unequal quality; a machine is `near` (two hops from its storage) or `far`
(three hops), as in the talk on Deepview (NSDI 2018), which found 11.4 % more failures a day far than near over three
months. Windows of 30 days, all judged.

Noise: rates differ by cluster (gamma) and by machine (log-normal), repair times are log-normal, machines come and go,
and in some cases an outage of a host takes all of its machines at once, so failures are not independent. In
`confounded` the far machines are in worse clusters and distance itself matters nothing.

A ratio is no fault, so no world of this module has one. `ratio(case)` is the true ratio of the rates of far and near
machines in one cluster, less one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np

from tests.worlds import World

MONTH = timedelta(days=30)
START = datetime(1970, 1, 1, tzinfo=UTC) + 680 * MONTH
MONTHS = 3
HOURS = MONTHS * 720.0


@dataclass(frozen=True)
class Plan:
    """`far` is the share of far machines, `daily` the failures a near machine and day, `more` the true excess."""

    says: str
    more: float
    machines: int = 3_000
    far: float = 0.5
    daily: float = 0.02
    by_cluster: float = 4.0
    by_machine: float = 0.5
    hosts: float = 0.0
    confounded: bool = False
    churn: float = 0.0
    unclassed: float = 0.0


PLANS = {
    "none": Plan("far machines fail as often as near ones", 0.0),
    "published": Plan("far machines fail 11.4 % more often", 0.114),
    "twice": Plan("far machines fail twice as often", 1.0),
    "few": Plan("80 machines, far ones fail twice as often", 1.0, machines=80),
    "few_none": Plan("80 machines, distance matters nothing", 0.0, machines=80),
    "rare_far": Plan("5 % of the machines are far and fail 30 % more often", 0.3, far=0.05),
    "host_outages": Plan(
        "distance matters nothing, and half of the failures take a whole host", 0.0, hosts=0.5
    ),
    "host_outages_more": Plan(
        "far machines fail 50 % more often, and half of the failures take a host", 0.5, hosts=0.5
    ),
    "overdispersed": Plan(
        "distance matters nothing, rates differ widely by machine", 0.0, by_machine=1.5, by_cluster=1.0
    ),
    "confounded": Plan("distance matters nothing, far machines are in worse clusters", 0.0, confounded=True),
    "churn": Plan("far machines fail 50 % more often, half of all live for a few days", 0.5, churn=0.5),
    "unclassed": Plan(
        "far machines fail 50 % more often, a fifth of the rows has no class", 0.5, unclassed=0.2
    ),
}
CASES = {name: plan.says for name, plan in PLANS.items()}
CLUSTERS, HOST = 12, 16


def ratio(case: str) -> float:
    """The true excess of failures of far machines: .114 is 11.4 % more."""
    return PLANS[case].more


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    quality = rng.gamma(plan.by_cluster, 1 / plan.by_cluster, CLUSTERS)
    if plan.confounded:
        quality = np.sort(quality) + 0.2 * np.arange(CLUSTERS)
    cluster = np.sort(rng.integers(0, CLUSTERS, plan.machines))
    share = (
        np.where(cluster >= CLUSTERS // 2, 0.8, 0.2) if plan.confounded else np.full(plan.machines, plan.far)
    )
    far = rng.random(plan.machines) < share
    if plan.hosts:
        far = np.repeat(far[::HOST], HOST)[: plan.machines]
    own = np.exp(plan.by_machine * rng.standard_normal(plan.machines) - plan.by_machine**2 / 2)
    hourly = plan.daily / 24 * quality[cluster] * (1 + plan.more * far)
    alone = hourly * own * (1 - plan.hosts)
    shared = {
        host: np.sort(rng.uniform(0, HOURS, rng.poisson(HOURS * plan.hosts * hourly[host * HOST])))
        for host in range(-(-plan.machines // HOST))
    }
    rows: list[dict[str, Any]] = []
    for machine in range(plan.machines):
        first, last = _life(plan, rng)
        times = rng.uniform(0, HOURS, rng.poisson(HOURS * alone[machine]))
        times = np.sort(np.concatenate([times, shared[machine // HOST]]))
        one = {"unit": f"vm/c{cluster[machine]:02d}-{machine:05d}"}
        if rng.random() >= plan.unclassed:
            one["hops_class"] = "far" if far[machine] else "near"
        rows += _lives(one, first, last, times[(times > first) & (times < last)].tolist(), rng)
    notes = (f"{int(far.sum())} of {plan.machines} machines are far", f"true excess {plan.more:.1%}")
    return World(case, seed, {"uptime": rows}, MONTH, START, (), notes)


def _life(plan: Plan, rng: np.random.Generator) -> tuple[float, float]:
    if rng.random() >= plan.churn:
        return 0.0, HOURS
    first = float(rng.uniform(0, HOURS - 24))
    return first, min(HOURS, first + 24 + float(rng.exponential(96)))


def _lives(
    one: dict[str, str], first: float, last: float, fails: list[float], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Up and down rows of one machine, one after the other."""
    rows: list[dict[str, Any]] = []
    at = first
    for fail in fails:
        if fail <= at + 0.01:
            continue
        back = min(last, fail + 0.3 * float(np.exp(rng.standard_normal())))
        rows.append({**one, "start": _shown(at), "end": _shown(fail), "state": "up"})
        if back > fail + 0.01:
            down = {**one, "start": _shown(fail), "end": _shown(back), "state": "down"}
            rows.append({**down, "cause": str(rng.choice(["storage", "network", "host"]))})
        at = back
    if last > at + 0.01:
        rows.append({**one, "start": _shown(at), "end": _shown(last), "state": "up"})
    return rows


def _shown(hours: float) -> str:
    return (START + timedelta(seconds=round(hours * 3_600))).isoformat()
