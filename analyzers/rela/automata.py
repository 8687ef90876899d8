"""Path sets as deterministic automata over the locations of two snapshots.

`interegular` makes the deterministic automaton of each set; locations that a specification cannot tell apart share a
transition. A set whose automaton would have more than 500 states is refused, whatever its expression is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import pairwise

from interegular.fsm import Alphabet, OblivionError, crawl

from analyzers.rela.specification import DEEPEST, InvalidSpecificationError, Node, Specification

MOST_STATES = 500
MOST_TRANSITIONS = 500_000
"""Looked at for all path sets of one specification."""
MOST_NODES = 5_000
"""Of the nondeterministic automaton of one path set."""
DEAD = -1
ENDS = ("drop", "loop")
"""Locations that end a path which does not arrive."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """A deterministic automaton. `step[state]` maps a location's letter to the next state; without an entry, DEAD."""

    initial: int
    finals: frozenset[int]
    step: list[dict[int, int]]


class Letters:
    """The letter of each location: locations that no name, zone or glob tells apart have the same one."""

    def __init__(self, specification: Specification, locations: Collection[str]) -> None:
        self.known = frozenset(locations) | frozenset(ENDS)
        self.specification = specification
        self.members = {name: self._zone(name) for name in specification.zones}
        both = sorted(self.known & {*specification.zones, *specification.paths})
        if both:
            raise InvalidSpecificationError(1, f"{both[0]} is the name of a location and of a definition")
        mentioned: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.known):
            mentioned[name] = [zone for zone, found in self.members.items() if name in found]
        literal = self._literals()
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in sorted(self.known):
            groups[(name if name in literal else "", *mentioned[name])].append(name)
        self.groups = list(groups.values())
        self.of = {name: letter for letter, group in enumerate(self.groups) for name in group}
        self.transitions = 0

    def _literals(self) -> frozenset[str]:
        roots = [*self.specification.paths.values()]
        for block in self.specification.blocks:
            for rule in block.rules:
                roots += [*rule.paths, *(() if rule.zone is None else (rule.zone,))]
        return frozenset(ENDS) | {node.name for root in roots for node in root.named()}

    def _zone(self, zone: str) -> frozenset[str]:
        items, line = self.specification.zones[zone]
        found: set[str] = set()
        for item in items:
            matching = {name for name in self.known if fnmatchcase(name, item)} | ({item} & self.known)
            if not matching:
                raise InvalidSpecificationError(line, self._unknown(item))
            found |= matching
        return frozenset(found)

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name, [*self.known, *self.specification.zones, *self.specification.paths], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return (
            f"no location, zone or path set is called {name!r}{hint} (a location that neither snapshot has on a path is"
            " listed under `locations` of one)"
        )

    def locations_of(self, node: Node) -> frozenset[str]:
        """Locations that a name stands for. Raises InvalidSpecificationError."""
        if node.name in self.members:
            return self.members[node.name]
        if node.name in self.known:
            return frozenset({node.name})
        raise InvalidSpecificationError(node.line, self._unknown(node.name))

    def automaton(self, node: Node) -> Automaton:
        """Raises InvalidSpecificationError for an unknown name or a set that is too complex."""
        return _Builder(self).determinized(node)


class _Builder:
    """A nondeterministic automaton by Thompson's construction, determinized by the library."""

    def __init__(self, letters: Letters) -> None:
        self.letters = letters
        self.silent: list[list[int]] = []
        self.arcs: list[dict[int, int]] = []

    def determinized(self, node: Node) -> Automaton:
        first, last = self._build(node, ())
        seen: set[frozenset[int]] = set()

        def follow(current: frozenset[int], letter: int) -> frozenset[int]:
            self.letters.transitions += 1
            if self.letters.transitions > MOST_TRANSITIONS:
                raise InvalidSpecificationError(
                    node.line, f"the path sets need more than {MOST_TRANSITIONS:,} transitions; say less"
                )
            moved = [self.arcs[one][letter] for one in current if letter in self.arcs[one]]
            if not moved:
                raise OblivionError
            found = self._closure(moved)
            seen.add(found)
            if len(seen) > MOST_STATES:
                raise InvalidSpecificationError(
                    node.line, f"the path set needs more than {MOST_STATES:,} states; split it or say less"
                )
            return found

        alphabet = Alphabet.from_groups(*self.letters.groups)  # type: ignore[no-untyped-call]
        made = crawl(  # type: ignore[no-untyped-call]
            alphabet, self._closure([first]), lambda state: last in state, follow
        )
        step = [dict(made.map.get(state, {})) for state in range(len(made.states))]
        return Automaton(made.initial, frozenset(made.finals), step)

    def _new(self, node: Node) -> int:
        if len(self.silent) >= MOST_NODES:
            raise InvalidSpecificationError(node.line, f"the path set has more than {MOST_NODES:,} parts")
        self.silent.append([])
        self.arcs.append({})
        return len(self.silent) - 1

    def _closure(self, states: Iterable[int]) -> frozenset[int]:
        found, waiting = set(states), list(states)
        while waiting:
            for following in self.silent[waiting.pop()]:
                if following not in found:
                    found.add(following)
                    waiting.append(following)
        return frozenset(found)

    def _build(self, node: Node, within: tuple[str, ...]) -> tuple[int, int]:
        if node.kind == "name" and node.name in self.letters.specification.paths:
            if node.name in within:
                raise InvalidSpecificationError(node.line, f"path {node.name} is defined by itself")
            if len(within) >= DEEPEST:
                raise InvalidSpecificationError(
                    node.line, f"more than {DEEPEST} definitions within one another"
                )
            return self._build(self.letters.specification.paths[node.name], (*within, node.name))
        if node.kind == "cat":
            return self._cat(node, within)
        first, last = self._new(node), self._new(node)
        if node.kind in ("name", "any"):
            known = self.letters.known if node.kind == "any" else self.letters.locations_of(node)
            self.arcs[first] = {self.letters.of[name]: last for name in known}
            return first, last
        for part in node.parts:
            start, end = self._build(part, within)
            self.silent[first].append(start)
            self.silent[end].append(last)
            if node.kind in ("star", "plus"):
                self.silent[end].append(start)
            if node.kind in ("star", "maybe"):
                self.silent[first].append(last)
        return first, last

    def _cat(self, node: Node, within: tuple[str, ...]) -> tuple[int, int]:
        made = [self._build(part, within) for part in node.parts]
        for (_, end), (start, _) in pairwise(made):
            self.silent[end].append(start)
        return made[0][0], made[-1][1]


def finite(node: Node, specification: Specification) -> bool:
    """Whether an expression names each of its paths: no `.`, `*` or `+`, in it or in the sets that it names."""
    if node.kind in ("any", "star", "plus"):
        return False
    if node.name in specification.paths:
        return finite(specification.paths[node.name], specification)
    return all(finite(part, specification) for part in node.parts)
