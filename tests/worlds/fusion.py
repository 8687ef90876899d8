"""Opinions of several analyzers on the same windows, with the truth, for the fused probability of an incident.

Topology: services on nodes, network cards in nodes, nodes in racks, racks below switches. What is told of it is wrong
in a share of its edges, in some cases.

An opinion is one component and a probability. A calibrated analyzer is made so and not hoped to be: of what it states,
Beta(a, b), the right ones are Beta(a + 1, b), the wrong ones Beta(a, b + 1), and right to wrong is as a to b. Analyzers
see a fault independently of each other, but for those that read the same rows. Half of the wrong opinions are of
neighbours of what is at fault, the others of anybody. Cases spoil this, one way each; no case has numbers of a record.

Truth: the components at fault in a window. Windows before `judged_from` are history, with faults as the others have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from zlib import crc32

import numpy as np

RIGHT, WRONG = 4.0, 2.0
"""Parameters of what a calibrated analyzer states: Beta(4, 2), two thirds in the mean."""
WINDOWS, JUDGED_FROM = 120, 40
RACKS, NODES = 6, 4


@dataclass(frozen=True, slots=True)
class Plan:
    """`analyzers` see a fault with probability `seen` each, and a window has one with `faulty`. `sharper` multiplies
    log odds; `shared` is how often the second analyzer repeats the first, wrong or right; `stuck` always accuses the
    same component; `late` opinions are of the window before; `levels` of them blame what the culprit is in;
    `benign` windows bring weak accusations of innocents; `disputes` multiplies wrong opinions; `certain` ones are
    stated as 0 or 1; `crossed` is the share of wrong edges."""

    says: str
    analyzers: int = 3
    faulty: float = 0.5
    faults: int = 1
    seen: float = 0.85
    sharper: float = 1.0
    shared: float = 0.0
    stuck: bool = False
    late: float = 0.0
    levels: float = 0.0
    benign: float = 0.0
    disputes: float = 1.0
    certain: float = 0.0
    crossed: float = 0.0


PLANS = MappingProxyType(
    {
        "calibrated": Plan("three calibrated analyzers"),
        "pair": Plan("two calibrated analyzers", analyzers=2),
        "healthy": Plan("nothing is at fault", faulty=0.0),
        "several": Plan("three components at fault at once", faults=3),
        "missing": Plan("five analyzers that see three faults in ten", analyzers=5, seen=0.3),
        "same_rows": Plan("the second analyzer repeats nine in ten opinions of the first", shared=0.9),
        "over_confident": Plan("log odds 2.5 times what they should be", sharper=2.5),
        "stuck": Plan("one analyzer always accuses the same component at .9", stuck=True),
        "late": Plan("a third of the opinions is of the window before", late=1 / 3),
        "levels": Plan("a third of the right opinions names what the culprit is in", levels=1 / 3),
        "benign": Plan("maintenance or load shift in half of the windows", benign=0.5),
        "contradictory": Plan("four times as many wrong opinions", disputes=4.0),
        "certain": Plan("a third of the opinions is stated as 0 or 1", certain=1 / 3),
        "crossed": Plan("a twentieth of the edges is wrong", levels=1 / 3, crossed=0.05),
    }
)
CASES = MappingProxyType({name: plan.says for name, plan in PLANS.items()})
USUAL = frozenset({"calibrated", "pair", "missing", "several"})
STRESS = frozenset(CASES) - USUAL
"""Cases in which what analyzers state is not true."""


@dataclass(frozen=True, slots=True)
class Opinion:
    analyzer: str
    component: str
    probability: float


@dataclass(frozen=True, slots=True)
class Moment:
    """One window: what was stated and what was at fault."""

    opinions: tuple[Opinion, ...]
    culprits: frozenset[str]
    benign: bool = False


@dataclass(frozen=True)
class Told:
    """The windows of a case; `parents` is the topology as told, `true_parents` as it is."""

    case: str
    seed: int
    moments: tuple[Moment, ...]
    parents: dict[str, str]
    true_parents: dict[str, str]
    judged_from: int = JUDGED_FROM

    @property
    def judged(self) -> tuple[Moment, ...]:
        return self.moments[self.judged_from :]


def make(seed: int, case: str) -> Told:
    """The windows of a case; the same seed gives the same. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, 1642, crc32(case.encode())])
    true = _topology()
    names = sorted({*true, *true.values()})
    stuck_on = str(rng.choice(names))
    moments: list[Moment] = []
    before: list[tuple[Opinion, ...]] = [()] * plan.analyzers
    for _ in range(WINDOWS):
        faulty = rng.random() < plan.faulty
        culprits = (
            frozenset(rng.choice(names, plan.faults, replace=False).tolist()) if faulty else frozenset[str]()
        )
        benign = bool(rng.random() < plan.benign)
        fresh = _stated(rng, plan, true, names, culprits)
        stated = [before[n] if rng.random() < plan.late else fresh[n] for n in range(plan.analyzers)]
        before = fresh
        if benign:
            for n in rng.choice(plan.analyzers, 2, replace=False).tolist():
                weak = Opinion(f"a{n}", str(rng.choice(names)), float(rng.uniform(0.05, 0.35)))
                stated[n] = (*(one for one in stated[n] if one.component != weak.component), weak)
        if plan.stuck:
            stated[-1] = (Opinion(f"a{plan.analyzers - 1}", stuck_on, 0.9),)
        moments.append(Moment(tuple(one for each in stated for one in each), culprits, benign))
    return Told(case, seed, tuple(moments), _crossed(rng, plan, true), true)


