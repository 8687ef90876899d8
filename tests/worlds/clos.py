"""Clos fabrics as they stand in real buildings, and the routes that ECMP takes through them.

Three tiers: racks (`tor`), aggregation (`agg`) in pods, spines in planes. Pods are of different sizes and of two
generations (two or four aggregation switches), aggregation switch k of a pod is cabled to the spines of plane k, some
of these with two parallel links, and a few links are missing because they failed long ago and were taken out (failed
parallel links and unequal pods are the usual state of a fabric: Gill et al., SIGCOMM 2011; Singh et al., Jupiter,
SIGCOMM 2015). In pods with `polarised` switches the aggregation switch hashes as the rack did, so that it uses one or
two of its spines only (hash polarisation, a known defect of ECMP where all tiers share one hash seed).

Every direction of a link has a name of its own, `link/a~b`: optics and queues fail in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fabric:
    """Hosts and the racks they are in, links by number, and all shortest routes between any two racks.

    `first` and `many` say where the routes from rack a to rack b stand in `routes`, at [a, b]; a route is four links,
    -1 where it has fewer. `up` and `down` are the links of a host to and from its rack. `ends` are the two devices of a
    link, `chance` how likely ECMP takes a route.
    """

    hosts: tuple[str, ...]
    rack: Ints
    racks: tuple[str, ...]
    pod: Ints
    links: tuple[str, ...]
    ends: tuple[tuple[str, str], ...]
    routes: Ints
    chance: NDArray[np.float64]
    first: Ints
    many: Ints
    up: Ints
    down: Ints

    def paths(self, rng: np.random.Generator, src: Ints, dst: Ints) -> Ints:
        """The links of a flow from each host to another, (flows, 6), -1 where a route has fewer."""
        a, b = self.rack[src], self.rack[dst]
        paths = np.full((len(src), 6), -1)
        paths[:, 0], paths[:, 5] = self.up[src], self.down[dst]
        first, many = self.first[a, b], self.many[a, b]
        total = np.concatenate(([0.0], np.cumsum(self.chance)))
        drawn = total[first] + rng.random(len(src)) * (total[first + many] - total[first])
        chosen = np.clip(
            np.searchsorted(total, drawn, side="right") - 1, first, first + np.maximum(many, 1) - 1
        )
        across = a != b
        paths[across, 1:5] = self.routes[chosen[across]]
        return paths

    def connected(self, src: Ints, dst: Ints) -> NDArray[np.bool_]:
        """Whether a route exists from each host to the other."""
        a, b = self.rack[src], self.rack[dst]
        return np.asarray((a == b) | (self.many[a, b] > 0))


def fabric(rng: np.random.Generator, *, pods: int = 5, hosts: tuple[int, int] = (4, 12)) -> Fabric:
    """A fabric of `pods` unequal pods, with `hosts` in each rack."""
    planes = 4
    spines = [int(rng.integers(2, 5)) for _ in range(planes)]
    wide = [pod == 0 or bool(rng.random() < 0.6) for pod in range(pods)]
    aggs = [4 if one else 2 for one in wide]
    tors = [int(rng.integers(3, 10)) for _ in range(pods)]
    build = _Build(rng)
    rack_names, pod_of = [], []
    for pod in range(pods):
        for tor in range(tors[pod]):
            rack_names.append(f"p{pod + 1}-t{tor + 1:02d}")
            pod_of.append(pod)
            for agg in range(aggs[pod]):
                build.cable(rack_names[-1], f"p{pod + 1}-a{agg + 1}", missing=0.03)
        for agg in range(aggs[pod]):
            for spine in range(spines[agg]):
                for parallel in range(1 + int(rng.random() < 0.25)):
                    build.cable(f"p{pod + 1}-a{agg + 1}", f"s{agg + 1}{spine + 1}", parallel, missing=0.05)
    polarised = {f"p{pod + 1}-a{agg + 1}" for pod in range(pods) for agg in range(4) if rng.random() < 0.25}
    routes, chance, first, many = _routes(rng, build, rack_names, pod_of, polarised)
    names, rack, up, down = [], [], [], []
    for number, tor_name in enumerate(rack_names):
        for host in range(int(rng.integers(hosts[0], hosts[1] + 1))):
            name = f"{tor_name}-h{host + 1:02d}"
            names.append(f"host/{name}")
            rack.append(number)
            up.append(build.link(name, tor_name))
            down.append(build.link(tor_name, name))
    return Fabric(
        hosts=tuple(names),
        rack=np.array(rack),
        racks=tuple(rack_names),
        pod=np.array(pod_of),
        links=tuple(build.names),
        ends=tuple(build.ends),
        routes=routes,
        chance=chance,
        first=first,
        many=many,
        up=np.array(up),
        down=np.array(down),
    )


class _Build:
    """Cables as they are pulled: numbers of the links that leave a device, by the device they go to."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.names: list[str] = []
        self.ends: list[tuple[str, str]] = []
        self.out: dict[str, dict[str, list[int]]] = {}

    def link(self, a: str, b: str, parallel: int = 0) -> int:
        """The number of a new link in one direction."""
        self.names.append(f"link/{a}~{b}" + (f".{parallel + 1}" if parallel else ""))
        self.ends.append((a, b))
        self.out.setdefault(a, {}).setdefault(b, []).append(len(self.names) - 1)
        return len(self.names) - 1

    def cable(self, a: str, b: str, parallel: int = 0, *, missing: float) -> None:
        """A cable in both directions, unless it was taken out; the first of a device always stays."""
        if self.rng.random() < missing and a in self.out and b in self.out:
            return
        self.link(a, b, parallel)
        self.link(b, a, parallel)


def _routes(
    rng: np.random.Generator, build: _Build, racks: list[str], pod_of: list[int], polarised: set[str]
) -> tuple[Ints, NDArray[np.float64], Ints, Ints]:
    """All shortest routes of all pairs of racks, how likely each is, and where those of a pair stand."""
    routes: list[tuple[int, int, int, int]] = []
    chance: list[float] = []
    first = np.zeros((len(racks), len(racks)), dtype=np.int64)
    many = np.zeros_like(first)
    favoured = {agg: str(rng.choice(sorted(build.out[agg]))) for agg in sorted(polarised & build.out.keys())}
    for a, source in enumerate(racks):
        for b, target in enumerate(racks):
            first[a, b] = len(routes)
            if a == b:
                continue
            near = pod_of[a] == pod_of[b]
            for route, share in _between(build, source, target, near, favoured):
                routes.append(route)
                chance.append(share)
            many[a, b] = len(routes) - first[a, b]
    return np.array(routes), np.array(chance), first, many


def _between(
    build: _Build, source: str, target: str, near: bool, favoured: dict[str, str]
) -> list[tuple[tuple[int, int, int, int], float]]:
    """Routes between two racks of one pod (over an aggregation switch) or of two (over a spine)."""
    found: list[tuple[tuple[int, int, int, int], float]] = []
    out = build.out
    for agg, ups in out[source].items():
        if "-a" not in agg:
            continue
        if near:
            found += [((up, down, -1, -1), 1.0) for up in ups for down in out[agg].get(target, [])]
            continue
        for spine, climbs in out[agg].items():
            if not spine.startswith("s"):
                continue
            share = 1.0 if agg not in favoured else (1.0 if favoured[agg] == spine else 0.04)
            for other, falls in out[spine].items():
                if other.partition("-")[0] != target.partition("-")[0]:
                    continue
                downs = out[other].get(target, [])
                found += [
                    ((up, climb, fall, down), share)
                    for up in ups
                    for climb in climbs
                    for fall in falls
                    for down in downs
                ]
    return found
