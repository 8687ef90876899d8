"""Alerts that are over though their sender does not say so: it fell silent, or a person resolved their ticket.

A sender that gave its alert a time repeats what still fires, and what it no longer repeats is over: so does
Alertmanager's API.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
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
    batch = Batch(now, rows.kept(sorted(over), hold=True), held=True)
    # Read again now that they are held: one may have been repeated since.
    still = rows.standing(f"id = ANY(%s::uuid[]) AND {_OVER}", (over, now))
    for one in still:
        batch.change(one.id, one.alert, "expired", By(one.integration, one.door), Context("system:alerts"))
    batch.write()
    return len(still)


def settle(ids: Sequence[str], context: Context) -> None:
    """A person says that these alerts are over. What is sent again later than `SETTLED` from now fires anew.

    In the caller's transaction. Raises WrongExpectedVersion.
    """
    now = datetime.now(UTC)
    batch = Batch(now, rows.kept(sorted(ids), hold=True), held=True)
    for one in rows.standing("id = ANY(%s::uuid[]) AND status <> 'resolved'", (list(ids),)):
        batch.change(one.id, one.alert, "settled", By(one.integration, one.door), context)
    batch.write()
