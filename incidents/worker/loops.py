"""What `manage.py deliver` runs beside its own sending, each in a thread: what sends at a pace of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import structlog
from django.db import connection

from incidents.worker.guard import Failure, attempt

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
        threading.Thread(target=_kept_running, args=(name, run, stop), name=name, daemon=True)
        for name, run in sorted(_loops.items())
    ]
    for thread in threads:
        thread.start()
    return threads


def _kept_running(name: str, run: Loop, stop: threading.Event) -> None:
    while not stop.is_set():
        ended = attempt(partial(run, stop))
        connection.close()
        if isinstance(ended, Failure):
            log.error("loop failed", loop=name, exc_info=ended.error)
            stop.wait(PAUSE)
