"""Alerts whose sender fell silent: they count as resolved once the time is over that the sender gave them.

So says Alertmanager's API: a sender repeats what still fires, and what it no longer repeats is over.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import transaction

from ingest.alerts import rows
from ingest.alerts.batch import Batch, By
from ingest.log.retrying import retrying
from ingest.log.types import Context

AT_ONCE = 1_000
"""Alerts in one transaction."""
_OVER = "status <> 'resolved' AND expires_at < %s"


def expire(now: datetime) -> int:
    """Resolve what was not repeated in time; how many alerts that were."""
    expired = 0
    while done := retrying(partial(_expire, now)):
        expired += done
    return expired


@transaction.atomic
def _expire(now: datetime) -> int:
    over = [one.id for one in rows.standing(_OVER, (now,), "changed_at", AT_ONCE)]
    if not over:
        return 0
    batch = Batch(now, rows.locked(sorted(over)))
    # Read again now that they are held: one may have been repeated since.
    still = rows.standing(f"id = ANY(%s::uuid[]) AND {_OVER}", (over, now))
    for one in still:
        batch.change(one.id, one.alert, "expired", By(one.integration, one.door), Context("system:alerts"))
    batch.write()
    return len(still)
