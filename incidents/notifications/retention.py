"""Deletion of old message rows; their results stay on the incidents in the log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction

from incidents.notifications.models import Notification, ProviderReceipt

AT_ONCE: Final = 1000
"""Calls of one transaction."""
EVERY: Final = timedelta(minutes=10)
"""Between looks, once nothing was found."""

RECEIPTS: Final = timedelta(days=2)
"""Retention of a provider's requests: longer than anything that they may still answer."""

_looked: list[datetime] = []


def forget(now: datetime) -> int:
    """Delete calls, with their steps, that ended longer ago than DOSSIER_NOTIFICATION_RETENTION; how many.

    The result of a deleted message was recorded on its incident when it happened. A later call of the same person for
    the same incident counts as the first: no throttle delays it.
    """
    if _looked and now - _looked[-1] < EVERY:
        return 0
    done = _delete(now - settings.NOTIFICATION_RETENTION)
    ProviderReceipt.objects.filter(at__lt=now - RECEIPTS).delete()
    _looked[:] = [] if done else [now]
    return done


@transaction.atomic
def _delete(before: datetime) -> int:
    over = Notification.objects.filter(state="done", ended_at__lt=before).order_by("ended_at")
    found = list(over.select_for_update(skip_locked=True).values_list("pk", flat=True)[:AT_ONCE])
    Notification.objects.filter(pk__in=found).delete()
    return len(found)
