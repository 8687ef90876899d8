"""Networks before and after a change, with what the change was meant to do and the traffic that it broke.

Routers with random links and costs; a class of flows is a pair of routers with all of its cheapest paths, enumerated
one by one. A change drains a router, moves one class to a way of its own, or takes a way out of the several that a
class has. `broken` are the classes that do not do what the plan says: the plan was carried out in part, other
traffic moved, or traffic is lost. Truth comes from the plan, never from a comparison by rules.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

CASES = ("drain", "move", "thin")
FAULTS = ("none", "kept", "collateral", "lost", "surplus")
Paths = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Change:
    """Snapshots as JSON, the specification of the change, and the classes that violate it."""

    before: bytes
    after: bytes
    specification: str
    broken: frozenset[str]


def make(seed: int, case: str, fault: str) -> Change:
    """A change of one case with one fault; `broken` is empty where the fault is `none`."""
    draw = random.Random(f"{seed} {case} {fault}")
    while True:
        names = [f"r{n}" for n in range(draw.randint(6, 8))]
        links = _links(draw, names)
        before = {f"{a}-{b}": _cheapest(links, a, b) for a in names for b in names if a < b}
        made = {"drain": _drain, "move": _move, "thin": _thin}[case](draw, names, links, before)
        if made is None:
            continue
        text, planned, touched = made
        broken = _break(draw, fault, before, planned, touched, links)
        if broken is not None:
            after, names_broken = broken
            return Change(_file(names, before), _file(names, after), text, names_broken)


def _links(draw: random.Random, names: list[str]) -> dict[tuple[str, str], int]:
    edges = {(a, b) for a, b in pairwise(draw.sample(names, len(names)))}
    edges |= {(a, b) for a in names for b in names if a < b and draw.random() < 0.28}
    return {way: cost for a, b in sorted(edges) for cost in [draw.randint(1, 3)] for way in ((a, b), (b, a))}


def _walks(links: Mapping[tuple[str, str], int], start: str, end: str) -> list[tuple[int, tuple[str, ...]]]:
    """Every path without a repeated router, with its cost."""
    found: list[tuple[int, tuple[str, ...]]] = []
    waiting: list[tuple[int, tuple[str, ...]]] = [(0, (start,))]
    while waiting:
        cost, path = waiting.pop()
        if path[-1] == end:
            found.append((cost, path))
            continue
        waiting += [(cost + c, (*path, b)) for (a, b), c in links.items() if a == path[-1] and b not in path]
    return found


def _cheapest(links: Mapping[tuple[str, str], int], start: str, end: str) -> Paths:
    walks = _walks(links, start, end)
    least = min((cost for cost, _ in walks), default=0)
    return frozenset(path for cost, path in walks if cost == least)


Plan = tuple[str, dict[str, Paths], set[str]]


def _drain(
    draw: random.Random, names: list[str], links: Mapping[tuple[str, str], int], before: Mapping[str, Paths]
) -> Plan | None:
    router = draw.choice(names)
    left = {way: cost for way, cost in links.items() if router not in way}
    planned, touched = dict(before), set()
    for name, paths in before.items():
        start, end = name.split("-")
        through = any(router in path[1:-1] for path in paths)
        if not through or router in (start, end):
            continue
        touched.add(name)
        planned[name] = _cheapest(left, start, end)
        if not planned[name]:
            return None
    others = " ".join(one for one in names if one != router)
    text = f"zone others = {others}\nany(others*) on others+ {router} others+\n"
    return (text, planned, touched) if touched else None


def _move(
    draw: random.Random, _: list[str], links: Mapping[tuple[str, str], int], before: Mapping[str, Paths]
) -> Plan | None:
    name = draw.choice(sorted(one for one, paths in before.items() if paths))
    start, end = name.split("-")
    ways = sorted({path for _, path in _walks(links, start, end)} - before[name])
    if not ways:
        return None
    way, old = draw.choice(ways), " | ".join(" ".join(path) for path in sorted(before[name]))
    return f"for class={name}: replace({old}, {' '.join(way)})\n", {**before, name: frozenset({way})}, {name}


def _thin(
    draw: random.Random, _: list[str], __: Mapping[tuple[str, str], int], before: Mapping[str, Paths]
) -> Plan | None:
    several = sorted(name for name, paths in before.items() if len(paths) > 1)
    if not several:
        return None
    name = draw.choice(several)
    gone = draw.choice(sorted(before[name]))
    return f"remove({' '.join(gone)})\n", {**before, name: before[name] - {gone}}, {name}


def _break(
    draw: random.Random, fault: str, before: Mapping[str, Paths], planned: dict[str, Paths], touched: set[str],
    links: Mapping[tuple[str, str], int],
) -> tuple[dict[str, Paths], frozenset[str]] | None:  # fmt: skip
    """Outcome of the plan, and the classes in which it differs; None where the fault cannot be had here."""
    if fault == "none":
        return planned, frozenset()
    others = sorted(name for name in before if name not in touched and before[name])
    if fault == "kept":
        chosen = draw.sample(sorted(touched), draw.randint(1, len(touched)))
        return {**planned, **{name: before[name] for name in chosen}}, frozenset(chosen)
    if not others:
        return None
    chosen = draw.sample(others, draw.randint(1, min(3, len(others))))
    made = dict(planned)
    for name in chosen:
        ways = sorted({path for _, path in _walks(links, *name.split("-"))} - before[name])
        if fault == "lost":
            made[name] = frozenset()
        elif not ways:
            return None
        else:
            made[name] = (before[name] if fault == "surplus" else frozenset()) | {draw.choice(ways)}
    return made, frozenset(chosen)


def _file(names: list[str], classes: Mapping[str, Paths]) -> bytes:
    rows = [
        {"class": name, "paths": [list(path) for path in sorted(paths)]} for name, paths in classes.items()
    ]
    return json.dumps({"format": "dossier.forwarding/1", "locations": names, "classes": rows}).encode()
