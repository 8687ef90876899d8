"""Tables beside the log that repeat what its events say, and their comparison with it.

A seal covers the events, not these tables. Each app that keeps such a table registers a check, and `verify_log` runs
all of them, so that an entry that was deleted, edited or put in is named.
"""

from __future__ import annotations

from collections.abc import Callable

Check = Callable[[], int]
"""Compares every entry with its event, in the caller's transaction; how many there are. Raises LogIntegrityError."""
Rebuild = Callable[[], bool]
"""Writes every entry anew from the log; whether any differed."""

_checks: dict[str, Check] = {}
_rebuilds: dict[str, Rebuild] = {}


def register_copy(name: str, check: Check, rebuild: Rebuild | None = None) -> None:
    """Have `verify_log` run the check; `name` is what the entries are called, in the plural.

    `rebuild` is None for a table that holds more than the log says.
    """
    if _checks.setdefault(name, check) is not check:
        raise ValueError(f"{name} are registered twice, differently")
    if rebuild is not None:
        _rebuilds[name] = rebuild


def check_copies() -> dict[str, int]:
    """Number of entries of each table that equal their events. Raises LogIntegrityError for the first that does not."""
    return {name: check() for name, check in sorted(_checks.items())}


def rebuild_copies() -> list[str]:
    """Write the tables anew that can be; the names of those that differed."""
    return [name for name, rebuild in sorted(_rebuilds.items()) if rebuild()]
