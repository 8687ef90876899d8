"""The process that delivers: sweeps in one thread, sending in another, until it is told to stop."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import structlog
from django.db import InterfaceError, OperationalError, connection

from incidents.delivery.alive import SENDING, alive
from incidents.delivery.loops import start_loops
from incidents.delivery.sweeps import run_sweeps

IDLE = 0.5
"""Seconds between looks when nothing was due."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between attempts to reach the database."""

log = structlog.get_logger("deliver")


def run(stop: threading.Event, idle: float = IDLE) -> None:
    """Deliver until `stop` is set. Survives a database that goes away."""
    sweeping = threading.Thread(target=run_sweeps, args=(stop,), name="sweeps", daemon=True)
    sweeping.start()
    loops = start_loops(stop)
    pause = FIRST_PAUSE
    while not stop.is_set():
        try:
            alive(SENDING, datetime.now(UTC))
            pause = FIRST_PAUSE
            stop.wait(idle)
        except (OperationalError, InterfaceError) as error:
            log.warning("database away", error=str(error).strip(), seconds=pause)
            connection.close()
            stop.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
    for thread in (sweeping, *loops):
        thread.join()
    connection.close()
