"""Components with what contains them and what they need, made into `topology` rows; readers of foreign values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ingest.integrations.json_body import called, read
from ingest.integrations.normalized import InvalidPayloadError
from ingest.log.types import rfc3339
from ingest.telemetry.kinds.declare import MAX_COMPONENTS, MAX_TEXT, is_component, natural

_NOT_IN_A_KIND = re.compile(r"[^A-Za-z0-9_.-]+")
_SPACE = re.compile(r"\s+")


class InvalidTopologyError(ValueError):
    """An export cannot be read. `where` is the object or field in it."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"{where}: {reason}" if where else reason)


@dataclass(slots=True)
class Node:
    parents: set[str] = field(default_factory=set)
    depends_on: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)


class Graph:
    """Components by name; of a component that is described twice everything is kept."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.notes: list[str] = []
        """Sentences about what was left out."""

    def node(self, name: str) -> Node:
        return self.nodes.setdefault(name, Node())

    def label(self, name: str, **labels: object) -> None:
        """Adds the labels that are texts and not empty."""
        texts = {key: value[:MAX_TEXT] for key, value in labels.items() if isinstance(value, str) and value}
        self.node(name).labels |= texts

    def link(self, where: str, *ends: str) -> None:
        """`link/A~B`, which needs both ends; named by their names without the kinds, in order."""
        names = sorted((end.partition("/")[2] for end in ends), key=natural)
        self.node(component(where, "link", "~".join(names))).depends_on.update(ends)

    def rows(self, at: datetime) -> list[dict[str, Any]]:
        """`topology` rows from `at` on, by name. Raises InvalidTopologyError for a component with too many others."""
        return [self._row(name, at) for name in sorted(self.nodes, key=natural)]

    def _row(self, name: str, at: datetime) -> dict[str, Any]:
        node = self.nodes[name]
        row: dict[str, Any] = {"time": rfc3339(at), "component": name}
        for key, names in (("parents", node.parents), ("depends_on", node.depends_on)):
            others = sorted(names - {name}, key=natural)
            if len(others) > MAX_COMPONENTS:
                raise InvalidTopologyError(
                    f"{name}, {key}", f"has {len(others)} components; at most {MAX_COMPONENTS} are allowed"
                )
            if others:
                row[key] = others
        if node.labels:
            row["labels"] = dict(sorted(node.labels.items()))
        return row


def component(where: str, kind: str, name: str) -> str:
    """`kind/name`; white space becomes a hyphen. Raises InvalidTopologyError where that is no component."""
    found = f"{_NOT_IN_A_KIND.sub('-', kind.strip()).strip('-')}/{_SPACE.sub('-', name.strip())}"
    if not is_component(found):
        raise InvalidTopologyError(
            where,
            f"{found[:80]!r} is not a component; a kind begins with a letter, a name has 1 to 190 characters",
        )
    return found


def payload(name: str, body: bytes) -> Any:
    """The value of a JSON file. Raises InvalidTopologyError."""
    try:
        return read(body)
    except InvalidPayloadError as error:
        where = f"{name}, {error.field}" if error.field else name
        raise InvalidTopologyError(where, error.reason) from error


def mapping(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidTopologyError(where, f"must be an object, not {called(value)}")
    return value


def optional(where: str, value: object) -> Mapping[str, Any]:
    """An object; an empty one where there is none."""
    return {} if value is None else mapping(where, value)


def sequence(where: str, value: object) -> Iterator[tuple[str, Any]]:
    """The items of a list, each with its place; nothing where there is none."""
    if value is None:
        return
    if not isinstance(value, list):
        raise InvalidTopologyError(where, f"must be a list, not {called(value)}")
    yield from ((f"{where}[{number}]", one) for number, one in enumerate(value))


def text(where: str, value: object) -> str:
    """A text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidTopologyError(
            where, f"must be a text, not {called(value) if value != '' else 'an empty one'}"
        )
    return value.strip()


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
