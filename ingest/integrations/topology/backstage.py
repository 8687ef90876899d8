"""Entities of a Backstage catalog, made into a graph. Pure.

`catalog-info.yaml` (documents of YAML or JSON) or the answer of `/api/catalog/entities`: Component, Resource, System,
Domain and API (https://backstage.io/docs/features/software-catalog/descriptor-format). An entity is contained in its
system, domain or upper component, and needs what it `dependsOn` and the APIs that it consumes; an API needs its
provider. The kind of a component is the `spec.type` of the entity (`service`, `database`); the owner is its label
`team`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ingest.integrations.topology.graph import (
    Graph,
    InvalidTopologyError,
    component,
    counted,
    mapping,
    optional,
    payload,
    sequence,
    text,
)

KINDS = ("component", "resource", "system", "domain", "api")
_TYPED = frozenset({"component", "resource"})
_REFERENCE = re.compile(r"(?:(?P<kind>[^:/\s]+):)?(?:(?P<namespace>[^:/\s]+)/)?(?P<name>[^:/\s]+)")
_PARENTS = {"system": "system", "domain": "domain", "subcomponentOf": "component", "subdomainOf": "domain"}
"""Fields of `spec` and the kind of their reference where it names none."""
_NEEDS = {"dependsOn": "component", "consumesApis": "api"}
_NEEDED_BY = {"dependencyOf": "component", "providesApis": "api"}
_RELATIONS = {
    "partOf": "parents", "childOf": "parents", "dependsOn": "needs", "consumesApi": "needs",
    "dependencyOf": "needed_by", "providesApi": "needed_by", "ownedBy": "owner",
}  # fmt: skip
"""Relations as the API of the catalog adds them."""
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Entity:
    where: str
    key: Key
    body: Mapping[str, Any]
    spec: Mapping[str, Any]


def graph(files: Sequence[tuple[str, bytes]]) -> Graph:
    """Of all files, each with its name. Raises InvalidTopologyError."""
    found, others = Graph(), 0
    entities: dict[Key, _Entity] = {}
    for name, body in files:
        for where, one in _documents(name, body):
            entity = _entity(where, one)
            if entity is None:
                others += 1
            else:
                entities[entity.key] = entity
    if not entities:
        raise InvalidTopologyError(
            ", ".join(name for name, _ in files),
            "no entity of the kinds Component, Resource, System, Domain, API",
        )
    names = {key: _named(one) for key, one in entities.items()}
    missing: set[str] = set()
    for one in entities.values():
        _add(found, one, names, missing)
    if others:
        found.notes.append(f"{counted(others, 'object')} of other kinds, such as Group or Location, left out")
    if missing:
        shown = ", ".join(sorted(missing)[:5])
        found.notes.append(
            f"{counted(len(missing), 'reference')} to entities that no file has left out: {shown}"
        )
    return found


def _documents(name: str, body: bytes) -> list[tuple[str, Any]]:
    documents = [payload(name, body)] if body.lstrip()[:1] in (b"{", b"[") else _yaml(name, body)
    found: list[tuple[str, Any]] = []
    for number, one in enumerate(documents, 1):
        where = f"{name}, document {number}" if len(documents) > 1 else name
        listed = one.get("items") if isinstance(one, dict) and "kind" not in one else one
        if isinstance(listed, list):
            found += sequence(where, listed)
        else:
            found.append((where, one))
    return found


def _yaml(name: str, body: bytes) -> list[Any]:
    try:
        return [one for one in yaml.safe_load_all(body) if one is not None]
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise InvalidTopologyError(f"{name}{line}", f"is neither YAML nor JSON: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InvalidTopologyError(name, "is neither YAML nor JSON in UTF-8") from error


def _entity(where: str, value: object) -> _Entity | None:
    """None for a kind that is no component."""
    body = mapping(where, value)
    kind = text(f"{where}, kind", body.get("kind")).lower()
    if kind not in KINDS:
        return None
    about = mapping(f"{where}, metadata", body.get("metadata"))
    name = text(f"{where}, metadata.name", about.get("name"))
    namespace = text(f"{where}, metadata.namespace", about.get("namespace") or "default")
    spec = optional(f"{where}, spec", body.get("spec"))
    return _Entity(f"{where} ({kind} {name})", (kind, namespace.lower(), name.lower()), body, spec)


def _named(one: _Entity) -> str:
    kind, namespace, name = one.key
    if kind in _TYPED and one.spec.get("type") is not None:
        kind = text(f"{one.where}, spec.type", one.spec["type"])
    return component(one.where, kind, name if namespace == "default" else f"{namespace}/{name}")


def _add(found: Graph, one: _Entity, names: Mapping[Key, str], missing: set[str]) -> None:
    name = names[one.key]
    node = found.node(name)

    def other(where: str, value: object, kind: str) -> str | None:
        key = _reference(where, value, kind, one.key[1])
        if key not in names:
            missing.add(f"{key[0]}:{key[1]}/{key[2]}")
        return names.get(key)

    def add(role: str, where: str, value: object, kind: str) -> None:
        if role == "owner":
            found.label(name, team=_reference(where, value, "group", one.key[1])[2])
            return
        if (known := other(where, value, kind)) is None:
            return
        if role == "parents":
            node.parents.add(known)
        elif role == "needs":
            node.depends_on.add(known)
        else:
            found.node(known).depends_on.add(name)

    for field, kind in _PARENTS.items():
        if one.spec.get(field) is not None:
            add("parents", f"{one.where}, spec.{field}", one.spec[field], kind)
    for part, fields in (("needs", _NEEDS), ("needed_by", _NEEDED_BY)):
        for listed, kind in fields.items():
            for where, value in sequence(f"{one.where}, spec.{listed}", one.spec.get(listed)):
                add(part, where, value, kind)
    if one.spec.get("owner") is not None:
        add("owner", f"{one.where}, spec.owner", one.spec["owner"], "group")
    for where, value in sequence(f"{one.where}, relations", one.body.get("relations")):
        relation = mapping(where, value)
        if (role := _RELATIONS.get(str(relation.get("type")))) is not None:
            add(role, f"{where}.targetRef", relation.get("targetRef"), "component")
    found.label(name, lifecycle=one.spec.get("lifecycle"))


def _reference(where: str, value: object, kind: str, namespace: str) -> Key:
    parts = _REFERENCE.fullmatch(text(where, value))
    if parts is None:
        raise InvalidTopologyError(
            where, f"{str(value)[:80]!r} is not a reference; it must be [kind:][namespace/]name"
        )
    return (
        (parts["kind"] or kind).lower(),
        (parts["namespace"] or namespace).lower(),
        parts["name"].lower(),
    )
