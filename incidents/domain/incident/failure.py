"""State of the failure, apart from the state of the work: failing, quiet since, no data since. Pure.

An alert that fires is failing. A failure that analyzers found is failing while the latest window over it blames it and
a failure lies in the recent part of that window (a long window still names what has been over for most of it). Where
no window was judged for a while, nothing is known: neither "failing" nor "quiet" would be true. What only a person
reported is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from incidents.domain.incident.opinions import Opinion
from incidents.domain.incident.state import Incident
from incidents.domain.time import optional_rfc3339

FailureState = Literal["failing", "quiet", "no_data", "unknown"]
FAILURE_STATES: Final[tuple[FailureState, ...]] = ("failing", "quiet", "no_data", "unknown")

RECENT: Final = timedelta(minutes=15)
RECENT_SHARE: Final = 4
"""The recent part of a window: a quarter of it, at least `RECENT`, at most the whole window."""
DUE: Final = timedelta(minutes=30)
DUE_WINDOWS: Final = 2
"""The next judged window is overdue after `DUE`, or after so many windows if these are longer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`since`: data time of the first failure (failing), the last one (quiet), or the last judged window (no data)."""

    state: FailureState
    since: datetime | None

    def as_json(self) -> dict[str, Any]:
        return {"state": self.state, "since": optional_rfc3339(self.since)}


UNKNOWN: Final = Failure("unknown", None)


def failure_of(state: Incident, now: datetime, judged: datetime | None) -> Failure:
    """The state of an incident's failure at `now`.

    `judged`: end of the latest window that any schedule judged in the incident's region, None where none is known.
    """
    if state.firing:
        return Failure("failing", state.failing_since or state.reported_at or state.opened_at)
    if not _was_blamed(state):
        return UNKNOWN if state.alert_at is None else Failure("quiet", state.alert_at)
    assert state.last_blamed is not None
    last = max(filter(None, (state.last_failure or state.last_blamed, state.alert_at)))
    if state.state == "resolved":
        return Failure("quiet", last)
    if _fails_in_latest_window(state):
        overdue = now - state.last_blamed > _due(state)
        return (
            Failure("no_data", state.last_blamed)
            if overdue
            else Failure("failing", state.failing_since or state.opened_at)
        )
    known = max(filter(None, (state.last_blamed, state.alert_at, judged)))
    return Failure("no_data", known) if now - known > _due(state) else Failure("quiet", last)


def is_quiet(state: Incident) -> bool:
    """Whether an unresolved incident is over as far as its own events tell; lists show it below those that fail."""
    if state.state == "resolved" or state.firing:
        return False
    return not _fails_in_latest_window(state) if _was_blamed(state) else state.alert_at is not None


def _was_blamed(state: Incident) -> bool:
    """Whether an analyzer found a failure; a forecast is none."""
    if state.last_blamed is None:
        return False
    return (
        state.last_failure is not None
        or not (blames := _blames(state))
        or not all(b.forecast for b in blames)
    )


def _blames(state: Incident) -> list[Opinion]:
    return [one for one in state.opinions.values() if one.first_at is not None]


def _fails_in_latest_window(state: Incident) -> bool:
    # A run by hand has no schedule; no later window takes its word back.
    by_hand = any(one.says == "blames" and not one.schedules for one in state.opinions.values())
    if not state.blamed_by and not by_hand:
        return False
    if state.last_failure is None or state.last_blamed is None:
        return True
    length = _window(state)
    return state.last_failure > state.last_blamed - min(length, max(RECENT, length / RECENT_SHARE))


def _due(state: Incident) -> timedelta:
    return max(DUE, DUE_WINDOWS * _window(state))


def _window(state: Incident) -> timedelta:
    """Length of the shortest window among the latest of analyzers that blame or blamed it."""
    lengths = [one.window_end - one.window_start for one in _blames(state)]
    return min(lengths, default=timedelta(hours=1))
