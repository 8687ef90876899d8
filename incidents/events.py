"""The event types of incidents. Names are permanent; `tests/golden/events` holds one of each."""

from __future__ import annotations

from incidents.domain.incident.evolve import EVENT_TYPES
from ingest.commands import EventType, register_event_type
from ingest.queries import Body


def _joined_alone(body: Body) -> Body:
    """Schema 1 knew one analyzer an incident: what a leading finding said was what the incident said."""
    finding, leads = body["finding"], body["leads"]
    alone = {
        "confidence": finding["score"] if leads else None,
        "analyzer": finding["analyzer"] if leads else None,
        "title": None,
        "agreeing": [finding["analyzer"]] if leads else [],
    }
    return {**body, **alone}


def _quiet_alone(body: Body) -> Body:
    """Schema 1: a schedule that no longer blamed an incident changed nothing that the incident said."""
    return {**body, "confidence": None, "analyzer": None, "title": None, "verdict": None, "agreeing": []}


def _known_then(body: Body) -> Body:
    """Schema 1 took telemetry for live: what had failed by the time of the resolution was known."""
    return {**body, "known_until": {}}


def _comment_alone(body: Body) -> Body:
    """Schema 1: nothing could be attached to a comment."""
    return {**body, "links": []}


def _taken_back_by_a_person(body: Body) -> Body:
    """Schema 1: only people took acknowledgements back, and gave no reason."""
    return {**body, "why": ""}


def _routed_by_team(body: Body) -> Body:
    """Schema 1: a route decided the team and nothing else."""
    routing = {**body["routing"], "path": []}
    grouping = {"key": None, "by": None, "window_seconds": None}
    return {**body, "routing": routing, "service": None, "policy": None, "grouping": grouping}


_UPCASTERS = {
    "incident.commented": {1: _comment_alone},
    "incident.finding_joined": {1: _joined_alone},
    "incident.finding_cleared": {1: _quiet_alone},
    "incident.opened": {1: _routed_by_team},
    "incident.resolved": {1: _known_then},
    "incident.unacknowledged": {1: _taken_back_by_a_person},
}


def register() -> None:
    for name in EVENT_TYPES:
        upcasters = _UPCASTERS.get(name, {})
        register_event_type(EventType(name, len(upcasters) + 1, upcasters))
