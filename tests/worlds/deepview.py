"""Regions of virtual machines with remote disks: attempts a window on the paths from top-of-rack switch to storage.

Topology. A region has network groups (`net_tier/t2-*`), compute clusters behind a group each, racks (`tor/*`) in a
cluster, storage clusters behind a group each, and one or two upper tiers (`net_tier/t3-*`, two device generations).
A disk behind the rack's own group takes two hops, any other three, through the upper tier of the older of the two
groups; tiers are aggregated because ECMP hides the device. This is the path model of Deepview (Zhang et al., NSDI
2018). Fan-out is irregular: log-normal racks a cluster, clusters a group; a rack uses only a part of the storage.

Attempts a path are log-normal over paths (disk counts of tenants are heavy-tailed) times a diurnal load times an
AR(1) load of the region; a window's count is gamma-Poisson. Failures of normal times are gamma-mixed with a shape
of each storage cluster's own, times a constant log-normal factor of each component: no two are equally good.
A fault fails attempts on its paths on top of that; a partial one hits the paths unevenly (gamma, shape 2), as the gray
failures of Huang et al. (HotOS 2017) do. `placed_*` cases are the raw feeds of the paper: placements of machines
with moves, deletions, repeats and unknown machines, and failures that retry.

Truth. A fault is planted only in windows where it leaves at least `MOST_FAINT` failures, on three paths or more, and
four standard deviations of the noise there; in others it fails nothing. `Fault.acceptable` are components that the
rows cannot separate from it: they miss fewer than 3 of its failures and would add fewer than 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, Row, World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CASES: dict[str, str] = {
    "healthy": "36 hours of a region in which nothing is broken",
    "stop_day": "12 calm hours, then one storage cluster fails every attempt for 24 hours",
    "stop_day_10min": "the same at 10-minute windows: 4 calm hours, 24 hours of stop",
    "stop_day_starved": "a storage cluster stops for 24 hours and its clients give up: attempts fall to a twentieth",
    "stop_from_start": "a storage cluster is stopped from the first row on, so that no calm history exists",
    "stop": "components of any kind stop for two to four hours, one after the other",
    "gray": "components of any kind fail 2 to 30 % of the attempts, unevenly over their paths",
    "faint": "components of any kind fail 0.2 to 1.2 % of the attempts",
    "flapping": "a component stops for 4 to 15 minutes of each hour, in episodes",
    "several": "two to four components of any kind stop or fail partly at the same time",
    "half_stop": "half of all windows, history included, have a different component stopped",
    "half_gray": "half of all windows, history included, have a different partial failure",
    "half_faint": "half of all windows, history included, have a different faint failure",
    "half_several": "half of all windows, history included, have two to four different failures at once",
    "wrong_incidences": "5 % of what the paths are recorded to depend on is wrong; stops and partial failures",
    "wrong_incidences_healthy": "5 % of what the paths are recorded to depend on is wrong; nothing is broken",
    "wrong_parents": "5 % of the racks and storage clusters are recorded below the wrong cluster or group",
    "correlated_healthy": "heavy-tailed load shocks raise failures of a whole network group; nothing is broken",
    "correlated": "the same shocks, and components that stop or fail partly",
    "heavy_noise_healthy": "rates of normal times mixed by heavy-tailed factors; nothing is broken",
    "heavy_noise": "the same noise, and components that stop or fail partly",
    "low_volume_healthy": "about two attempts a path and hour; nothing is broken",
    "low_volume": "about two attempts a path and hour; components stop or fail partly",
    "unequal": "attempts of paths differ by a factor of 1000; components stop or fail partly",
    "missing_senders": "racks fall silent for hours and a fifth of the rows is missing; stops and partial failures",
    "missing_senders_healthy": "racks fall silent for hours and a fifth of the rows is missing; nothing is broken",
    "drain": "compute clusters are drained, filled again and deployed to; nothing is broken",
    "load_peak": "load triples for some hours and failures everywhere with it; nothing is broken",
    "growth": "racks and a storage cluster come into use in judged windows; nothing is broken",
    "bad_client": "one tenant's own mistake fails most attempts of two paths all the time; nothing is broken",
    "first": "the first hour of rows: a component of any kind stops or fails partly, and there is no history",
    "first_healthy": "the first hour of rows; nothing is broken, and there is no history",
    "placed_stop": "placement and unit_failure rows: a storage cluster stops for 24 hours",
    "placed_gray": "placement and unit_failure rows with hosts: components fail 3 to 30 % of their machines",
    "placed_healthy": "placement and unit_failure rows with hosts; nothing is broken",
}
"""Each case in one sentence."""

MOST_FAINT = 12
"""Failures that a fault leaves in a window at least, for it to be planted there."""

_DAY = datetime(2025, 3, 11, tzinfo=UTC)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class _Plan:
    """Settings of a case. `windows` and `judged` count windows; `volume` is attempts a path and hour."""

    every: timedelta = _HOUR
    windows: int = 36
    judged: int = 12
    storage: tuple[int, int] = (9, 14)
    racks: tuple[int, int] = (60, 170)
    volume: float = 160.0
    spread: float = 0.9
    base: tuple[float, float] = (2e-4, 3e-3)
    shapes: tuple[float, float] = (8.0, 60.0)
    heavy: float = 0.0
    shocks: float = 0.0
    episodes: str = "none"
    severity: str = "stop"
    count: tuple[int, int] = (1, 1)
    only: str = ""
    starve: bool = False
    wrong_incidences: float = 0.0
    wrong_parents: float = 0.0
    silent: float = 0.0
    lost_rows: float = 0.0
    benign: str = ""


_SPACED = _Plan(episodes="spaced")
_HALF = _Plan(episodes="half", windows=40)
_DAY_LONG = _Plan(episodes="day", only="storage_cluster", windows=40, judged=6)
_FIRST = _Plan(windows=1, judged=0)
_PLANS: dict[str, _Plan] = {
    "healthy": _Plan(),
    "stop_day": _DAY_LONG,
    "stop_day_10min": replace(
        _DAY_LONG, every=timedelta(minutes=10), windows=174, judged=12, racks=(35, 50), volume=600.0
    ),
    "stop_day_starved": replace(_DAY_LONG, starve=True),
    "stop_from_start": replace(_DAY_LONG, episodes="early", windows=24, judged=0),
    "stop": _SPACED,
    "gray": replace(_SPACED, severity="gray"),
    "faint": replace(_SPACED, severity="faint"),
    "flapping": replace(_SPACED, severity="flapping"),
    "several": replace(_SPACED, severity="mixed", count=(2, 4)),
    "half_stop": _HALF,
    "half_gray": replace(_HALF, severity="gray"),
    "half_faint": replace(_HALF, severity="faint"),
    "half_several": replace(_HALF, severity="mixed", count=(2, 4)),
    "wrong_incidences": replace(_SPACED, severity="mixed", wrong_incidences=0.05),
    "wrong_incidences_healthy": _Plan(wrong_incidences=0.05),
    "wrong_parents": replace(_SPACED, severity="mixed", wrong_parents=0.05),
    "correlated_healthy": _Plan(shocks=0.6),
    "correlated": replace(_SPACED, severity="mixed", shocks=0.6),
    "heavy_noise_healthy": _Plan(heavy=0.8, shapes=(0.3, 2.0)),
    "heavy_noise": replace(_SPACED, severity="mixed", heavy=0.8, shapes=(0.3, 2.0)),
    "low_volume_healthy": _Plan(volume=2.0, base=(2e-3, 2e-2)),
    "low_volume": replace(_SPACED, severity="mixed", volume=2.0, base=(2e-3, 2e-2)),
    "unequal": replace(_SPACED, severity="mixed", spread=2.2),
    "missing_senders": replace(_SPACED, severity="mixed", silent=0.15, lost_rows=0.2),
    "missing_senders_healthy": _Plan(silent=0.15, lost_rows=0.2),
    "drain": _Plan(benign="drain"),
    "load_peak": _Plan(benign="peak"),
    "growth": _Plan(benign="growth"),
    "bad_client": _Plan(benign="client"),
    "first": replace(_FIRST, episodes="early", severity="mixed"),
    "first_healthy": _FIRST,
    "placed_stop": replace(_DAY_LONG, racks=(40, 60), storage=(8, 12)),
    "placed_gray": replace(_SPACED, severity="gray", racks=(40, 60), storage=(8, 12), base=(1e-4, 1e-3)),
    "placed_healthy": _Plan(racks=(40, 60), storage=(8, 12), base=(1e-4, 1e-3)),
}


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    plan = _PLANS[case]
    rng = np.random.default_rng([seed, 20180409, sum(case.encode())])
    region = _region(rng, plan)
    traffic = _traffic(rng, plan, region)
    planted = _planted(rng, plan, region)
    if case.startswith("placed_"):
        units = _units(rng, plan, region)
        traffic = replace(traffic, attempts=units.counts(len(region.paths)))
    failures, left = _failures(rng, plan, region, traffic, planted)
    faults, notes = _truth(plan, region, traffic.attempts, planted, left)
    rows: dict[str, Sequence[Row]]
    if case.startswith("placed_"):
        hosts = case != "placed_stop"
        rows = {"placement": _placements(rng, plan, region, units, hosts=hosts)}
        rows["unit_failure"] = _unit_failures(rng, plan, units, failures)
    else:
        rows = {"path_outcome": _rows(rng, plan, region, traffic.attempts, failures)}
    return World(
        case=case,
        seed=seed,
        rows=rows,
        every=plan.every,
        judged_from=_DAY + plan.judged * plan.every,
        faults=faults,
        notes=(f"{len(region.names)} components, {len(region.paths)} paths", *_unlike(plan), *notes),
    )


# -- the region --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Region:
    """Components by number, the paths that cross them, and what the rows say that they cross.

    `crosses` and `recorded` are (paths, components). `group` is the network group of a path's rack.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    paths: tuple[tuple[int, ...], ...]
    crosses: Flags
    recorded: Flags
    rack: Ints
    cluster: Ints
    storage: Ints
    group: Ints


