"""Flows of 007 in fabrics of which nearly everything is drawn at random: nothing was tuned on them.

Shares no code with `tests.worlds.voting`. Every seed draws its own:

- topology: racks below one spine layer, or pods of 2 to 9 racks and 2 to 5 aggregation switches below cores; ECMP
  weights of every switch are gamma distributed (shape 1 to 20), as unequal groups of parallel links give;
- traffic: hosts and their peers by Zipf weights (exponent 0 to .8), flow sizes log-normal or Weibull, in some seeds a
  twentieth of the flows 50 times as long;
- noise: log-normal loss rates of good links (median 1e-7 to 3e-5, sigma 0 to 1.2), load that changes by epoch, bursts
  of 1 to 4 packets, and spurious retransmissions of up to one flow in 500 that no link causes (RFC 5682 names reasons);
- bad links: they lose 1e-3 to 5e-2, twenty times the median of the good ones at least, in .3 to 1 of the time; no good
  one loses more than a tenth of the least of that; dead ones lose all, and where the network is down every flow does;
- traceroutes: 0 to 5 % fail, a host may trace 30 to 300 failing flows; in half of the seeds hops begin at the rack.

Truth. A component is at fault in an epoch only if `LEAST` traced flows of three hosts or more lost packets on it, half
of the traced failing flows over it or four standard deviations more than their number elsewhere leads to expect.
`Fault.acceptable` are components that all but one in twenty of those flows pass and that no other traced flows clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, Row, World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEAST = 8
EPOCHS = 4
_START = datetime(2025, 9, 16, 13, tzinfo=UTC)
_EPOCH = timedelta(seconds=30)
_PLANS = {
    "healthy": ("nothing bad", 0),
    "bad1": ("1 bad link", 1),
    "bad6": ("6 bad links", 6),
    "bad14": ("14 bad links", 14),
    "switches": ("2 bad switches", 2),
    "dead1": ("1 dead link", 1),
    "dead6": ("6 dead links", 6),
    "deadswitches": ("2 dead switches", 2),
    "down": ("every flow loses all, after one calm epoch", 0),
}
_SAMPLINGS = {
    "all": "every flow has hops",
    "failing": "only failing flows and up to 0.5 % of the others have rows",
    "untraced": "only failing flows and up to 0.5 % of the others have hops, others are rows without",
}
CASES = {
    f"{plan}_{sampling}": f"{what}; {how}"
    for plan, (what, _) in _PLANS.items()
    for sampling, how in _SAMPLINGS.items()
}
"""Each case in one sentence."""


def make(seed: int, case: str) -> World:
    """The world of a case; the same seed gives the same rows. Raises KeyError for a case that is not in `CASES`."""
    plan, sampling = case.split("_")
    rng = np.random.default_rng([seed, 16092025, *case.encode()])
    net = _net(rng, by_switch=plan.endswith("switches"))
    good = 1.0 if sampling == "all" else rng.uniform(0.0, 0.005)
    flows = [_flows(rng, net) for _ in range(EPOCHS)]
    bad = _bad(rng, net, flows[0], _PLANS[plan][1])
    if plan.startswith("dead"):
        bad = dict.fromkeys(bad, (1.0, 1.0))
    rows: list[Row] = []
    faults: list[Fault] = []
    for at, one in enumerate(flows):
        start = _START + at * _EPOCH
        lost, traced, seen = _losses(rng, net, one, bad if at else {}, good)
        if at and plan == "down":
            lost, traced = one.sent, np.ones(len(one.sent), dtype=bool)
        faults += [Fault(name, "loss", start, start + _EPOCH, alike) for name, alike in seen]
        rows += _rows(rng, net, one, lost, traced, start, keep=sampling != "failing")
    notes = (f"{len(net.names)} components, {len(net.rack)} hosts", f"{_SAMPLINGS[sampling]}: {good:.2%}")
    return World(case, seed, {"probe": rows}, _EPOCH, _START, tuple(faults), notes)


@dataclass(frozen=True)
class _Net:
    """Rack of each host, pod of each rack, what is drawn once, and the names of components by number.

    `up[rack]`, `climb[middle]` and `fall[core, pod]` are cumulative weights of the next switch. `number` gives the
    component of a directed link from one switch to another; hosts come first, then racks, middles, cores.
    """

    rack: Ints
    pod: Ints
    up: Floats
    climb: Floats
    fall: Floats
    number: dict[tuple[int, int], int]
    names: tuple[str, ...]
    innermost: Flags
    rates: Floats
    weights: tuple[Floats, Floats]
    size: tuple[bool, float, float, float]
    burst: float
    spurious: float
    blind: float
    limit: int
    per_host: int


@dataclass(frozen=True)
class _Flows:
    """Hosts of each flow, what it passes (flows, 6), -1 where it passes fewer, and its packets."""

    src: Ints
    dst: Ints
    hops: Ints
    sent: Ints


def _net(rng: np.random.Generator, *, by_switch: bool) -> _Net:
    flat = rng.random() < 0.35
    pods = 1 if flat else int(rng.integers(3, 7))
    racks = [int(rng.integers(12, 30))] if flat else rng.integers(2, 10, pods).tolist()
    middles = [int(rng.integers(4, 10))] if flat else rng.integers(2, 6, pods).tolist()
    cores = 0 if flat else int(rng.integers(4, 12))
    pod, mine = np.repeat(np.arange(pods), racks), np.repeat(np.arange(pods), middles)
    rack = np.repeat(np.arange(len(pod)), rng.integers(3, 11, len(pod)))
    skew = rng.uniform(1.0, 20.0)

    def drawn(allowed: Flags) -> Floats:
        weights = np.where(allowed, rng.gamma(skew, 1.0, allowed.shape), 0.0)
        return np.asarray(np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1))

    up, here = drawn(pod[:, None] == mine), np.ones((len(mine), max(cores, 1)), dtype=bool)
    fall = drawn((np.arange(max(cores, 1) * pods) % pods)[:, None] == mine)
    number, names, inner = _components(rack, pod, mine, cores, by_switch, bool(rng.random() < 0.5))
    sigma = rng.uniform(0, 1.2)
    rates = np.exp(rng.uniform(np.log(1e-7), np.log(3e-5)) + sigma * rng.normal(size=len(names)))
    rates = np.minimum(rates, _least(rates) / 10)
    zipf = rng.uniform(0.0, 0.8, 2)
    weights = [np.arange(1.0, len(rack) + 1) ** -one for one in zipf]
    for one in weights:
        rng.shuffle(one)
    size = (
        bool(rng.random() < 0.5),
        rng.uniform(25, 90),
        rng.uniform(0.4, 1.1),
        float(rng.choice([0.0, 0.05])),
    )
    return _Net(
        rack, pod, up, drawn(here), fall.reshape(max(cores, 1), pods, -1), number, names, inner, rates,
        (weights[0] / weights[0].sum(), weights[1] / weights[1].sum()), size, rng.uniform(1.0, 4.0),
        rng.uniform(0.0, 0.002), rng.uniform(0.0, 0.05), int(rng.integers(30, 301)), int(rng.integers(25, 61)),
    )  # fmt: skip


def _components(
    rack: Ints, pod: Ints, mine: Ints, cores: int, by_switch: bool, bare: bool
) -> tuple[dict[tuple[int, int], int], tuple[str, ...], Flags]:
    """The component of every directed link (itself, or the switch it enters), names, and which are between switches."""
    tors, aggs = len(rack), len(rack) + len(pod)
    tops = aggs + len(mine)
    called = [f"server-{i}" for i in range(len(rack))] + [f"tor-{i}" for i in range(len(pod))]
    called += [f"mid-{i}" for i in range(len(mine))] + [f"core-{i}" for i in range(cores)]
    pairs = [(i, tors + int(one)) for i, one in enumerate(rack)]
    pairs += [(tors + r, aggs + m) for r in range(len(pod)) for m in range(len(mine)) if pod[r] == mine[m]]
    pairs += [(aggs + m, tops + c) for m in range(len(mine)) for c in range(cores)]
    number: dict[tuple[int, int], int] = {}
    names: dict[str, int] = {}
    inner: list[bool] = []
    for a, b in [*pairs, *((b, a) for a, b in pairs)]:
        to_host = min(a, b) < tors
        name = f"{called[b].partition('-')[0]}/{called[b]}" if by_switch else f"link/{called[a]}>{called[b]}"
        if (bare or by_switch) and (b < tors or (a < tors and not by_switch)):
            number[a, b] = -1
            continue
        if name not in names:
            inner.append(not to_host or by_switch)
        number[a, b] = names.setdefault(name, len(names))
    return number, tuple(names), np.array(inner)


def _chosen(rng: np.random.Generator, cumulative: Floats) -> Ints:
    """For each row one column by its weight."""
    return np.asarray((cumulative < rng.random(len(cumulative))[:, None]).sum(axis=1), dtype=np.int64)


def _flows(rng: np.random.Generator, net: _Net) -> _Flows:
    src, dst = (rng.choice(len(net.rack), net.per_host * len(net.rack), p=one) for one in net.weights)
    src, dst = src[src != dst], dst[src != dst]
    a, b = net.rack[src], net.rack[dst]
    tors, aggs = len(net.rack), len(net.rack) + len(net.pod)
    tops = aggs + net.up.shape[1]
    middle = _chosen(rng, net.up[a])
    core = _chosen(rng, net.climb[middle])
    other = _chosen(rng, net.fall[core, net.pod[b]])
    near, far = net.pod[a] == net.pod[b], net.pod[a] != net.pod[b]
    ends = np.where(far, other, middle)
    stops = [
        (src, tors + a, src >= 0),
        (tors + a, aggs + middle, a != b),
        (aggs + middle, tops + core, far),
        (tops + core, aggs + other, far),
        (aggs + ends, tors + b, (a != b) & (near | far)),
        (tors + b, dst, src >= 0),
    ]
    span = tops + net.climb.shape[1]
    table = np.full(span * span, -1)
    for (one, two), component in net.number.items():
        table[one * span + two] = component
    hops = np.column_stack([np.where(on, table[one * span + two], -1) for one, two, on in stops])
    weibull, mean, shape, elephants = net.size
    drawn = rng.weibull(shape, len(src)) if weibull else rng.lognormal(-shape * shape / 2, shape, len(src))
    sent = mean * drawn * np.where(rng.random(len(src)) < elephants, 50.0, 1.0)
    return _Flows(src, dst, hops, np.maximum(sent, 2).astype(np.int64))


def _bad(rng: np.random.Generator, net: _Net, flows: _Flows, count: int) -> dict[int, tuple[float, float]]:
    """Bad components with loss rate and share of the time, of those that would fail enough flows."""
    bad: dict[int, tuple[float, float]] = {}
    least = _least(net.rates)
    for _ in range(1000):
        if len(bad) == count:
            break
        one = int(rng.choice(len(net.names), p=_weights(net)))
        rate, duty = float(np.exp(rng.uniform(np.log(least), np.log(0.05)))), float(rng.uniform(0.3, 1.0))
        through = (flows.hops == one).any(axis=1)
        if one not in bad and duty * float(-np.expm1(-rate * flows.sent[through]).sum()) >= 2 * LEAST:
            bad[one] = (rate, duty)
    return bad


def _least(rates: Floats) -> float:
    """Least loss of a bad component."""
    return max(1e-3, 20 * float(np.median(rates)))


def _weights(net: _Net) -> Floats:
    weights = np.where(net.innermost, 1.0, 0.1)
    return np.asarray(weights / weights.sum())


def _losses(
    rng: np.random.Generator, net: _Net, flows: _Flows, bad: dict[int, tuple[float, float]], good: float
) -> tuple[Ints, Flags, list[tuple[str, tuple[str, ...]]]]:
    """Packets lost of each flow, which flows have hops, and the faults that show with what is alike."""
    many = len(flows.src)
    load = rng.lognormal(0.0, 0.4)
    noise = np.where(flows.hops >= 0, net.rates[flows.hops], 0.0).sum(axis=1) * load
    events = rng.poisson(flows.sent * noise / net.burst)
    lost = events + rng.poisson(np.maximum(net.burst - 1, 0) * events) + (rng.random(many) < net.spurious)
    drops = {
        one: rng.binomial(flows.sent, rate) * ((flows.hops == one).any(axis=1) & (rng.random(many) < duty))
        for one, (rate, duty) in bad.items()
    }
    quick, asked, order = rng.random(many) >= net.blind, rng.random(many) < good, rng.permutation(many)
    while True:  # what does not show loses nothing, and the others are judged again without it
        total = np.minimum(lost + sum(drops.values(), np.zeros(many, dtype=np.int64)), flows.sent)
        failing = total > 0
        traced = quick & (
            np.where(failing, good == 1.0, asked) | (failing & _within(net, flows.src, failing, order))
        )
        hidden = [one for one, mine in drops.items() if not _shows(flows, one, mine, traced, failing)]
        if not hidden:
            break
        for one in hidden:
            del drops[one]
    alike = {one: _alike(net, flows, one, mine, traced, good) for one, mine in drops.items()}
    return total, traced, [(net.names[one], names) for one, names in alike.items()]


def _within(net: _Net, src: Ints, failing: Flags, order: Ints) -> Flags:
    """Whether the host was still allowed to trace the failing flow."""
    allowed, used = np.zeros(len(src), dtype=bool), np.zeros(len(net.rack), dtype=np.int64)
    for one in order[failing[order]].tolist():
        used[src[one]] += 1
        allowed[one] = used[src[one]] <= net.limit
    return allowed


def _shows(flows: _Flows, one: int, drops: Ints, traced: Flags, failing: Flags) -> bool:
    mine, through = traced & (drops > 0), (flows.hops == one).any(axis=1)
    count, on = int(mine.sum()), int((traced & failing & through).sum())
    usual = through.sum() * float((failing & ~through).sum()) / max(1, int((~through).sum()))
    stands_out = count >= on / 2 or count >= 4 * np.sqrt(usual + 1)
    return count >= LEAST and len(np.unique(flows.src[mine])) >= 3 and bool(stands_out)


def _alike(net: _Net, flows: _Flows, one: int, drops: Ints, traced: Flags, good: float) -> tuple[str, ...]:
    """Components that nearly all of the failed flows pass, unless further traced flows over them clear them."""
    hops = flows.hops[traced & (drops > 0)]
    passed = np.bincount(hops[hops >= 0], minlength=len(net.names))
    through = (flows.hops == one).any(axis=1)
    usual = good * len(hops) / max(1, int(through.sum()))
    alike = []
    for other in np.flatnonzero(passed >= 0.95 * len(hops)).tolist():
        more = (flows.hops == other).any(axis=1) & ~through
        if other == one or usual * more.sum() < 3:
            alike.append(net.names[other])
    return tuple(alike)


def _rows(
    rng: np.random.Generator,
    net: _Net,
    flows: _Flows,
    lost: Ints,
    traced: Flags,
    start: datetime,
    *,
    keep: bool,
) -> Sequence[Row]:
    used = np.arange(len(lost)) if keep else np.flatnonzero(traced)
    times = int(start.timestamp()) * 10**9 + rng.integers(0, 30_000, len(used)) * 10**6
    rows: list[Row] = []
    columns = (flows.src, flows.dst, flows.sent, lost, traced, flows.hops)
    for time, src, dst, sent, gone, known, hops in zip(
        times.tolist(), *(one[used].tolist() for one in columns), strict=True
    ):
        row = {"time": time, "src": f"server/{src}", "dst": f"server/{dst}", "sent": sent, "lost": gone}
        named = list(dict.fromkeys(net.names[one] for one in hops if one >= 0)) if known else []
        rows.append({**row, "hops": named} if named else row)
    return rows
