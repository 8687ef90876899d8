"""Proof that an event stands in the log under a seal, checked without the log. Pure.

The hash of an event covers its fields and the hash of the event before it in its stream. The root of a seal covers the
position, id and hash of each event since the seal before, and the hash of the seal covers its root. So the event, the
lines of its seal and the seal itself lead from the event to `log@N:HASH`, which is noted outside of the database
(`ingest.log.noted_seals`) and may have a timestamp of an authority.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from ingest.log.types import Position, UnrecordableEventError, chain, read_body

STREAM = "log"
"""The stream of seals."""
SEAL_TYPE = "log.sealed"
SHORT = 16
MOST_LINES = 10_000
MOST_LATER = 20

Link = tuple[str, int, bytes, Position]
"""Stream, version, hash and position of an event: all that a seal is about."""


class InclusionError(ValueError):
    """The proof does not lead from the event to its seal; the text says where it ends."""


@dataclass(slots=True)
class Cover:
    """The running sum of a seal."""

    root: str
    events: int = 0
    heads: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, links: Iterable[Link]) -> None:
        digest = sha256(self.root.encode())
        for stream, version, hash_, position in links:
            digest.update(f"\n{position} {stream}@{version} {hash_.hex()}".encode())
            self.events += 1
            if version > self.heads.get(stream, (0,))[0]:
                self.heads[stream] = [version, hash_.hex()[:SHORT]]
        self.root = digest.hexdigest()


Hex = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class StoredEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event as the log stores it: times and body as the texts that were hashed, and the hash of its predecessor in
    its stream, empty for the first."""

    stream: str
    version: Count
    type: str
    schema: Count
    body: str
    actor: str
    cause: str | None
    trace: str | None
    occurred_at: str
    recorded_at: str
    previous: Hex

    def digest(self) -> bytes:
        return chain(
            bytes.fromhex(self.previous), self.stream, self.version, self.type, self.schema, self.body,
            self.actor, self.cause, self.trace, self.occurred_at, self.recorded_at,
        )  # fmt: skip


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One event under a seal."""

    position: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{36}\Z")]
    stream: str
    version: Count
    hash: Hex


class Inclusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event, the seal that covers it, the root of the seal before (empty for the first) and every event under the
    seal in the order of the log. `later` are the seals that follow: not every seal is noted outside."""

    event: StoredEvent
    previous_root: Hex
    lines: Annotated[list[Line], msgspec.Meta(max_length=MOST_LINES)]
    seal: StoredEvent
    later: Annotated[list[StoredEvent], msgspec.Meta(max_length=MOST_LATER)]


def check_inclusion(proof: Inclusion) -> list[str]:
    """The seals that the proof leads to, the first that covers the event first, as `log@7:HASH`. Raises
    InclusionError."""
    event, seal = proof.event, proof.seal
    event_id, seal_id = f"{event.stream}@{event.version}", f"{seal.stream}@{seal.version}"
    try:
        digest, own = event.digest(), seal.digest()
        following = [one.digest() for one in proof.later]
        body = read_body(seal.body)
    except (UnrecordableEventError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InclusionError(f"{event_id} or {seal_id} is no event of a log: {error}") from None
    if seal.type != SEAL_TYPE or seal.stream != STREAM:
        raise InclusionError(f"{seal_id} is {seal.type}, not a seal")
    line_of_event = (event.stream, event.version, digest.hex())
    if line_of_event not in ((line.stream, line.version, line.hash) for line in proof.lines):
        raise InclusionError(f"{event_id} with this content is not among the events under {seal_id}")
    cover = Cover(proof.previous_root)
    cover.add(
        (line.stream, line.version, bytes.fromhex(line.hash), Position.parse(line.position))
        for line in proof.lines
    )
    if (cover.root, cover.events) != (body.get("root"), body.get("events")):
        raise InclusionError(f"the events listed under {seal_id} are not those of its root")
    found = [f"{seal_id}:{own.hex()}"]
    for place, (one, digest) in enumerate(zip(proof.later, following, strict=True), start=1):
        if (one.stream, one.version, one.previous) != (STREAM, seal.version + place, own.hex()):
            raise InclusionError(f"{one.stream}@{one.version} does not follow {seal_id}")
        own = digest
        found.append(f"{one.stream}@{one.version}:{own.hex()}")
    return found
