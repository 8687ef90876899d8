"""Whether a cause explains an alert on another component, how far away it is, and the sentence that says so. Pure.

A component fails with what contains it, with what it depends on, and with what lies on its path. Followed upward from
the alert: at most MOST_HOPS steps, the nearest cause wins, each component is looked at once, so that cycles end. Of
causes that are equally near the one wins whose way there comes first (contained, dependent, on the path), then the one
that comes first by name: the same topology always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from incidents.domain.incident.opinions import Opinions
from incidents.domain.incident.state import Incident

MOST_HOPS: Final = 4
"""A VM in a host in a rack behind a switch is three hops away; much further up everything explains everything."""

Relation = Literal["contained", "depends", "path"]
_WORDS: Mapping[Relation, str] = {
    "contained": "is contained in",
    "depends": "depends on",
    "path": "has a path that crosses",
}
_ORDER: Mapping[Relation, int] = {"contained": 0, "depends": 1, "path": 2}


@dataclass(frozen=True, slots=True)
class Links:
    """What one component is contained in, what it depends on, and what its path crosses: names."""

    parents: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    def each(self) -> Iterable[tuple[Relation, str]]:
        yield from (("contained", name) for name in sorted(self.parents))
        yield from (("depends", name) for name in sorted(self.depends_on))
        yield from (("path", name) for name in sorted(self.path))


@dataclass(frozen=True, slots=True)
class Explanation:
    """`hops` is 0 where the component is the cause itself; `how` is a sentence without its full stop."""

    component: str
    cause: str
    hops: int
    how: str


@dataclass(frozen=True, slots=True)
class _Way:
    """How a component was reached: the relations to it, and the names in between, the last one itself."""

    relations: tuple[Relation, ...]
    names: tuple[str, ...]

    @property
    def order(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        return tuple(_ORDER[one] for one in self.relations), self.names


def explain(
    component: str, causes: Collection[str], links: Mapping[str, Links], hops: int = MOST_HOPS
) -> Explanation | None:
    """Why an alert on `component` is a symptom of one of `causes`; None where it is not, as far as `links` tell."""
    if component in causes:
        return Explanation(component, component, 0, f"same component {component}")
    layer, seen = {component: _Way((), ())}, {component}
    for distance in range(1, hops + 1):
        layer = _next(layer, seen, links)
        found = min((way for name, way in layer.items() if name in causes), key=_order, default=None)
        if found is not None:
            return Explanation(component, found.names[-1], distance, _sentence(component, found))
        seen |= layer.keys()
    return None


def _order(way: _Way) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return way.order


def _next(layer: Mapping[str, _Way], seen: Collection[str], links: Mapping[str, Links]) -> dict[str, _Way]:
    """What the components of a layer rest on and was not seen before, each by the first of its ways."""
    reached: dict[str, _Way] = {}
    for name, way in layer.items():
        for relation, up in links.get(name, Links()).each():
            if up in seen:
                continue
            new = _Way((*way.relations, relation), (*way.names, up))
            if up not in reached or new.order < reached[up].order:
                reached[up] = new
    return reached


def _sentence(component: str, way: _Way) -> str:
    steps = [f"{_WORDS[one]} {name}" for one, name in zip(way.relations, way.names, strict=True)]
    return f"{component} {', which '.join(steps)}"


def is_blamed(opinions: Opinions) -> bool:
    """Whether an analyzer still says that the incident's cause has failed; a forecast explains nothing yet."""
    return any(one.says == "blames" and not one.forecast for one in opinions.values())


def explains(state: Incident) -> bool:
    """Whether alerts on what rests on the incident's cause are its symptoms."""
    return state.state != "resolved" and bool(state.findings) and is_blamed(state.opinions)
