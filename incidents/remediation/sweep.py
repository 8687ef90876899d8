"""The sequential test of returned parts, run by `manage.py deliver` as rows come. Its verdicts are events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import OperationalError, transaction
from django.db.models import Q

from incidents.domain.incident.commands import AutoResolve, JudgeRepair
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.proof import judge
from incidents.domain.remediation.state import Remediation
from incidents.incident.models import IncidentRow
from incidents.incident.projection import state_of
from incidents.incident.repository import record
from incidents.incident.telemetry_horizon import known_until
from incidents.remediation.evidence import sources_of
from ingest.commands import retrying
from ingest.queries import Context, now_utc

ACTOR: Final = "system:incidents"
EVERY: Final = 15.0
"""Seconds between two looks of one process at the returned parts."""
LONGEST_WATCH: Final = timedelta(days=60)
"""After so long without a verdict the part is left unproved."""
NEWS: Final = 1.5
"""Without a verdict the figures are recorded once the rows have grown by this factor: the log stays short."""

log = structlog.get_logger("remediation")
_looked: dict[str, float] = {}


def sweep(_: datetime) -> int:
    """Judges each returned part that has no verdict yet; how many events that made."""
    if time.monotonic() - _looked.get("sweep", -EVERY) < EVERY:
        return 0
    _looked["sweep"] = time.monotonic()
    return judge_returned(now_utc())


def judge_returned(now: datetime) -> int:
    """The same at once, at a time. Resolves what a demanded proof ends."""
    watched = IncidentRow.objects.filter(remediation__isnull=False, remediation__stage="returned")
    found = 0
    over = Q(state="resolved", remediation__proof__verdict="repaired")
    for row in watched.exclude(over).order_by("number"):
        state = state_of(row)
        remediation = state.remediation
        if remediation is None or remediation.returned_at is None:
            continue
        if remediation.is_watched and now - remediation.returned_at <= LONGEST_WATCH:
            found += _judged(state, remediation, now)
        elif remediation.resolves and state.state != "resolved":
            found += _resolved(state, remediation, now)
    return found


def _resolved(state: Incident, remediation: Remediation, now: datetime) -> int:
    """None while something still blames the part or fires: see `left_open`."""
    why = f"{remediation.part or remediation.node} has proof of repair, and no analyzer or alert blames it any more"
    command = AutoResolve(why, known_until(state.region, now))
    return retrying(lambda: _record(state.id, command))


def _judged(state: Incident, remediation: Remediation, now: datetime) -> int:
    assert remediation.returned_at is not None
    try:
        proof = judge(sources_of(state, remediation, now), remediation.returned_at)
    except OperationalError as error:
        log.warning("returned part not judged", incident=state.number, error=str(error).strip())
        return 0
    if not is_news(remediation.proof, proof):
        return 0
    return retrying(lambda: _record(state.id, JudgeRepair(remediation.request, proof)))


def is_news(before: Mapping[str, Any] | None, proof: Mapping[str, Any]) -> bool:
    """Whether a verdict is to be recorded: the first, another one, or many more rows than at the last."""
    if before is None or before["verdict"] != proof["verdict"]:
        return True
    rows, known = int(proof["rows"]), int(before["rows"])
    return rows > known and rows >= NEWS * known


@transaction.atomic
def _record(incident_id: str, command: JudgeRepair | AutoResolve) -> int:
    return len(record(incident_id, command, Context(ACTOR)).events)
