"""The words of the event log: events, where they stand, who caused them.

Structs of msgspec instead of dataclasses: an event has thirteen fields, and making a frozen dataclass of them costs
several times what it costs to fetch its row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import msgspec

Json = Any  # a value that json.dumps accepts; NaN, Infinity, NUL and lone surrogates are refused on append
Body = dict[str, Json]

_POSITION = re.compile(r"[0-9a-f]{36}")


class NewEvent(msgspec.Struct, frozen=True):
    """A fact to be recorded. The registry knows which schema its type is written in today."""

    type: str
    body: Mapping[str, Json]
    occurred_at: datetime


class Context(msgspec.Struct, frozen=True):
    """Who did it and why.

    `actor` is `user:NAME`, `key:NAME`, `system:NAME` or `shell:NAME`; `cause` is the id (`stream@version`) of the event
    that led to this one; `trace` is the id of the request or run.
    """

    actor: str
    cause: str | None = None
    trace: str | None = None


class Head(msgspec.Struct, frozen=True):
    """The newest event of a stream: its version and its hash (32 bytes)."""

    version: int
    hash: bytes

    NEW: ClassVar[Head]
    """The head of a stream that has no event yet."""


Head.NEW = Head(0, b"")


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in the total order of the log.

    Its text is opaque to the outside: 36 characters that sort as the positions do.
    """

    epoch: int
    txid: int
    seq: int

    START: ClassVar[Position]
    """Before every event."""

    def __str__(self) -> str:
        return f"{self.epoch:04x}{self.txid:016x}{self.seq:016x}"

    @staticmethod
    def parse(text: str) -> Position:
        """The position that `str` wrote. Raises ValueError for any other text."""
        if not _POSITION.fullmatch(text):
            raise ValueError(f"not a log position: {text[:50]!r}")
        return Position(int(text[:4], 16), int(text[4:20], 16), int(text[20:], 16))


Position.START = Position(0, 0, 0)


class Event(msgspec.Struct, frozen=True):
    """A recorded fact, its body in the newest schema of its type."""

    stream: str
    version: int
    type: str
    schema: int
    body: Body
    actor: str
    cause: str | None
    trace: str | None
    occurred_at: datetime
    recorded_at: datetime
    position: Position
    hash: bytes

    @property
    def id(self) -> str:
        return f"{self.stream}@{self.version}"

    @property
    def head(self) -> Head:
        """The stream's head just after this event."""
        return Head(self.version, self.hash)


class StreamVersionError(Exception):
    """The stream has moved on (or never was) where the writer thought it stood, or was last written by a
    transaction with a later id: load, decide and try again in a new transaction."""

    def __init__(self, stream: str, expected: int) -> None:
        super().__init__(f"{stream} does not stand at version {expected}")
        self.stream = stream
        self.expected = expected


class UnrecordableEventError(ValueError):
    """The event holds something that the log cannot keep exactly."""
