"""An incident's timeline: one kind of line or all, the older ones folded; and its moments, for going through them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.templatetags.times import instants_words
from incidents.commands import InvalidValueError
from incidents.domain.incident.timeline_kinds import KINDS, kind_of
from incidents.domain.time import rfc3339
from incidents.queries import Entry
from ingest.queries import Position

RECENT = 25
"""Lines that are shown without asking."""
MOST_MOMENTS = 2_000
LONGEST = 140
"""Characters of a moment's sentence."""
KIND_WORDS = {
    "people": "People",
    "analyzers": "Analyzers",
    "alerts": "Alerts",
    "routing": "Routing",
    "notifications": "Calls",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A kind of line, how many there are, and what the address asks for to show it alone or no more."""

    words: str
    count: int
    asked: str | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class History:
    """Newest first."""

    recent: Sequence[Entry]
    older: Sequence[Entry]
    choices: Sequence[Choice]
    total: int

    @property
    def hidden(self) -> int:
        """Lines of other kinds."""
        return self.total - len(self.recent) - len(self.older)


def history(entries: Sequence[Entry], asked: str) -> History:
    """`entries` come oldest first; `asked` names kinds, separated by commas: none means all. Raises
    InvalidValueError."""
    wanted = [name for name in asked.split(",") if name]
    if not set(wanted) <= set(KINDS):
        raise InvalidValueError("show", f"must be of {', '.join(KINDS)}, separated by commas")
    kinds = [kind_of(entry.type, entry.actor) for entry in entries]
    counted = Counter(kinds)
    shown = [one for one, kind in zip(entries, kinds, strict=True) if not wanted or kind in wanted][::-1]
    choices = [
        Choice(KIND_WORDS[kind], counted[kind], None if kind in wanted else kind, kind in wanted)
        for kind in KINDS
        if counted[kind] or kind in wanted
    ]
    return History(shown[:RECENT], shown[RECENT:], choices, len(entries))


def moments(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """What the slider goes through, oldest first: the latest so many, each with its position in the log."""
    return [
        {"at": rfc3339(one.last_at), "position": one.position, "text": instants_words(one.text[:LONGEST])}
        for one in entries[-MOST_MOMENTS:]
    ]


def place_of(told: Sequence[Mapping[str, str]], as_of: Position | None) -> int:
    """Which of the moments a position shows: the latest that is not after it; without one the last."""
    if as_of is None:
        return max(0, len(told) - 1)
    return max(0, bisect_right([one["position"] for one in told], str(as_of)) - 1)
