"""Incidents of the past, recorded with their own times: what another system kept, or what the demo's last week was.

The log says when each event happened and when it was recorded; both stay true. Nobody is called for a past incident.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from django.db import transaction

from incidents.domain.incident import commands as c
from incidents.domain.incident.commands import Report
from incidents.domain.incident.finding import Finding, subject_of
from incidents.domain.incident.state import Incident
from incidents.domain.routing.rules import route
from incidents.domain.values import InvalidValueError
from incidents.incident.repository import next_number, record, record_opening
from incidents.teams.models import routing_table
from ingest.commands import retrying
from ingest.queries import Context, now_utc, ordered_id

OF_THE_PAST: Final = "it is an incident of the past"
WHY: Final = "a run of the past named it"


@dataclass(frozen=True, slots=True)
class PastIncident:
    """An incident, what opened it, and what was done with it: commands and their times, in order, after `opened_at`."""

    opened_by: Report | Finding
    opened_at: datetime
    steps: Sequence[tuple[datetime, c.Command]] = ()


def record_past(incident: PastIncident, context: Context) -> Incident:
    """The whole of it or nothing. Raises InvalidValueError where times are not in order, CommandRefusedError for a
    step that does not fit."""
    times = [incident.opened_at, *(at for at, _ in incident.steps)]
    if times != sorted(times):
        raise InvalidValueError("steps", "must be in order of time, after the incident was opened")
    return retrying(partial(_record, incident, context))


@transaction.atomic
def _record(incident: PastIncident, context: Context) -> Incident:
    state = record_opening(_opening(incident), context, incident.opened_at).incident
    for at, command in incident.steps:
        state = record(state.id, command, context, at).incident
    if state.state != "resolved":
        state = record(state.id, c.SkipEscalation(OF_THE_PAST), context, state.opened_at).incident
    return state


def _opening(incident: PastIncident) -> c.Open | c.OpenForFinding:
    id_, number, opened_by = str(ordered_id(now_utc())), next_number(), incident.opened_by
    if isinstance(opened_by, Report):
        return c.Open(id_, number, route(opened_by.subject(incident.opened_at), routing_table()), opened_by)
    routing = route(subject_of(opened_by, incident.opened_at), routing_table(), opened_by.ambiguous_with)
    # Its own key, so that what fails now never meets it.
    return c.OpenForFinding(id_, number, routing, opened_by, WHY, f"{opened_by.dedup_key}#{number}")
