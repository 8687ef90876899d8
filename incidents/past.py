"""Tickets of the past, recorded with their own times: what another system kept, or what the demo's last week was.

The log says when each event happened and when it was recorded; both stay true. Nobody is called for a past ticket.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from django.db import transaction

from incidents.catalog.models import routing_table
from incidents.domain import commands as c
from incidents.domain.commands import Report
from incidents.domain.incident import Incident
from incidents.domain.routing import route
from incidents.domain.values import Invalid
from incidents.projections.store import next_number, record, record_opening
from ingest.commands import retrying
from ingest.queries import Context

NOBODY: Final = "it is a ticket of the past"


@dataclass(frozen=True, slots=True)
class PastTicket:
    """A ticket and what was done with it: each step a command and its time, in order, after `opened_at`."""

    report: Report
    opened_at: datetime
    steps: Sequence[tuple[datetime, c.Command]] = ()


def record_past(ticket: PastTicket, context: Context) -> Incident:
    """The whole of it or nothing. Raises Invalid where times are not in order, Refused for a step that does not fit."""
    times = [ticket.opened_at, *(at for at, _ in ticket.steps)]
    if times != sorted(times):
        raise Invalid("steps", "must be in order of time, after the ticket was opened")
    return retrying(partial(_record, ticket, context))


@transaction.atomic
def _record(ticket: PastTicket, context: Context) -> Incident:
    routing = route(ticket.report.subject(ticket.opened_at), routing_table())
    opening = c.Open(str(uuid.uuid4()), next_number(), routing, ticket.report)
    state = record_opening(opening, context, ticket.opened_at).incident
    for at, command in ticket.steps:
        state = record(state.id, command, context, at).incident
    if state.state != "resolved":
        state = record(state.id, c.CallNobody(NOBODY), context, state.opened_at).incident
    return state