def _region(rng: np.random.Generator, plan: _Plan) -> _Region:
    groups = int(rng.integers(4, 8))
    names = [f"net_tier/t2-{g + 1}" for g in range(groups)]
    uppers = int(rng.integers(1, 3))
    names += [f"net_tier/t3-{'ab'[u]}" for u in range(uppers)]
    upper_of = [groups + int(rng.integers(uppers)) for _ in range(groups)]
    clusters, racks = _compute(rng, groups, int(rng.integers(*plan.racks)))
    first_cluster = len(names)
    names += [f"compute_cluster/c{c + 11}" for c in range(len(clusters))]
    first_rack = len(names)
    names += [f"tor/c{c + 11}-r{r:02d}" for c, size in enumerate(racks) for r in range(1, size + 1)]
    cluster_of = [c for c, size in enumerate(racks) for _ in range(size)]
    first_storage = len(names)
    stores = int(rng.integers(plan.storage[0], plan.storage[1] + 1))
    names += [f"storage_cluster/s{s + 1}" for s in range(stores)]
    home = [int(rng.integers(groups)) for _ in range(stores)]
    popularity = rng.lognormal(0.0, 0.6, stores)

    def path(rack: int, store: int, cluster: int, near: int, far: int) -> tuple[int, ...]:
        across = (near,) if near == far else (near, upper_of[min(near, far)], far)
        return (first_rack + rack, first_cluster + cluster, *across, first_storage + store)

    lies = _lies(rng, plan, len(cluster_of), len(clusters), stores, groups)
    paths, said = [], []
    for rack, cluster in enumerate(cluster_of):
        share = rng.uniform(0.35, 1.0)
        weights = popularity * np.array([1.6 if home[s] == clusters[cluster] else 1.0 for s in range(stores)])
        used = rng.choice(stores, max(3, round(share * stores)), replace=False, p=weights / weights.sum())
        for store in sorted(int(one) for one in used):
            paths.append(path(rack, store, cluster, clusters[cluster], home[store]))
            other = lies.cluster.get(rack, cluster)
            said.append(path(rack, store, other, clusters[other], lies.home.get(store, home[store])))
    kinds = tuple(name.partition("/")[0] for name in names)
    recorded = _incidence(said, len(names))
    if plan.wrong_incidences:
        recorded = _shuffled(rng, recorded, kinds, plan.wrong_incidences)
    crosses = _incidence(paths, len(names))
    racks_of = np.array([one[0] for one in paths])
    clusters_of = np.array([one[1] for one in paths])
    return _Region(
        names=tuple(names),
        kinds=kinds,
        paths=tuple(paths),
        crosses=crosses,
        recorded=recorded,
        rack=racks_of,
        cluster=clusters_of,
        storage=np.array([one[-1] for one in paths]),
        group=np.array([one[2] for one in paths]),
    )


