"""Heartbeats: a job that calls when it is done, and an alert when it does not. Pure.

    curl https://dossier.example/integrations/heartbeat/KEY?name=nightly-backup&every=24h

The call says itself when the next one is due, so that there is nothing to set up: `every` (default 5m) and `grace`,
which is how late it may be (default a fifth of `every`, at least a minute).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ingest.integrations.normalized import (
    LONGEST_NAME,
    Alert,
    InvalidPayloadError,
    Notes,
    component_of,
    severity_of,
)

EVERY, LEAST_GRACE = timedelta(minutes=5), timedelta(minutes=1)
LONGEST_OF_JOBS = LONGEST_NAME - 20
"""Characters of a name: of two that are cut short one could be missed behind the other."""
SHORTEST, LONGEST = timedelta(seconds=10), timedelta(days=366)
FIELDS: Final = {
    "name": "name of the job; default: `default`",
    "every": "time until the next heartbeat; default: 5m",
    "grace": "tolerated delay; default: a fifth of `every`, at least a minute",
    "severity": "severity of the alert for a missed heartbeat",
    "component": "component of the alert, kind/name",
}
"""Fields of a call."""
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Promise of a call: the next one comes within `every` and `grace`."""

    name: str
    every: timedelta
    grace: timedelta
    severity: str
    component: str | None

    def alert(self, *, missed_since: datetime | None) -> Alert:
        """The alert of a heartbeat that was last heard of then; with None the end of it."""
        labels = {"heartbeat": self.name, **({"component": self.component} if self.component else {})}
        missed = (
            "" if missed_since is None else f"It was last heard of at {missed_since:%Y-%m-%d %H:%M:%S} UTC. "
        )
        return Alert(
            key=f"heartbeat {self.name}",
            status="resolved" if missed_since is None else "firing",
            title=f"Heartbeat {self.name} was missed",
            severity=severity_of(self.severity, "error"),
            component=component_of(labels),
            description=f"{missed}It should come every {_in_words(self.every)}, at most {_in_words(self.grace)} late.",
            labels=labels,
        )


def heartbeat(query: Mapping[str, str]) -> Heartbeat:
    """The heartbeat of a call's query. Raises InvalidPayloadError, which names the field."""
    if unknown := sorted(set(query) - set(FIELDS)):
        raise InvalidPayloadError(
            unknown[0][:60], f"is not a field of a heartbeat; there are {', '.join(FIELDS)}"
        )
    result = query.get("name", "default")
    if len(result) > LONGEST_OF_JOBS:
        raise InvalidPayloadError("name", f"must be at most {LONGEST_OF_JOBS} characters, not {len(result)}")
    name = Notes().line("", result, LONGEST_OF_JOBS)
    if not name:
        raise InvalidPayloadError("name", "must not be empty")
    every = _duration("every", query["every"]) if "every" in query else EVERY
    grace = _duration("grace", query["grace"]) if "grace" in query else max(LEAST_GRACE, every / 5)
    severity, component = (
        Notes().line("", query.get(field, ""), LONGEST_NAME) for field in ("severity", "component")
    )
    return Heartbeat(name, every, grace, severity or "error", component or None)


def _duration(field: str, text: str) -> timedelta:
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smhdw])", text)
    span = timedelta(seconds=int(found[1]) * _UNITS[found[2]]) if found else timedelta(0)
    if not SHORTEST <= span <= LONGEST:
        raise InvalidPayloadError(
            field, f"must be a duration from 10s to 366d, such as 90s, 5m, 24h or 7d, not {text[:20]!r}"
        )
    return span


def _in_words(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    unit = next(unit for unit in ("w", "d", "h", "m", "s") if seconds % _UNITS[unit] == 0)
    words = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}
    count = seconds // _UNITS[unit]
    return f"{count} {words[unit]}{'' if count == 1 else 's'}"
