"""Servers that probe each other as Pingmesh's do, and what can go wrong with the network between them. Pure.

Pinglists of Guo et al. (SIGCOMM 2015): all pairs under a ToR, and server i of a ToR with server i of every other ToR,
both ways. Healthy figures are theirs: P50 and P99 between pods 268 us and 1.34 ms, within a pod 216 us and 1.26 ms;
drop rates of 1e-5 to 2e-5 within a pod and 1.5e-5 to 7.6e-5 between pods. A dropped packet is repeated after 3 s and
9 s, and the repetition is dropped with probability 1/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEAVES, SPINES = 4, 8
"""Switches that share the load of a podset's Leaf layer, and of the Spine."""

DATACENTRE, SPINE = "datacentre/d1", "spine_tier/d1"


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """`pod` and `podset` by server, `src` and `dst` by pair; names ascend with their numbers."""

    servers: tuple[str, ...]
    pods: tuple[str, ...]
    podsets: tuple[str, ...]
    pod: Ints
    src: Ints
    dst: Ints

    @property
    def podset(self) -> Ints:
        """By server."""
        return self.pod // (len(self.pods) // len(self.podsets))

    def touching(self, servers: Mask) -> Mask:
        """Pairs with an end among the servers."""
        found: Mask = servers[self.src] | servers[self.dst]
        return found

    @property
    def within_pod(self) -> Mask:
        found: Mask = self.pod[self.src] == self.pod[self.dst]
        return found


def build(podsets: int = 4, pods: int = 20, servers: int = 40) -> Mesh:
    """`pods` a podset, `servers` a pod. Raises ValueError for fewer than two servers in all."""
    if min(podsets, pods, servers) < 1 or podsets * pods * servers < 2:
        raise ValueError(f"a mesh needs podsets, pods and servers: {podsets}, {pods}, {servers}")
    count = podsets * pods
    tors = [f"p{s + 1:02d}-t{t + 1:02d}" for s in range(podsets) for t in range(pods)]
    names = tuple(f"host/{tor}-h{h + 1:02d}" for tor in tors for h in range(servers))
    here = np.arange(count * servers)
    near = here[:, None] // servers * servers + np.arange(servers)[None, :]
    far = np.arange(count)[None, :] * servers + (here % servers)[:, None]
    dst = np.concatenate([near, far], axis=1)
    pod = here // servers
    valid = np.concatenate([near != here[:, None], np.arange(count)[None, :] != pod[:, None]], axis=1)
    src = np.repeat(here, valid.sum(axis=1))
    flat = dst[valid]
    order = np.lexsort((flat, src))
    return Mesh(
        names,
        tuple(f"tor/{tor}" for tor in tors),
        tuple(f"podset/p{s + 1:02d}" for s in range(podsets)),
        pod,
        src[order],
        flat[order],
    )


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The network for some minutes. By pair: `drop` (of a first packet), `blocked` (share of ports that go into a black
    hole) and `slow` (share of late answers). By server: `dead` (answers nothing, sends nothing), `mute` (its agent has
    crashed: sends nothing) and `stepped` (its clock moved in these minutes).
    """

    drop: Floats
    blocked: Floats
    slow: Floats
    dead: Mask
    mute: Mask
    stepped: Mask


def healthy(mesh: Mesh, rng: np.random.Generator) -> State:
    """Drop rates as published, different for each pod that sends."""
    pods, servers = len(mesh.pods), len(mesh.servers)
    near, far = rng.uniform(9.6e-6, 2.1e-5, pods), rng.uniform(1.5e-5, 7.6e-5, pods)
    sender = mesh.pod[mesh.src]
    nothing, no_server = np.zeros(len(mesh.src)), np.zeros(servers, dtype=bool)
    return State(
        np.where(mesh.within_pod, near[sender], far[sender]),
        nothing,
        nothing,
        no_server,
        no_server,
        no_server,
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """`kind` as in `KINDS`, from the minute `onset` on; `strike` makes the state with it of the one without."""

    kind: str
    component: str
    severity: float
    onset: int
    strike: Callable[[State], State]


def _more(values: Floats, where: Mask, by: float | Floats) -> Floats:
    """The chance that this or that happens."""
    return np.where(where, 1 - (1 - values) * (1 - by), values)


def _podset_down(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    one = int(rng.integers(len(mesh.podsets)))
    gone = mesh.podset == one
    return mesh.podsets[one], 1.0, lambda state: replace(state, dead=state.dead | gone)


def _pod_down(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    one = int(rng.integers(len(mesh.pods)))
    gone = mesh.pod == one
    return mesh.pods[one], 1.0, lambda state: replace(state, dead=state.dead | gone)


def _leaf(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    """A Leaf drops 1 %: what crosses the Leaf layer does so on the way there and on the way back."""
    one, rate = int(rng.integers(len(mesh.podsets))), 0.01
    crossing = mesh.touching(mesh.podset == one) & ~mesh.within_pod
    return (
        mesh.podsets[one],
        rate,
        lambda state: replace(state, drop=_more(state.drop, crossing, 2 * rate / LEAVES)),
    )


def _storm(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    """A broadcast storm below the Leaf layer: late answers within the podset, and to and from it."""
    one, share = int(rng.integers(len(mesh.podsets))), float(rng.uniform(0.05, 0.3))
    touched = mesh.touching(mesh.podset == one)
    return (
        mesh.podsets[one],
        share,
        lambda state: replace(
            state, slow=_more(state.slow, touched, share), drop=_more(state.drop, touched, share / 100)
        ),
    )


def _spine(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    rate = float(rng.uniform(0.01, 0.02))
    between = mesh.podset[mesh.src] != mesh.podset[mesh.dst]
    return SPINE, rate, lambda state: replace(state, drop=_more(state.drop, between, 2 * rate / SPINES))


def _tor(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    one, rate = int(rng.integers(len(mesh.pods))), float(rng.uniform(0.005, 0.02))
    touched = mesh.touching(mesh.pod == one)
    return mesh.pods[one], rate, lambda state: replace(state, drop=_more(state.drop, touched, 2 * rate))


def _server(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    """A server's own card or cable."""
    one, rate = int(rng.integers(len(mesh.servers))), float(rng.uniform(0.01, 0.1))
    touched = mesh.touching(np.arange(len(mesh.servers)) == one)
    return mesh.servers[one], rate, lambda state: replace(state, drop=_more(state.drop, touched, 2 * rate))


