"""Components that fail with one: its contents, its dependents, and the services of those. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from incidents.domain.routing.rules import Service, Subject, service_of


class Component(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def depends_on(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class AffectedComponent:
    """A component that fails too: `hops` steps away, by the last step that `because` tells."""

    component: str
    hops: int
    because: str


@dataclass(frozen=True, slots=True)
class AffectedService:
    """A service that is touched: `components` of its own are, or (0) only one that it depends on."""

    slug: str
    name: str
    team: str | None
    components: int
    because: str


def reached(component: str, components: Iterable[Component]) -> list[AffectedComponent]:
    """All that the component contains or that depends on it, at any remove: nearest first, then by name.

    Circles end; containment goes before dependence where both lead to one.
    """
    contains: dict[str, list[str]] = {}
    needed_by: dict[str, list[str]] = {}
    for one in components:
        for parent in one.parents:
            contains.setdefault(parent, []).append(one.name)
        for needed in one.depends_on:
            needed_by.setdefault(needed, []).append(one.name)
    return reached_over(component, contains, needed_by)


def reached_over(
    component: str, contains: Mapping[str, Iterable[str]], needed_by: Mapping[str, Iterable[str]]
) -> list[AffectedComponent]:
    """The same, over what each component contains and what depends on it: its cost follows what is reached."""
    found: dict[str, AffectedComponent] = {}
    layer, hops = [component], 0
    while layer:
        hops += 1
        new: dict[str, str] = {}
        for above in layer:
            for beneath, because in ((contains, "is contained in"), (needed_by, "depends on")):
                for name in beneath.get(above, ()):
                    if name not in found and name != component:
                        new.setdefault(name, f"{because} {above}")
        found |= {name: AffectedComponent(name, hops, new[name]) for name in sorted(new)}
        layer = sorted(new)
    return list(found.values())


def nearest(component: str, ways: Iterable[Mapping[str, Iterable[str]]], most: int) -> tuple[list[str], bool]:
    """The names of at most `most` components reached over `ways`, nearest first, and whether there are more."""
    down, found, layer = tuple(ways), {component: None}, [component]
    while layer:
        beneath = (name for above in layer for way in down for name in way.get(above, ()))
        layer = []
        for name in beneath:
            if name in found:
                continue
            if len(found) > most:
                return list(found)[1:], True
            found[name] = None
            layer.append(name)
    return list(found)[1:], False


def touched(
    component: str, far: Iterable[AffectedComponent], services: Mapping[str, Service]
) -> list[AffectedService]:
    """Services that have a part among them, those with most of them first, then those that depend on such a service."""
    names = [component, *(one.component for one in far)]
    owners = [(service_of(Subject(name), services), name) for name in names]
    parts = Counter(slug for slug, _ in owners if slug is not None)
    first: dict[str, str] = {}
    for slug, name in owners:
        if slug is not None:
            first.setdefault(slug, name)
    found = {
        slug: _touched(services[slug], count, _owning(count, first[slug]))
        for slug, count in sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    }
    layer = list(found)
    while layer:
        new = [
            _touched(service, 0, f"depends on {services[needed].name}")
            for needed in layer
            for service in services.values()
            if needed in service.depends_on and service.slug not in found
        ]
        layer = []
        for one in new:
            if one.slug not in found:
                found[one.slug] = one
                layer.append(one.slug)
    return list(found.values())


def _touched(service: Service, components: int, because: str) -> AffectedService:
    team = None if service.team is None else service.team.slug
    return AffectedService(service.slug, service.name, team, components, because)


def _owning(count: int, first: str) -> str:
    return f"has {first}" if count == 1 else f"has {count} of them, such as {first}"
