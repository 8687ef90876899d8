"""The event types the log knows: permanent names, schema numbers, and how old schemas are read.

A type is registered once, by the `ready` of the app that owns it. Its name is never changed and never used
again for something else. When the shape of its body changes, `schema` goes up by one and an upcaster for
the old schema is added; stored events are not rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ingest.log.types import Body

Upcaster = Callable[[Body], Body]

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


@dataclass(frozen=True, slots=True)
class EventType:
    """`upcasters[n]` is a pure function from a body of schema n to one of schema n + 1, for every n below
    `schema`."""

    name: str
    schema: int = 1
    upcasters: Mapping[int, Upcaster] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"an event type's name is dotted lower case, such as incident.opened: {self.name!r}"
            )
        if self.schema < 1 or set(self.upcasters) != set(range(1, self.schema)):
            raise ValueError(
                f"{self.name}: schema {self.schema} needs an upcaster for each of 1..{self.schema - 1}"
            )


class UnknownEventTypeError(LookupError):
    """The type was never registered, or is stored in a schema newer than this code knows."""


_types: dict[str, EventType] = {}


def register(event_type: EventType) -> EventType:
    """Make a type known. Registering the same one twice is harmless; two types of one name are an error."""
    known = _types.setdefault(event_type.name, event_type)
    if known != event_type:
        raise ValueError(f"event type {event_type.name} is registered twice, differently")
    return event_type


def registered() -> tuple[EventType, ...]:
    """Every known type, by name."""
    return tuple(_types[name] for name in sorted(_types))


def find(name: str) -> EventType:
    """Raises UnknownEventTypeError."""
    try:
        return _types[name]
    except KeyError:
        raise UnknownEventTypeError(f"event type {name} is not registered") from None


def upcast(name: str, schema: int, body: Body) -> Body:
    """The body, stored in `schema`, as the newest schema of its type has it. Raises UnknownEventTypeError."""
    event_type = find(name)
    if not 1 <= schema <= event_type.schema:
        raise UnknownEventTypeError(
            f"{name} is stored in schema {schema}; this code knows up to {event_type.schema}"
        )
    for step in range(schema, event_type.schema):
        body = event_type.upcasters[step](body)
    return body
