"""What time alone does to alerts and incidents: found in the database every few seconds, by `manage.py deliver`.

Each is done in parts, in transactions of their own, so that what is due ten thousand times keeps nothing else waiting;
and one that fails leaves all others alone, also those of its kind. No broker is asked, and no worker that may be busy
with an analysis.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from django.db import connection, transaction

from incidents.alerts import correlate, flapping
from incidents.incident import orphans, snooze
from incidents.incident.repository import keep_reactor_out
from incidents.suppression import incidents
from incidents.worker.sweeps import Sweep, sweep_once
from ingest.commands import Backoff, check_heartbeats, expire_alerts, in_halves, retrying
from ingest.queries import now_utc

EVERY: Final = 5.0
"""Seconds between looks when nothing was due."""
PATIENCE: Final = 300.0
"""Seconds for which senders must have been able to reach us before their silence means anything: after a restart, or
after the database was away, what fires is sent again within minutes, and would else be over and fire anew."""
BREAK: Final = 60.0
"""Seconds without a good look after which senders are taken to have found nobody."""
PAUSE: Final = 60.0
"""Seconds for which an incident or an alert that failed is passed over."""

Find = Callable[[datetime, Collection[str]], list[str]]
"""The ids of what is due at a time, but for some."""
Do = Callable[[Sequence[str], datetime], int]


class ExclusiveSweep:
    """What is due to incidents or alerts: found, and done in a transaction in which no alert or finding is placed.

    One that fails keeps no other from it, and is passed over for a while.
    """

    def __init__(self, find: Find, do: Do) -> None:
        self._find, self._do = find, do
        self._passed_over = Backoff("deliver", PAUSE)

    def __call__(self, now: datetime) -> int:
        """How much was done. Raises what the first raised that failed, after all others have gone on."""
        failed: dict[str, Exception] = {}
        did = in_halves(self._find(now, self._passed_over.ids()), partial(self._part, now), failed)
        self._passed_over.add(failed)
        return did

    def _part(self, now: datetime, ids: Sequence[str]) -> int:
        return retrying(partial(self._once, now, ids)) if ids else 0

    @transaction.atomic
    def _once(self, now: datetime, ids: Sequence[str]) -> int:
        keep_reactor_out()
        return self._do(ids, now)


OF_SILENCE: Final[Mapping[str, Sweep]] = {"heartbeats": check_heartbeats, "silent senders": expire_alerts}
OF_TICKETS: Final[Mapping[str, Sweep]] = {
    "suppressed alerts": ExclusiveSweep(correlate.unsuppressed_alerts, correlate.place_unsuppressed),
    "due snoozes": ExclusiveSweep(snooze.due_snoozes, snooze.wake),
    "cancelled maintenance": ExclusiveSweep(incidents.cancelled_maintenance, incidents.unsnooze_cancelled),
    "silenced incidents": ExclusiveSweep(incidents.newly_covered, incidents.suppress),
    "flapping incidents": ExclusiveSweep(flapping.quiet_flapping, flapping.auto_resolve),
    "orphaned incidents": ExclusiveSweep(orphans.orphaned, orphans.reassign_orphans),
}


class ReachabilityGuard:
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


def look(listening: ReachabilityGuard, now: datetime) -> int:
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
    listening = ReachabilityGuard()
    while not stop.is_set():
        stop.wait(0.0 if look(listening, now_utc()) else EVERY)
    connection.close()
