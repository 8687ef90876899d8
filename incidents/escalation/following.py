"""The timers of escalations, from the events of tickets: in the transaction that records them, so that no ticket is
ever open without one."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from incidents.domain.escalation import CONCERNS, as_json, escalation_from, follow
from incidents.domain.evolve import evolve
from incidents.domain.incident import Incident
from incidents.escalation.models import EscalationRow
from incidents.projections.models import IncidentRow
from incidents.projections.store import loaded, stream_of
from ingest.queries import Event, read_stream


def project(before: Incident | None, events: Sequence[Event], after: Incident) -> None:
    """Brings the escalation of a ticket up to its newest events; most change nothing about it."""
    if not any(event.type in CONCERNS for event in events):
        return
    known, state = None, before
    if before is not None:
        row = EscalationRow.objects.filter(incident__pk=after.id).values_list("state", flat=True).first()
        if row is None:
            # A ticket that is older than escalations: its own events say how it stands.
            state, events = None, read_stream(stream_of(after.id))
        else:
            known = escalation_from(row)
    version = 0
    for event in events:
        state = evolve(state, event)
        known = follow(known, state, event)
        version = event.version if event.type in CONCERNS else version
    assert known is not None, "a ticket's first event opens it"
    columns = {"version": version, "phase": known.phase, "due_at": known.due_at, "state": as_json(known)}
    # Updated in place also by a rebuild, as the ticket's own row is.
    if not EscalationRow.objects.filter(incident__pk=after.id).update(**columns):
        EscalationRow.objects.create(incident_id=after.id, **columns)


def overlooked(most: int) -> list[str]:
    """Tickets that wait for somebody and have no row here: those that are older than escalations."""
    waiting = IncidentRow.objects.exclude(state="resolved").filter(escalation__isnull=True)
    return [str(pk) for pk in waiting.order_by("number").values_list("pk", flat=True)[:most]]


@transaction.atomic
def make_up(incident_id: str) -> bool:
    """The row of a ticket that had none; whether it still had none."""
    row = IncidentRow.objects.select_for_update().filter(pk=incident_id).first()
    if row is None or EscalationRow.objects.filter(incident__pk=incident_id).exists():
        return False
    project(None, read_stream(stream_of(incident_id)), loaded(row))
    return True
