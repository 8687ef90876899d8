"""Sweeps of `manage.py deliver`: timers that are due, of all packages.

A sweep is a function of the time that does what is due and says how much that was. It holds its own transactions and
may run in several processes at once. One that raises is logged and tried again; the others go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

import structlog
from django.db import InterfaceError, OperationalError, connection

from incidents.worker.parts import Failure, alive, attempt
from ingest.commands import heartbeat
from ingest.queries import now_utc

Sweep = Callable[[datetime], int]
EVERY = 1.0
"""Seconds from one round to the next, when nothing was found."""
LONGEST_PAUSE = 30.0
"""Seconds, after failures: the pause doubles with each."""

LONGEST_SWEEP = 180.0
"""Seconds after which a sweep counts as hanging."""
PULSE = 5.0
"""Seconds between signs of life of a sweep that finds nothing."""

log = structlog.get_logger("deliver")
_sweeps: dict[str, Sweep] = {}
_shown: dict[str, float] = {}


def register_sweep(name: str, fn: Sweep) -> None:
    """Have `manage.py deliver` call `fn` with the time about once a second."""
    if _sweeps.setdefault(name, fn) != fn:
        raise ValueError(f"sweep {name} is registered twice, differently")


def registered_sweeps() -> dict[str, Sweep]:
    return dict(sorted(_sweeps.items()))


def run_sweeps(stop: threading.Event, every: float = EVERY) -> None:
    """Run what is registered until `stop` is set; finishes the sweep at hand."""
    failures: dict[str, int] = {}
    due: dict[str, float] = {}
    while not stop.is_set():
        found = 0
        for name, fn in registered_sweeps().items():
            if stop.is_set() or time.monotonic() < due.get(name, 0.0):
                continue
            heartbeat.progress("sweeps", LONGEST_SWEEP)
            did = sweep_once(name, fn, now_utc())
            failures[name] = 0 if did is not None else failures.get(name, 0) + 1
            pause = min(LONGEST_PAUSE, every * 2 ** failures[name]) if failures[name] else every
            due[name] = time.monotonic() + (0.0 if did else pause)
            found += did or 0
        if not found:
            stop.wait(min(0.2, every))
    heartbeat.rest("sweeps")
    connection.close()


def sweep_once(name: str, fn: Sweep, now: datetime) -> int | None:
    """Number of things that one sweep found; None where it failed."""
    found = attempt(partial(_sweep, name, fn, now))
    if not isinstance(found, Failure):
        return found
    if isinstance(found.error, OperationalError | InterfaceError):
        log.warning("database away", sweep=name, error=str(found.error).strip())
        connection.close()
    else:
        log.error("sweep failed", sweep=name, exc_info=found.error)
        _shown.pop(name, None)
        _report_failure(name, found.error)
    return None


def _sweep(name: str, fn: Sweep, now: datetime) -> int:
    did = fn(now)
    _show_life(name, now, did)
    return did


def _show_life(name: str, now: datetime, did: int) -> None:
    """Not each second: a row that is written costs more than a sweep that finds nothing."""
    if did or time.monotonic() - _shown.get(name, -PULSE) >= PULSE:
        alive(f"sweep {name}", now, did)
        _shown[name] = time.monotonic()


def _report_failure(name: str, error: Exception) -> None:
    try:
        alive(f"sweep {name}", None, 0, f"{type(error).__name__}: {error}")
    except (OperationalError, InterfaceError):
        connection.close()
