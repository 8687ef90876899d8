"""Flow tables: overlay faults by replaying the rules that a pair needs, card faults by what was offloaded otherwise.

A rule says that an element forwards a destination to the next element; the newest dump of each element and table
counts. A pair is replayed from its source's virtual port, or from the virtual switch of its source's host, until the
destination is reached. A rule without a next hop, or to an element already visited, is a fault there. The offloaded
copy of a rule must name the same next hop as the virtual switch does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from analyzers.builtin.paths import texts, whole
from analyzers.builtin.skeletonhunter.observed import Endpoint, Pair
from analyzers.contract import Window

OFFLOADED = "nic"
"""The table of a network card; all others are those of the virtual network."""
TOGETHER = 10_000_000
"""Microseconds within which rows of one element and table are one dump."""
INCOMPLETE = 0.05
"""Share of well pairs whose rules are missing, from which a missing rule says that rows are missing."""

State = Literal["reached", "missing", "loop", "unknown"]


@dataclass(frozen=True, slots=True)
class Replay:
    """End of the replay of a pair, with its element; `path` are the elements visited. `absent`: there is no rule, as
    opposed to one without a next hop.
    """

    state: State
    path: tuple[str, ...] = ()
    absent: bool = False

    @property
    def element(self) -> str:
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class FlowTables:
    """Next hops by element and destination: those of the virtual network, and the offloaded copies."""

    software: dict[str, dict[str, str]]
    offloaded: dict[str, dict[str, str]]
    matches: dict[str, str]
    """Destinations by the part of their name behind the kind."""
    dumped: dict[str, int] = field(default_factory=dict)
    """Microseconds since the epoch of the newest dump of an element's offloaded copies."""

    def __bool__(self) -> bool:
        return bool(self.software)

    def switch_of(self, host: str) -> str | None:
        """The virtual switch of a host, if it has a table: the element with the host's name."""
        name = f"vswitch/{_tail(host)}"
        return name if name in self.software else None

    def replay(self, pair: Pair, endpoints: dict[str, Endpoint]) -> Replay:
        """Follow a pair's rules from its source to its destination."""
        src, dst = endpoints.get(pair[0]), endpoints.get(pair[1])
        match, here = self._match(pair[1], dst), self._start(pair[0], src)
        if match is None or here is None:
            return Replay("unknown")
        ends = {_tail(match), _tail(pair[1])}
        path = [here]
        while True:
            rules = self.software.get(path[-1])
            if rules is None:
                reached = _tail(path[-1]) in ends
                return Replay("reached" if reached else "unknown", tuple(path))
            following = rules.get(match, "")
            if not following:
                return Replay("missing", tuple(path), match not in rules)
            if following in path:
                return Replay("loop", tuple(path))
            path.append(following)
            if _tail(following) in ends:
                return Replay("reached", tuple(path))

    def mismatch(self, pair: Pair, endpoints: dict[str, Endpoint]) -> str | None:
        """The first element on a pair's way whose offloaded rule differs from its own, or None."""
        match = self._match(pair[1], endpoints.get(pair[1]))
        for element in self.replay(pair, endpoints).path:
            copies, rules = self.offloaded.get(element), self.software.get(element, {})
            # Not every rule is offloaded: only what the source's element sends to others is expected to be.
            if copies and match in rules and copies.get(match, "") != rules[match]:
                return element if match in copies or rules[match] in self.software else None
        return None

    def _match(self, name: str, end: Endpoint | None) -> str | None:
        known = (name, end.name, end.nic) if end is not None else (name,)
        return next((self.matches[_tail(one)] for one in known if _tail(one) in self.matches), None)

    def _start(self, name: str, end: Endpoint | None) -> str | None:
        port = f"vport/{_tail(name)}"
        if port in self.software:
            return port
        return self.switch_of(end.host) if end is not None else None


def read(window: Window) -> FlowTables:
    """The newest dumps up to the window's end."""
    newest: dict[tuple[str, bool], tuple[int, list[tuple[int, str, str]]]] = {}
    for one in (*window.history, window):
        if (sums := one.sums.get("rules")) is None:
            continue
        columns = (texts(sums, key) for key in ("element", "match", "next", "layer"))
        for element, match, following, layer, time in zip(
            *columns, whole(sums, "time").tolist(), strict=True
        ):
            key = element, layer == OFFLOADED
            last, rows = newest.get(key, (time, []))
            newest[key] = max(last, time), rows
            rows.append((time, match, following))
    software: dict[str, dict[str, str]] = {}
    offloaded: dict[str, dict[str, str]] = {}
    for (element, copied), (last, rows) in sorted(newest.items()):
        retained = sorted(row for row in rows if row[0] >= last - TOGETHER)
        (offloaded if copied else software)[element] = {match: following for _, match, following in retained}
    matches = {_tail(match): match for rules in (*software.values(), *offloaded.values()) for match in rules}
    dumped = {element: newest[element, True][0] for element in offloaded}
    return FlowTables(software, offloaded, matches, dumped)


@dataclass(frozen=True, slots=True)
class Broken:
    """An element with a fault of its table, the pairs that need what is wrong, and further elements that may be at
    fault instead.
    """

    element: str
    others: tuple[str, ...]
    state: State
    pairs: tuple[int, ...]
    path: tuple[str, ...]


def broken(
    tables: FlowTables, pairs: Sequence[Pair], endpoints: dict[str, Endpoint], dead: Iterable[int]
) -> list[Broken]:
    """Overlay faults behind the pairs that do not answer. An absent rule counts only if the tables are complete: if
    those of pairs that answer are there.
    """
    dead = sorted(dead)
    well = np.setdiff1d(np.arange(len(pairs)), dead)
    sample = well[:: max(1, len(well) // 500)].tolist()
    ended = [tables.replay(pairs[at], endpoints) for at in sample if pairs[at][2] == "overlay"]
    absent = sum(one.state == "missing" for one in ended)
    complete = absent <= INCOMPLETE * len(ended)
    found: dict[tuple[str, State], list[tuple[int, Replay]]] = {}
    for at in dead:
        one = tables.replay(pairs[at], endpoints)
        if one.state == "loop" or (one.state == "missing" and (complete or not one.absent)):
            found.setdefault((one.element, one.state), []).append((at, one))
    out = []
    for (element, state), hits in sorted(found.items()):
        paths = {one.path for _, one in hits}
        # An element without any rule for the destination may have been sent what is not its own.
        before = (
            {path[-2] for path in paths if len(path) > 1} if all(one.absent for _, one in hits) else set()
        )
        others = tuple(sorted(before)) if len(before) == 1 else ()
        out.append(Broken(element, others, state, tuple(at for at, _ in hits), hits[0][1].path))
    return out


def _tail(name: str) -> str:
    return name.partition("/")[2] or name
