"""Flows with the packets they sent again, and the links that a traceroute of the flow named, in epochs of 30 seconds.

Topology: `tests.worlds.clos`, unequal pods with failed parallel links and polarised ECMP; hosts and racks are not
equally busy (log-normal), and a part of the traffic stays in the pod. Flow sizes are log-normal around 60 packets, or
Pareto with index 1.1 up to 200,000 packets, mice and elephants (Benson et al., IMC 2010).

Noise. Good links lose packets at rates of their own, gamma distributed around a mean of 1e-7 to 1e-3, and losses come
in bursts (geometric, mean 1.5), as a queue overflows. Bad links lose eight times the mean or more, 1e-3 to 5e-2.

Sampling. 007 (Arzani et al., NSDI 2018) traces a flow only after it sent a packet again, at most 10 a host and
second. `*_all`: every flow has its hops. `*_failing`: failing flows have hops, and 0 to 0.5 % of the good ones; other
good flows have no row. `*_untraced`: the same, and other good flows are rows without hops. 2 % of the traceroutes fail.

Truth. A link is bad in an epoch only if it fails at least `MOST_FAINT` flows with hops of two hosts or more, and its
losses are four standard deviations above those of the flows on it; elsewhere it loses nothing. `Fault.acceptable` are
links that at least 95 % of these flows pass and on which fewer than 3 more would have failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, Row, World
from tests.worlds.clos import Fabric, fabric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_FAINT = 8
"""Traced failing flows that a bad link leaves in an epoch at least, for it to be bad there."""

_START = datetime(2025, 4, 2, 7, tzinfo=UTC)
_EPOCH = timedelta(seconds=30)


@dataclass(frozen=True)
class _Plan:
    """Settings of a case. `windows`, `calm` and `judged` count epochs; `noise` is the mean loss of good links."""

    bad: int = 0
    windows: int = 7
    calm: int = 3
    judged: int = 2
    flows: int = 40
    noise: tuple[float, float] = (1e-7, 2e-5)
    rates: tuple[float, float] = (1e-3, 5e-2)
    elephants: bool = False
    skew: float = 0.6
    sink: float = 0.0
    congestion: bool = False
    half: bool = False
    cut: float = 0.0
    limit: int = 300
    switches: bool = False


_BAD = {count: _Plan(bad=count) for count in (1, 6, 8, 14)}
_HEAVY = _Plan(bad=6, elephants=True)
_NOISY = _Plan(bad=6, noise=(6e-4, 1e-3), rates=(1e-2, 1e-1))
_PLANS: dict[str, tuple[_Plan, str]] = {
    "healthy": (_Plan(), "nothing is broken"),
    **{f"bad{count}": (plan, f"{count} bad links after three calm epochs") for count, plan in _BAD.items()},
    "heavy": (_HEAVY, "6 bad links, flow sizes Pareto from 10 to 200,000 packets"),
    "heavy_healthy": (
        replace(_HEAVY, bad=0),
        "flow sizes Pareto from 10 to 200,000 packets; nothing is broken",
    ),
    "noisy": (_NOISY, "6 bad links, good links lose 6e-4 to 1e-3 on average"),
    "noisy_healthy": (replace(_NOISY, bad=0), "good links lose 6e-4 to 1e-3 on average; nothing is broken"),
    "noisy_heavy": (
        replace(_NOISY, elephants=True),
        "the noise of 1e-3 and the Pareto sizes together, 6 bad links",
    ),
    "congestion": (
        _Plan(congestion=True, noise=(1e-6, 1e-5)),
        "all links of the upper tiers lose 30 to 100 times more for some epochs under load; nothing is broken",
    ),
    "always6": (
        _Plan(bad=6, calm=0, judged=0),
        "6 links are bad from the first row on, no calm epoch exists",
    ),
    "single6": (_Plan(bad=6, calm=0, judged=0, windows=1), "one epoch without history, 6 bad links"),
    "half": (
        _Plan(bad=6, half=True, windows=12, judged=5),
        "half of the epochs, history included, have other bad links",
    ),
    "sink": (_Plan(bad=4, sink=0.5), "half of the flows go to one rack; 4 bad links"),
    "sink_healthy": (
        _Plan(sink=0.5, noise=(1e-6, 1e-5)),
        "half of the flows go to one rack; nothing is broken",
    ),
    "cut": (
        _Plan(bad=6, cut=0.08),
        "8 % of the hops are missing because a switch did not answer; 6 bad links",
    ),
    "limited": (
        _Plan(bad=6, limit=3, rates=(2e-2, 1e-1)),
        "a host may trace three flows an epoch; 6 bad links",
    ),
    "switches": (_Plan(bad=2, switches=True), "hops name switches and not links; 2 bad switches"),
}
_SAMPLINGS = {
    "all": "every flow carries its hops",
    "failing": "only failing flows and up to 0.5 % of the good ones carry hops, others have no row",
    "untraced": "only failing flows and up to 0.5 % of the good ones carry hops, others are rows without hops",
}
CASES: dict[str, str] = {
    f"{name}_{sampling}": f"{text}; {how}"
    for name, (plan, text) in _PLANS.items()
    for sampling, how in _SAMPLINGS.items()
    if sampling != "all" or plan.limit >= 300
}
"""Each case in one sentence: a plan and a sampling."""


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    name, _, sampling = case.rpartition("_")
    plan = _PLANS[name][0]
    rng = np.random.default_rng([seed, 20180410, sum(case.encode())])
    net = _net(rng, plan)
    good = rng.uniform(0.0, 0.005) if sampling != "all" else 1.0
    rows: list[Row] = []
    seen: list[_Seen] = []
    bad = _bad(rng, plan, net)
    for window in range(plan.windows):
        broken = bad[window] if window < len(bad) else {}
        epoch = _epoch(rng, plan, net, window, broken, good)
        seen += epoch.seen
        rows += _rows(rng, plan, net, epoch, _START + window * _EPOCH, keep=sampling != "failing")
    faults, notes = _truth(seen, [one for of in bad for one in of])
    return World(
        case=case,
        seed=seed,
        rows={"probe": rows},
        every=_EPOCH,
        judged_from=_START + plan.judged * _EPOCH,
        faults=faults,
        notes=(
            f"{len(net.names)} {'switches' if plan.switches else 'links'}, {len(net.fabric.hosts)} hosts",
            f"{_SAMPLINGS[sampling]}; good flows traced: {good:.2%}",
            *notes,
        ),
    )


# -- the fabric --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Net:
    """The fabric, the names that hops carry, what a link is called in them, and the loss rate of each good link."""

    fabric: Fabric
    names: tuple[str, ...]
    called: Ints
    rates: Floats
    busy: Floats
    drawn: Floats


def _net(rng: np.random.Generator, plan: _Plan) -> _Net:
    made = fabric(rng)
    low, high = (math.log(one) for one in plan.noise)
    names, called = made.links, np.arange(len(made.links))
    if plan.switches:  # a link is named by the device that it enters
        devices = sorted({end for ends in made.ends for end in ends})
        number = {device: i for i, device in enumerate(devices)}
        kinds = {"t": "tor", "a": "agg", "h": "host", "s": "spine"}
        names = tuple(f"{kinds[one.rpartition('-')[2][0]]}/{one}" for one in devices)
        called = np.array([number[end] for _, end in made.ends])
    rates = math.exp(rng.uniform(low, high)) * rng.gamma(2.0, 0.5, len(names))
    busy = rng.lognormal(0.0, plan.skew, len(made.hosts))
    drawn = rng.lognormal(0.0, plan.skew, len(made.hosts))
    if plan.sink:
        mine = made.rack == int(rng.choice(made.rack))
        drawn[mine] *= plan.sink / (1 - plan.sink) * drawn[~mine].sum() / drawn[mine].sum()
    return _Net(made, names, called, rates, busy / busy.sum(), drawn / drawn.sum())


def _bad(rng: np.random.Generator, plan: _Plan, net: _Net) -> list[dict[int, float]]:
    """The bad links (or switches) of each epoch, with their loss rates; such as a usual epoch would show."""
    if not plan.bad:
        return []
    inner = np.array([name.count("-h") == 0 for name in net.names])
    weights = np.where(inner, 1.0, 0.0 if plan.switches else 0.12)
    _, _, names, sent = _flows(rng, plan, net)
    low, high = (math.log(one) for one in plan.rates)

    def some() -> dict[int, float]:
        chosen: dict[int, float] = {}
        for _ in range(1000):
            if len(chosen) == plan.bad:
                break
            rate = math.exp(rng.uniform(low, high))
            failing = np.repeat(-np.expm1(-rate * sent)[:, None], names.shape[1], axis=1)
            expected = np.bincount(names[names >= 0], failing[names >= 0], minlength=len(net.names))
            free = weights * (expected >= 2 * MOST_FAINT)
            free[list(chosen)] = 0.0
            if free.any():
                chosen[int(rng.choice(len(free), p=free / free.sum()))] = rate
        return chosen

    if plan.half:
        return [some() if rng.random() < 0.5 else {} for _ in range(plan.windows)]
    lasting = some()
    return [lasting if window >= plan.calm else {} for window in range(plan.windows)]


# -- an epoch ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """A bad link as it shows in one epoch."""

    component: str
    window: int
    flows: int
    packets: int
    acceptable: frozenset[str]


@dataclass(frozen=True)
class _Epoch:
    """Flows of an epoch: hosts, links (flows, 6), packets, losses, and which carry hops."""

    src: Ints
    dst: Ints
    paths: Ints
    sent: Ints
    lost: Ints
    traced: Flags
    seen: list[_Seen]


def _flows(rng: np.random.Generator, plan: _Plan, net: _Net) -> tuple[Ints, Ints, Ints, Ints]:
    """Hosts of each flow, what its hops are called (flows, 6), -1 where it has fewer, and its packets."""
    src, dst = _pairs(rng, net, plan.flows * len(net.fabric.hosts))
    paths = net.fabric.paths(rng, src, dst)
    if plan.elephants:
        sent = np.minimum(10 * (1 + rng.pareto(1.1, len(src))), 200_000).astype(np.int64)
    else:
        sent = np.maximum(rng.lognormal(math.log(60), 0.7, len(src)), 2).astype(np.int64)
    return src, dst, np.where(paths >= 0, net.called[paths], -1), sent


def _epoch(
    rng: np.random.Generator, plan: _Plan, net: _Net, window: int, broken: dict[int, float], good: float
) -> _Epoch:
    src, dst, names, sent = _flows(rng, plan, net)
    rates = net.rates
    if plan.congestion and window in (plan.judged, plan.judged + 1, plan.judged + 3):
        upper = np.array([not name.count("-h") for name in net.names])
        rates = np.where(upper, rates * rng.uniform(30, 100) * rng.gamma(8.0, 1 / 8.0, len(rates)), rates)
    noise = np.where(names >= 0, rates[names], 0.0).sum(axis=1)
    bursts = rng.binomial(sent, np.minimum(noise, 0.5) / 1.5)
    lost = bursts + np.where(bursts > 0, rng.negative_binomial(np.maximum(bursts, 1), 1 / 1.5), 0)
    caused = {one: rng.binomial(sent, rate) * (names == one).any(axis=1) for one, rate in broken.items()}
    quick, asked, order = rng.random(len(src)) < 0.98, rng.random(len(src)) < good, rng.permutation(len(src))
    while True:  # a link that cannot be seen loses nothing, so that the others are judged again without it
        total = np.minimum(lost + sum(caused.values(), np.zeros_like(lost)), sent)
        traced = quick & _allowed(plan, src, total, order) & ((total > 0) | asked)
        hidden = [
            one
            for one, drops in caused.items()
            if not _shows(src, (names == one).any(axis=1), drops, traced, total)
        ]
        if not hidden:
            break
        for one in hidden:
            del caused[one]
    seen = [
        _Seen(net.names[one], window, *_counts(drops, traced), _alike(net, names, traced, drops, one, good))
        for one, drops in caused.items()
    ]
    return _Epoch(src, dst, names, sent, total, traced, seen)


def _pairs(rng: np.random.Generator, net: _Net, many: int) -> tuple[Ints, Ints]:
    """Hosts that speak to each other: by how busy they are, a third within the pod."""
    made = net.fabric
    src = rng.choice(len(made.hosts), many, p=net.busy)
    dst = rng.choice(len(made.hosts), many, p=net.drawn)
    pods = made.pod[made.rack]
    near = rng.random(many) < 0.25
    for pod in np.unique(pods):
        mine = np.flatnonzero(near & (pods[src] == pod))
        here = np.flatnonzero(pods == pod)
        dst[mine] = rng.choice(here, len(mine), p=net.drawn[here] / net.drawn[here].sum())
    kept = (src != dst) & made.connected(src, dst)
    return src[kept], dst[kept]


def _allowed(plan: _Plan, src: Ints, lost: Ints, order: Ints) -> Flags:
    """Whether the host was still allowed to trace the flow, at most `plan.limit` failing ones an epoch."""
    allowed = np.ones(len(src), dtype=bool)
    failing = order[lost[order] > 0]
    failing = failing[np.argsort(src[failing], kind="stable")]
    hosts = src[failing]
    allowed[failing[np.arange(len(hosts)) - np.searchsorted(hosts, hosts) >= plan.limit]] = False
    return allowed


def _counts(drops: Ints, traced: Flags) -> tuple[int, int]:
    return int(((drops > 0) & traced).sum()), int(drops.sum())


def _shows(src: Ints, through: Flags, drops: Ints, traced: Flags, total: Ints) -> bool:
    """Whether a bad link stands out of the other losses of the traced flows on it."""
    mine = (drops > 0) & traced
    others = np.maximum(total - drops, 0)[traced & through].astype(np.float64)
    enough = int(mine.sum()) >= MOST_FAINT and len(np.unique(src[mine])) >= 2
    return enough and float(drops[mine].sum()) >= 4 * math.sqrt(float((others**2).sum()) + 1)


def _alike(net: _Net, names: Ints, traced: Flags, drops: Ints, one: int, good: float) -> frozenset[str]:
    """Other links that nearly all the flows pass which the bad one failed, and that nothing in the rows clears."""
    mine = traced & (drops > 0)
    passed = np.bincount(names[mine][names[mine] >= 0], minlength=len(net.names))
    through = traced & (names == one).any(axis=1)
    chance = float(mine.sum()) / max(1.0, float(through.sum())) * (1.0 if good == 1.0 else good)
    alike = set()
    for other in np.flatnonzero(passed >= 0.95 * mine.sum()).tolist():
        more = traced & (names == other).any(axis=1) & ~through
        if other != one and more.sum() * chance < 3:
            alike.add(net.names[other])
    return frozenset(alike)


# -- rows and truth ----------------------------------------------------------------------------------------------


def _rows(
    rng: np.random.Generator, plan: _Plan, net: _Net, epoch: _Epoch, start: datetime, *, keep: bool
) -> list[Row]:
    """A row a flow; without hops where it was not traced, if such rows are to be kept."""
    used = np.arange(len(epoch.src)) if keep else np.flatnonzero(epoch.traced)
    shown = epoch.paths.copy()
    shown[rng.random(shown.shape) < plan.cut] = -1
    times = int(start.timestamp()) * 10**9 + rng.integers(0, 30_000, len(used)) * 10**6
    hosts = net.fabric.hosts
    rows: list[Row] = []
    columns = (epoch.src, epoch.dst, epoch.sent, epoch.lost, epoch.traced, shown)
    for time, src, dst, sent, lost, traced, path in zip(
        times.tolist(), *(column[used].tolist() for column in columns), strict=True
    ):
        row = {"time": time, "src": hosts[src], "dst": hosts[dst], "sent": sent, "lost": lost}
        hops = [net.names[one] for one in path if one >= 0] if traced else []
        rows.append({**row, "hops": hops} if hops else row)
    return rows


def _truth(seen: Sequence[_Seen], planned: Sequence[int]) -> tuple[tuple[Fault, ...], list[str]]:
    """The faults, runs of epochs in which a link shows, and notes on what each left."""
    faults, notes = [], []
    by_name: dict[str, list[_Seen]] = {}
    for one in seen:
        by_name.setdefault(one.component, []).append(one)
    for name, shown in sorted(by_name.items()):
        run: list[_Seen] = []
        for one, after in zip(shown, [*shown[1:], None], strict=True):
            run.append(one)
            if after is not None and after.window == one.window + 1:
                continue
            acceptable = frozenset.intersection(*(each.acceptable for each in run))
            start, end = _START + run[0].window * _EPOCH, _START + (one.window + 1) * _EPOCH
            faults.append(Fault(name, "loss", start, end, tuple(sorted(acceptable))))
            notes.append(
                f"{name} epochs {run[0].window} to {one.window}: {sum(each.packets for each in run)} packets lost, "
                f"at least {min(each.flows for each in run)} traced failing flows an epoch"
            )
            run = []
    if len(planned) > len(seen):
        notes.append(
            f"in {len(planned) - len(seen)} epochs a bad link would not have been seen: it loses nothing there"
        )
    return tuple(faults), notes
