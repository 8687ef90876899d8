"""Alerts that are over though their sender does not say so: it fell silent, or a person resolved their incident.

A sender that gave its alert a time repeats what still fires, and what it no longer repeats is over: so does
Alertmanager's API.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.db import transaction

from ingest.alerts import rows
from ingest.alerts.decide import SETTLED
from ingest.alerts.store import Batch, By
from ingest.db import database
from ingest.log.append import retrying
from ingest.log.types import Context, Position

AT_ONCE = 1_000
"""Alerts in one transaction."""
_OVER = "status <> 'resolved' AND expires_at < %s"


def expire(now: datetime) -> int:
    """Resolve what was not repeated in time; how many alerts that were."""
    expired = 0
    while done := expire_some(now):
        expired += done
    return expired


def expire_some(now: datetime) -> int:
    """As `expire`, at most AT_ONCE of them."""
    return retrying(partial(_expire, now))


@transaction.atomic
def _expire(now: datetime) -> int:
    over = [one.id for one in rows.current_alerts(_OVER, (now,), "changed_at", AT_ONCE)]
    if not over:
        return 0
    batch = Batch(now, rows.existing(sorted(over), hold=True), held=True)
    # Read again now that they are held: one may have been repeated since.
    still = rows.current_alerts(f"id = ANY(%s::uuid[]) AND {_OVER}", (over, now))
    for one in still:
        batch.change(
            one.id, one.alert, "expired", By(one.integration, one.endpoint), Context("system:alerts")
        )
    batch.write()
    return len(still)


_SETTLES = (
    "id = ANY(%s::uuid[]) AND status <> 'resolved' AND NOT EXISTS (SELECT FROM log_stream AS told"
    " WHERE told.stream = 'alert/' || alert.id AND told.version = alert.version"
    " AND (told.epoch, told.txid, told.seq) > (%s, %s::xid8, %s))"
)


def expire_alerts(ids: Sequence[str], resolved_at: datetime, position: Position, context: Context) -> int:
    """A person resolved these alerts at a time, which is this position in the log; how many are resolved by it.

    An alert that was reported since goes on. What is sent again later than `SETTLED` from `resolved_at` fires anew. In
    the caller's transaction, which holds the alerts until it ends. Raises StreamVersionError.
    """
    batch = Batch(database.now(), rows.existing(sorted(ids), hold=True), held=True)
    # Read again now that they are held: one may have changed since.
    place = (position.epoch, str(position.txid), position.seq)
    over = rows.current_alerts(_SETTLES, (list(ids), *place))
    for one in over:
        by = By(one.integration, one.endpoint)
        batch.change(one.id, one.alert, "settled", by, context, settled_until=resolved_at + SETTLED)
    batch.write()
    return len(over)
