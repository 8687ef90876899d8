"""Notices that an incident is over, to the people who were notified of it, by the methods that reached them.

A sweep finds calls that were answered with a message and whose incident is resolved since. Each person and address
gets one notice for each resolution, except the person who resolved it; none if the incident was reopened before.
A person called within the last hour is awake, so the notice ignores quiet hours, as the call did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from incidents.incident.models import IncidentRow
from incidents.notifications.models import OVER, Notification, NotificationDelivery
from ingest.commands import retrying
from ingest.db.database import insert_new

AT_ONCE: Final = 1_000
AWAKE: Final = timedelta(hours=1)
WHY: Final = "you were notified, and the incident is resolved"


def notify_ended(now: datetime) -> int:
    """Queue notices of resolved incidents for people and addresses; returns the number of calls examined."""
    return retrying(partial(_notify, now))


@transaction.atomic
def _notify(now: datetime) -> int:
    over = IncidentRow.objects.filter(pk=OuterRef("incident"), state="resolved")
    calls = Notification.objects.filter(Exists(over), state="done", outcome="sent", end_notified=False)
    rows = list(calls.order_by("made_at").select_for_update(skip_locked=True)[:AT_ONCE])
    if not rows:
        return 0
    resolved = IncidentRow.objects.in_bulk({row.incident for row in rows})
    groups = _grouped(_written_to(rows), resolved)
    insert_new(Notification, [_ending(group, resolved[group[0].incident], now) for group in groups])
    Notification.objects.filter(pk__in=[row.pk for row in rows]).update(end_notified=True)
    return len(rows)


def _written_to(rows: Sequence[Notification]) -> list[Notification]:
    """Without calls that reached somebody by phone alone: no phone rings only to say that an incident is over."""
    sent = NotificationDelivery.objects.filter(notification__in=rows, state="sent")
    by_phone = set(sent.filter(kind="voice").values_list("notification", flat=True))
    written = set(sent.exclude(kind="voice").values_list("notification", flat=True))
    return [row for row in rows if row.pk in written or row.pk not in by_phone]


def _grouped(rows: Iterable[Notification], resolved: dict[UUID, IncidentRow]) -> list[list[Notification]]:
    """By incident and whom; without those who resolved it themselves, and what goes on in another incident."""
    groups: dict[tuple[UUID, str | None, str], list[Notification]] = {}
    for row in rows:
        incident = resolved[row.incident]
        if incident.merged_into is None and (row.person is None or row.person != incident.resolved_by):
            groups.setdefault((row.incident, row.person, row.address_ref), []).append(row)
    return list(groups.values())


def _ending(calls: Sequence[Notification], incident: IncidentRow, now: datetime) -> dict[str, object]:
    last = calls[-1]
    at = "" if incident.resolved_at is None else incident.resolved_at.isoformat()
    recent = any(call.urgent and call.ended_at is not None and now - call.ended_at < AWAKE for call in calls)
    row = Notification(
        key=f"over:{incident.pk}:{at}:{last.person or last.address_ref}",
        about=OVER,
        person=last.person,
        kind=last.kind,
        address_ref=last.address_ref,
        incident=last.incident,
        why=WHY,
        urgent=recent,
        cause=last.cause,
        trace=last.trace,
        made_at=now,
        end_notified=True,
    )
    return {field.attname: getattr(row, field.attname) for field in Notification._meta.concrete_fields}
