"""What Prometheus learns of incidents that move between teams and people: counted when the transaction has committed.

Rebuilds count nothing: they tell again what was counted when it happened.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from prometheus_client import Counter, Histogram

from incidents.domain.incident.state import Incident
from ingest.queries import Event

MOVES = Counter(
    "dossier_incident_moves",
    "Hand-overs, bounces and hand-overs taken back, committed by this process",
    ["kind", "source", "target"],
)
TEAM_SECONDS = Counter(
    "dossier_incident_team_seconds",
    "Time that incidents spent with a team, counted when they left it",
    ["team"],
)
OWNER_SECONDS = Counter(
    "dossier_incident_owner_seconds",
    "Time that incidents were owned by somebody, counted when they were no more",
    ["owner"],
)
TO_TEAM = Histogram(
    "dossier_incident_seconds_to_team",
    "From the opening of an incident until it came to the team that resolved it, to stay",
    buckets=(60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600),
)

_MOVES = {
    "incident.reassigned": "hand_over",
    "incident.reassignment_rejected": "bounce",
    "incident.reassignment_undone": "undo",
}


def measure(before: Incident | None, events: Iterable[Event], after: Incident) -> None:
    """Counts once the transaction that recorded `events` has committed."""
    told = list(events)
    transaction.on_commit(lambda: _count(before, told, after), robust=True)


def _count(before: Incident | None, events: Iterable[Event], after: Incident) -> None:
    for event in events:
        if event.type in _MOVES:
            MOVES.labels(_MOVES[event.type], event.body["from"], event.body["to"]).inc()
    for counter, was, spent in (
        (TEAM_SECONDS, {} if before is None else before.team_seconds, after.team_seconds),
        (OWNER_SECONDS, {} if before is None else before.owner_seconds, after.owner_seconds),
    ):
        for name, seconds in spent.items():
            if seconds > was.get(name, 0.0):
                counter.labels(name).inc(seconds - was.get(name, 0.0))
    if after.seconds_to_team is not None and (before is None or before.seconds_to_team is None):
        TO_TEAM.observe(after.seconds_to_team)
