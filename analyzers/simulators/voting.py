"""Flows over a fabric with lossy links, for voting and its kin: windows cut directly, and `probe` rows.

The traffic is that of 007's evaluation (Arzani et al., NSDI 2018, the authors' simulator): every host opens a number
of connections to hosts of other racks, uniformly drawn, of 1 to 100 packets each, over an equal-cost path each.
Good links lose a share U(0, noise), bad ones U(low, high). The benign suite is traffic that looks unusual while no
link is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.fabric import Fabric, Losses, Routes, draw_links, healthy_loss, send
from analyzers.simulators.routes import gathered, path_table, routes_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SLICE_SECONDS = 30

BENIGN = (
    "drain",
    "upgrade",
    "agent_crash",
    "missing_rows",
    "clock_step",
    "broken_pair",
    "stale_topology",
)
"""Events in which no link is at fault: a T1 is drained; a rack is emptied for a planned upgrade; agents of one host
in twenty have crashed; 5 % of rows are missing; the clocks of one host in twenty stepped, so that rows of another
window are counted here; one pair of hosts loses all it sends (a rule of its own, not a link); one row in twenty names
hops that its packets no longer take.
"""


@dataclass(frozen=True, slots=True)
class Load:
    """Traffic of one window: `flows` per host of 1 to `packets` packets, over `seconds`."""

    flows: int = 60
    packets: int = 100
    seconds: float = 30.0


LOAD = Load()


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Flows of one window, arrays of shape (flows,); `time` in seconds from its start."""

    fabric: Fabric
    src: Ints
    dst: Ints
    routes: Routes
    sent: Ints
    time: Floats

    def __len__(self) -> int:
        return len(self.src)

    def only(self, rows: Mask) -> Traffic:
        return Traffic(
            self.fabric,
            self.src[rows],
            self.dst[rows],
            self.routes.taken(rows),
            self.sent[rows],
            self.time[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """Bad links (indices) with the share of packets that each loses."""

    links: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rates: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A window and the truth about it: `bad` link names, worst first, and for each row of its `failing` table the link
    that lost most of its packets and whether that was a bad one.
    """

    window: Window
    bad: tuple[str, ...]
    lossy: tuple[str, ...]
    by_fault: Mask


def draw_traffic(
    fabric: Fabric, rng: np.random.Generator, load: Load = LOAD, closed: Sequence[int] = ()
) -> Traffic:
    """Each host's flows go to hosts of other racks, uniformly."""
    shape = fabric.shape
    src = np.repeat(np.arange(fabric.hosts), load.flows)
    away = rng.integers(shape.hosts, fabric.hosts, len(src))
    rack = src // shape.hosts * shape.hosts
    dst = (rack + away) % fabric.hosts
    routes = fabric.route(src, dst, rng, closed)
    sent = rng.integers(1, load.packets + 1, len(src))
    return Traffic(fabric, src, dst, routes, sent, rng.uniform(0, load.seconds, len(src)))


def draw_fault(
    fabric: Fabric, rng: np.random.Generator, count: int, low: float = 1e-4, high: float = 1e-2
) -> Fault:
    """Bad links between switches, U(low, high) each."""
    return Fault(draw_links(fabric, rng, count), rng.uniform(low, high, count))


def run(traffic: Traffic, rng: np.random.Generator, noise: float, fault: Fault) -> Losses:
    """Send all flows over links of which the bad ones lose more."""
    loss = healthy_loss(traffic.fabric, rng, noise)
    loss[fault.links] = fault.rates
    return send(traffic.routes, traffic.sent, loss, rng)


def benign_traffic(
    fabric: Fabric, rng: np.random.Generator, kind: str, load: Load = LOAD
) -> tuple[Traffic, Fault]:
    """Traffic of a window in which one of `BENIGN` happened; for `broken_pair` see `break_pair`, for `stale_topology`
    `misnamed`.
    """
    shape = fabric.shape
    hosts, tors, t1s, _ = shape.counts
    if kind == "drain":
        return draw_traffic(fabric, rng, load, [hosts + tors + int(rng.integers(0, t1s))]), Fault()
    traffic = draw_traffic(fabric, rng, load)
    some = rng.random(hosts) < 0.05
    if kind == "upgrade":
        rack = int(rng.integers(0, tors))
        inside = (traffic.src // shape.hosts == rack) | (traffic.dst // shape.hosts == rack)
        return traffic.only(~inside), Fault()
    if kind == "agent_crash":
        return traffic.only(~some[traffic.src]), Fault()
    if kind == "missing_rows":
        return traffic.only(rng.random(len(traffic)) >= 0.05), Fault()
    if kind == "clock_step":
        other = draw_traffic(fabric, rng, load)
        return joined(traffic, other.only(some[other.src])), Fault()
    if kind in ("broken_pair", "stale_topology"):
        return traffic, Fault()
    raise ValueError(f"no benign event {kind!r}; there are {', '.join(BENIGN)}")


def break_pair(traffic: Traffic, losses: Losses, flow: int) -> Losses:
    """The flows between the two hosts of one flow lose everything, at the receiver."""
    mine = np.flatnonzero((traffic.src == traffic.src[flow]) & (traffic.dst == traffic.dst[flow]))
    lost = losses.lost.copy()
    lost[mine] = traffic.sent[mine]
    other = ~np.isin(losses.flow, mine)
    last = np.array([traffic.routes[int(one)][-1] for one in mine], dtype=np.int64)
    return Losses(
        lost,
        np.concatenate([losses.flow[other], mine]),
        np.concatenate([losses.link[other], last]),
        np.concatenate([losses.packets[other], traffic.sent[mine]]),
    )


def misnamed(traffic: Traffic, rng: np.random.Generator, share: float = 0.05) -> Traffic:
    """Reported traffic after its packets were sent: a share of the flows with other hops between the same hosts, as
    they were before a change of routes.
    """
    before = traffic.fabric.route(traffic.src, traffic.dst, rng)
    stale = rng.random(len(traffic)) < share
    table = np.where(stale[:, None], before.padded(), traffic.routes.padded())
    return Traffic(traffic.fabric, traffic.src, traffic.dst, routes_of(table), traffic.sent, traffic.time)


def joined(one: Traffic, other: Traffic) -> Traffic:
    """The flows of both."""
    routes = Routes(
        np.concatenate([one.routes.indptr, one.routes.indptr[-1] + other.routes.indptr[1:]]),
        np.concatenate([one.routes.indices, other.routes.indices]),
    )
    return Traffic(
        one.fabric,
        np.concatenate([one.src, other.src]),
        np.concatenate([one.dst, other.dst]),
        routes,
        np.concatenate([one.sent, other.sent]),
        np.concatenate([one.time, other.time]),
    )


def cut(
    traffic: Traffic, losses: Losses, fault: Fault, start: datetime = EPOCH, seconds: float = 30.0
) -> Cut:
    """The window of that traffic, as voting's `probe` input declares it."""
    links = traffic.fabric.links
    paths, row = path_table(links, traffic.routes)
    sent, lost = (np.bincount(row, column, minlength=len(paths)) for column in (traffic.sent, losses.lost))
    table = Sums(
        {"hops": paths, "layer": ("underlay",) * len(paths)},
        {"sent": sent.astype(np.int64), "lost": lost.astype(np.int64)},
        len(paths),
    )
    flows = np.flatnonzero(losses.lost)
    failing, order = _failing(traffic, losses, flows)
    where = _lossiest(traffic, losses)[flows]
    lossy = np.zeros(failing.rows, dtype=np.int64)
    lossy[order] = where
    window = Window(
        start, start + timedelta(seconds=seconds), "simulated", "probe", {"paths": table, "failing": failing}
    )
    worst = np.argsort(-fault.rates, kind="stable")
    return Cut(
        window,
        tuple(links[link] for link in fault.links[worst].tolist()),
        tuple(links[link] for link in lossy.tolist()),
        np.isin(lossy, fault.links),
    )


def _lossiest(traffic: Traffic, losses: Losses) -> Ints:
    """For each flow the link that lost most of its packets; shape (flows,)."""
    order = np.lexsort((-losses.packets, losses.flow))
    flow, first = np.unique(losses.flow[order], return_index=True)
    found = np.full(len(traffic), -1, dtype=np.int64)
    found[flow] = losses.link[order][first]
    return found


def _failing(traffic: Traffic, losses: Losses, flows: Ints) -> tuple[Sums, Ints]:
    """The failing rows by path, ends and slice, and the row of each failing flow."""
    devices = traffic.fabric.devices
    paths, row = path_table(traffic.fabric.links, traffic.routes.taken(flows))
    ends = [(devices[a], devices[b]) for a, b in zip(traffic.src[flows], traffic.dst[flows], strict=True)]
    at = (traffic.time[flows] // SLICE_SECONDS).astype(np.int64)
    keyed = sorted({(r, a, b, s) for r, (a, b), s in zip(row.tolist(), ends, at.tolist(), strict=True)})
    number = {key: i for i, key in enumerate(keyed)}
    order = np.array(
        [number[(r, a, b, s)] for r, (a, b), s in zip(row.tolist(), ends, at.tolist(), strict=True)],
        dtype=np.int64,
    )
    hops = gathered(paths, np.array([key[0] for key in keyed], dtype=np.int64))
    keys: dict[str, Any] = {
        "hops": hops,
        "src": tuple(key[1] for key in keyed),
        "dst": tuple(key[2] for key in keyed),
        "layer": ("underlay",) * len(keyed),
        "slice": np.array([key[3] for key in keyed], dtype=np.int64),
    }
    values = {
        "flows": np.bincount(order, minlength=len(keyed)).astype(np.int64),
        "sent": np.bincount(order, traffic.sent[flows], minlength=len(keyed)).astype(np.int64),
        "lost": np.bincount(order, losses.lost[flows], minlength=len(keyed)).astype(np.int64),
    }
    return Sums(keys, values, len(keyed)), order
