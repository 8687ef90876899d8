"""What the floors above may ask of delivery."""

from __future__ import annotations

from datetime import datetime

from incidents.notifications.history import RecentNotification, recent_notifications
from incidents.notifications.models import NotificationDelivery
from incidents.notifications.recipients import failed_calls, is_readable, unreachable
from incidents.worker.parts import LONGEST_SILENCE, silences
from ingest.queries import now_utc

__all__ = [
    "LONGEST_SILENCE",
    "RecentNotification",
    "failed_calls",
    "is_readable",
    "overdue",
    "recent_notifications",
    "silences",
    "unreachable",
]


def overdue(now: datetime | None = None) -> float:
    """For how many seconds the oldest message has been due that nobody has taken up; 0 where there is none."""
    moment = now or now_utc()
    waiting = NotificationDelivery.objects.filter(
        state="waiting", next_at__lt=moment, lease_until__isnull=True
    )
    oldest = waiting.order_by("next_at").values_list("next_at", flat=True).first()
    return 0.0 if oldest is None else (moment - oldest).total_seconds()
