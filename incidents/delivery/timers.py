"""What time alone does to alerts and tickets: found in the database every few seconds, by `manage.py deliver`.

Each is done in parts, in transactions of their own, so that what is due ten thousand times keeps nothing else waiting;
and one that fails leaves the others alone. No broker is asked, and no worker that may be busy with an analysis.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

from django.db import connection, transaction

from incidents import alerting, waking
from incidents.delivery.sweeps import Sweep, sweep_once
from incidents.projections.store import keep_reactor_out
from ingest.commands import check_heartbeats, expire_alerts, retrying

EVERY: Final = 5.0
"""Seconds between looks when nothing was due."""
PATIENCE: Final = 300.0
"""Seconds for which senders must have been able to reach us before their silence means anything: after a restart, or
after the database was away, what fires is sent again within minutes, and would else be over and fire anew."""
BREAK: Final = 60.0
"""Seconds without a good look after which senders are taken to have found nobody."""


def _held(do: Callable[[datetime], int]) -> Sweep:
    """In a transaction of its own, in which no alert or finding is placed."""

    @transaction.atomic
    def once(now: datetime) -> int:
        keep_reactor_out()
        return do(now)

    return lambda now: retrying(partial(once, now))


OF_SILENCE: Final[Mapping[str, Sweep]] = {"heartbeats": check_heartbeats, "silent senders": expire_alerts}
OF_TICKETS: Final[Mapping[str, Sweep]] = {
    "held alerts": _held(alerting.unsilence),
    "sleeping tickets": _held(waking.wake),
    "quiet tickets": _held(alerting.settle),
}


class Listening:
    """For how long senders could reach us without a break, as far as one process knows; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = self._looked = clock()

    def looked(self) -> None:
        """The database answered."""
        now = self._clock()
        if now - self._looked > BREAK:
            self._since = now
        self._looked = now

    @property
    def long_enough(self) -> bool:
        return self._clock() - self._since >= PATIENCE


def look(listening: Listening, now: datetime) -> int:
    """One look at everything; how much was due."""
    found = 0
    for name, do in OF_TICKETS.items():
        if (did := sweep_once(name, do, now)) is not None:
            listening.looked()
            found += did
    for name, do in OF_SILENCE.items():
        # Also while it waits it shows that it lives.
        found += sweep_once(name, do if listening.long_enough else _wait, now) or 0
    return found


def _wait(_: datetime) -> int:
    return 0


def run(stop: threading.Event) -> None:
    """Until `stop` is set; finishes what it is at."""
    listening = Listening()
    while not stop.is_set():
        stop.wait(0.0 if look(listening, datetime.now(UTC)) else EVERY)
    connection.close()
