"""Transitions of alerts and incidents by time alone: found in the database every few seconds, by `manage.py
deliver`.

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
from django.db.models import Exists, OuterRef, QuerySet

from incidents.alerts import correlate
from incidents.domain.incident import commands as c
from incidents.domain.incident.flapping import QUIET
from incidents.incident.models import IncidentRow
from incidents.incident.repository import keep_reactor_out, record
from incidents.incident.telemetry_horizon import known_until
from incidents.suppression import suppressor
from incidents.teams.models import Team
from incidents.worker.sweeps import Sweep, sweep_once
from ingest.commands import Backoff, check_heartbeats, expire_alerts, in_halves, retrying
from ingest.queries import Context, now_utc

# Snooze
# ----------------------------------------------------------------------------------------------------------
ACTOR = "system:incidents"
SNOOZES_AT_ONCE = 250
"""Incidents in one transaction: hundreds may sleep until the same moment, the end of planned work."""


def due_snoozes(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Those that are due, at most AT_ONCE of them. The rows are the timers: a sweep that was missed is made up by the
    next."""
    due = IncidentRow.objects.filter(state="snoozed", snoozed_until__lte=now).exclude(pk__in=list(but))
    return [str(pk) for pk in due.order_by("number").values_list("pk", flat=True)[:SNOOZES_AT_ONCE]]


def wake(ids: Sequence[str], now: datetime) -> int:
    """Number of them that were still asleep."""
    return sum(bool(record(id_, c.Unsnooze(), Context(ACTOR), now).events) for id_ in ids)


# Orphans
# ----------------------------------------------------------------------------------------------------------
ORPHANS_AT_ONCE = 100


def orphaned(now: datetime, but: Collection[str] = ()) -> list[str]:
    """Incidents that are with no team."""
    del now
    ids = _orphaned_rows().exclude(pk__in=list(but)).order_by("number").values_list("pk", flat=True)
    return [str(pk) for pk in ids[:ORPHANS_AT_ONCE]]


def reassign_orphans(ids: Sequence[str], now: datetime) -> int:
    """Hand over to the default team those of them that are with none still; how many."""
    rows = list(_orphaned_rows().select_for_update(of=("self",)).filter(pk__in=ids).order_by("number"))
    default = Team.objects.get(is_default=True).slug
    for row in rows:
        why = f"team {row.team} was removed; {default} is the default team"
        record(str(row.pk), c.HandOver(default, why), Context(ACTOR), now)
    return len(rows)


def _orphaned_rows() -> QuerySet[IncidentRow]:
    there = Team.objects.filter(slug=OuterRef("team"))
    return IncidentRow.objects.exclude(state="resolved").exclude(Exists(there))


# Flapping
# ----------------------------------------------------------------------------------------------------------
def quiet_flapping(now: datetime, but: Collection[str] = (), most: int = 250) -> list[str]:
    """Those that have been quiet since."""
    incidents = _quiet(now).exclude(pk__in=list(but)).order_by("number")
    return [str(pk) for pk in incidents.values_list("pk", flat=True)[:most]]


def auto_resolve(ids: Sequence[str], now: datetime) -> int:
    """Resolve those of the incidents that are quiet still; how many."""
    why = f"no alert has fired for {int(QUIET.total_seconds() // 60)} minutes"
    over = c.AutoResolve(why, known_until(None, now))
    quiet = _quiet(now).filter(pk__in=ids).order_by("number").values_list("pk", flat=True)
    return sum(bool(record(str(pk), over, Context(ACTOR)).events) for pk in quiet)


def _quiet(now: datetime) -> QuerySet[IncidentRow]:
    held = IncidentRow.objects.filter(flapping=True, firing=0, alert_at__lt=now - QUIET)
    return held.exclude(state="resolved")


# Timers
# ----------------------------------------------------------------------------------------------------------
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
    """Sweep of due incidents or alerts: found, and changed in a transaction in which no alert or finding is placed.

    One that fails keeps no other from it, and is passed over for a while.
    """

    def __init__(self, find: Find, do: Do) -> None:
        self._find, self._do = find, do
        self._passed_over = Backoff("deliver", PAUSE)

    def __call__(self, now: datetime) -> int:
        """Number of changes. Raises the first error after all others have gone on. Raises what the first raised that
        failed, after all others have gone on."""
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
OF_INCIDENTS: Final[Mapping[str, Sweep]] = {
    "suppressed alerts": ExclusiveSweep(correlate.unsuppressed_alerts, correlate.place_unsuppressed),
    "due snoozes": ExclusiveSweep(due_snoozes, wake),
    "cancelled maintenance": ExclusiveSweep(suppressor.cancelled_maintenance, suppressor.unsnooze_cancelled),
    "silenced incidents": ExclusiveSweep(suppressor.newly_covered, suppressor.suppress),
    "flapping incidents": ExclusiveSweep(quiet_flapping, auto_resolve),
    "orphaned incidents": ExclusiveSweep(orphaned, reassign_orphans),
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


def look(guard: ReachabilityGuard, now: datetime) -> int:
    """One look at everything; how much was due."""
    found = 0
    for name, do in OF_INCIDENTS.items():
        if (did := sweep_once(name, do, now)) is not None:
            guard.looked()
            found += did
    for name, do in OF_SILENCE.items():
        # Also while it waits it shows that it lives.
        found += sweep_once(name, do if guard.long_enough else _wait, now) or 0
    return found


def _wait(_: datetime) -> int:
    return 0


def run(stop: threading.Event) -> None:
    """Until `stop` is set; finishes what it is at."""
    guard = ReachabilityGuard()
    while not stop.is_set():
        stop.wait(0.0 if look(guard, now_utc()) else EVERY)
    connection.close()
