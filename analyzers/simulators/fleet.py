"""Simulated regions: components, the units placed on them, and the paths those units depend on.

A region is a tree as in Deepview (Zhang et al., NSDI 2018): a unit's host sits under a ToR in a compute
cluster; its disk lies in a storage cluster, reached through the spine (T2) of its data centre and, where the
disk is in another data centre, through T3 and that data centre's spine. Devices of a tier are one component,
because equal-cost multi-path hides which of them a flow used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Paths

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Preset:
    """Sizes of a region: per data centre, `clusters` of `tors` and `storage` clusters.

    `units` is the mean number of units on a path that has any, `hosts` the hosts under a ToR, and `reach` how
    many storage clusters a ToR uses (None: all of them). `remote` weighs storage in other data centres
    against its own.
    """

    datacentres: int
    clusters: int
    tors: int
    storage: int
    units: float = 40.0
    hosts: int = 24
    empty: float = 0.2
    remote: float = 0.8
    reach: int | None = None


S = Preset(datacentres=1, clusters=4, tors=4, storage=3)
M = Preset(datacentres=2, clusters=8, tors=8, storage=6)
SMALL_REGION = Preset(datacentres=1, clusters=12, tors=22, storage=11)
"""288 components, as many as in the paper's ToR case."""

PRESETS = {"S": S, "M": M, "288": SMALL_REGION}


def large(components: int) -> Preset:
    """A region of about that many components with about 12 paths a ToR; 100,000 give 1.2 M paths."""
    tors = 40 if components < 50_000 else 120
    datacentres = max(2, round(components / 5_000))
    clusters = max(1, round(0.96 * components / datacentres / tors))
    storage = max(6, round(components / datacentres) - clusters * (tors + 1) - 1)
    return Preset(datacentres, clusters, tors, storage, units=5.0, hosts=8, empty=0.0, reach=13)


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """A region with its units.

    `paths` holds the distinct component sets, sorted; `path_of` and `host_of` have shape (units,) and give
    each unit's row in `paths` and its host; `host_names[h]` is a host's name. `units_on` has shape (paths,).
    """

    preset: Preset
    paths: Paths
    path_of: Ints
    host_of: Ints
    host_names: tuple[str, ...]
    units_on: Ints
    column: dict[str, int] = field(default_factory=dict)

    @property
    def units(self) -> int:
        return len(self.path_of)

    @property
    def components(self) -> tuple[str, ...]:
        return self.paths.names

    def carries(self, component: str) -> NDArray[np.bool_]:
        """Whether each unit depends on the component; shape (units,)."""
        on_path = np.zeros(len(self.paths), dtype=bool)
        entries = np.flatnonzero(self.paths.indices == self.column[component])
        on_path[np.searchsorted(self.paths.indptr, entries, side="right") - 1] = True
        return on_path[self.path_of]

    def of_kind(self, kind: str) -> list[str]:
        return [name for name in self.components if name.startswith(f"{kind}/")]


def build(preset: Preset, rng: np.random.Generator) -> Fleet:
    """Draw a region: which paths exist, how many units each carries and which host each unit runs on."""
    tor, storage = _pairs(preset, rng)
    units = _units(preset, tor, storage, rng)
    used = units > 0
    names, members = _members(preset, tor[used], storage[used])
    paths, order = _sorted_paths(names, members)
    units_on = units[used][order]
    path_of = np.repeat(np.arange(len(units_on)), units_on)
    host_of = tor[used][order][path_of] * preset.hosts + rng.integers(0, preset.hosts, len(path_of))
    column = {name: i for i, name in enumerate(paths.names)}
    return Fleet(preset, paths, path_of, host_of, _host_names(preset), units_on, column)


def _pairs(preset: Preset, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Pairs of a ToR and the storage clusters that it uses; both of shape (pairs,)."""
    tors = preset.datacentres * preset.clusters * preset.tors
    everywhere = preset.datacentres * preset.storage
    if preset.reach is None:
        tor, storage = np.divmod(np.arange(tors * everywhere), everywhere)
        return tor, storage
    datacentre = np.arange(tors) // (preset.clusters * preset.tors)
    local = rng.integers(0, preset.storage, (tors, preset.reach)) + (datacentre * preset.storage)[:, None]
    anywhere = rng.integers(0, everywhere, (tors, preset.reach))
    chosen = np.where(rng.random((tors, preset.reach)) < 0.8, local, anywhere)
    pairs = np.unique(np.arange(tors)[:, None] * everywhere + chosen)
    tor, storage = np.divmod(pairs, everywhere)
    return tor, storage


def _units(preset: Preset, tor: Ints, storage: Ints, rng: np.random.Generator) -> Ints:
    """Units per pair: Poisson with a Gamma(0.8) mean, some pairs empty, remote storage used less."""
    home = tor // (preset.clusters * preset.tors)
    weight = np.where(storage // preset.storage == home, 1.0, preset.remote)
    skew = rng.gamma(0.8, 1 / 0.8, len(tor)) if preset.reach is None else np.ones(len(tor))
    units = rng.poisson(preset.units * weight * skew)
    if preset.reach is not None:
        units = np.maximum(units, 1)
    return np.asarray(np.where(rng.random(len(tor)) < preset.empty, 0, units), dtype=np.int64)


def _members(preset: Preset, tor: Ints, storage: Ints) -> tuple[list[str], Ints]:
    """All component names, and the members of each path as indices into them, padded with -1; shape
    (paths, 6).
    """
    d, c, t, s = preset.datacentres, preset.clusters, preset.tors, preset.storage
    names = [f"tor/d{i + 1}-c{j + 1}-t{k + 1}" for i in range(d) for j in range(c) for k in range(t)]
    names += [f"compute_cluster/d{i + 1}-c{j + 1}" for i in range(d) for j in range(c)]
    names += [f"storage_cluster/d{i + 1}-s{j + 1}" for i in range(d) for j in range(s)]
    names += [f"t2/d{i + 1}" for i in range(d)] + ["t3/region"]
    first_cluster = d * c * t
    first_storage = first_cluster + d * c
    first_t2 = first_storage + d * s
    home, away = tor // (c * t), storage // s
    columns = [tor, first_cluster + tor // t, first_storage + storage, first_t2 + home]
    columns += [np.where(home == away, -1, first_t2 + away), np.where(home == away, -1, first_t2 + d)]
    return names, np.stack(columns, axis=1)


def _sorted_paths(names: list[str], members: Ints) -> tuple[Paths, Ints]:
    """The sets as `Paths` with sorted names and rows, and the order that sorted the rows."""
    used = np.unique(members[members >= 0])
    by_name = sorted(used.tolist(), key=lambda i: names[i])
    rank = np.full(len(names) + 1, -1)
    rank[by_name] = np.arange(len(by_name))
    beyond = len(by_name)
    rows = np.sort(np.where(members >= 0, rank[members], beyond), axis=1)
    padded = np.where(rows == beyond, -1, rows)
    order = np.lexsort(padded.T[::-1])
    rows = rows[order]
    lengths = (rows < beyond).sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = rows[rows < beyond].astype(np.int32)
    return Paths(tuple(names[i] for i in by_name), indptr, indices), order


def _host_names(preset: Preset) -> tuple[str, ...]:
    d, c, t, h = preset.datacentres, preset.clusters, preset.tors, preset.hosts
    return tuple(
        f"host/d{i + 1}-c{j + 1}-t{k + 1}-h{n + 1}"
        for i in range(d)
        for j in range(c)
        for k in range(t)
        for n in range(h)
    )
