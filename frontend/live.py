"""Contract between pages and the live-updates process: the token that lets a browser listen, and the messages.

The live-updates process sees no cookie (it is another origin), so the page fetches a token that is good for a
minute and carries it in the address. A stream ends by itself after `LONGEST`; the page then asks for a new
token, which a person who has signed out does not get.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.core.signing import BadSignature, TimestampSigner

from ingest.queries import Event, registered_event_types

TOKEN_AGE = 60  # seconds in which a token opens a stream
LONGEST = 15 * 60  # seconds that a stream stays open
_ABOUT = {"incident": "incidents", "analysis": "runs"}


def make_token(user: str) -> str:
    return TimestampSigner(salt="dossier.live").sign(user)


def holder(token: str) -> str | None:
    """Name of the person that the token was made for; None for one that is wrong or too old."""
    try:
        return TimestampSigner(salt="dossier.live").unsign(token, max_age=TOKEN_AGE)
    except BadSignature:
        return None


@dataclass(frozen=True, slots=True)
class Change:
    """An incident or a run that changed, at a log position. `number` is an incident's, where known."""

    about: str
    id: str
    what: str
    position: str
    number: int | None = None

    def message(self) -> bytes:
        """As a server-sent event; its id is the position, by which a client that was away resumes."""
        fields = {"about": self.about, "id": self.id, "number": self.number, "what": self.what}
        return f"event: change\nid: {self.position}\ndata: {json.dumps(fields)}\n\n".encode()


def watched_types() -> Collection[str]:
    return [kind.name for kind in registered_event_types() if kind.name.partition(".")[0] in _ABOUT]


def changes_in(events: Iterable[Event]) -> list[Change]:
    """One change for each incident or run that the events touch, in the order of their last events."""
    found: dict[str, Change] = {}
    for event in events:
        number = event.body.get("number") if event.type == "incident.opened" else None
        if (earlier := found.pop(event.stream, None)) is not None:
            number = number or earlier.number
        about = _ABOUT[event.type.partition(".")[0]]
        _, _, id_ = event.stream.partition("/")
        found[event.stream] = Change(about, id_, event.type, str(event.position), number)
    return list(found.values())
