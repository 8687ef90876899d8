"""Workers that differ from their role in one function, by learnt tails; and functions slow on all workers.

See the package for the derivation. Shapes: (functions, workers) of one role.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.perftracker.patterns import BETA, MU, SIGMA, Role
from analyzers.builtin.stats.tails import Better, learn
from analyzers.contract import Params

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SIDES: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {"python": (1, 0, 0), "compute": (1, -1, 0), "memory": (1, -1, 0), "collective": (-1, -1, 0)}
)
"""Worse side of beta, mu and sigma, by class; 0 counts either side of sigma, and of mu and beta none."""
_LEAST = 0.05
"""Ratios to the median below this count as this."""
_WIDTH = 0.01
"""The least that healthy workers are taken to scatter by, as a logarithm."""
_MOST_GROUPS = 120
_LOOKED_AT = 3.5
"""Robust deviations from which on a function's tails are learnt."""
NAMED = 4.0
_MOST_NATS = 60.0
_CENTRAL = 0.95
_MIDDLE, _MIDDLE_SUM = 0.7, 3.616
"""A quantile of healthy workers also where a quarter of the role is at fault, and its value for a sum of three
deviations (gamma distribution of shape 3)."""
_POINTS = 192
"""Deviations at which chances are computed; between them logarithms are interpolated."""
_PYTHON = 0.01
_PER_WIDTH, _MOST_LATE = 0.7, 8.0
"""Nats for each robust deviation by which a worker waits less than its peers: an exponential tail; and the most."""
_SLOWER = 0.5
"""Share of `least_share` from which a longer path counts where the resource is used less, too."""
_SAME = 0.5
"""Workers that differ by this share of another's deviation are alike it."""


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A worker that differs from its role in a function. `ratios` are its beta, mu and sigma over the medians."""

    role: Role
    function: int
    worker: int
    nats: float
    ratios: tuple[float, float, float]

    @property
    def component(self) -> str:
        return self.role.workers[self.worker]

    @property
    def name(self) -> str:
        return self.role.functions[self.function]

    @property
    def cls(self) -> str:
        return self.role.classes[self.function]


@dataclass(frozen=True, slots=True, eq=False)
class Common:
    """A function that takes the share `beta` of the critical path on nearly all workers of a role; `before` it took
    the other, if that is known."""

    role: Role
    function: int
    beta: float
    before: float | None

    @property
    def name(self) -> str:
        return self.role.functions[self.function]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """`apart` are workers at fault, the surest first; `groups` functions in which too many workers are apart, with how
    many; `doubtful` are workers that nearly are.
    """

    apart: tuple[Apart, ...]
    doubtful: tuple[Apart, ...]
    groups: tuple[tuple[Role, int, int], ...]


def differ(all_roles: Sequence[Role], params: Params, named: float = NAMED) -> Found:
    """The workers that differ, over all roles."""
    apart, groups = list[Apart](), list[tuple[Role, int, int]]()
    judged = [(role, _relevant(role, float(params["least_share"]))) for role in all_roles]
    tests = sum(int(relevant.sum()) * len(role.workers) for role, relevant in judged)
    for role, relevant in judged:
        if len(role.workers) < int(params["min_workers"]):
            continue
        found = _of_role(role, relevant, tests, params)
        for function in sorted({one.function for one in found}):
            strongest = max((one for one in found if one.function == function), key=lambda one: one.nats)
            if strongest.nats >= named and (
                alike := _alike(strongest, all_roles, float(params["most_apart"]))
            ):
                groups.append((role, function, alike))
        apart += found
    struck = {(role.job, role.functions[function]) for role, function, _ in groups}
    apart = [one for one in apart if (one.role.job, one.name) not in struck]
    best: dict[str, Apart] = {}
    for one in sorted(apart, key=_order):
        best.setdefault(one.component, one)
    ranked = sorted(best.values(), key=_order)
    sure = [one for one in ranked if one.nats >= named and not _follows(one, ranked)]
    rest = [one for one in ranked if one not in sure]
    return Found(tuple(sure), tuple(rest), tuple(groups))


def _order(one: Apart) -> tuple[float, str, str]:
    return -one.nats, one.component, one.name


def _follows(one: Apart, ranked: Sequence[Apart]) -> bool:
    """Whether a worker only arrives late or early because of another: a collective in which its own use of the link is
    as that of its peers, while somebody is farther apart."""
    alone = one.cls == "collective" and one.ratios[MU] > 0.9
    return alone and ranked[0] is not one and ranked[0].nats > one.nats


def _relevant(role: Role, least: float) -> Mask:
    """Functions that take enough of the critical path on some worker, or on most; of Python less is enough."""
    beta = role.values[BETA]
    top = np.nanmax(beta, axis=1)
    python = np.array([cls == "python" for cls in role.classes])
    return np.asarray(top >= np.where(python, min(least, _PYTHON), least))


def _alike(one: Apart, all_roles: Sequence[Role], most: float) -> int:
    """Number of workers that differ half as much in the component in which this one differs most, if they are too
    many: of its role, or of all roles of its job; else 0."""
    off = [math.log(max(ratio, _LEAST)) for ratio in one.ratios]
    leading = max((BETA, MU) if one.cls != "python" else (BETA,), key=lambda component: abs(off[component]))
    total, workers = 0, 0
    for role in all_roles:
        if role.job != one.role.job or one.name not in role.functions:
            continue
        row = role.values[leading, role.functions.index(one.name)]
        ratios = np.maximum(row[np.isfinite(row)] / max(float(np.nanmedian(row)), 1e-9), _LEAST)
        alike = int((np.log(ratios) * np.sign(off[leading]) >= _SAME * abs(off[leading])).sum())
        if role is one.role and alike > max(1, most * len(role.workers)):
            return alike
        total, workers = total + alike, workers + len(role.workers)
    return total if total > max(1, most * workers) else 0


def _of_role(role: Role, relevant: Mask, tests: int, params: Params) -> list[Apart]:
    least_change, least_share = float(params["least_change"]), float(params["least_share"])
    medians = role.medians()
    logs, sides = _logs(role, medians), np.array([SIDES[cls] for cls in role.classes])
    width = 1.4826 * np.nanmedian(np.abs(logs), axis=2)
    worse = np.where(sides.T[:, :, None] == 0, np.abs(logs), sides.T[:, :, None] * logs)
    worse[BETA][sides[:, BETA] == 0] = 0.0
    worse[MU][sides[:, MU] == 0] = 0.0
    loud = np.nanmax(np.nan_to_num(worse, nan=0.0) / np.maximum(width, _WIDTH)[:, :, None], axis=(0, 2))
    chosen = np.flatnonzero(relevant & (loud >= _LOOKED_AT))
    chosen = chosen[np.argsort(-loud[chosen], kind="stable")][:_MOST_GROUPS]
    if not len(chosen):
        return []
    late, trials = _late(role), math.log(max(1, tests))
    evidence = _joint(logs, worse, chosen, role)
    found = []
    for place, function in enumerate(chosen.tolist()):
        nats = evidence[place] - trials
        if role.classes[function] != "collective":
            nats = nats + late + _waited_for(role, function)
        for worker in np.flatnonzero((nats >= 0) & np.isfinite(role.values[BETA, function])).tolist():
            ratios = _ratios(role, medians, function, worker)
            if _matters(role, medians, function, worker, ratios, least_change, least_share):
                found.append(Apart(role, function, worker, min(_MOST_NATS, float(nats[worker])), ratios))
    return found


def _late(role: Role) -> Floats:
    """Evidence that the others wait for each worker: it waits in collectives less than they do. Shape (workers,)."""
    less, width = _waits_less(role)
    return np.asarray(np.clip(_PER_WIDTH * less / width - 1, 0.0, _MOST_LATE)) if width else less


def _waits_less(role: Role) -> tuple[Floats, float]:
    """By how much less of the path each worker is in collectives than the median, shape (workers,), and the robust
    deviation of that; 0 without collectives. The median stands in for a row that is missing."""
    collective = np.array([cls == "collective" for cls in role.classes])
    if not collective.any():
        return np.zeros(len(role.workers)), 0.0
    beta = role.values[BETA][collective]
    total = np.where(np.isnan(beta), np.nanmedian(beta, axis=1, keepdims=True), beta).sum(axis=0)
    less = float(np.median(total)) - total
    return less, max(1.4826 * float(np.median(np.abs(less))), 0.002)


def _waited_for(role: Role, function: int) -> Floats:
    """Evidence against workers that take longer in a function although nobody waits for them; at most 0, in nats.

    In synchronous training what a worker takes longer it waits less: the log likelihood ratio of that against no
    relation, with normal deviations. Shape (workers,).
    """
    less, width = _waits_less(role)
    beta = role.values[BETA, function]
    longer = np.maximum(np.nan_to_num(beta - np.nanmedian(beta), nan=0.0), 0.0)
    if not width:
        return np.zeros(len(longer))
    return np.asarray(np.clip((less * longer - longer**2 / 2) / width**2, -_MOST_LATE, 0.0))


def _logs(role: Role, medians: Floats) -> Floats:
    """Logarithms of the ratios to the median; shape (3, functions, workers), NaN where nothing was measured."""
    size = np.maximum(medians, 1e-6)[:, :, None]
    return np.asarray(np.log(np.maximum(role.values / size, _LEAST)))


def _joint(logs: Floats, worse: Floats, chosen: NDArray[np.int64], role: Role) -> Floats:
    """Evidence of each worker in nats, by Fisher's method over the components; shape (chosen, workers)."""
    better, at = [], []
    for function in chosen.tolist():
        sides = SIDES[role.classes[function]]
        for component in (BETA, MU, SIGMA):
            better.append(_better(logs[component, function], sides[component], role.workers))
            at.append((function, component))
    tails = learn(better, _WIDTH)
    total = np.zeros((len(chosen), len(role.workers)))
    for group, (function, component) in enumerate(at):
        off = np.maximum(np.nan_to_num(worse[component, function], nan=0.0), 0.0)
        points = np.linspace(0.0, max(float(off.max()), 1e-6), _POINTS)
        chance = -np.log(np.clip(2 * tails.chance(group, points), 1e-40, 1.0))
        total[group // 3] += np.interp(off, points, chance)
    return np.stack([_tail_of(one) for one in total])


def _better(logs: Floats, side: int, workers: tuple[str, ...]) -> Better:
    """The better half of the workers; where either side is worse all but the farthest of both."""
    off = np.abs(logs) if side == 0 else -side * logs
    retained = np.flatnonzero(np.isfinite(off) & (off >= 0))
    if side == 0 and len(retained) > 20:
        retained = retained[off[retained] <= np.quantile(off[retained], _CENTRAL)]
    return Better(tuple(workers[one] for one in retained.tolist()), off[retained])


def _tail_of(total: Floats) -> Floats:
    """Minus the logarithm of the chance of a sum of three, widened to the spread of the sums of most workers."""
    order = np.sort(total)
    wide = max(1.0, float(order[int(_MIDDLE * (len(order) - 1))]) / _MIDDLE_SUM)
    if len(order) >= 200:
        wide = max(wide, float(order[int(0.98 * (len(order) - 1))]) / 7.52)
    s = total / wide
    return np.asarray(s - np.log1p(s + s**2 / 2))


def _ratios(role: Role, medians: Floats, function: int, worker: int) -> tuple[float, float, float]:
    beta, mu, sigma = (
        float(role.values[one, function, worker] / max(float(medians[one, function]), 1e-9))
        for one in (BETA, MU, SIGMA)
    )
    return beta, mu, sigma


def _matters(
    role: Role,
    medians: Floats,
    function: int,
    worker: int,
    ratios: tuple[float, float, float],
    least: float,
    share: float,
) -> bool:
    """Whether the difference costs time: the critical path is longer for it, in collectives the link is used less."""
    cls = role.classes[function]
    beta = float(role.values[BETA, function, worker])
    longer = beta - float(medians[BETA, function])
    slower = cls != "python" and ratios[MU] <= 1 - least and beta >= 0.01
    if cls == "collective":
        return slower
    return ratios[BETA] >= 1 + least and longer >= (share * _SLOWER if slower else share)


def common(all_roles: Sequence[Role], past: Sequence[Role], params: Params) -> tuple[Common, ...]:
    """Python and memory functions that nearly all workers have too much of: from `common_share` on, and more than half
    as much again as in the profile before, if there is one."""
    before = {(one.job, one.role, name): beta for one in past for name, beta in _betas(one)}
    found = []
    for role in all_roles:
        if len(role.workers) < int(params["min_workers"]):
            continue
        low = np.nanquantile(role.values[BETA], 0.2, axis=1)
        there = np.isfinite(role.values[BETA]).mean(axis=1) >= 0.8
        for function in np.flatnonzero(there & (low >= float(params["common_share"]))).tolist():
            if role.classes[function] != "python":
                continue
            usual = before.get((role.job, role.role, role.functions[function]), None if not past else 0.0)
            beta = float(np.nanmedian(role.values[BETA, function]))
            if usual is None or beta >= max(1.5 * usual, usual + 0.01):
                found.append(Common(role, function, beta, usual))
    return tuple(sorted(found, key=lambda one: (-one.beta, one.role.job, one.role.role, one.name)))


def _betas(role: Role) -> list[tuple[str, float]]:
    return list(zip(role.functions, np.nanmedian(role.values[BETA], axis=1).tolist(), strict=True))
