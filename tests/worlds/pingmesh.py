"""Round-trip times of all-pairs probes between servers, ten minutes a window, with the place of each server.

Topology. A data centre of podsets, racks (`tor`) and servers, all of unequal sizes; racks of a podset share leaf
switches, podsets share a spine tier (Pingmesh, Guo et al., SIGCOMM 2015). Pinglists are those of the paper: all servers
of a rack among themselves, and server i of a rack with server i of every other rack, which leaves gaps where racks
are unequal. `topology` rows say which rack, podset and data centre a server is in.

Noise. Times are log-normal around 216 us in a rack and 268 us between racks, with offsets of each rack and server,
and a Pareto tail so that P99 is 1 to 2 ms and P99.9 10 to 25 ms, as in the two data centres of the paper. A dropped SYN
adds 3 seconds, a second one 9, with a rate of 1e-5 to 8e-5 a probe; a server answers late (garbage collection) at rates
of its own. Pairs send 5 to 20 probes a window; agents fail and send nothing.

Truth. A fault hits at least `MOST_FAINT` probes in each of its windows (lost, dropped once or slowed down); one that
would hit fewer is not planted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, Row, World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_FAINT = 25
"""Probes that a fault hits in a window at least, for it to be there."""

_START = datetime(2025, 6, 3, 9, tzinfo=UTC)
_EVERY = timedelta(minutes=10)


@dataclass(frozen=True)
class _Plan:
    """Settings of a case: kinds of the faults, how they hit, what is missing, and what harmless goes on."""

    faults: tuple[str, ...] = ()
    windows: int = 5
    calm: int = 2
    drop: tuple[float, float] = (2e-3, 2e-2)
    agents: float = 0.02
    peak: float = 1.0
    reboots: float = 0.0
    drained: bool = False
    wrong: float = 0.0
    tail: float = 0.03
    placed: bool = True


_PLANS: dict[str, tuple[_Plan, str]] = {
    "healthy": (_Plan(), "nothing is broken"),
    "healthy_tail": (_Plan(tail=0.045), "half again the usual tail of latency; nothing is broken"),
    "load_peak": (
        _Plan(peak=1.8),
        "times of all servers are 1.8 times as long for some windows; nothing is broken",
    ),
    "reboots": (_Plan(reboots=0.04), "4 % of the servers reboot for a minute; nothing is broken"),
    "drained": (_Plan(drained=True), "a podset is taken off all pinglists; nothing is broken"),
    "agents_healthy": (_Plan(agents=0.3), "30 % of the agents send nothing; nothing is broken"),
    "black_hole": (_Plan(("black_hole",)), "a rack switch drops everything between some pairs of addresses"),
    "black_holes": (
        _Plan(("black_hole", "black_hole", "black_hole")),
        "three rack switches with black holes at once",
    ),
    "black_hole_agents": (
        _Plan(("black_hole",), agents=0.3),
        "a black hole while 30 % of the agents send nothing",
    ),
    "black_hole_wrong": (
        _Plan(("black_hole",), wrong=0.05),
        "a black hole; 5 % of the servers are recorded elsewhere",
    ),
    "black_hole_podset": (
        _Plan(("leaf_hole",)),
        "leaf switches of a podset drop everything between some addresses",
    ),
    "podset_down": (_Plan(("podset_down",)), "a podset loses power: it sends and answers nothing"),
    "podset_drops": (
        _Plan(("leaf_drops",), drop=(5e-3, 3e-2)),
        "leaf switches of a podset drop 0.5 to 3 % of the packets",
    ),
    "podset_slow": (
        _Plan(("leaf_slow",)),
        "leaf switches of a podset delay a tenth of the packets by 6 to 30 ms",
    ),
    "spine_drops": (
        _Plan(("spine_drops",)),
        "the spine tier drops 0.2 to 2 % of the packets between podsets",
    ),
    "spine_slow": (_Plan(("spine_slow",)), "the spine tier delays a tenth of the packets by 6 to 30 ms"),
    "tor_drops": (
        _Plan(("tor_drops",), drop=(1e-2, 6e-2)),
        "a rack switch drops 1 to 6 % of the packets at random",
    ),
    "tor_down": (_Plan(("tor_down",)), "a rack switch is down: its servers send and answer nothing"),
    "server_down": (
        _Plan(("server_down",)),
        "a server sends and answers nothing (Pingmesh leaves such to other monitors)",
    ),
    "server_slow": (_Plan(("server_slow",)), "a server delays a third of the packets by 6 to 30 ms"),
    "several": (
        _Plan(("black_hole", "leaf_drops", "server_down"), drop=(5e-3, 3e-2)),
        "a black hole, a lossy podset and a dead server",
    ),
    "always": (
        _Plan(("black_hole", "tor_drops"), calm=0, drop=(2e-2, 8e-2)),
        "two racks are bad from the first row on",
    ),
    "unplaced": (_Plan(("server_down",), placed=False), "no topology is known; a server is down"),
    "unplaced_healthy": (_Plan(placed=False), "no topology is known; nothing is broken"),
}
_PLANS["several_agents"] = (
    replace(_PLANS["several"][0], agents=0.2),
    "a black hole, a lossy podset and a dead server while 20 % of the agents send nothing",
)
CASES: dict[str, str] = {name: text for name, (_, text) in _PLANS.items()}
"""Each case in one sentence."""

SPINE = "spine_tier/dc1"
"""The spine tier of the data centre `dc1`: probes without hops cannot tell its switches apart."""


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    plan = _PLANS[case][0]
    rng = np.random.default_rng([seed, 20150817, sum(case.encode())])
    site = _site(rng)
    noise = _noise(rng, plan, site)
    broken: list[_Broken] = []
    for kind in plan.faults:
        broken.append(_pick(rng, plan, site, kind, {one.component for one in broken}))
    while True:
        rows, hits = _windows(np.random.default_rng([seed, 20150817, len(broken)]), plan, site, noise, broken)
        hidden = [one for one, least in zip(broken, hits.min(axis=0), strict=True) if least < MOST_FAINT]
        if not hidden:
            break
        broken = [one for one in broken if one not in hidden]
    tables: dict[str, list[Row]] = {"probe": rows}
    if plan.placed:
        tables["topology"] = _topology(rng, plan, site)
    faults, notes = [], []
    start, end = _START + plan.calm * _EVERY, _START + plan.windows * _EVERY
    for number, one in enumerate(broken):
        counts = hits[:, number]
        faults.append(Fault(one.component, one.kind, start, end))
        notes.append(
            f"{one.component} {one.kind}: {counts.sum()} probes hit, at least {counts.min()} a window"
        )
    return World(
        case=case,
        seed=seed,
        rows=tables,
        every=_EVERY,
        judged_from=_START,
        faults=tuple(faults),
        notes=(f"{len(site.hosts)} servers, {site.racks} racks, {site.podsets} podsets", CASES[case], *notes),
    )


# -- the site ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """Servers with their rack, podset and number within the rack, and who probes whom."""

    hosts: tuple[str, ...]
    rack: Ints
    podset: Ints
    rack_names: tuple[str, ...]
    podset_names: tuple[str, ...]
    src: Ints
    dst: Ints

    @property
    def racks(self) -> int:
        return len(self.rack_names)

    @property
    def podsets(self) -> int:
        return len(self.podset_names)


def _site(rng: np.random.Generator) -> _Site:
    hosts, rack, podset, index, rack_names = [], [], [], [], []
    podsets = int(rng.integers(4, 7))
    for one in range(podsets):
        for tor in range(int(rng.integers(2, 8))):
            rack_names.append(f"tor/ps{one + 1}-t{tor + 1}")
            for server in range(int(rng.integers(4, 9))):
                hosts.append(f"host/ps{one + 1}-t{tor + 1}-h{server + 1}")
                rack.append(len(rack_names) - 1)
                podset.append(one)
                index.append(server)
    racks, numbers = np.array(rack), np.array(index)
    same = racks[:, None] == racks[None, :]
    probed = (same | (numbers[:, None] == numbers[None, :])) & ~np.eye(len(hosts), dtype=bool)
    src, dst = np.nonzero(probed)
    names = tuple(f"podset/ps{one + 1}" for one in range(podsets))
    return _Site(tuple(hosts), racks, np.array(podset), tuple(rack_names), names, src, dst)


def _topology(rng: np.random.Generator, plan: _Plan, site: _Site) -> list[Row]:
    """Inventory rows of each component, known a day before the first probe."""
    when = int((_START - timedelta(days=1)).timestamp()) * 10**9
    rows: list[Row] = [
        {"time": when, "component": "datacenter/dc1"},
        {"time": when, "component": SPINE, "parents": ["datacenter/dc1"]},
    ]
    rows += [{"time": when, "component": one, "parents": ["datacenter/dc1"]} for one in site.podset_names]
    first = [int(site.podset[np.flatnonzero(site.rack == rack)[0]]) for rack in range(site.racks)]
    for name, podset in zip(site.rack_names, first, strict=True):
        rows.append({"time": when, "component": name, "parents": [site.podset_names[podset]]})
    moved = rng.random(len(site.hosts)) < plan.wrong
    for host, rack in enumerate(site.rack.tolist()):
        told = int(rng.integers(site.racks)) if moved[host] else rack
        rows.append({"time": when, "component": site.hosts[host], "parents": [site.rack_names[told]]})
    return rows


# -- probes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Noise:
    """Differences of pairs and servers in normal times: medians, late answers, drops, and silent agents."""

    median: Floats
    late: Floats
    drop: float
    silent: Flags


def _noise(rng: np.random.Generator, plan: _Plan, site: _Site) -> _Noise:
    host = rng.lognormal(0.0, 0.06, len(site.hosts))
    rack = rng.lognormal(0.0, 0.05, site.racks)
    near = site.rack[site.src] == site.rack[site.dst]
    median = np.where(near, 216.0, 268.0) * host[site.src] * host[site.dst]
    median = median * np.where(near, 1.0, rack[site.rack[site.src]] * rack[site.rack[site.dst]])
    late = np.minimum(plan.tail * rng.gamma(8.0, 0.125, len(site.hosts)), 0.2)
    drop = math.exp(rng.uniform(math.log(1e-5), math.log(8e-5)))
    return _Noise(median, late[site.dst], drop, rng.random(len(site.hosts)) < plan.agents)


def _windows(
    rng: np.random.Generator, plan: _Plan, site: _Site, noise: _Noise, broken: list[_Broken]
) -> tuple[list[Row], Ints]:
    """All rows, and how many probes each fault hit in each of its windows."""
    rows: list[Row] = []
    hits: list[list[int]] = []
    for window in range(plan.windows):
        made, hit = _window(rng, plan, site, noise, broken if window >= plan.calm else [], window)
        rows += made
        if window >= plan.calm:
            hits.append(hit)
    return rows, np.array(hits, dtype=np.int64)


def _window(
    rng: np.random.Generator, plan: _Plan, site: _Site, noise: _Noise, active: list[_Broken], window: int
) -> tuple[list[Row], list[int]]:
    """The rows of a window and how many probes each active fault hit."""
    speaks = ~noise.silent[site.src]
    if plan.drained and window >= plan.calm:
        speaks &= (site.podset[site.src] != 0) & (site.podset[site.dst] != 0)
    gone = np.zeros(len(site.hosts), dtype=bool)
    for one in active:
        gone |= one.gone
    pairs = np.flatnonzero(speaks & ~gone[site.src])
    many = rng.integers(5, 21, len(pairs))
    probe = np.repeat(np.arange(len(pairs)), many)
    pair = pairs[probe]
    busy = plan.peak if window >= plan.calm else 1.0
    rtt = noise.median[pair] * busy * rng.lognormal(0.0, 0.22, len(pair))
    late = rng.random(len(pair)) < noise.late[pair] * busy
    rtt += np.where(late, 370.0 * np.minimum(1 + rng.pareto(1.0, len(pair)), 150.0), 0.0)
    chance = np.full(len(pair), noise.drop)
    lost = np.zeros(len(pair), dtype=bool)
    rebooting = rng.random(len(site.hosts)) < plan.reboots
    lost |= rebooting[site.dst[pair]] & (rng.random(len(pair)) < 0.1)
    hits: list[int] = []
    for one in active:
        stopped = one.stopped[pair] | gone[site.dst[pair]] & one.gone[site.dst[pair]]
        dropped = rng.random(len(pair)) < one.drop[pair]
        slow = rng.random(len(pair)) < one.slow[pair]
        rtt += np.where(slow, rng.uniform(6_000, 30_000, len(pair)), 0.0)
        chance = np.where(dropped, 1.0, chance)
        lost |= stopped
        hits.append(int((stopped | dropped | slow).sum()))
    first = rng.random(len(pair)) < chance
    second = first & (rng.random(len(pair)) < 0.08)
    rtt += np.where(second, 9e6, np.where(first, 3e6, 0.0))
    return _rows(rng, site, pairs, many, rtt, lost, _START + window * _EVERY), hits


def _rows(
    rng: np.random.Generator,
    site: _Site,
    pairs: Ints,
    many: Ints,
    rtt: Floats,
    lost: Flags,
    start: datetime,
) -> list[Row]:
    times = int(start.timestamp()) * 10**9 + rng.integers(0, 600_000, len(pairs)) * 10**6
    ends = np.cumsum(many).tolist()
    values, failed = np.round(rtt, 1).tolist(), lost.tolist()
    src, dst = site.src[pairs].tolist(), site.dst[pairs].tolist()
    rows: list[Row] = []
    first = 0
    for number, (time, last) in enumerate(zip(times.tolist(), ends, strict=True)):
        answers = [value for value, no in zip(values[first:last], failed[first:last], strict=True) if not no]
        row: dict[str, Any] = {"time": time, "src": site.hosts[src[number]], "dst": site.hosts[dst[number]]}
        rows.append({**row, "sent": last - first, "lost": last - first - len(answers), "rtt_us": answers})
        first = last
    return rows


# -- faults ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Broken:
    """A fault: what it does to each pair (drops all, drops some, delays some), and the servers that are gone."""

    component: str
    kind: str
    stopped: Flags
    drop: Floats
    slow: Floats
    gone: Flags


def _pick(rng: np.random.Generator, plan: _Plan, site: _Site, kind: str, used: set[str]) -> _Broken:
    """A fault of the kind at a component that has none yet; podsets have two racks at least."""
    rack = int(rng.choice([one for one, name in enumerate(site.rack_names) if name not in used]))
    podset = int(rng.choice([one for one, name in enumerate(site.podset_names) if name not in used]))
    host = int(rng.choice(len(site.hosts)))
    a, b = site.src, site.dst
    across = site.rack[a] != site.rack[b]
    in_rack = (site.rack[a] == rack) | (site.rack[b] == rack)
    in_podset = ((site.podset[a] == podset) | (site.podset[b] == podset)) & across
    between = site.podset[a] != site.podset[b]
    at_host = (a == host) | (b == host)
    where, name = {
        "black_hole": (in_rack & across, site.rack_names[rack]),
        "tor_drops": (in_rack, site.rack_names[rack]),
        "tor_down": (in_rack, site.rack_names[rack]),
        "leaf_hole": (in_podset, site.podset_names[podset]),
        "leaf_drops": (in_podset, site.podset_names[podset]),
        "leaf_slow": (in_podset, site.podset_names[podset]),
        "podset_down": (in_podset, site.podset_names[podset]),
        "spine_drops": (between, SPINE),
        "spine_slow": (between, SPINE),
        "server_down": (at_host, site.hosts[host]),
        "server_slow": (at_host, site.hosts[host]),
    }[kind]
    none, nobody = np.zeros(len(a)), np.zeros(len(site.hosts), dtype=bool)
    level = math.exp(rng.uniform(math.log(plan.drop[0]), math.log(plan.drop[1])))
    hashed = rng.random(len(a)) < rng.uniform(0.15, 0.45)
    gone = {
        "tor_down": site.rack == rack,
        "podset_down": site.podset == podset,
        "server_down": np.arange(len(site.hosts)) == host,
    }.get(kind, nobody)
    return _Broken(
        component=name,
        kind=kind,
        stopped=where & hashed if kind in ("black_hole", "leaf_hole") else np.zeros(len(a), dtype=bool),
        drop=where * level if kind.endswith("drops") else none,
        slow=where * (0.1 if kind != "server_slow" else 0.33) if kind.endswith("slow") else none,
        gone=gone,
    )
