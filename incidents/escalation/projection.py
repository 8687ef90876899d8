"""The timers of escalations, from the events of incidents: in the transaction that records them, so that no incident is
ever open without one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db import transaction

from incidents.domain.incident.escalation_engine import CONCERNS, Escalation, as_json, escalation_from, follow
from incidents.domain.incident.evolve import evolve
from incidents.escalation.models import EscalationRow
from incidents.incident.bulk_sql import upsert
from incidents.incident.models import IncidentRow
from incidents.incident.projection_parts import Change
from incidents.incident.repository import loaded, stream_of
from ingest.queries import read_stream


def project(changes: Sequence[Change]) -> None:
    """Brings the escalations of incidents up to their newest events; most events change nothing about one."""
    about = [change for change in changes if any(event.type in CONCERNS for event in change.events)]
    asked = [change.after.id for change in about if change.before is not None]
    rows = EscalationRow.objects.filter(incident__pk__in=asked).values_list("pk", "state") if asked else ()
    known = {str(pk): escalation_from(state) for pk, state in rows}
    # Updated in place also by a rebuild, as the incident's own row is.
    followed = [_followed(change, known.get(change.after.id)) for change in about]
    upsert(EscalationRow, followed, ("incident_id",))


def _followed(change: Change, known: Escalation | None) -> dict[str, Any]:
    """The columns of its EscalationRow."""
    state, events, version = change.before, change.events, 0
    if known is None and state is not None:
        # An incident that is older than escalations: its own events say how it stands.
        state, events = None, read_stream(stream_of(change.after.id))
    for event in events:
        state = evolve(state, event)
        known = follow(known, state, event)
        version = event.version if event.type in CONCERNS else version
    assert known is not None, "an incident's first event opens it"
    return {
        "incident_id": change.after.id,
        "version": version,
        "phase": known.phase,
        "due_at": known.due_at,
        "state": as_json(known),
    }


def missing_timers(most: int, but: Collection[str] = ()) -> list[str]:
    """Incidents that wait for somebody and have no row here: those that are older than escalations."""
    waiting = IncidentRow.objects.exclude(state="resolved").filter(escalation__isnull=True)
    others = waiting.exclude(pk__in=list(but)).order_by("number")
    return [str(pk) for pk in others.values_list("pk", flat=True)[:most]]


@transaction.atomic
def backfill_timers(ids: Sequence[str]) -> int:
    """The rows of incidents that had none; how many still had none."""
    rows = list(IncidentRow.objects.select_for_update().filter(pk__in=ids).order_by("number"))
    # Asked once they are locked: from here on nobody gives them one.
    have = set(EscalationRow.objects.filter(incident__pk__in=ids).values_list("incident_id", flat=True))
    changes = [
        Change(None, read_stream(stream_of(str(row.pk))), loaded(row)) for row in rows if row.pk not in have
    ]
    project(changes)
    return len(changes)
