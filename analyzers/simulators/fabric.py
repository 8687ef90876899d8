"""Simulated data-centre networks: devices, links, equal-cost routes, and the packets that links lose.

A fabric is a Clos of two or three tiers: hosts under ToRs, ToRs under the T1 switches of their pod, T1s under
T2s. `VIGIL` is the topology of 007 (Arzani et al., NSDI 2018, as in the authors' simulator): 4,160 directed
links. `fat_tree(48)` is the 82,944-link network on which deTector (Peng et al., ATC 2017) and NetBouncer (Tan
et al., NSDI 2019) are evaluated. `leaf_spine` is small, for tests.

    fabric = build(VIGIL)
    routes = fabric.route(src, dst, rng)                    # one equal-cost path a flow
    loss = healthy_loss(fabric, rng, 1e-6)
    loss[draw_links(fabric, rng, 3)] = rng.uniform(1e-4, 1e-2, 3)
    losses = send(routes, sent, loss, rng)                  # lost packets a flow, and where each was lost

Devices and links are numbered; `fabric.devices` and `fabric.links` give their names. In a directed fabric a
link has an index and a name a direction (`link/p1-t3~p1-a2` goes up, `link/p1-a2~p1-t3` down); in an
undirected one there is only the upward name. Everything is drawn from the generator that is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.simulators.routes import Routes, path_table, routes_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]

CLASSES = ("host-tor", "tor-t1", "t1-t2", "t2-t1", "t1-tor", "tor-host")
"""Link classes by their direction; an undirected link has the class of its upward direction."""

SWITCH_CLASSES = CLASSES[1:5]
TRIES = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes: `pods` of `tors` and `t1s`, `t2s` above all pods (0: two tiers), `hosts` under each ToR.

    A T1 is linked to every T2, or, with `planes`, only to the `t2s / t1s` T2s of the plane of its number, as
    in a fat tree (Al-Fares et al., SIGCOMM 2008).
    """

    pods: int
    tors: int
    t1s: int
    t2s: int
    hosts: int
    planes: bool = False

    @property
    def uplinks(self) -> int:
        """T2s above each T1."""
        return self.t2s // self.t1s if self.planes else self.t2s

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Hosts, ToRs, T1s, T2s in all."""
        tors = self.pods * self.tors
        return tors * self.hosts, tors, self.pods * self.t1s, self.t2s


VIGIL = Shape(pods=2, tors=20, t1s=8, t2s=10, hosts=40)


def fat_tree(k: int, hosts: int | None = None) -> Shape:
    """The k-ary fat tree, 3 k^3 / 4 links; `hosts` under each ToR (default k / 2, one is enough for probing).

    Raises ValueError unless k is even and at least 4.
    """
    if k < 4 or k % 2:
        raise ValueError(f"a fat tree needs an even k of at least 4, not {k}")
    half = k // 2
    return Shape(k, half, half, half * half, half if hosts is None else hosts, planes=True)


def leaf_spine(leaves: int, spines: int, hosts: int) -> Shape:
    """Two tiers: every leaf (ToR) is linked to every spine (T1)."""
    return Shape(1, leaves, spines, 0, hosts)


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """A built network. `devices` are hosts, then ToRs, T1s, T2s; hosts are numbered by ToR, so that host `h` is
    device `h` and sits under ToR `h // shape.hosts`. `ends[l]` are the devices a link leads from and to (lower
    and upper, if undirected), shape (links, 2); `link_class[l]` indexes `CLASSES`.
    """

    shape: Shape
    directed: bool
    devices: tuple[str, ...]
    links: tuple[str, ...]
    ends: Indices
    link_class: NDArray[np.int8]

    @property
    def hosts(self) -> int:
        return self.shape.counts[0]

    def links_at(self, devices: Sequence[int] | Ints) -> Ints:
        """The links that begin or end at any of the devices."""
        return np.flatnonzero(np.isin(self.ends, devices).any(axis=1))

    def links_of(self, classes: Sequence[str]) -> Ints:
        return np.flatnonzero(np.isin(self.link_class, [CLASSES.index(name) for name in classes]))

    def route(
        self, src: Ints, dst: Ints, rng: np.random.Generator, closed: Sequence[int] | Ints = ()
    ) -> Routes:
        """An equal-cost path for each flow from host `src` to host `dst`, uniform over those that avoid the
        `closed` devices (drained ones).

        Raises ValueError for a flow from a host to itself, and if no path is open (or is found in 64 draws).
        """
        if np.any(src == dst):
            raise ValueError("a flow needs two different hosts")
        routes = self._drawn(src, dst, rng)
        avoided = self.links_at(closed)
        for _ in range(TRIES if len(avoided) else 0):
            again = np.flatnonzero(routes.crossing(avoided, len(self.links)))
            if not len(again):
                return routes
            table = _widened(routes.padded())
            table[again] = _widened(self._drawn(src[again], dst[again], rng).padded())
            routes = routes_of(table)
        if len(avoided) and routes.crossing(avoided, len(self.links)).any():
            raise ValueError("some flows have no path around the closed devices")
        return routes

    def _drawn(self, src: Ints, dst: Ints, rng: np.random.Generator) -> Routes:
        up, down = rng.integers(0, self.shape.t1s, (2, len(src)))
        top = rng.integers(0, max(1, self.shape.uplinks), len(src))
        return self.via(src, dst, up, top, down)

    def via(self, src: Ints, dst: Ints, up: Ints, top: Ints, down: Ints) -> Routes:
        """The paths through given switches: T1 `up` of the source's pod, that T1's T2 number `top`, T1 `down` of
        the destination's pod. All of shape (flows,); what a path does not need is ignored (in the same pod, and
        with planes, `down` is `up`).
        """
        shape = self.shape
        below, above = src // shape.hosts, dst // shape.hosts
        far = below // shape.tors != above // shape.tors
        down = np.where(far, up if shape.planes else down, up)
        table = np.stack(
            [
                src,
                self._tor_edge(below, up),
                self._t1_edge(below // shape.tors, up, top),
                self._t1_edge(above // shape.tors, down, top) + self._back,
                self._tor_edge(above, down) + self._back,
                dst + self._back,
            ],
            axis=1,
        )
        table[~far, 2:4] = -1
        table[below == above, 1:5] = -1
        return routes_of(table)

    def every_path(self, src: int, dst: int) -> Routes:
        """All equal-cost paths between two hosts."""
        shape = self.shape
        near, far = src // shape.hosts, dst // shape.hosts
        apart = near // shape.tors != far // shape.tors
        up, top, down = np.meshgrid(
            np.arange(1 if near == far else shape.t1s),
            np.arange(shape.uplinks if apart else 1),
            np.arange(shape.t1s if apart and not shape.planes else 1),
            indexing="ij",
        )
        count = up.size
        return self.via(np.full(count, src), np.full(count, dst), up.ravel(), top.ravel(), down.ravel())

    def bounces(self, hosts: Sequence[int] | Ints) -> Routes:
        """NetBouncer's probes: all paths of each host up to the highest tier, whence a packet comes back the
        same way. Only upward links are listed: in an undirected fabric they stand for both directions.
        Ordered by host, T1, T2; shape (hosts * t1s * max(1, uplinks),).
        """
        shape = self.shape
        host, up, top = (
            one.ravel()
            for one in np.meshgrid(
                np.asarray(hosts, dtype=np.int64),
                np.arange(shape.t1s),
                np.arange(max(1, shape.uplinks)),
                indexing="ij",
            )
        )
        tor = host // shape.hosts
        columns = [host, self._tor_edge(tor, up)]
        if shape.uplinks:
            columns.append(self._t1_edge(tor // shape.tors, up, top))
        return routes_of(np.stack(columns, axis=1))

    @property
    def _back(self) -> int:
        """Difference of the index of an upward link to that of its way back."""
        return len(self.links) // 2 if self.directed else 0

    def _tor_edge(self, tor: Ints, t1: Ints) -> Ints:
        edge: Ints = self.hosts + tor * self.shape.t1s + t1
        return edge

    def _t1_edge(self, pod: Ints, t1: Ints, top: Ints) -> Ints:
        first = self.hosts + self.shape.counts[1] * self.shape.t1s
        edge: Ints = first + (pod * self.shape.t1s + t1) * self.shape.uplinks + top
        return edge


def _widened(table: Indices) -> Indices:
    """To the six columns of the longest path."""
    return np.pad(table, ((0, 0), (0, 6 - table.shape[1])), constant_values=-1)


def build(shape: Shape, directed: bool = True) -> Fabric:
    """The network of that shape. Upward links come first: host-ToR, ToR-T1, T1-T2; then, if directed, the same
    downward. Raises ValueError if a size is not positive or planes do not divide the T2s.
    """
    if min(shape.pods, shape.tors, shape.t1s, shape.hosts) < 1 or shape.t2s < 0:
        raise ValueError(f"a fabric needs pods, ToRs, T1s and hosts: {shape}")
    if (shape.pods > 1 and not shape.uplinks) or (shape.planes and shape.t2s % shape.t1s):
        raise ValueError(f"{shape.t2s} T2s cannot join {shape.pods} pods of {shape.t1s} T1s: {shape}")
    names, edges = _device_names(shape), _edges(shape)
    shorts = [name.partition("/")[2] for name in names]
    upward = [f"link/{shorts[low]}~{shorts[high]}" for low, high in edges.tolist()]
    classes = np.repeat(np.arange(3, dtype=np.int8), _edge_counts(shape))
    if not directed:
        return Fabric(shape, False, names, tuple(upward), edges, classes)
    downward = [f"link/{shorts[high]}~{shorts[low]}" for low, high in edges.tolist()]
    both = np.concatenate([edges, edges[:, ::-1]])
    return Fabric(shape, True, names, (*upward, *downward), both, np.concatenate([classes, 5 - classes]))


def _device_names(shape: Shape) -> tuple[str, ...]:
    tors = [f"p{p + 1}-t{t + 1}" for p in range(shape.pods) for t in range(shape.tors)]
    hosts = [f"host/{tor}-h{h + 1}" for tor in tors for h in range(shape.hosts)]
    t1s = [f"t1/p{p + 1}-a{a + 1}" for p in range(shape.pods) for a in range(shape.t1s)]
    t2s = [f"t2/c{c + 1}" for c in range(shape.t2s)]
    return (*hosts, *(f"tor/{tor}" for tor in tors), *t1s, *t2s)


def _edge_counts(shape: Shape) -> tuple[int, int, int]:
    hosts, tors, t1s, _ = shape.counts
    return hosts, tors * shape.t1s, t1s * shape.uplinks


def _edges(shape: Shape) -> Indices:
    """The lower and the upper device of every link, shape (links, 2)."""
    hosts, tors, t1s, _ = shape.counts
    host = np.arange(hosts)
    tor, up = np.divmod(np.arange(tors * shape.t1s), shape.t1s)
    t1, top = np.divmod(np.arange(t1s * shape.uplinks), max(1, shape.uplinks))
    plane = (t1 % shape.t1s) * shape.uplinks if shape.planes else 0
    low = np.concatenate([host, hosts + tor, hosts + tors + t1])
    high = np.concatenate(
        [
            hosts + host // shape.hosts,
            hosts + tors + tor // shape.tors * shape.t1s + up,
            hosts + tors + t1s + plane + top,
        ]
    )
    return np.stack([low, high], axis=1).astype(np.int32)


def healthy_loss(fabric: Fabric, rng: np.random.Generator, high: float) -> Floats:
    """Loss rates of a healthy fabric, U(0, high) for each link."""
    return rng.uniform(0.0, high, len(fabric.links))


def draw_links(
    fabric: Fabric,
    rng: np.random.Generator,
    count: int,
    classes: Sequence[str] = SWITCH_CLASSES,
    same_switch: float = 0.1,
) -> Ints:
    """Distinct links to break, as the authors of 007 draw them: each class is equally likely, and a further link
    begins at the switch of the one before with probability `same_switch`. Shape (count,).
    """
    present = [links for name in classes if len(links := fabric.links_of([name]))]
    if count > sum(map(len, present)):
        raise ValueError(f"cannot draw {count} links of {sum(map(len, present))}")
    allowed = np.concatenate(present)
    chosen: list[int] = []
    while len(chosen) < count:
        pool = present[int(rng.integers(0, len(present)))]
        if chosen and rng.random() < same_switch:
            pool = allowed[fabric.ends[allowed, 0] == fabric.ends[chosen[-1], 0]]
        link = int(rng.choice(pool))
        if link not in chosen:
            chosen.append(link)
    return np.array(chosen, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Packets lost by each flow, shape (flows,), and where: `packets[i]` of flow `flow[i]` on link `link[i]`."""

    lost: Ints
    flow: Ints
    link: Ints
    packets: Ints


