"""Graph of a component's dependencies and dependents, folded so that a person can read it. Pure.

What is above it is named; what is beneath it is gathered by kind, distance and relation, those with trouble named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from incidents.domain.components.impact import AffectedComponent, AffectedService

MOST_ABOVE: Final = 6
MOST_GROUPS: Final = 8
MOST_NAMED: Final = 3
MOST_SERVICES: Final = 6


@dataclass(frozen=True, slots=True)
class Trouble:
    """Open incidents about a component, and alerts that fire on it."""

    incidents: int = 0
    alerts: int = 0

    def __add__(self, other: Trouble) -> Trouble:
        return Trouble(self.incidents + other.incidents, self.alerts + other.alerts)

    def __bool__(self) -> bool:
        return bool(self.incidents or self.alerts)


@dataclass(frozen=True, slots=True)
class Above:
    """Component that another rests on: it `contains` it, or it is what it `needs`."""

    name: str
    relation: str
    trouble: Trouble


@dataclass(frozen=True, slots=True)
class IncidentsBelow:
    """`count` components of a kind, `hops` steps away; `relation` says how the last step leads to them.

    `named` are those with trouble, the worst first; the only one of a group is named in any case.
    """

    kind: str
    hops: int
    relation: str
    count: int
    trouble: Trouble
    named: tuple[tuple[str, Trouble], ...]

    @property
    def called(self) -> str:
        """`72 disks`, or the name of an only one."""
        return self.named[0][0] if self.count == 1 else f"{self.count:,} {plural(self.kind)}"


def plural(kind: str) -> str:
    noun = kind.replace("_", " ")
    if noun.endswith("y") and noun[-2:-1] not in ("", *"aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


@dataclass(frozen=True, slots=True)
class BlastGraph:
    component: str
    trouble: Trouble
    above: tuple[Above, ...]
    more_above: int
    beneath: tuple[IncidentsBelow, ...]
    more_beneath: int
    """Components in groups that are left out."""
    services: tuple[AffectedService, ...]
    more_services: int
    count: int
    """All components that fail with it."""
    listed: bool
    """Whether the topology has the component at all, be it without relations."""

    @property
    def known(self) -> bool:
        return bool(self.above or self.beneath or self.services)


def blast_graph(
    component: str,
    parents: Sequence[str],
    needs: Sequence[str],
    far: Sequence[AffectedComponent],
    services: Sequence[AffectedService],
    troubles: Mapping[str, Trouble],
    *,
    listed: bool,
) -> BlastGraph:
    """`far` are the components that fail with it, nearest first; `troubles`: incidents and alerts by component."""
    above = [Above(name, "contains this component", troubles.get(name, Trouble())) for name in parents]
    above += [
        Above(name, "dependency", troubles.get(name, Trouble())) for name in needs if name not in parents
    ]
    above.sort(key=lambda one: -_weight(one.trouble))
    groups = sorted(_gathered(far, troubles), key=lambda one: (one.hops, -_weight(one.trouble), -one.count))
    return BlastGraph(
        component,
        troubles.get(component, Trouble()),
        tuple(above[:MOST_ABOVE]),
        len(above[MOST_ABOVE:]),
        tuple(groups[:MOST_GROUPS]),
        sum(one.count for one in groups[MOST_GROUPS:]),
        tuple(services[:MOST_SERVICES]),
        len(services[MOST_SERVICES:]),
        len(far),
        listed,
    )


def _weight(trouble: Trouble) -> int:
    return 1_000 * trouble.incidents + trouble.alerts


def _gathered(far: Iterable[AffectedComponent], troubles: Mapping[str, Trouble]) -> list[IncidentsBelow]:
    groups: dict[tuple[str, int, str], list[str]] = {}
    for one in far:
        relation = "dependents" if one.because.startswith("depends") else "contents"
        groups.setdefault((one.component.partition("/")[0], one.hops, relation), []).append(one.component)
    return [_group(*key, names, troubles) for key, names in groups.items()]


def _group(
    kind: str, hops: int, relation: str, names: Sequence[str], troubles: Mapping[str, Trouble]
) -> IncidentsBelow:
    hurt = sorted((name for name in names if name in troubles), key=lambda name: -_weight(troubles[name]))
    shown = hurt if len(names) > 1 else names
    named = tuple((name, troubles.get(name, Trouble())) for name in shown[:MOST_NAMED])
    total = sum((troubles[name] for name in hurt), Trouble())
    return IncidentsBelow(kind, hops, relation, len(names), total, named)
