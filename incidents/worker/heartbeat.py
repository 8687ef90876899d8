"""Signs of life: rows that say what of `manage.py deliver` ran last when, so that its silence is seen by others."""

from __future__ import annotations

from datetime import datetime, timedelta

from incidents.worker.models import Heartbeat
from ingest.queries import now_utc

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
