"""Cores of a web process.

Its threads hand the interpreter's lock to each other a few times a request. Where they are spread over cores that is an
interrupt to another core each time, which then works with a cold cache: of two processes on two cores, each with one
to itself, senders get a fifth to a third more answered.

A thread that wakes another mostly holds the lock that the other one needs. Where the other takes its place at once, it
can only wait again: without that, a request takes half as many switches, and senders get a sixth more answered.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_held: list[IO[str]] = []  # the lock that says which place is taken, until the process ends


def share(cores: Sequence[int], place: int, of: int) -> set[int]:
    """The cores of process `place` (from 0) out of `of`: as many for each, and where they are too few, one."""
    if of >= len(cores):
        return {cores[place % len(cores)]}
    return set(cores[place * len(cores) // of : (place + 1) * len(cores) // of])


def keep_to_share(places: Path, of: int) -> None:
    """Keep this process, and the threads that it will start, to a share of its cores that no other of the `of` has.

    `places` is a directory where they agree who has which. Where they cannot, or the system has no such thing, nothing
    is changed.
    """
    if of < 2 or not hasattr(os, "sched_setaffinity"):
        return
    place = _free_place(places, of)
    if place is not None:
        mine = share(sorted(os.sched_getaffinity(0)), place, of)
        for thread in _threads():
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(thread, mine)


def let_running_go_on() -> None:
    """Have a thread of this process that is woken, or one that it will start, not take the place of one that runs:
    SCHED_BATCH, see sched(7). Where the system has no such thing or forbids it, nothing is changed.
    """
    if hasattr(os, "SCHED_BATCH"):
        for thread in _threads():
            with suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def _threads() -> list[int]:
    return [int(thread.name) for thread in Path("/proc/self/task").iterdir()]


def _free_place(places: Path, of: int) -> int | None:
    """A lock is free again when the process that had it has ended, however it did."""
    with suppress(OSError):
        places.mkdir(parents=True, exist_ok=True)
        for place in range(of):
            lock = (places / f"web-{place}.lock").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
            else:
                _held.append(lock)
                return place
    return None
