"""Whether a change keeps to its specification: `check(before, after, text)`.

For each class of flows, one breadth-first walk over the product of both snapshots and the path sets of the rules finds
the shortest path of each *kind*: the rule that it belongs to, whether it was taken before, is taken after, and in which
of the rule's sets it lies. Each relation is a condition on the kinds that exist (`_wrong`), so the answer is exact for
infinite sets of paths too. Classes with the same forwarding before and after are walked once.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import Any, NamedTuple

from analyzers.rela.automata import DEAD, Automaton, Letters, finite
from analyzers.rela.snapshots import FlowClass, Forwarding, Path, Snapshot
from analyzers.rela.specification import (
    Block,
    InvalidSpecificationError,
    Node,
    Rule,
    Specification,
    parse,
)

MOST_STEPS = 500_000_000
"""Transitions of the automata in the product, over all classes: some minutes."""
MOST_VIOLATIONS = 50
"""Violations that a verdict shows; all are counted."""
MOST_NAMED = 20
SAMPLE = 5
"""Paths of a class that a verdict shows."""
MOST_SEARCHED = 2_000
_NOTHING = Forwarding()
_REST = Rule("nochange", (), None, 0, "nochange (all other paths)")
Json = dict[str, Any]


class ValidationError(ValueError):
    """The snapshots are too large for a verdict."""


@dataclass(slots=True)
class _Budget:
    """Transitions of the automata in the product, over all classes."""

    most: int
    spent: int = 0

    def check(self) -> None:
        if self.spent > self.most:
            raise ValidationError(
                f"the snapshots and path sets need more than {self.most:,} steps; check fewer classes at a time or say"
                " less in the specification"
            )


class Kind(NamedTuple):
    """Of a path: the place of its rule, whether it was taken before and is after, and membership in the rule's path
    sets and zone (True without a zone)."""

    rule: int
    before: bool
    after: bool
    first: bool
    second: bool
    zone: bool


@dataclass(frozen=True, slots=True)
class _Sets:
    """Places of the automata of a rule in those of its block. `exact`: paths of this set must be there after."""

    rule: Rule
    paths: tuple[int, ...]
    zone: int | None
    exact: int | None


@dataclass(frozen=True, slots=True)
class _Compiled:
    block: Block | None
    sets: tuple[_Sets, ...]
    automata: tuple[Automaton, ...]


@dataclass(frozen=True, slots=True)
class _Violation:
    place: int
    path: Path | None
    before: bool
    after: bool
    expected: str


def check(before: Snapshot, after: Snapshot, text: str, most_steps: int = MOST_STEPS) -> Json:
    """The verdict, as JSON: `verdict` is holds or violated. Raises InvalidSpecificationError and ValidationError."""
    specification = parse(text)
    letters = Letters(specification, before.locations | after.locations)
    compiled = [_compile(block, specification, letters) for block in specification.blocks]
    rest = _Compiled(None, (_Sets(_REST, (), None, None),), ())
    groups: dict[tuple[int, Forwarding, Forwarding], list[str]] = defaultdict(list)
    for name in sorted({*before.classes, *after.classes}):
        old, new = before.classes.get(name), after.classes.get(name)
        labels = {**(new.labels if new else {}), **(old.labels if old else {})}
        place = next((i for i, one in enumerate(compiled) if _selects(one.block, labels)), len(compiled))
        groups[place, _of(old), _of(new)].append(name)
    budget = _Budget(most_steps)
    violations, used = [], set()
    for (place, old_way, new_way), names in groups.items():
        one = [*compiled, rest][place]
        kinds = _walk(one, letters, old_way, new_way, budget)
        used |= {(place, kind.rule) for kind in kinds if kind.before or kind.after}
        violations += [(names, one, old_way, new_way, wrong) for wrong in _wrong(one, kinds)]
    broken = {name for names, *_ in violations for name in names}
    idle = [
        f"line {sets.rule.line}: no class has a path that `{sets.rule.text}` speaks of"
        for place, one in enumerate(compiled)
        for i, sets in enumerate(one.sets)
        if (place, i) not in used and sets.rule is not _REST
    ]
    violations.sort(key=lambda one: (-len(one[0]), one[0][0], one[4].place))
    return {
        "verdict": "violated" if violations else "holds",
        "classes": len({*before.classes, *after.classes}),
        "classes_violated": len(broken),
        "groups": len(groups),
        "violations_total": len(violations),
        "violations": [_shown(*one) for one in violations[:MOST_VIOLATIONS]],
        "notes": idle,
        "specification": text,
        "specification_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def _of(one: FlowClass | None) -> Forwarding:
    return _NOTHING if one is None else one.forwarding


def _selects(block: Block | None, labels: Mapping[str, str]) -> bool:
    return block is not None and all(
        name in labels and _matches(labels[name], wanted) for name, wanted in block.selector
    )


def _matches(value: str, wanted: str) -> bool:
    """By glob, or for two networks whether the class lies within the wanted one."""
    if fnmatchcase(value, wanted):
        return True
    if "/" not in wanted:
        return False
    try:
        inner, outer = ip_network(value, strict=False), ip_network(wanted, strict=False)
    except ValueError:
        return False
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


# The path sets of a block
# ----------------------------------------------------------------------------------------------------------
def _compile(block: Block, specification: Specification, letters: Letters) -> _Compiled:
    automata: list[Automaton] = []

    def place_of(node: Node) -> int:
        automata.append(letters.automaton(node))
        return len(automata) - 1

    sets = []
    for rule in block.rules:
        paths = [place_of(node) for node in rule.paths]
        if rule.relation == "drop":
            drop = Node("cat", rule.line, parts=(_EVERYTHING, Node("name", rule.line, "drop")))
            paths = [place_of(drop)]
        zone = None if rule.zone is None else place_of(rule.zone)
        if zone is None and rule.relation in ("any", "drop", "nochange"):
            zone = place_of(_EVERYTHING)
        exact = paths[-1] if rule.relation in ("add", "replace") else None
        if exact is not None and not finite(rule.paths[-1], specification):
            raise InvalidSpecificationError(
                rule.line,
                f"`{rule.relation}` needs each path that must be there, without `.`, `*` and `+`; use `any(...) on ...`"
                " where one of many is enough",
            )
        sets.append(_Sets(rule, tuple(paths), zone, exact))
    everything = _Sets(_REST, (), None, None)
    return _Compiled(block, (*sets, everything), tuple(automata))


_EVERYTHING = Node("star", 0, parts=(Node("any", 0),))


# The walk
# ----------------------------------------------------------------------------------------------------------
def _walk(
    one: _Compiled, letters: Letters, old: Forwarding, new: Forwarding, budget: _Budget
) -> dict[Kind, Path]:
    """The shortest path of each kind that exists, the first by name among the shortest.

    Paths that neither snapshot takes count where a rule demands them.
    """
    automata, exact = one.automata, [sets.exact for sets in one.sets if sets.exact is not None]
    first = (0, 0, *(automaton.initial for automaton in automata))
    came: dict[tuple[int, ...], tuple[tuple[int, ...], str] | None] = {first: None}
    waiting, found = deque([first]), dict[Kind, Path]()
    before, after = [dict(step) for step in old.steps], [dict(step) for step in new.steps]
    while waiting:
        state = waiting.popleft()
        for kind in _kinds(one, state, old, new) if state is not first else ():
            if kind not in found:
                found[kind] = _path_to(state, came)
        olds = before[state[0]] if state[0] != DEAD else {}
        news = after[state[1]] if state[1] != DEAD else {}
        for location in sorted({*olds, *news, *_demanded(state, exact, automata, letters)}):
            letter = letters.of[location]
            following = (
                olds.get(location, DEAD),
                news.get(location, DEAD),
                *(
                    DEAD if place == DEAD else automaton.step[place].get(letter, DEAD)
                    for place, automaton in zip(state[2:], automata, strict=True)
                ),
            )
            budget.spent += 1 + len(automata)
            if following not in came:
                came[following] = (state, location)
                waiting.append(following)
        budget.check()
    return found


def _demanded(
    state: tuple[int, ...], exact: list[int], automata: tuple[Automaton, ...], letters: Letters
) -> Iterator[str]:
    """Locations that lead on in a set whose paths must be there."""
    for place in exact:
        at = state[2 + place]
        if at != DEAD:
            for letter in automata[place].step[at]:
                yield from letters.groups[letter]


def _kinds(one: _Compiled, state: tuple[int, ...], old: Forwarding, new: Forwarding) -> Iterator[Kind]:
    """The kind of the paths that end in a state, if it is one that a rule speaks of."""
    inside = [at in automaton.finals for at, automaton in zip(state[2:], one.automata, strict=True)]
    was, now = state[0] in old.finals, state[1] in new.finals
    for place, sets in enumerate(one.sets):
        member = [inside[i] for i in sets.paths]
        zone = sets.zone is None or inside[sets.zone]
        if not (sets.rule is _REST or any(member) or (sets.zone is not None and zone)):
            continue
        if was or now or (sets.exact is not None and inside[sets.exact]):
            first, second = [*member, False, False][:2]
            yield Kind(place, was, now, first, second, zone)
        return


def _path_to(
    state: tuple[int, ...], came: Mapping[tuple[int, ...], tuple[tuple[int, ...], str] | None]
) -> Path:
    path = []
    while (step := came[state]) is not None:
        state, location = step
        path.append(location)
    return tuple(reversed(path))


# The relations
# ----------------------------------------------------------------------------------------------------------
def _wrong(one: _Compiled, kinds: Mapping[Kind, Path]) -> Iterator[_Violation]:
    """Of each rule that is broken the shortest witness."""
    taken = any(kind.before for kind in kinds)
    for place, sets in enumerate(one.sets):
        of_rule = {kind: path for kind, path in kinds.items() if kind.rule == place}
        found = min(_broken(place, sets, of_rule, taken), key=_order, default=None)
        if found is not None:
            yield found


def _order(one: _Violation) -> tuple[bool, int, Path]:
    path = one.path or ()
    return one.path is None, len(path), path


def _broken(place: int, sets: _Sets, kinds: Mapping[Kind, Path], taken: bool) -> Iterator[_Violation]:
    relation = sets.rule.relation
    active = taken if sets.zone is None else any(kind.before and kind.zone for kind in kinds)
    if relation == "replace":
        active = any(kind.before and kind.first for kind in kinds)
    if relation in ("any", "drop") and (active or not sets.paths):
        yield from _broken_any(place, sets, kinds)
        return
    for kind, path in kinds.items():
        wanted, why = _expected(relation, kind, active)
        if wanted != kind.after:
            yield _Violation(place, path, kind.before, kind.after, why)


def _expected(relation: str, kind: Kind, active: bool) -> tuple[bool, str]:
    """Whether a path of this kind is to be taken after the change, and why."""
    if relation == "remove" and kind.first:
        return False, "the path must be gone"
    if relation == "add" and active and kind.first:
        return True, "the path must be there"
    if relation == "replace" and active and kind.second:
        return True, "the path must be there in place of the old ones"
    if relation == "replace" and active and kind.first:
        return False, "the path must be replaced"
    if kind.before:
        return True, "the path must stay"
    return False, "the path must not appear"


def _broken_any(place: int, sets: _Sets, kinds: Mapping[Kind, Path]) -> Iterator[_Violation]:
    """Of a class that had a path in the zone: any path after the change is of the set, and there is one."""
    if not sets.paths:
        return
    for kind, path in kinds.items():
        if kind.after and not kind.first:
            yield _Violation(place, path, kind.before, True, "the path must be one of those that are allowed")
    if not any(kind.after for kind in kinds):
        lost = min((path for kind, path in kinds.items() if kind.zone), key=lambda path: (len(path), path))
        yield _Violation(place, lost, True, False, "must be replaced by an allowed path, which is missing")


# The verdict
# ----------------------------------------------------------------------------------------------------------
def _shown(names: list[str], one: _Compiled, old: Forwarding, new: Forwarding, wrong: _Violation) -> Json:
    rule = one.sets[wrong.place].rule
    return {
        "classes": names[:MOST_NAMED],
        "classes_total": len(names),
        "rule": rule.text,
        "line": rule.line or None,
        "selector": {} if one.block is None else dict(one.block.selector),
        "witness": list(wrong.path or ()),
        "taken_before": wrong.before,
        "taken_after": wrong.after,
        "expected": wrong.expected,
        "before": [list(path) for path in _sample(old)],
        "after": [list(path) for path in _sample(new)],
    }


def _sample(of: Forwarding) -> list[Path]:
    """Some of the shortest paths; none where the search is too wide."""
    found: list[Path] = []
    waiting: deque[tuple[int, Path]] = deque([(0, ())])
    for _ in range(MOST_SEARCHED):
        if not waiting or len(found) == SAMPLE:
            break
        state, path = waiting.popleft()
        if path and state in of.finals:
            found.append(path)
        waiting.extend((following, (*path, location)) for location, following in of.steps[state])
    return found
