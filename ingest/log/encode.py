"""New events as columns: chained to those before them in their streams, in the form in which the log takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ingest.log import canonical, registry
from ingest.log.types import Body, Context, Event, Head, NewEvent, Position, UnrecordableEventError


@dataclass(slots=True)
class Entries:
    """Events to be recorded together; every list has one entry an event."""

    recorded_at: datetime
    recorded_text: str = field(init=False)
    streams: list[str] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    schemas: list[int] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    occurred_at: list[datetime] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.recorded_text = canonical.time_text(self.recorded_at)

    def chain(self, stream: str, events: Sequence[NewEvent], expected: Head, context: Context) -> None:
        """Add events at the end of a stream. Raises UnrecordableEventError, UnknownEventTypeError."""
        _check_names(stream, context)
        previous, moment, occurred = expected.hash, None, ""
        for version, event in enumerate(events, expected.version + 1):
            schema = registry.find(event.type).schema
            text, body = canonical.record_body(event.body)
            if event.occurred_at is not moment:  # what is recorded together mostly happened together
                moment, occurred = event.occurred_at, canonical.time_text(event.occurred_at)
            previous = canonical.chain(
                previous, stream, version, event.type, schema, text,
                context.actor, context.cause, context.trace, occurred, self.recorded_text,
            )  # fmt: skip
            self.streams.append(stream)
            self.versions.append(version)
            self.contexts.append(context)
            self.types.append(event.type)
            self.schemas.append(schema)
            self.bodies.append(body)
            self.texts.append(text)
            self.occurred_at.append(event.occurred_at)
            self.times.append(occurred)
            self.hashes.append(previous)

    def columns(self) -> tuple[str, str, str, str, bytes]:
        """Types, schemas and times as array literals; bodies and hashes one after the other.

        A body is a line, because JSON has no line breaks in its texts and canonical JSON none between them. A hash has
        32 bytes. As arrays of quoted texts they would cost the most of the call, on both sides.
        """
        return (
            plain_array(self.types),
            plain_array(map(str, self.schemas)),
            "\n".join(self.texts),
            plain_array(self.times),
            b"".join(self.hashes),
        )

    def events(self, positions: Sequence[Position]) -> list[Event]:
        """The events as recorded at these positions."""
        return [
            Event(
                stream, version, type_, schema, body,
                context.actor, context.cause, context.trace, occurred_at, self.recorded_at, position, digest,
            )
            for stream, version, type_, schema, body, context, occurred_at, position, digest in zip(
                self.streams, self.versions, self.types, self.schemas, self.bodies, self.contexts,
                self.occurred_at, positions, self.hashes, strict=True,
            )
        ]  # fmt: skip


def array(texts: Iterable[str | None]) -> str:
    """An array as Postgres reads it: one literal costs both sides a fraction of what a list of literals does."""
    return plain_array(map(_quoted, texts))


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain_array(elements: Iterable[str]) -> str:
    return "{" + ",".join(elements) + "}"


def _check_names(stream: str, context: Context) -> None:
    if not stream or "@" in stream or not context.actor:
        raise UnrecordableEventError(
            f"a stream needs a name without @, and an event an actor: {stream!r}, {context.actor!r}"
        )
    if context.cause == "" or context.trace == "":
        raise UnrecordableEventError("cause and trace are a text or None, never empty")
