"""Probes along known paths, a hundred packets a path every five minutes, and what of them came back.

Topology. `core`: a Clos of unequal pods (2 or 4 aggregation switches, 2 to 8 racks, missing cables), probed from one to
three servers a rack to every core switch and back (the packet is bounced as IP in IP: NetBouncer, Tan et al., NSDI
2019); a link is lost or passed in both directions together and has one name. `leafspine`: racks and spines with two
generations of uplinks. `pairs`: one-way probes between servers over one of the paths, as the meshes of Pingmesh (Guo et
al., SIGCOMM 2015) and deTector (Peng et al., ATC 2017) send them; here the two directions of a link are two names.
Where devices fail, hops name the devices passed beside the links; half of the worlds do not name the links of servers.

Noise. Good links lose with rates of their own, log-normal around 1e-5 to 3e-4. Bursts: a share of the paths lose 2 to
40 % of an epoch's probes for reasons of no component (microbursts, a busy prober), another share in every epoch.
Packets a path differ by case, and rows are missing at random or by whole racks.

Truth. Faulty links lose 2 % to all (the range of the paper). A fault is planted only in epochs where it loses at least
`MOST_FAINT` probes on three rows or more, and five standard deviations of the other losses there. `Fault.acceptable`
are components in whose place the rows would look the same (fewer than 3 losses unexplained and fewer than 6 to be
expected elsewhere), and the links of a failed device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, Row, World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_FAINT = 15
"""Probes that a fault loses in an epoch at least, for it to be planted there."""

_START = datetime(2025, 5, 19, tzinfo=UTC)
_EPOCH = timedelta(minutes=5)


@dataclass(frozen=True)
class _Plan:
    """Settings of a case. `windows`, `calm` and `judged` count epochs; counts are of faults of each kind."""

    style: str = "core"
    windows: int = 8
    calm: int = 3
    judged: int = 2
    sent: tuple[int, int] = (100, 100)
    noise: tuple[float, float] = (1e-5, 1e-4)
    links: int = 0
    share: float = 0.0
    loss: tuple[float, float] = (0.02, 1.0)
    devices: int = 0
    device_loss: tuple[float, float] = (1.0, 1.0)
    probers: int = 0
    bursts: float = 0.0
    missing: float = 0.0
    silent: float = 0.0
    half: bool = False
    blocked: int = 0
    drain: bool = False
    names_devices: bool = False


_FAULTS = _Plan(links=4)
_PLANS: dict[str, tuple[_Plan, str]] = {
    "healthy": (_Plan(), "nothing is broken"),
    "noisy_healthy": (_Plan(noise=(2e-4, 4e-4)), "good links lose 2e-4 to 4e-4, unevenly; nothing is broken"),
    "link": (_Plan(links=1), "one link loses 2 to 100 %"),
    "links": (_FAULTS, "four links lose 2 to 100 %"),
    "links_5pct": (_Plan(share=0.05), "5 % of the links lose 2 to 100 %"),
    "stopped_link": (_Plan(links=1, loss=(1.0, 1.0)), "one link loses everything"),
    "faint": (_Plan(links=3, loss=(0.005, 0.03)), "three links lose 0.5 to 3 %"),
    "noisy": (_Plan(links=4, noise=(2e-4, 4e-4)), "good links lose 2e-4 to 4e-4, four links lose 2 to 100 %"),
    "bursts_healthy": (_Plan(bursts=0.05), "5 % of the paths lose a burst in each epoch; nothing is broken"),
    "bursts": (
        replace(_FAULTS, bursts=0.05),
        "5 % of the paths lose a burst in each epoch; four links lose 2 to 100 %",
    ),
    "missing_healthy": (_Plan(missing=0.5), "half of the rows are missing; nothing is broken"),
    "missing": (replace(_FAULTS, missing=0.5), "half of the rows are missing; four links lose 2 to 100 %"),
    "silent": (
        replace(_FAULTS, silent=0.25),
        "a quarter of the racks sends nothing for some epochs; four bad links",
    ),
    "prober": (_Plan(probers=1), "one prober loses 2 to 60 % of its own probes"),
    "prober_named": (_Plan(probers=1, names_devices=True), "the same, hops name devices too"),
    "prober_and_links": (_Plan(probers=2, links=3), "two probers lose probes, three links lose 2 to 100 %"),
    "device": (_Plan(devices=1, names_devices=True), "one switch loses everything"),
    "device_gray": (
        _Plan(devices=1, names_devices=True, device_loss=(0.03, 0.3)),
        "one switch loses 3 to 30 % of what passes it",
    ),
    "several": (
        _Plan(devices=2, links=5, probers=1, names_devices=True, device_loss=(0.1, 1.0)),
        "two switches, five links and a prober lose probes at once",
    ),
    "always": (replace(_FAULTS, calm=0, judged=0), "four links are bad from the first row on"),
    "half": (
        replace(_FAULTS, half=True, windows=14, judged=6),
        "half of the epochs, history included, have other faults",
    ),
    "unequal": (replace(_FAULTS, sent=(5, 2000)), "paths get 5 to 2000 probes; four links lose 2 to 100 %"),
    "unequal_healthy": (_Plan(sent=(5, 2000)), "paths get 5 to 2000 probes; nothing is broken"),
    "blocked": (
        _Plan(blocked=3),
        "filters drop all probes of three paths, other paths of their links are clean",
    ),
    "drain": (
        _Plan(drain=True),
        "a core switch and two racks are drained, no probe passes them; nothing is broken",
    ),
    "leafspine": (replace(_FAULTS, style="leafspine"), "two tiers, four links lose 2 to 100 %"),
    "leafspine_healthy": (_Plan(style="leafspine"), "two tiers, nothing is broken"),
    "leafspine_bursts": (
        _Plan(style="leafspine", bursts=0.05),
        "two tiers, bursts on 5 % of the paths; nothing is broken",
    ),
    "pairs": (
        replace(_FAULTS, style="pairs"),
        "one-way probes of servers to servers; four links lose 2 to 100 %",
    ),
    "pairs_healthy": (_Plan(style="pairs"), "one-way probes of servers to servers; nothing is broken"),
    "pairs_missing": (
        replace(_FAULTS, style="pairs", missing=0.5, bursts=0.02),
        "one-way probes, half of the rows missing, bursts on 2 % of the paths; four links lose 2 to 100 %",
    ),
}
CASES: dict[str, str] = {name: text for name, (_, text) in _PLANS.items()}
"""Each case in one sentence."""


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    plan = _PLANS[case][0]
    rng = np.random.default_rng([seed, 20190226, sum(case.encode())])
    net = _net(rng, plan)
    level = math.exp(rng.uniform(math.log(plan.noise[0]), math.log(plan.noise[1])))
    rates = level * rng.lognormal(-0.3, 0.8, len(net.names)) * net.is_link
    spread = rng.uniform(math.log(plan.sent[0]), math.log(plan.sent[1]), len(net.src))
    sent = np.exp(spread).round().astype(np.int64)
    planned = _planned(rng, plan, net, sent)
    blocked = rng.choice(len(net.src), plan.blocked, replace=False)
    rows: list[Row] = []
    seen: list[_Seen] = []
    kept = _kept(rng, plan, net)
    for window in range(plan.windows):
        lost = rng.binomial(sent, -np.expm1(-(net.crosses @ rates)))
        hit = rng.random(len(sent)) < plan.bursts
        lost += rng.binomial(sent - lost, np.where(hit, 0.4 ** rng.uniform(1.0, 4.0, len(sent)), 0.0))
        lost[blocked] = sent[blocked]
        lost, new = _broken(rng, net, planned[window], sent, lost, kept[window], window)
        seen += new
        rows += _rows(rng, net, kept[window], sent, lost, _START + window * _EPOCH)
    faults, notes = _truth(seen, sum(len(one) for one in planned))
    return World(
        case=case,
        seed=seed,
        rows={"probe": rows},
        every=_EPOCH,
        judged_from=_START + plan.judged * _EPOCH,
        faults=faults,
        notes=(f"{int(net.is_link.sum())} links, {len(net.src)} paths an epoch", CASES[case], *notes),
    )


# -- the fabric --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Net:
    """Names that may be blamed, and the paths: (paths, names) whether a path crosses it, its prober included.

    `hops` are the names that a row of the path carries; `within` the device that a link ends at, as (links, devices).
    """

    names: tuple[str, ...]
    is_link: Flags
    crosses: Flags
    hops: tuple[tuple[str, ...], ...]
    src: tuple[str, ...]
    dst: tuple[str, ...]
    rack: tuple[str, ...]
    ends: dict[str, tuple[str, str]]


def _net(rng: np.random.Generator, plan: _Plan) -> _Net:
    cables = _leafspine(rng) if plan.style == "leafspine" else _clos(rng)
    walks = _pairs(rng, cables) if plan.style == "pairs" else _upward(cables)
    one_way, bare = plan.style == "pairs", bool(rng.random() < 0.5)
    hops: list[tuple[str, ...]] = []
    ends: dict[str, tuple[str, str]] = {}
    for walk in walks:
        steps = [(a, b) if one_way or a < b else (b, a) for a, b in pairwise(walk)]
        if bare:  # the sender does not know the cables of its servers
            steps = [step for step in steps if not any(end.startswith("host/") for end in step)]
        links = [f"link/{a.partition('/')[2]}~{b.partition('/')[2]}" for a, b in steps]
        ends.update(zip(links, steps, strict=True))
        devices = [one for one in walk if not one.startswith("host/")] if plan.names_devices else []
        hops.append((*links, *devices))
    probers = sorted({walk[0] for walk in walks})
    names = sorted({one for of in hops for one in of}) + probers
    number = {name: i for i, name in enumerate(names)}
    crosses = np.zeros((len(walks), len(names)), dtype=bool)
    for path, (of, walk) in enumerate(zip(hops, walks, strict=True)):
        crosses[path, [number[one] for one in of]] = True
        crosses[path, number[walk[0]]] = True
    return _Net(
        names=tuple(names),
        is_link=np.array([one.startswith("link/") for one in names]),
        crosses=crosses,
        hops=tuple(hops),
        src=tuple(walk[0] for walk in walks),
        dst=tuple(walk[-1] for walk in walks),
        rack=tuple(walk[1] for walk in walks),
        ends=ends,
    )


_Cables = dict[str, list[str]]
"""The devices above each device."""


def _clos(rng: np.random.Generator) -> _Cables:
    above: _Cables = {}
    cores = [[f"core/k{k + 1}{one + 1}" for one in range(int(rng.integers(2, 5)))] for k in range(4)]
    for pod in range(int(rng.integers(3, 6))):
        aggs = [f"agg/p{pod + 1}-a{k + 1}" for k in range(4 if pod == 0 or rng.random() < 0.6 else 2)]
        for k, agg in enumerate(aggs):
            above[agg] = [one for one in cores[k] if rng.random() > 0.05] or cores[k][:1]
        for tor in range(int(rng.integers(3, 11))):
            name = f"tor/p{pod + 1}-t{tor + 1}"
            above[name] = [one for one in aggs if rng.random() > 0.04] or aggs
            for host in range(int(rng.integers(1, 5))):
                above[f"host/p{pod + 1}-t{tor + 1}-h{host + 1}"] = [name]
    return above


def _leafspine(rng: np.random.Generator) -> _Cables:
    above: _Cables = {}
    spines = [f"spine/s{one + 1}" for one in range(int(rng.integers(6, 13)))]
    for leaf in range(int(rng.integers(12, 25))):
        name = f"tor/l{leaf + 1:02d}"
        new = rng.random() < 0.5
        above[name] = spines if new else sorted(rng.choice(spines, len(spines) // 2, replace=False).tolist())
        for host in range(int(rng.integers(4, 9))):
            above[f"host/l{leaf + 1:02d}-h{host + 1}"] = [name]
    return above


def _upward(above: _Cables) -> list[tuple[str, ...]]:
    """All ways from every host up to the top."""
    walks: list[tuple[str, ...]] = []

    def climb(walk: tuple[str, ...]) -> None:
        for one in above.get(walk[-1], []):
            climb((*walk, one))
        if walk[-1] not in above:
            walks.append(walk)

    for host in above:
        if host.startswith("host/"):
            climb((host,))
    return walks


def _pairs(rng: np.random.Generator, above: _Cables) -> list[tuple[str, ...]]:
    """One-way paths between hosts of two racks: up to a core switch and down on the other side."""
    upward = _upward(above)
    by_top: dict[str, list[tuple[str, ...]]] = {}
    for walk in upward:
        by_top.setdefault(walk[-1], []).append(walk)
    pairs = []
    for number in rng.integers(len(upward), size=1500).tolist():
        up = upward[number]
        down = by_top[up[-1]][int(rng.integers(len(by_top[up[-1]])))]
        if down[1] != up[1] and (len(up) < 4 or down[2] != up[2]):
            pairs.append((*up, *down[-2::-1]))
    return pairs


# -- faults ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Broken:
    """A failing component: its number, the kind of the fault, the share of probes that it loses."""

    component: int
    kind: str
    loss: float


@dataclass(frozen=True)
class _Seen:
    """A fault as it shows in one epoch."""

    component: str
    kind: str
    window: int
    lost: int
    rows: int
    acceptable: frozenset[str]


def _planned(rng: np.random.Generator, plan: _Plan, net: _Net, sent: Ints) -> list[list[_Broken]]:
    """Faults of each epoch, the worst first; such as usual rows would show."""
    rows = net.crosses.sum(axis=0) * (1 - plan.missing)
    passed = (sent @ net.crosses) * (1 - plan.missing)
    hosts = np.array([one.startswith("host/") for one in net.names])
    devices = ~hosts & ~net.is_link & (net.crosses.mean(axis=0) < 0.34)

    def pick(among: Flags, kind: str, low: float, high: float, without: set[int]) -> _Broken:
        for _ in range(1000):
            loss = math.exp(rng.uniform(math.log(low), math.log(high)))
            free = among & (rows >= 5) & (passed * loss >= 2 * MOST_FAINT)
            free[list(without)] = False
            if free.any():
                return _Broken(int(rng.choice(np.flatnonzero(free))), kind, loss)
        raise AssertionError(f"no component is left that a {kind} would show at")

    def some() -> list[_Broken]:
        failing: list[_Broken] = []
        count = plan.links + round(plan.share * int(net.is_link.sum()))
        kinds = [(net.is_link, "loss", *plan.loss)] * count
        kinds += [(devices, "device", *plan.device_loss)] * plan.devices
        kinds += [(hosts, "prober", 0.02, 0.6)] * plan.probers
        for among, kind, low, high in kinds:
            failing.append(pick(among, kind, low, high, {one.component for one in failing}))
        return sorted(failing, key=lambda one: -one.loss)

    if plan.half:
        return [some() if rng.random() < 0.5 else [] for _ in range(plan.windows)]
    lasting = some()
    return [lasting if window >= plan.calm else [] for window in range(plan.windows)]


def _broken(
    rng: np.random.Generator,
    net: _Net,
    failing: Sequence[_Broken],
    sent: Ints,
    lost: Ints,
    kept: Flags,
    window: int,
) -> tuple[Ints, list[_Seen]]:
    """All losses, and the faults that can be seen in them; what cannot be seen loses nothing."""
    seen: list[_Seen] = []
    for one in failing:
        mine = net.crosses[:, one.component]
        extra = np.where(mine, rng.binomial(sent - lost, one.loss), 0)
        shown = np.where(kept, extra, 0)
        others = float((np.where(kept & mine, lost, 0).astype(np.float64) ** 2).sum())
        total, rows = int(shown.sum()), int((shown > 0).sum())
        if total >= MOST_FAINT and rows >= 3 and total >= 5 * math.sqrt(others + 1):
            alike = _alike(net, one, np.where(kept, sent - lost, 0), shown)
            seen.append(_Seen(net.names[one.component], one.kind, window, total, rows, alike))
            lost = lost + extra
    return lost, seen


def _alike(net: _Net, one: _Broken, sent: Ints, shown: Ints) -> frozenset[str]:
    """Components in whose place the rows would look the same."""
    mine = net.crosses[:, one.component]
    level = shown.sum() / max(1, int(sent[mine].sum()))
    missed = shown @ ~net.crosses
    added = (sent * ~mine * level) @ net.crosses
    alike = {net.names[other] for other in np.flatnonzero((missed < 3) & (added < 6))}
    name = net.names[one.component]
    if one.kind == "device":
        alike |= {link for link, ends in net.ends.items() if name in ends}
    return frozenset(alike - {name})


# -- rows and truth ----------------------------------------------------------------------------------------------


def _kept(rng: np.random.Generator, plan: _Plan, net: _Net) -> Flags:
    """Flags of the (epoch, path) that have a row."""
    kept = rng.random((plan.windows, len(net.src))) >= plan.missing
    racks = np.array(net.rack)
    for rack in sorted(set(net.rack)) if plan.silent else ():
        if rng.random() < plan.silent:
            start = int(rng.integers(plan.windows))
            kept[start : start + int(rng.integers(1, 5)), racks == rack] = False
    if plan.drain:
        tops = sorted(set(net.dst))
        gone = np.array([dst == tops[int(rng.integers(len(tops)))] for dst in net.dst])
        for rack in rng.choice(sorted(set(net.rack)), 2, replace=False):
            gone |= racks == rack
        kept[plan.judged + 1 : plan.judged + 4, gone] = False
    return kept


def _rows(
    rng: np.random.Generator, net: _Net, kept: Flags, sent: Ints, lost: Ints, start: datetime
) -> list[Row]:
    used = np.flatnonzero(kept)
    times = int(start.timestamp()) * 10**9 + rng.integers(0, 300_000, len(used)) * 10**6
    return [
        {
            "time": time,
            "src": net.src[path],
            "dst": net.dst[path],
            "sent": many,
            "lost": gone,
            "hops": list(net.hops[path]),
        }
        for time, path, many, gone in zip(
            times.tolist(), used.tolist(), sent[used].tolist(), lost[used].tolist(), strict=True
        )
    ]


def _truth(seen: Sequence[_Seen], planned: int) -> tuple[tuple[Fault, ...], list[str]]:
    """The faults, one for each run of epochs, and notes on what each left."""
    faults, notes = [], []
    runs: list[list[_Seen]] = []
    for one in sorted(seen, key=lambda each: (each.component, each.window)):
        last = runs[-1][-1] if runs else None
        if last is None or (last.component, last.window + 1) != (one.component, one.window):
            runs.append([])
        runs[-1].append(one)
    for run in runs:
        acceptable = frozenset.intersection(*(one.acceptable for one in run))
        start, end = _START + run[0].window * _EPOCH, _START + (run[-1].window + 1) * _EPOCH
        faults.append(Fault(run[0].component, run[0].kind, start, end, tuple(sorted(acceptable))))
        notes.append(
            f"{run[0].component} {run[0].kind} epochs {run[0].window} to {run[-1].window}: "
            f"{sum(one.lost for one in run)} probes lost, at least {min(one.lost for one in run)} an epoch "
            f"on {min(one.rows for one in run)} rows"
        )
    if planned > len(seen):
        notes.append(
            f"in {planned - len(seen)} epochs a fault would not have been seen: it loses nothing there"
        )
    return tuple(faults), notes
