"""What incidents are told of the calls about them: events, recorded together before a transaction ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.db import models

from incidents.domain.incident.notified import NoteNotified, Outcome
from incidents.incident.bulk_sql import columns, update
from incidents.incident.models import IncidentRow
from incidents.incident.repository import LockedCommand, record_together
from incidents.notifications.models import Notification, NotificationDelivery
from ingest.queries import Context

ACTOR = "system:delivery"
log = structlog.get_logger("deliver")


class Notes:
    """Collected where something becomes of a call; `record` locks all their incidents, in the order of their
    numbers.
    """

    def __init__(self) -> None:
        self._of_tickets: dict[UUID, list[tuple[Notification, NoteNotified]]] = {}

    def add(
        self,
        row: Notification,
        one: NotificationDelivery | None,
        what: Outcome,
        why: str,
        tickets: int = 1,
        until: datetime | None = None,
    ) -> None:
        """One event on the incident, after those that were added for it before."""
        command = NoteNotified(
            notification=row.key,
            person=row.person,
            method=None if one is None else one.label,
            kind=None if one is None else one.kind,
            outcome=what,
            why=why,
            reason=row.why,
            attempt=0 if one is None else one.attempts,
            tickets=tickets,
            until=until,
        )
        self._of_tickets.setdefault(row.incident, []).append((row, command))

    def record(self) -> None:
        """In the caller's transaction. Raises StreamVersionError: try all of it again."""
        left = {pk: list(reversed(found)) for pk, found in self._of_tickets.items()}
        tickets = IncidentRow.objects.filter(pk__in=left).order_by("number")
        rows = list(tickets.select_for_update())
        for lost in left.keys() - {row.pk for row in rows}:
            log.warning("no such incident", notification=left.pop(lost)[0][0].key, incident=str(lost))
        while rows:
            taken = [(row, *left[row.pk].pop()) for row in rows]
            record_together([LockedCommand(row, command, _context(call)) for row, call, command in taken])
            further = [pk for pk, found in left.items() if found]
            rows = list(tickets.filter(pk__in=further)) if further else []
        self._of_tickets.clear()


def _context(call: Notification) -> Context:
    return Context(ACTOR, cause=call.cause, trace=call.trace)


def save_locked(rows: Sequence[models.Model], names: Sequence[str]) -> None:
    """Write some columns of rows of one model, which the caller has locked, with one statement."""
    if rows:
        update(type(rows[0]), [columns(row, ("id", *names)) for row in rows], "id")