def send(routes: Routes, sent: Ints, loss: Floats, rng: np.random.Generator) -> Losses:
    """Send `sent[i]` packets along route `i`; each link loses a packet with probability `loss[link]`,
    independently. A link that a route passes twice has to be listed twice.
    """
    table = routes.padded()
    rate = np.append(loss, 0.0)[table]
    reaches = np.cumprod(np.column_stack([np.ones(len(table)), 1 - rate]), axis=1)
    log_pass = np.log1p(-np.minimum(rate, 1 - 1e-12)).sum(axis=1)
    lost = rng.binomial(sent, -np.expm1(log_pass))
    failing = np.flatnonzero(lost)
    share = reaches[failing, :-1] * rate[failing]
    counts = rng.multinomial(lost[failing], share / share.sum(axis=1, keepdims=True))
    row, column = np.nonzero(counts)
    flow = failing[row]
    return Losses(lost, flow, table[flow, column].astype(np.int64), counts[row, column])


__all__ = [
    "CLASSES",
    "SWITCH_CLASSES",
    "VIGIL",
    "Fabric",
    "Losses",
    "Routes",
    "Shape",
    "build",
    "draw_links",
    "fat_tree",
    "healthy_loss",
    "leaf_spine",
    "path_table",
    "routes_of",
    "send",
]
