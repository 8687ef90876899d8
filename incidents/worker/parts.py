"""Parts of `manage.py deliver`: loops that run beside its sending, signs of life, and the guard between them.

`attempt` is the one place of the process that catches every exception: one part fails, the others go on. `alive` notes
that a part had its round, so that its silence is seen by other processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import structlog
from django.db import connection

from incidents.worker.models import Heartbeat
from ingest.queries import now_utc

# Guard
# ----------------------------------------------------------------------------------------------------------
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that ended a part of the process. The caller logs it and decides when that part runs again."""

    error: Exception


def attempt(work: Callable[[], T]) -> T | Failure:
    """The result of `work`, or the exception that ended it.

    For sweeps, loops, rounds of messages and webhooks, and senders, which are third-party code: whatever one raises
    must not keep the others from notifying people.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001  the boundary itself
        return Failure(error)


# Heartbeat
# ----------------------------------------------------------------------------------------------------------
LONGEST_SILENCE = timedelta(seconds=60)
"""After which deliveries count as late."""


def alive(name: str, at: datetime | None, did: int = 0, error: str = "") -> None:
    """Note that the part `name` had its round `at`; None where it failed, which keeps the time of the last good one."""
    changed: dict[str, object] = {"error": error[:2000].replace("\0", "")}
    if at is not None:
        changed |= {"at": at, "did": did}
    if not Heartbeat.objects.filter(name=name).update(**changed):
        Heartbeat.objects.bulk_create([Heartbeat(name=name, **changed)], ignore_conflicts=True)


def silences(now: datetime | None = None) -> dict[str, float]:
    """By part that ever ran: the seconds since its last good round."""
    moment = now or now_utc()
    return {
        row.name: max(0.0, (moment - row.at).total_seconds()) for row in Heartbeat.objects.order_by("name")
    }


# Loops
# ----------------------------------------------------------------------------------------------------------
Loop = Callable[[threading.Event], None]
PAUSE = 5.0
"""Seconds before a loop that raised is started again."""

log = structlog.get_logger("deliver")
_loops: dict[str, Loop] = {}


def register_loop(name: str, run: Loop) -> None:
    """Have `manage.py deliver` call `run` with an event; it is to return soon after that is set."""
    if _loops.setdefault(name, run) != run:
        raise ValueError(f"loop {name} is registered twice, differently")


def start_loops(stop: threading.Event) -> list[threading.Thread]:
    """Start each registered loop in a thread of its own."""
    threads = [
        threading.Thread(target=_run_until_stopped, args=(name, run, stop), name=name, daemon=True)
        for name, run in sorted(_loops.items())
    ]
    for thread in threads:
        thread.start()
    return threads


def _run_until_stopped(name: str, run: Loop, stop: threading.Event) -> None:
    while not stop.is_set():
        ended = attempt(partial(run, stop))
        connection.close()
        if isinstance(ended, Failure):
            log.error("loop failed", loop=name, exc_info=ended.error)
            stop.wait(PAUSE)


# Locks
# ----------------------------------------------------------------------------------------------------------
def try_lock(name: str) -> bool:
    """Whether this connection to Postgres has the lock of that name from now on, which ends with the connection."""
    return _ask_lock("pg_try_advisory_lock", name)


def unlock(name: str) -> None:
    _ask_lock("pg_advisory_unlock", name)


def _ask_lock(function: str, name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended(%s, 0))", (name,))
        return bool(cursor.fetchone()[0])