def _compute(rng: np.random.Generator, groups: int, racks: int) -> tuple[list[int], list[int]]:
    """The group of each compute cluster, and the racks it has: log-normal, a factor of ten between them."""
    clusters = [g for g in range(groups) for _ in range(int(rng.choice([1, 1, 2, 2, 3, 5])))]
    sizes = rng.lognormal(0.0, 0.7, len(clusters))
    return clusters, [max(2, round(racks * float(one) / float(sizes.sum()))) for one in sizes]


@dataclass(frozen=True)
class _Lies:
    """Wrong entries of the inventory: the cluster of a rack, the group of a storage cluster."""

    cluster: dict[int, int]
    home: dict[int, int]


def _lies(
    rng: np.random.Generator, plan: _Plan, racks: int, clusters: int, stores: int, groups: int
) -> _Lies:
    wrong = plan.wrong_parents
    if not wrong:
        return _Lies({}, {})
    picked = rng.choice(racks, max(1, round(wrong * racks)), replace=False)
    moved = rng.choice(stores, max(1, round(wrong * stores)), replace=False)
    return _Lies(
        {int(rack): int(rng.integers(clusters)) for rack in picked},
        {int(store): int(rng.integers(groups)) for store in moved},
    )


def _shuffled(rng: np.random.Generator, recorded: Flags, kinds: Sequence[str], share: float) -> Flags:
    """The incidences with a share of them replaced by another component of the same kind, once for all windows."""
    wrong = recorded.copy()
    for path, component in np.argwhere(recorded & (rng.random(recorded.shape) < share)):
        others = [
            other for other, kind in enumerate(kinds) if kind == kinds[component] and other != component
        ]
        wrong[path, component] = False
        if others:
            wrong[path, int(rng.choice(others))] = True
    return wrong


