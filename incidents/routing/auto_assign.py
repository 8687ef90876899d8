"""Incidents whose route says to follow suggestions: each is looked at once, soon after it was opened.

Which ones they are is written down where they are opened, so that a process that is killed loses none and hands none
over twice. Learning takes seconds: it is done before the transaction, which is as short as that of any hand-over.
"""

from __future__ import annotations

import threading
from datetime import datetime
from functools import partial
from typing import Final

from django.db import connection, transaction

from incidents.domain.incident.auto_assign import Suggested, heeded
from incidents.domain.incident.state import Incident
from incidents.incident.models import IncidentRow, PendingAutoAssign
from incidents.incident.projection import state_of
from incidents.incident.repository import loaded, record_on, stream_of
from incidents.teams.models import Team
from incidents.worker.sweeps import sweep_once
from ingest.commands import Backoff, in_halves, retrying
from ingest.queries import Context, now_utc, read_stream

ACTOR = "system:incidents"
AT_ONCE = 100
EVERY: Final = 1.0
"""Seconds between looks when nothing was due: whoever is called first should be of the right team."""
PAUSE = 60.0
"""Seconds for which an incident that failed is passed over."""
_PASSED_OVER = Backoff("heeding", PAUSE)


def auto_assign_due(_: datetime) -> int:
    """Look at those that wait; how many. Raises what the first raised that failed, after all others have gone on."""
    failed: dict[str, Exception] = {}
    due = PendingAutoAssign.objects.exclude(pk__in=_PASSED_OVER.ids()).order_by("pk")
    # One by one: what one of them raises must not have the others learned for anew.
    did = sum(
        in_halves([str(pk)], lambda ids: _auto_assign(ids[0]), failed)
        for pk in due.values_list("pk", flat=True)[:AT_ONCE]
    )
    _PASSED_OVER.add(failed)
    return did


def _auto_assign(id_: str) -> int:
    row = IncidentRow.objects.filter(pk=id_).first()
    suggested = None if row is None else _suggested(state_of(row))
    return retrying(partial(_decide, id_, suggested))


def _suggested(incident: Incident) -> Suggested | None:
    # A process whose routes follow no suggestion does not carry the hundred megabytes of learning.
    from incidents.similarity.similar import suggested_team

    found = suggested_team(incident)
    if found.team is None or found.probability is None:
        return None
    return Suggested(found.team, found.probability, found.record.suggested, found.record.right)


@transaction.atomic
def _decide(id_: str, suggested: Suggested | None) -> int:
    # Locked before it is asked whether the incident still waits: of two processes the second finds that it does not.
    row = IncidentRow.objects.select_for_update().filter(pk=id_).first()
    due = PendingAutoAssign.objects.filter(pk=id_).first()
    if due is None:
        return 0
    if row is not None and suggested is not None:
        past = read_stream(stream_of(id_))
        teams = set(Team.objects.values_list("slug", flat=True))
        command = heeded(loaded(row), past, suggested, due.route, teams)
        if command is not None:
            record_on(row, command, Context(ACTOR, past[0].id))
    due.delete()
    return 1


def run(stop: threading.Event) -> None:
    """Until `stop` is set; finishes the incident at hand."""
    while not stop.is_set():
        stop.wait(0.0 if sweep_once("suggested teams", auto_assign_due, now_utc()) else EVERY)
    connection.close()
