"""Workers that differ from their role in one function, by learnt tails; and functions slow on all workers.

See the package for the derivation. Shapes: (functions, workers) of one role.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
_LEADING: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"python": (BETA,), "compute": (BETA, MU), "memory": (BETA, MU), "collective": (MU,)}
)
"""Components that cost time, by class; one of them stands out by `_STANDS_OUT` robust deviations: an odd spread alone
is no fault."""
_STANDS_OUT = 3.0
_LEAST = 0.05
"""Ratios to the median below this count as this."""
_WIDTH = 0.01
"""The least that healthy workers are taken to scatter by, as a logarithm."""
_MOST_GROUPS = 120
_LOOKED_AT = 3.5
"""Robust deviations from which on a function's tails are learnt."""
NAMED = 4.0
_AGAIN, _RECENT = 0.5, 2
"""Share of `NAMED` that is enough for a worker whom one of so many profiles before named for the same function: no
search over workers and functions chose it."""
_MOST_NATS = 60.0
_CENTRAL = 0.95
_ODD, _MOST_ODD = 5.0, 0.03
"""Robust deviations from which on a worker to the better side stands out, and the share of such workers up to which
their values are odd ones, rather than those of another kind of worker."""
_QUARTER, _FADES = 0.674, 4.0
"""The upper quartile of the normal distribution; see `_odd`."""
_MIDDLE, _MIDDLE_SUM = 0.7, 3.616
"""A quantile of healthy workers also where a quarter of the role is at fault, and its value for a sum of three
deviations (gamma distribution of shape 3)."""
_POINTS = 192
"""Deviations at which chances are computed; between them logarithms are interpolated."""
_PYTHON = 0.01
_LINK = 0.01
"""Share of the critical path from which on a collective is pooled with the others, which use the same link."""
_GROWN = 1.5
"""Least ratio of the share of a function on all workers to that before a step."""
_PER_WIDTH, _MOST_LATE = 0.7, 8.0
"""Nats for each robust deviation by which a worker waits less than its peers: an exponential tail; and the most."""
_SLOWER = 0.5
"""Share of `least_share` from which a longer path counts where the resource is used less, too."""
_SAME = 0.5
"""Workers that differ by this share of another's deviation are alike it."""
_ALIKE, _HALF_NORMAL = 0.8, 0.399
"""Share of another's deviation from which on no scatter explains it, and the median deviation of one half of a normal
distribution."""
_FOLD, _PER_FOLD = 4.0, 2.0
"""Workers of a role run one program: of the share of the path that a Python function takes, no tail that is learnt of a
few workers reaches beyond so many times the median; and the nats for each doubling beyond."""
_HOSTS = (4, 8, 16)
"""Workers of a host that are tried, by their numbers, where nodes are not known."""
_OF_HOST, _HOST_CLASSES, _CORRELATED = 0.75, ("python", "memory"), 0.5
"""Share of a host's workers that differ if their host is at fault, the classes that a host slows, and the correlation
of healthy workers of one host."""


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A worker that differs from its role in a function. `ratios` are its beta, mu and sigma over the medians. Of a
    host whose workers all differ, `worker` is the one in the middle, `beside` are the others, `node` its name if known.
    """

    role: Role
    function: int
    worker: int
    nats: float
    ratios: tuple[float, float, float]
    beside: tuple[str, ...] = ()
    node: str = ""

    @property
    def component(self) -> str:
        return self.node or self.role.workers[self.worker]

    @property
    def name(self) -> str:
        return self.role.functions[self.function]

    @property
    def cls(self) -> str:
        return self.role.classes[self.function]


@dataclass(frozen=True, slots=True, eq=False)
class Common:
    """A function that takes the share `beta` of the critical path on nearly all workers of a role; `before` is the most
    that it took in profiles before the step, if there are any."""

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


def differ(
    all_roles: Sequence[Role],
    params: Params,
    placed: Mapping[str, str] = MappingProxyType({}),
    named: float = NAMED,
    past: Sequence[Sequence[Role]] = (),
) -> Found:
    """The workers that differ, over all roles; `placed` is the node of each worker whose node is known, `past` are
    the roles of earlier profiles, oldest first."""
    apart, groups = list[Apart](), list[tuple[Role, int, int]]()
    judged = [(role, _relevant(role, float(params["least_share"]))) for role in all_roles]
    tests = sum(int(relevant.sum() + 1) * len(role.workers) for role, relevant in judged)
    for role, relevant in judged:
        if len(role.workers) < int(params["min_workers"]):
            continue
        found = _of_role(role, relevant, tests, params)
        hosts = _hosts(role, relevant, tests, params, all_roles, placed, named)
        found = [one for one in found if one.function not in {host.function for host in hosts}] + hosts
        for function in sorted({one.function for one in found}):
            strongest = max((one for one in found if one.function == function), key=lambda one: one.nats)
            if (
                not strongest.beside
                and strongest.nats >= named
                and (alike := _alike(strongest, all_roles, float(params["most_apart"])))
            ):
                groups.append((role, function, alike))
        apart += found
    struck = {(role.job, role.functions[function]) for role, function, _ in groups}
    apart = [one for one in apart if (one.role.job, one.name) not in struck]
    best: dict[str, Apart] = {}
    for one in sorted(apart, key=_order):
        best.setdefault(one.component, one)
    ranked = sorted(best.values(), key=_order)
    able = [one for one in ranked if one.nats >= _AGAIN * named and not _follows(one, ranked)]
    doubtful = [
        one for one in able if one.nats < named and not _alike(one, all_roles, float(params["most_apart"]))
    ]
    again = _again(doubtful, past[-_RECENT:], params, placed)
    sure = [replace(one, nats=max(named, one.nats)) for one in able if one.nats >= named or one in again]
    components = {one.component for one in sure}
    rest = [one for one in ranked if one.component not in components]
    return Found(tuple(sure), tuple(rest), tuple(groups))


def _again(
    doubtful: Sequence[Apart], past: Sequence[Sequence[Role]], params: Params, placed: Mapping[str, str]
) -> list[Apart]:
    """Those whom an earlier profile names for the same function, or for any use of the link."""

    def what(one: Apart) -> tuple[str, str]:
        return one.component, one.cls if one.cls == "collective" else one.name

    before = set[tuple[str, str]]()
    for some in reversed(past if doubtful else ()):
        before |= {what(one) for one in differ(some, params, placed).apart}
    return [one for one in doubtful if what(one) in before]


def _order(one: Apart) -> tuple[float, str, str]:
    return -one.nats, one.component, one.name


def _follows(one: Apart, ranked: Sequence[Apart]) -> bool:
    """Whether a worker only arrives late or early because of another: a collective in which its own use of the link is
    as that of its peers, while somebody is farther apart."""
    alone = one.cls == "collective" and one.ratios[MU] > 0.9
    return alone and ranked[0] is not one and ranked[0].nats > one.nats


def _relevant(role: Role, least: float) -> Mask:
    """Functions that take enough of the critical path on some worker for a slower resource to matter."""
    return np.asarray(np.nanmax(role.values[BETA], axis=1) >= _SLOWER * least)


def _alike(one: Apart, all_roles: Sequence[Role], most: float) -> int:
    """Number of workers that differ half as much in the component in which this one differs most, if they are too
    many: of its role, or of all roles of its job; else 0. In a collective only those count whose use of the link over
    all collectives is as low: a cause that they share shows in all of them, chance in one."""
    off = [math.log(max(ratio, _LEAST)) for ratio in one.ratios]
    leading = max((BETA, MU) if one.cls != "python" else (BETA,), key=lambda component: abs(off[component]))
    linked = float(_link_use(one.role)[one.worker]) if one.cls == "collective" else 0.0
    total, workers = 0, 0
    for role in all_roles:
        if role.job != one.role.job or one.name not in role.functions:
            continue
        like = _like(role, role.functions.index(one.name), leading, off[leading], chance=True)
        if linked < 0:
            like = like[_link_use(role)[like] <= _SAME * linked]
        if role is one.role and len(like) > max(1, most * len(role.workers)):
            return len(like)
        total, workers = total + len(like), workers + len(role.workers)
    return total if total > max(1, most * workers) else 0


def _link_use(role: Role) -> Floats:
    """Logarithm of the use of the link over that of the role, mean over collectives; shape (workers,)."""
    medians = role.medians()
    return np.asarray(_pooled(_logs(role, medians)[:, _links(role, medians)])[MU, 0])


def _links(role: Role, medians: Floats) -> NDArray[np.int64]:
    """Collectives that take enough of the path to show how well a worker uses its link."""
    return np.flatnonzero((_classes(role) == "collective") & (medians[BETA] >= _LINK))


def _like(
    role: Role, function: int, component: int, off: float, *, chance: bool = False
) -> NDArray[np.int64]:
    """Places of workers of a role that differ from its median by `_SAME` of `off`, a logarithm, or more to the same
    side; with `chance` also by more than the scatter of the better half explains, unless by `_ALIKE` of `off`."""
    row = role.values[component, function]
    logs = np.sign(off) * np.log(np.maximum(row / max(float(np.nanmedian(row)), 1e-9), _LEAST))
    least = _SAME * abs(off)
    if chance:
        better = logs[logs <= 0]
        width = float(np.median(np.abs(better - np.median(better)))) / _HALF_NORMAL
        least = max(least, min(_LOOKED_AT * width, _ALIKE * abs(off)))
    return np.flatnonzero(logs >= least)


def _hosts(
    role: Role,
    relevant: Mask,
    tests: int,
    params: Params,
    all_roles: Sequence[Role],
    placed: Mapping[str, str],
    named: float,
) -> list[Apart]:
    """Functions in which those who differ, over all roles of the job, are the workers of one host.

    Healthy workers of a host are correlated, so that `m` of them count as `m / (1 + (m - 1) r)` independent ones.
    """
    medians, least_change = role.medians(), float(params["least_change"])
    logs, sides = _logs(role, medians), np.array([SIDES[cls] for cls in role.classes])
    candidates = list[tuple[int, str, list[str], NDArray[np.int64], int]]()
    for function in np.flatnonzero(relevant).tolist():
        name, farthest = role.functions[function], float(np.nanmax(logs[BETA, function]))
        if role.classes[function] not in _HOST_CLASSES or farthest <= math.log1p(least_change):
            continue
        members = _like(role, function, BETA, farthest)
        alike = [role.workers[at] for at in members.tolist()]
        host = _host(role, alike, placed)
        if host is None or any(
            len(_like(other, other.functions.index(name), BETA, farthest))
            for other in all_roles
            if other is not role and other.job == role.job and name in other.functions
        ):
            continue
        middle = int(members[np.argsort(role.values[BETA, function, members])[len(members) // 2]])
        candidates.append((function, host, alike, members, middle))
    if not candidates:
        return []
    worse = np.maximum(sides.T[:, :, None] * logs, 0.0)
    joint = _joint(logs, worse, np.array([one[0] for one in candidates]), role.classes, role.workers)
    found = []
    for nats_of, (function, host, alike, members, middle) in zip(joint, candidates, strict=True):
        ratios = _ratios(role, medians, function, middle)
        if not _matters(role, medians, function, middle, ratios, least_change, float(params["least_share"])):
            continue
        count = len(members) / (1 + (len(members) - 1) * _CORRELATED)
        nats = count * (float(np.median(nats_of[members])) + float(_beyond(role, function)[middle]))
        nats += _host_waited_for(role, function, members) - math.log(max(1.0, tests / len(members)))
        if nats >= named:
            others = tuple(worker for worker in alike if worker != role.workers[middle])
            found.append(Apart(role, function, middle, min(_MOST_NATS, nats), ratios, others, host))
    return found


def _host(role: Role, alike: Sequence[str], placed: Mapping[str, str]) -> str | None:
    """The node of these workers if they are most of its workers and no more than half of the role, "" where only their
    numbers show that they stand side by side, None if they share no host.
    """
    if not 3 <= len(alike) <= len(role.workers) / 2:
        return None
    nodes = {placed.get(worker, "") for worker in alike}
    if nodes != {""}:
        of_node = [worker for worker in role.workers if placed.get(worker, "") in nodes]
        return min(nodes) if len(nodes) == 1 and len(alike) >= _OF_HOST * len(of_node) else None
    numbers = {worker: int(worker.rpartition("/")[2]) for worker in role.workers if _is_numbered(worker)}
    if not all(worker in numbers for worker in alike):
        return None
    for size in _HOSTS:
        blocks = {numbers[worker] // size for worker in alike}
        of_block = [worker for worker, number in numbers.items() if number // size in blocks]
        if len(blocks) == 1 and len(alike) >= _OF_HOST * len(of_block):
            return ""
    return None


def _is_numbered(worker: str) -> bool:
    return worker.rpartition("/")[2].isdecimal()


def _host_waited_for(role: Role, function: int, members: NDArray[np.int64]) -> float:
    """As `_late` and `_waited_for`, of workers together: the means of what they wait less and take longer."""
    less, width = _waits_less(role)
    if not width:
        return 0.0
    beta = role.values[BETA, function]
    outside = np.delete(less, members)
    waits_less = float(np.mean(less[members]) - np.median(outside))
    width = width * math.sqrt((1 + (len(members) - 1) * _CORRELATED) / len(members))
    longer = float(np.mean(beta[members]) - np.nanmedian(np.delete(beta, members)))
    late = min(_MOST_LATE, max(0.0, _PER_WIDTH * waits_less / width - 1))
    return late + min(0.0, max(-_MOST_LATE, (waits_less * longer - longer**2 / 2) / width**2))


def _beyond(role: Role, function: int) -> Floats:
    """Nats for what a Python function takes beyond `_FOLD` times the median of the role, shape (workers,)."""
    beta = np.nan_to_num(role.values[BETA, function], nan=0.0)
    if role.classes[function] != "python":
        return np.zeros(len(beta))
    # What takes a tenth of a thousandth of the path has no scatter worth a ratio.
    fold = beta / (_FOLD * max(float(np.nanmedian(role.values[BETA, function])), 1e-4))
    return np.asarray(_PER_FOLD * np.log2(np.maximum(fold, 1.0)))


def _of_role(role: Role, relevant: Mask, tests: int, params: Params) -> list[Apart]:
    least_change, least_share = float(params["least_change"]), float(params["least_share"])
    medians = role.medians()
    links = _links(role, medians)
    logs, classes = _logs(role, medians), role.classes
    if len(links) > 1:
        logs, classes = np.concatenate([logs, _pooled(logs[:, links])], axis=1), (*classes, "collective")
        relevant = np.append(relevant, True)
    sides = np.array([SIDES[cls] for cls in classes])
    width = 1.4826 * np.nanmedian(np.abs(logs), axis=2)
    worse = np.where(sides.T[:, :, None] == 0, np.abs(logs), sides.T[:, :, None] * logs)
    worse[BETA][sides[:, BETA] == 0] = 0.0
    worse[MU][sides[:, MU] == 0] = 0.0
    deviations = np.nan_to_num(worse, nan=0.0) / np.maximum(width, _WIDTH)[:, :, None]
    loud = np.nanmax(deviations, axis=(0, 2))
    chosen = np.flatnonzero(relevant & (loud >= _LOOKED_AT))
    chosen = chosen[np.argsort(-loud[chosen], kind="stable")][:_MOST_GROUPS]
    if not len(chosen):
        return []
    late, trials = _late(role), math.log(max(1, tests))
    evidence = _joint(logs, worse, chosen, classes, role.workers)
    found = []
    for place, judged in enumerate(chosen.tolist()):
        of_all_links = judged == len(role.functions)
        nats = evidence[place] - trials
        if not of_all_links:
            nats = nats + _beyond(role, judged)
        if classes[judged] != "collective":
            nats = nats + late + _waited_for(role, judged)
        enough = (nats >= 0) & np.isfinite(logs[BETA, judged])
        enough &= deviations[list(_LEADING[classes[judged]]), judged].max(axis=0) >= _STANDS_OUT
        if of_all_links:
            enough &= logs[MU, judged] <= math.log1p(-least_change)
        for worker in np.flatnonzero(enough).tolist():
            function = int(links[np.nanargmin(logs[MU, links, worker])]) if of_all_links else judged
            ratios = _ratios(role, medians, function, worker)
            if _matters(role, medians, function, worker, ratios, least_change, least_share):
                found.append(Apart(role, function, worker, min(_MOST_NATS, float(nats[worker])), ratios))
    return found


def _classes(role: Role) -> NDArray[np.str_]:
    return np.array(role.classes, dtype=np.str_)


def _pooled(logs: Floats) -> Floats:
    """Mean over functions that use one resource, shape (3, functions, workers) to (3, 1, workers): a fault of the
    resource shows in all of them, chance does not."""
    known = np.isfinite(logs)
    count = known.sum(axis=1, keepdims=True)
    total = np.where(known, logs, 0.0).sum(axis=1, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _late(role: Role) -> Floats:
    """Evidence that the others wait for each worker: it waits in collectives less than they do. Shape (workers,)."""
    less, width = _waits_less(role)
    return np.asarray(np.clip(_PER_WIDTH * less / width - 1, 0.0, _MOST_LATE)) if width else less


def _waits_less(role: Role) -> tuple[Floats, float]:
    """By how much less of the path each worker is in collectives than the median, shape (workers,), and the robust
    deviation of that; 0 without collectives. The median stands in for a row that is missing."""
    collective = _classes(role) == "collective"
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


def _joint(
    logs: Floats, worse: Floats, chosen: NDArray[np.int64], classes: Sequence[str], workers: tuple[str, ...]
) -> Floats:
    """Evidence of each worker in nats, by Fisher's method over the components; shape (chosen, workers)."""
    better, at = [], []
    for function in chosen.tolist():
        sides = SIDES[classes[function]]
        for component in (BETA, MU, SIGMA):
            better.append(_better(logs[component, function], sides[component], workers))
            at.append((function, component))
    tails = learn(better, _WIDTH)
    total = np.zeros((len(chosen), len(workers)))
    for group, (function, component) in enumerate(at):
        side = SIDES[classes[function]][component]
        off = np.maximum(np.nan_to_num(worse[component, function], nan=0.0), 0.0)
        points = np.linspace(0.0, max(float(off.max()), 1e-6), _POINTS)
        chance = np.maximum(2 * tails.chance(group, points), _odd(logs[component, function], side, points))
        total[group // 3] += np.interp(off, points, -np.log(np.clip(chance, 1e-40, 1.0)))
    return np.stack([_tail_of(one) for one in total])


def _better(logs: Floats, side: int, workers: tuple[str, ...]) -> Better:
    """The better half of the workers; where either side is worse all but the farthest of both."""
    off = np.abs(logs) if side == 0 else -side * logs
    retained = np.flatnonzero(np.isfinite(off) & (off >= 0))
    if side == 0 and len(retained) > 20:
        retained = retained[off[retained] <= np.quantile(off[retained], _CENTRAL)]
    return Better(tuple(workers[one] for one in retained.tolist()), off[retained])


def _odd(logs: Floats, side: int, points: Floats) -> Floats:
    """The share of workers that are so far off to the better side, and half a worker more; beyond the farthest it falls
    by e for each quarter of the way there. 0 where none stands out to that side, or more than `_MOST_ODD` do.

    Odd values come to either side, and tails are learnt without them. Where either side is worse, all workers but one
    count. Shape of `points`.
    """
    known = logs[np.isfinite(logs)]
    off = np.sort(np.abs(known) if side == 0 else -side * known)
    off = off[off >= 0][: -1 if side == 0 else None]
    if not len(off):
        return np.zeros(len(points))
    odd = off >= _ODD * max(float(np.median(off)) / _QUARTER, _WIDTH)
    if not 0 < int(odd.sum()) <= _MOST_ODD * len(off):
        return np.zeros(len(points))
    beyond = len(off) - np.searchsorted(off, points)
    share = (beyond + 0.5) / len(off) * np.exp(-_FADES * np.maximum(points / off[-1] - 1, 0.0))
    return np.asarray(np.where(beyond <= int(odd.sum()), share, 0.0))


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


def common(all_roles: Sequence[Role], past: Sequence[Sequence[Role]], params: Params) -> tuple[Common, ...]:
    """Python functions that nearly all workers have too much of; `past` are roles of earlier profiles, oldest first.

    Without an earlier profile of the role, `common_share` is the bar. With earlier ones the share has to step up: more
    than half as much again as in all profiles before some moment, and as high in all since. A function that was as high
    before and fell in between comes and goes (a checkpoint, an evaluation, a storage read). A step that the profile
    before shows, too, counts from `least_share` on.
    """
    before = [_shares(one) for one in past]
    found = []
    for role in all_roles:
        if len(role.workers) < int(params["min_workers"]):
            continue
        earlier = [shares[role.job, role.role] for shares in before if (role.job, role.role) in shares]
        low = np.nanquantile(role.values[BETA], 0.2, axis=1)
        there = np.isfinite(role.values[BETA]).mean(axis=1) >= 0.8
        for function in np.flatnonzero(there & (low >= float(params["least_share"]))).tolist():
            if role.classes[function] != "python":
                continue
            beta = float(np.nanmedian(role.values[BETA, function]))
            usual, lasts = _step(beta, [one.get(role.functions[function], 0.0) for one in earlier])
            if usual is None and earlier:
                continue
            grown = lasts and beta - (usual or 0.0) >= float(params["least_share"])
            if grown or low[function] >= float(params["common_share"]):
                found.append(Common(role, function, beta, usual))
    return tuple(sorted(found, key=lambda one: (-one.beta, one.role.job, one.role.role, one.name)))


def _step(beta: float, earlier: Sequence[float]) -> tuple[float | None, bool]:
    """The largest share before a step up to `beta`, and whether the profile before is past the step; None without a
    step."""
    lower = [beta >= max(_GROWN * one, one + _PYTHON) for one in earlier]
    since = len(lower)
    while since and not lower[since - 1]:
        since -= 1
    if not since or not all(lower[:since]):
        return None, False
    return max(earlier[:since]), since < len(lower)


def _shares(some: Sequence[Role]) -> dict[tuple[str, str], dict[str, float]]:
    """By job and role, the median share of the critical path of each function."""
    return {
        (one.job, one.role): dict(
            zip(one.functions, np.nanmedian(one.values[BETA], axis=1).tolist(), strict=True)
        )
        for one in some
    }