def _incidence(paths: Sequence[tuple[int, ...]], components: int) -> Flags:
    matrix = np.zeros((len(paths), components), dtype=bool)
    for number, path in enumerate(paths):
        matrix[number, list(path)] = True
    return matrix


# -- normal times ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Traffic:
    """Attempts and the failure rate of normal times, both (windows, paths); rates already hold all noise."""

    attempts: Ints
    rates: Floats


def _traffic(rng: np.random.Generator, plan: _Plan, region: _Region) -> _Traffic:
    shape = (plan.windows, len(region.paths))
    hours = plan.every / _HOUR
    day = 1.0 + 0.35 * np.sin(2 * math.pi * (np.arange(plan.windows) * hours + rng.uniform(0, 24)) / 24)
    load = (day * np.exp(_ar1(rng, (plan.windows,), 0.8, 0.1)))[:, None] * np.ones(shape)
    growth = np.zeros(shape, dtype=bool)
    failing = np.ones(shape)
    if plan.shocks:
        group_load = np.exp(_ar1(rng, (plan.windows, len(region.names)), 0.5, plan.shocks, tail=4.0))
        load *= group_load[:, region.group] ** 0.3
        failing *= group_load[:, region.group]
    load, failing, growth = _benign(rng, plan, region, load, failing, growth)
    mean = plan.volume * hours * rng.lognormal(-(plan.spread**2) / 2, plan.spread, shape[1])
    attempts = rng.poisson(rng.gamma(12.0, 1 / 12.0, shape) * load * mean)
    attempts[growth | _lost(rng, plan, region)] = 0
    level = math.exp(rng.uniform(math.log(plan.base[0]), math.log(plan.base[1])))
    own = rng.normal(0.0, 0.25 + 0.35 * (plan.heavy > 0), len(region.names))
    rates = level * np.exp(region.crosses @ own) * failing
    shapes = np.exp(rng.uniform(math.log(plan.shapes[0]), math.log(plan.shapes[1]), len(region.names)))[
        region.storage
    ]
    rates = rates * rng.gamma(shapes, 1 / shapes, shape)
    if plan.heavy:
        rates = rates * rng.lognormal(-(plan.heavy**2) / 2, plan.heavy, shape)
    if plan.benign == "client":
        rates[:, rng.choice(shape[1], 2, replace=False)] = rng.uniform(0.3, 0.8)
    return _Traffic(attempts, np.minimum(rates, 0.5 if plan.benign != "client" else 0.9))


