"""Fabric of the lab: two spines, four leaves, two hosts a leaf. Pure.

Every host has one address for each spine (a plane), and every switch sends what is addressed to a plane through that
plane's spine. So which way a probe went follows from its address, and no hash has to be guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

SPINES, LEAVES, HOSTS_A_LEAF = 2, 4, 2
PREFIX = "dossier-lab-"
"""Of every namespace; nothing else is ever touched."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A veth pair between two nodes; the ends are named after what is at the other end."""

    number: int
    lower: str
    upper: str

    @property
    def component(self) -> str:
        return f"link/{self.lower}~{self.upper}"

    def address(self, node: str) -> str:
        return f"10.98.{self.number}.{0 if node == self.lower else 1}"

    def other(self, node: str) -> str:
        return self.upper if node == self.lower else self.lower


def _spine(plane: int) -> str:
    return f"spine{plane}"


def _leaf_of(host: int) -> str:
    return f"leaf{(host - 1) // HOSTS_A_LEAF + 1}"


PLANES = tuple(range(1, SPINES + 1))
HOSTS = tuple(range(1, LEAVES * HOSTS_A_LEAF + 1))
_ENDS = [(f"h{host}", _leaf_of(host)) for host in HOSTS]
_ENDS += [(f"leaf{leaf}", _spine(plane)) for leaf in range(1, LEAVES + 1) for plane in PLANES]
CABLES = tuple(Cable(number, *ends) for number, ends in enumerate(_ENDS))
NODES = tuple(dict.fromkeys(node for cable in CABLES for node in (cable.lower, cable.upper)))
SWITCHES = tuple(node for node in NODES if not node.startswith("h"))
COMPONENTS = (*(f"switch/{node}" for node in SWITCHES), *(cable.component for cable in CABLES))


def namespace(node: str) -> str:
    return PREFIX + node


def address(host: int, plane: int) -> str:
    return f"10.99.{plane}.{host}"


def cables_of(node: str) -> tuple[Cable, ...]:
    return tuple(cable for cable in CABLES if node in (cable.lower, cable.upper))


def component(name: str) -> tuple[Cable | None, str | None]:
    """The cable or the switch of that name. Raises ValueError for what the fabric does not have."""
    for cable in CABLES:
        if cable.component == name:
            return cable, None
    kind, _, node = name.partition("/")
    if kind == "switch" and node in SWITCHES:
        return None, node
    raise ValueError(f"the fabric has no {name}; it has {', '.join(COMPONENTS)}")


def hops(src: int, dst: int, plane: int) -> tuple[str, ...]:
    """The links and switches that a probe passes, there and back alike, sorted."""
    below, above = _leaf_of(src), _leaf_of(dst)
    nodes = [f"h{src}", below] if below == above else [f"h{src}", below, _spine(plane), above]
    way = [*nodes, f"h{dst}"]
    passed = [set(ends) for ends in pairwise(way)]
    links = {cable.component for cable in CABLES if {cable.lower, cable.upper} in passed}
    return tuple(sorted(links | {f"switch/{node}" for node in way if node in SWITCHES}))


def build_commands(node: str) -> Iterator[str]:
    """Commands for `ip -batch` inside the node's namespace, once all cables are there."""
    yield "link set lo up"
    for cable in cables_of(node):
        there = cable.other(node)
        yield f"address add {cable.address(node)}/31 dev {there}"
        yield f"link set {there} up"
    yield from _routes(node)


def _routes(node: str) -> Iterator[str]:
    by_other = {cable.other(node): cable for cable in cables_of(node)}
    if node.startswith("h"):
        for plane in PLANES:
            yield f"address add {address(int(node[1:]), plane)}/32 dev lo"
        (leaf,) = by_other
        yield f"route add 10.99.0.0/16 via {by_other[leaf].address(leaf)}"
        return
    for host in HOSTS:
        for plane in PLANES:
            through = _next(node, host, plane)
            if through in by_other:
                yield f"route add {address(host, plane)}/32 via {by_other[through].address(through)}"


def _next(switch: str, host: int, plane: int) -> str:
    if switch == _leaf_of(host):
        return f"h{host}"
    return _leaf_of(host) if switch.startswith("spine") else _spine(plane)