def _hole(mesh: Mesh, rng: np.random.Generator, whole: bool) -> tuple[str, float, Callable[[State], State]]:
    """A ToR that drops all (type 1) or some ports (type 2) of 1 to 20 % of the pairs through it."""
    one, share = int(rng.integers(len(mesh.pods))), float(rng.uniform(0.01, 0.2))
    bad = mesh.touching(mesh.pod == one) & (rng.random(len(mesh.src)) < share)
    ports = np.ones(len(bad)) if whole else rng.uniform(0.2, 0.8, len(bad))
    return mesh.pods[one], share, lambda state: replace(state, blocked=_more(state.blocked, bad, ports))


def _leaf_hole(mesh: Mesh, rng: np.random.Generator) -> tuple[str, float, Callable[[State], State]]:
    """A Leaf drops all of some pairs: a quarter of their ports hash to it, for each direction."""
    one, share = int(rng.integers(len(mesh.podsets))), float(rng.uniform(0.05, 0.2))
    bad = mesh.touching(mesh.podset == one) & ~mesh.within_pod & (rng.random(len(mesh.src)) < share)
    ports = 1 - (1 - 1 / LEAVES) ** 2
    return mesh.podsets[one], share, lambda state: replace(state, blocked=_more(state.blocked, bad, ports))


KINDS: dict[str, Callable[[Mesh, np.random.Generator], tuple[str, float, Callable[[State], State]]]] = {
    "podset_down": _podset_down,
    "podset_leaf": _leaf,
    "podset_storm": _storm,
    "spine": _spine,
    "pod_down": _pod_down,
    "tor_drops": _tor,
    "server_drops": _server,
    "black_hole_1": lambda mesh, rng: _hole(mesh, rng, True),
    "black_hole_2": lambda mesh, rng: _hole(mesh, rng, False),
    "leaf_black_hole": _leaf_hole,
}
"""Published ones, and beside them a pod that is down, a ToR or a server that drops, a black hole in a Leaf."""


def draw_fault(mesh: Mesh, rng: np.random.Generator, kind: str, onset: int) -> Fault:
    component, severity, strike = KINDS[kind](mesh, rng)
    return Fault(kind, component, severity, onset, strike)
