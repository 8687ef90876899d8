"""Assumptions of Pingmesh, checked on each window, and what a probability loses where they do not hold.

- `sampling`: all servers probe. Where many agents send nothing, a server is seen by few others, and from one side.
- `noise`: without the blamed components drops and latency are within the limits. Congestion and storms are not.
- `topology`: the place of each server is known, and what is down together is in one place.

History is not needed: limits are parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.limits import SLOW_SHARE
from analyzers.builtin.pingmesh.observed import Observed
from analyzers.builtin.pingmesh.verdict import Named
from analyzers.builtin.text import count, percent
from analyzers.contract import Assumption

Mask = NDArray[np.bool_]

SENDING = 0.8
"""Least share of the servers that answer probes which send some themselves."""
PLACED = 0.9
"""Least share of the servers whose pod is known."""
ASTRAY = 0.2
"""Most servers that are silent outside of what is down, or answer inside, as a share of the servers inside."""

_LOWERED = {"noise": 1.0, "sampling": 0.5, "topology": 0.7}
"""Nats that the odds of a probability lose where an assumption does not hold."""


def checked(seen: Observed, found: Sequence[Named], drop_limit: float) -> tuple[Assumption, ...]:
    """The assumptions of a window with probes, in a fixed order."""
    return _noise(seen, found, drop_limit), _sampling(seen), _topology(seen, found)


def lowered(score: float, assumptions: Sequence[Assumption]) -> float:
    """A probability after what it loses to assumptions that do not hold."""
    lost = sum(_LOWERED[one.name] for one in assumptions if not one.holds)
    return 1 / (1 + math.exp(lost - math.log(score / (1 - score)))) if lost else score


def _noise(seen: Observed, found: Sequence[Named], drop_limit: float) -> Assumption:
    rest = _outside(seen, found)
    answers = float(seen.answers[rest].sum())
    if not answers:
        return Assumption("noise", True, "No answers are left without the blamed components.")
    dropped = float(seen.dropped[rest].sum()) / answers
    slow = float((seen.slow - seen.dropped)[rest].sum()) / answers
    said = (
        f"Without the blamed components {percent(dropped)} of the probes have a packet dropped (limit "
        f"{percent(drop_limit)}), and {percent(slow)} are answered late (limit {percent(SLOW_SHARE)})."
    )
    return Assumption("noise", dropped <= drop_limit and slow <= SLOW_SHARE, said)


def _outside(seen: Observed, found: Sequence[Named]) -> Mask:
    """Pairs that none of the blamed components carries; of the Spine those within podsets."""
    inside = np.zeros(len(seen.servers), dtype=bool)
    kept = np.ones(seen.pairs, dtype=bool)
    podset = seen.places.podset_of()
    for one in found:
        if one.blamed.kind in ("spine", "black_hole_spine"):
            kept &= podset[seen.src] == podset[seen.dst]
        else:
            inside[one.blamed.members] = True
    return kept & ~(inside[seen.src] | inside[seen.dst])


def _sampling(seen: Observed) -> Assumption:
    size = len(seen.servers)
    sending = np.bincount(seen.src, seen.sent, minlength=size) > 0
    answering = np.bincount(seen.dst, seen.sent - seen.lost, minlength=size) > 0
    alive = sending | answering
    among, send = int(alive.sum()), int((sending & alive).sum())
    said = f"{count(send)} of {count(among)} servers that are alive send probes."
    return Assumption("sampling", send >= SENDING * among, said)


def _topology(seen: Observed, found: Sequence[Named]) -> Assumption:
    size, placed = len(seen.servers), int((seen.places.pod >= 0).sum())
    if placed < PLACED * size:
        said = f"The pod of {count(placed)} of {count(size)} servers is known: faults of the others are theirs alone."
        return Assumption("topology", False, said)
    silent, inside = seen.silent(), np.zeros(size, dtype=bool)
    for one in found:
        if one.blamed.measure == "silent":
            inside[one.blamed.members] = True
    astray = int((inside & ~silent).sum() + (silent & ~inside).sum()) if inside.any() else 0
    if astray > ASTRAY * inside.sum():
        said = (
            f"{count(astray)} servers are silent outside of what is down, or answer inside, beside "
            f"{count(int(inside.sum()))} inside: their places may be recorded wrongly."
        )
        return Assumption("topology", False, said)
    return Assumption("topology", True, f"The pod of {count(placed)} of {count(size)} servers is known.")
