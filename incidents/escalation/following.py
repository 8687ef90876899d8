"""The timers of escalations, from the events of tickets: in the transaction that records them, so that no ticket is
ever open without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from incidents.domain.escalation import CONCERNS, Escalation, as_json, escalation_from, follow
from incidents.domain.evolve import evolve
from incidents.escalation.models import EscalationRow
from incidents.projections.models import IncidentRow
from incidents.projections.parts import Change
from incidents.projections.store import loaded, stream_of
from incidents.projections.together import upsert
from ingest.queries import read_stream


def project(changes: Sequence[Change]) -> None:
    """Brings the escalations of tickets up to their newest events; most events change nothing about one."""
    about = [change for change in changes if any(event.type in CONCERNS for event in change.events)]
    asked = [change.after.id for change in about if change.before is not None]
    rows = EscalationRow.objects.filter(incident__pk__in=asked).values_list("pk", "state") if asked else ()
    known = {str(pk): escalation_from(state) for pk, state in rows}
    # Updated in place also by a rebuild, as the ticket's own row is.
    followed = [_followed(change, known.get(change.after.id)) for change in about]
    upsert(EscalationRow, followed, ("incident_id",))


def _followed(change: Change, known: Escalation | None) -> dict[str, Any]:
    """The columns of its EscalationRow."""
    state, events, version = change.before, change.events, 0
    if known is None and state is not None:
        # A ticket that is older than escalations: its own events say how it stands.
        state, events = None, read_stream(stream_of(change.after.id))
    for event in events:
        state = evolve(state, event)
        known = follow(known, state, event)
        version = event.version if event.type in CONCERNS else version
    assert known is not None, "a ticket's first event opens it"
    return {
        "incident_id": change.after.id,
        "version": version,
        "phase": known.phase,
        "due_at": known.due_at,
        "state": as_json(known),
    }


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
    project([Change(None, read_stream(stream_of(incident_id)), loaded(row))])
    return True