def _lost(rng: np.random.Generator, plan: _Plan, region: _Region) -> Flags:
    """Flags of the (window, path) without a row: their rack was silent for 3 to 12 windows, or the row was lost."""
    lost = rng.random((plan.windows, len(region.paths))) < plan.lost_rows
    for rack in np.unique(region.rack) if plan.silent else ():
        if rng.random() < plan.silent:
            start = int(rng.integers(plan.windows - 4))
            lost[start : start + int(rng.integers(3, 13)), region.rack == rack] = True
    return lost


def _ar1(
    rng: np.random.Generator, shape: tuple[int, ...], memory: float, spread: float, tail: float = 0.0
) -> Floats:
    """Stationary AR(1) along the first axis; `tail` are degrees of freedom of its shocks (0: normal)."""
    shocks = (
        rng.standard_t(tail, shape) / math.sqrt(tail / (tail - 2)) if tail else rng.standard_normal(shape)
    )
    series = shocks * spread
    for step in range(1, shape[0]):
        series[step] = memory * series[step - 1] + math.sqrt(1 - memory**2) * series[step]
    return series


def _benign(
    rng: np.random.Generator, plan: _Plan, region: _Region, load: Floats, failing: Floats, absent: Flags
) -> tuple[Floats, Floats, Flags]:
    """Load, failures and presence of the paths after harmless events."""
    judged = plan.judged
    if plan.benign == "drain":
        for cluster in rng.choice(np.unique(region.cluster), 2, replace=False):
            start = int(rng.integers(judged, plan.windows - 6))
            mine = region.cluster == cluster
            load[start : start + 5, mine] *= np.array([0.5, 0.08, 0.0, 0.0, 0.6])[:, None]
            load[start : start + 5, ~mine] *= 1 + mine.mean()
        for cluster in rng.choice(np.unique(region.cluster), 2, replace=False):  # a deploy, rack after rack
            start = int(rng.integers(judged, plan.windows - 4))
            load[start : start + 3, region.cluster == cluster] *= 0.7
    if plan.benign == "peak":
        start, length = int(rng.integers(judged, plan.windows - 6)), int(rng.integers(2, 6))
        load[start : start + length] *= 3.0
        failing[start : start + length] *= rng.uniform(2.0, 4.0)
    if plan.benign == "growth":
        racks, stores = np.unique(region.rack), np.unique(region.storage)
        for rack in rng.choice(racks, max(2, len(racks) // 12), replace=False):
            absent[: int(rng.integers(judged, plan.windows - 2)), region.rack == rack] = True
        absent[: int(rng.integers(judged, plan.windows - 4)), region.storage == rng.choice(stores)] = True
    return load, failing, absent


# -- faults ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Planted:
    """A component and the share of attempts that it fails, by window and path: (windows, paths)."""

    component: int
    kind: str
    share: Floats


def _planted(rng: np.random.Generator, plan: _Plan, region: _Region) -> list[_Planted]:
    """The faults of all episodes; the worst of an episode first, because it hides what others would fail."""
    used: set[int] = set()
    planted: list[_Planted] = []
    for start, length in _episodes(rng, plan):
        together: list[int] = []
        for _ in range(int(rng.integers(plan.count[0], plan.count[1] + 1))):
            component = _pick(rng, plan, region, used, together)
            together.append(component)
            used.add(component)
        if len(used) > 0.4 * len(region.names):
            used.clear()
        new = [_fault(rng, plan, region, one, start, length) for one in together]
        planted += sorted(new, key=lambda one: -float(one.share.max()))
    return planted


def _episodes(rng: np.random.Generator, plan: _Plan) -> list[tuple[int, int]]:
    """First window and number of windows of each episode."""
    if plan.episodes == "day":
        day = round(timedelta(days=1) / plan.every)
        calm = {1: 12, 6: 24}[round(_HOUR / plan.every)]
        return [(calm, day)]
    if plan.episodes == "early":
        return [(0, plan.windows)]
    if plan.episodes == "half":
        return [(window, 1) for window in range(plan.windows) if rng.random() < 0.5]
    episodes, start = [], plan.judged + int(rng.integers(1, 4))
    while plan.episodes == "spaced" and start < plan.windows - 2:
        length = int(rng.integers(2, 5))
        episodes.append((start, min(length, plan.windows - start)))
        start += length + int(rng.integers(2, 6))
    return episodes


def _pick(
    rng: np.random.Generator, plan: _Plan, region: _Region, used: set[int], together: Sequence[int]
) -> int:
    """A component of a kind drawn first, with paths enough, not mostly inside another fault of its episode."""
    for _ in range(200):
        kind = plan.only or str(rng.choice(["tor", "compute_cluster", "net_tier", "storage_cluster"]))
        one = int(rng.choice([c for c, of in enumerate(region.kinds) if of == kind]))
        mine = region.crosses[:, one]
        shared = max((region.crosses[mine][:, other].mean() for other in together), default=0.0)
        if one not in used and mine.sum() >= 3 and mine.mean() < 0.7 and shared < 0.5:
            return one
    raise AssertionError("no component is left to fail")


def _fault(
    rng: np.random.Generator, plan: _Plan, region: _Region, component: int, start: int, length: int
) -> _Planted:
    kind = plan.severity
    if kind == "mixed":
        kind = str(rng.choice(["stop", "gray"], p=[0.35, 0.65]))
    share = np.zeros((plan.windows, len(region.paths)))
    mine = np.flatnonzero(region.crosses[:, component])
    low, high = {"gray": (0.02, 0.3), "faint": (0.002, 0.012), "flapping": (0.07, 0.25)}.get(kind, (1.0, 1.0))
    level = math.exp(rng.uniform(math.log(low), math.log(high)))
    uneven = rng.gamma(2.0, 0.5, len(mine)) if kind in ("gray", "faint") else np.ones(len(mine))
    sway = np.ones(length) if kind == "stop" else rng.lognormal(0.0, 0.25, length)
    share[start : start + length, mine] = np.minimum(level * sway[:, None] * uneven, 1.0)
    return _Planted(component, kind, share)


@dataclass(frozen=True)
class _Left:
    """Traces of a fault: its failures (windows, paths), and the windows in which it was planted."""

    failures: Ints
    seen: Flags


def _failures(
    rng: np.random.Generator, plan: _Plan, region: _Region, traffic: _Traffic, planted: Sequence[_Planted]
) -> tuple[Ints, list[_Left]]:
    """All failures, and those of each fault. Starved clients give up, which lowers `traffic.attempts` in place."""
    if plan.starve:
        for one in planted:
            hours = np.cumsum((one.share > 0).any(axis=1))
            left = np.maximum(0.05, 0.5 ** np.maximum(hours - 1, 0))
            mine = region.crosses[:, one.component]
            broken = (one.share > 0).any(axis=1)
            traffic.attempts[np.ix_(broken, mine)] = np.ceil(
                traffic.attempts[np.ix_(broken, mine)] * left[broken, None]
            ).astype(np.int64)
    failures = rng.binomial(traffic.attempts, traffic.rates)
    expected = traffic.attempts * traffic.rates.mean(axis=0)
    noise = traffic.rates.std(axis=0) * traffic.attempts
    left_by: list[_Left] = []
    for one in planted:
        extra = rng.binomial(traffic.attempts - failures, one.share)
        mine = region.crosses[:, one.component]
        together, apart = noise[:, mine].sum(axis=1) ** 2, (noise[:, mine] ** 2).sum(axis=1)
        deviation = np.sqrt(expected[:, mine].sum(axis=1) + (together if plan.shocks else apart))
        total = extra.sum(axis=1)
        seen = (total >= MOST_FAINT) & ((extra > 0).sum(axis=1) >= 3) & (total >= 4 * deviation)
        extra[~seen] = 0
        failures = failures + extra
        left_by.append(_Left(extra, seen))
    return failures, left_by


# -- rows and truth ----------------------------------------------------------------------------------------------


def _rows(
    rng: np.random.Generator, plan: _Plan, region: _Region, attempts: Ints, failures: Ints
) -> list[Row]:
    members = [[region.names[c] for c in np.flatnonzero(one)] for one in region.recorded]
    start, length = int(_DAY.timestamp()), int(plan.every.total_seconds())
    rows: list[Row] = []
    for window in range(plan.windows):
        used = np.flatnonzero(attempts[window])
        seconds = (start + window * length + rng.integers(0, length, len(used))).tolist()
        counts = attempts[window, used].tolist(), failures[window, used].tolist()
        for path, second, many, failed in zip(used.tolist(), seconds, *counts, strict=True):
            row = {"components": members[path], "attempts": many, "failures": failed}
            rows.append({"time": second * 10**9, **row})
    return rows


def _truth(
    plan: _Plan, region: _Region, attempts: Ints, planted: Sequence[_Planted], left: Sequence[_Left]
) -> tuple[tuple[Fault, ...], list[str]]:
    """The faults, each run of windows one, and a note on what each left in the rows."""
    faults, notes, dropped = [], [], 0
    for one, trace in zip(planted, left, strict=True):
        name = region.names[one.component]
        dropped += int(((one.share > 0).any(axis=1) & ~trace.seen).sum())
        for start, end in _runs(trace.seen):
            acceptable = _acceptable(region, attempts, one, trace.failures, start, end)
            began, ended = _DAY + start * plan.every, _DAY + end * plan.every
            faults.append(Fault(name, one.kind, began, ended, acceptable))
            counts = trace.failures[start:end].sum(axis=1)
            notes.append(
                f"{name} {one.kind} windows {start} to {end - 1}: {counts.sum()} failures of its own, "
                f"{counts.min()} in the thinnest window"
            )
    if dropped:
        notes.append(
            f"{dropped} windows of faults would have left too little to be seen: nothing failed there"
        )
    return tuple(faults), notes


def _runs(flags: Flags) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _acceptable(
    region: _Region, attempts: Ints, one: _Planted, failures: Ints, start: int, end: int
) -> tuple[str, ...]:
    """Other components that explain the failures as well, by what the rows record, in each window of the fault."""
    mine = region.crosses[:, one.component]
    alike = np.ones(len(region.names), dtype=bool)
    for window in range(start, end):
        level = failures[window].sum() / max(1, attempts[window, mine].sum())
        missed = failures[window] @ ~region.recorded
        added = (attempts[window] * ~mine * level) @ region.recorded
        alike &= (missed < 3) & (added < 3)
    # What is recorded elsewhere and yet crosses the fault with all of its paths fails as if it were itself at fault.
    inside = (region.recorded & mine[:, None]).sum(axis=0) >= 0.9 * region.recorded.sum(axis=0)
    outside = ~(region.recorded & region.recorded[:, [one.component]]).any(axis=0)
    alike |= inside & outside & (region.recorded.sum(axis=0) >= 2)
    alike[one.component] = False
    return tuple(region.names[other] for other in np.flatnonzero(alike))


def _unlike(plan: _Plan) -> list[str]:
    """Differences of this case from a textbook, by the settings."""
    said: list[tuple[object, str]] = [
        (plan.wrong_incidences, "5 % of the recorded incidences are wrong, the same ones in all windows"),
        (plan.wrong_parents, "5 % of the racks and storage clusters are recorded below a wrong parent"),
        (plan.shocks, "failures of normal times share AR(1) shocks within a network group"),
        (plan.heavy, "failures of normal times are log-normal mixed and far from binomial"),
        (plan.silent, "some racks send nothing for hours and a fifth of the rows is lost"),
        (plan.benign, f"harmless: {plan.benign}"),
        (plan.starve, "clients of the stopped cluster give up, so that its attempts vanish"),
    ]
    return [text for holds, text in said if holds]


# -- placements --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Units:
    """Places of machines: (windows, machines), the number of its path or -1, constant within a window."""

    path: Ints

    def counts(self, paths: int) -> Ints:
        """Machines by window and path."""
        return np.array([np.bincount(one[one >= 0], minlength=paths) for one in self.path])


_UNITS = 3000


def _units(rng: np.random.Generator, plan: _Plan, region: _Region) -> _Units:
    """Machines on paths by popularity; a window moves 0.5 % (their disk stays), ends 0.2 % and starts 0.2 %."""
    weights = rng.lognormal(0.0, plan.spread, len(region.paths))
    path = np.full((plan.windows, round(1.2 * _UNITS)), -1)
    path[0, :_UNITS] = rng.choice(len(region.paths), _UNITS, p=weights / weights.sum())
    born = _UNITS
    for window in range(1, plan.windows):
        path[window] = path[window - 1]
        here = np.flatnonzero(path[window] >= 0)
        for unit in rng.choice(here, round(0.005 * _UNITS), replace=False):
            same = np.flatnonzero(region.storage == region.storage[path[window, unit]])
            path[window, unit] = rng.choice(same)
        path[window, rng.choice(here, round(0.002 * _UNITS), replace=False)] = -1
        path[window, born : born + round(0.002 * _UNITS)] = rng.choice(len(weights), round(0.002 * _UNITS))
        born += round(0.002 * _UNITS)
    return _Units(path)


def _placements(
    rng: np.random.Generator, plan: _Plan, region: _Region, units: _Units, *, hosts: bool
) -> list[Row]:
    """Placements up to a month before the first window, changes in the last 80 seconds of a window, repeats."""
    start, length = int(_DAY.timestamp()), int(plan.every.total_seconds())
    in_rack = rng.integers(5, 13, len(region.names))
    members = [[region.names[c] for c in path] for path in region.paths]
    rows: list[Row] = []
    for unit in range(units.path.shape[1]):
        host = int(rng.integers(1 << 30))
        before = -1
        for window in np.flatnonzero(np.diff(units.path[:, unit], prepend=-1)).tolist():
            path = int(units.path[window, unit])
            earlier = int(rng.integers(1, 80)) if window else int(rng.integers(60, 30 * 86_400))
            if window == 0 and rng.random() < 0.01:
                earlier = -int(rng.integers(600, 6 * length))  # the inventory heard of it late
            when = (start + window * length - earlier) * 10**9
            if path < 0:
                rows.append({"time": when, "unit": f"vm/v{unit}", "components": [], "active": False})
                continue
            rack = region.names[region.rack[path]].partition("/")[2]
            of = [f"host/{rack}-h{host % in_rack[region.rack[path]]}"] if hosts else []
            row = {"unit": f"vm/v{unit}", "components": [*of, *members[path]]}
            rows.append({"time": when, **row})
            if before < 0 and earlier > 0 and rng.random() < 0.03:
                rows.append({"time": when + 30 * 10**9, **row})
            before = path
    return rows


def _unit_failures(rng: np.random.Generator, plan: _Plan, units: _Units, failures: Ints) -> list[Row]:
    """One to some rows for each machine that fails in a window, and those of machines nobody ever placed."""
    start, length = int(_DAY.timestamp()), int(plan.every.total_seconds())
    rows: list[Row] = []
    for window in range(plan.windows):
        failed: list[str] = []
        for path in np.flatnonzero(failures[window]).tolist():
            here = np.flatnonzero(units.path[window] == path)
            failed += [f"vm/v{one}" for one in rng.choice(here, failures[window, path], replace=False)]
        failed += [f"vm/unknown{rng.integers(30)}" for _ in range(rng.poisson(0.3))]
        for unit in failed:
            first = start + window * length + int(rng.integers(0, length - 100))
            for retry in range(int(min(rng.geometric(0.5), 8))):
                late = min(first + retry * 10, start + (window + 1) * length - 90)
                rows.append({"time": late * 10**9, "unit": unit, "symptom": "disk_timeout"})
    return rows
