"""Recording a theory of an incident with the result of its test, so that it can be read later as it was."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Final

from django.db import transaction

from incidents.domain.incident.commands import RecordTheory
from incidents.domain.theories import Hop, verdict_of
from incidents.domain.values import check_text, rfc3339
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import CommandResult, IncidentNotFoundError, record
from incidents.people.permissions import allow
from incidents.theories.queries import tested
from ingest.commands import retrying
from ingest.queries import (
    Context,
    watermark,
)

LONGEST_NOTE: Final = 2_000


def check_theory(incident_id: str, hops: Sequence[Hop], note: object, context: Context) -> CommandResult:
    """Tests a theory and records it with its result. Raises InvalidValueError, ForbiddenError,
    IncidentNotFoundError."""
    allow("comment", context, incident_id)
    text = check_text("note", note, LONGEST_NOTE)
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is None:
        raise IncidentNotFoundError(f"no incident {incident_id}")
    position = str(watermark())
    found = tested(state_of(row), hops)
    command = RecordTheory(
        str(uuid.uuid4()),
        verdict_of(found.hops),
        [one.as_json() for one in found.hops],
        text,
        {
            "run": found.run,
            "position": position,
            "topology_at": rfc3339(row.opened_at),
            "reaches_symptom": found.reaches,
            "measurement": found.measurement,
        },
    )
    return retrying(partial(_record, incident_id, command, context))


@transaction.atomic
def _record(incident_id: str, command: RecordTheory, context: Context) -> CommandResult:
    return record(incident_id, command, context)
