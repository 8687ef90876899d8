"""Queries of the layers above about delivery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from incidents.domain.notifications.reachability import Unreachable
from incidents.incident.models import IncidentRow
from incidents.notifications.models import Notification, NotificationDelivery
from incidents.notifications.recipients import failed_calls, is_readable, unreachable
from incidents.worker.parts import LONGEST_SILENCE, silences
from ingest.queries import now_utc

__all__ = [
    "LONGEST_SILENCE",
    "RecentNotification",
    "Unreachable",
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


# Recent notifications of a person
# ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RecentNotification:
    """One step of a call; `number` is that of the incident, None where there is none any more."""

    number: int | None
    label: str
    at: datetime
    words: str
    failed: bool = False
    """It was a call, and nothing was sent."""


def recent_notifications(person: str, most: int) -> list[RecentNotification]:
    """The newest first; calls for which there was no contact method are among them."""
    rows = NotificationDelivery.objects.filter(notification__person=person).select_related("notification")
    found = list(rows.order_by("-notification__made_at", "place")[:most])
    lost = Notification.objects.filter(person=person, outcome="given_up", deliveries=None)
    failed = list(lost.order_by("-made_at")[:most])
    incidents = IncidentRow.objects.in_bulk(
        {one.incident for one in (*failed, *(s.notification for s in found))}
    )
    sent = [
        RecentNotification(
            number=incident.number if (incident := incidents.get(one.notification.incident)) else None,
            label=one.label,
            at=one.ended_at or one.notification.made_at,
            words=_words(one),
        )
        for one in found
    ]
    unsent = [
        RecentNotification(
            number=incident.number if (incident := incidents.get(one.incident)) else None,
            label="–",
            at=one.ended_at or one.made_at,
            words=f"not delivered: {one.ended_why}",
            failed=True,
        )
        for one in failed
    ]
    return sorted([*sent, *unsent], key=lambda one: one.at, reverse=True)[:most] if unsent else sent


def _words(one: NotificationDelivery) -> str:
    if one.state == "sent":
        return f"sent: {one.notification.why}"
    if one.state == "stopped":
        return f"cancelled: {one.why}"
    if one.state == "given_up":
        return f"failed: {one.why}"
    if one.attempts:
        return f"tried {one.attempts} time{'' if one.attempts == 1 else 's'}, retrying: {one.why}"
    return f"delayed: {one.delay_reason}" if one.delay_reason else "scheduled"
