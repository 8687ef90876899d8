"""Commands that put an incident aside, make two of them one, and take such steps back; part of `commands`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, get_args

from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError, check_text

LONGEST_REASON: Final = 2_000


def _set(command: object, name: str, value: object) -> None:
    object.__setattr__(command, name, value)


@dataclass(frozen=True, slots=True)
class Snooze:
    """Until a time, at most 30 days away; None: until it changes. `silence` holds all its firing alerts until then."""

    until: datetime | None = None
    reason: str = ""
    silence: str | None = None

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Unsnooze:
    """Wakes a snoozed incident whose time has come."""


@dataclass(frozen=True, slots=True)
class MergeInto:
    """Into another incident, which takes it in (`Absorb`) in the same transaction."""

    into: Incident
    reason: str = ""

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Absorb:
    """The other side of `MergeInto`; `alerts` are those of the source that fire and are none of this incident's yet."""

    source: Incident
    alerts: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """Takes a merged incident out again; `alerts` are those of its own that still fire."""

    target: Incident
    alerts: tuple[str, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        _set(self, "reason", check_text("reason", self.reason, LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Separate:
    """The other side of `Split`: `alerts` leave the target, of which `firing` still fire there."""

    source: Incident
    alerts: tuple[str, ...]
    firing: tuple[str, ...]
    reason: str = ""


Undoable = Literal["hand_over", "snooze", "merge", "split_off"]


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes back what was done last of what can be; `what` says which, if it must be that.

    `overriding`: the suppressions in force that a person overrides by ending a snooze, as event bodies.
    """

    what: Undoable | None = None
    overriding: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.what not in (None, *get_args(Undoable)):
            raise InvalidValueError("what", f"must be one of {', '.join(get_args(Undoable))}")