def _topology() -> dict[str, str]:
    """Each component with what it is in or runs on."""
    parents: dict[str, str] = {}
    for rack in range(RACKS):
        parents[f"rack/r{rack}"] = f"switch/s{rack // 2}"
        for node in range(NODES):
            name = f"r{rack}n{node}"
            parents |= {
                f"node/{name}": f"rack/r{rack}",
                f"nic/{name}": f"node/{name}",
                f"service/{name}": f"node/{name}",
            }
    return parents


def _crossed(rng: np.random.Generator, plan: Plan, true: dict[str, str]) -> dict[str, str]:
    """The topology with some edges leading to another parent of the same kind."""
    told = dict(true)
    for child in rng.choice(sorted(true), round(plan.crossed * len(true)), replace=False).tolist():
        kind = true[child].partition("/")[0]
        others = sorted({one for one in true.values() if one.startswith(f"{kind}/") and one != true[child]})
        told[child] = str(rng.choice(others))
    return told


def _stated(
    rng: np.random.Generator, plan: Plan, true: dict[str, str], names: list[str], culprits: frozenset[str]
) -> list[tuple[Opinion, ...]]:
    """The opinions of each analyzer on a window, one a component at most."""
    expected = plan.faulty * plan.faults * plan.seen or 0.5
    stated: list[tuple[Opinion, ...]] = []
    for number in range(plan.analyzers):
        if number == 1 and rng.random() < plan.shared:
            stated.append(tuple(replace(one, analyzer="a1") for one in stated[0]))
            continue
        said: dict[str, float] = {}
        for culprit in sorted(culprits):
            if rng.random() < plan.seen:
                named = true.get(culprit, culprit) if rng.random() < plan.levels else culprit
                said[named] = _probability(rng, plan, RIGHT + 1, WRONG)
        near = sorted({one for name in culprits for one in _around(true, name)} - culprits)
        for _ in range(int(rng.poisson(plan.disputes * expected * WRONG / RIGHT))):
            pool = near if near and rng.random() < 0.5 else names
            innocent = str(rng.choice(pool))
            if innocent not in culprits:
                said.setdefault(innocent, _probability(rng, plan, RIGHT, WRONG + 1))
        stated.append(tuple(Opinion(f"a{number}", name, said[name]) for name in sorted(said)))
    return stated


def _around(true: dict[str, str], name: str) -> set[str]:
    return {child for child, parent in true.items() if parent == name} | (
        {true[name]} if name in true else set()
    )


def _probability(rng: np.random.Generator, plan: Plan, right: float, wrong: float) -> float:
    drawn = float(np.clip(rng.beta(right, wrong), 1e-6, 1 - 1e-6))
    stated = 1 / (1 + ((1 - drawn) / drawn) ** plan.sharper)
    return float(round(stated)) if rng.random() < plan.certain else stated
