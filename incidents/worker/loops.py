"""What `manage.py deliver` runs beside its own sending, each in a thread: what sends at a pace of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from django.db import connection

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
        try:
            run(stop)
        except Exception:  # the shell around a loop: the rest of the process goes on
            log.exception("loop failed", loop=name)
            stop.wait(PAUSE)
        finally:
            connection.close()
