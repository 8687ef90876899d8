"""State of the failure of listed incidents, now or as of a moment: at most one query a region, none a row."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone

from analyzers.queries import judged_until
from incidents.domain.incident.failure import Failure, failure_of
from incidents.domain.incident.state import Incident
from incidents.incident.view import View
from ingest.queries import Position, moment_of


def failures_of(views: Iterable[View], as_of: Position | None = None) -> dict[str, Failure]:
    """By id of the incident."""
    shown = list(views)
    now = moment(as_of)
    needed = {one.incident.region for one in shown if depends_on_time(one.incident)}
    judged = {region: judged_until(region, now) for region in needed if region is not None}
    return {
        one.incident.id: failure_of(one.incident, now, judged.get(one.incident.region or "")) for one in shown
    }


def depends_on_time(incident: Incident) -> bool:
    """Whether the state of its failure may change without an event of the incident: windows are judged, or are not."""
    return incident.last_blamed is not None and incident.state != "resolved" and not incident.firing


def failure_shown(view: View, as_of: Position | None = None) -> Failure:
    return failures_of([view], as_of)[view.incident.id]


def moment(as_of: Position | None) -> datetime:
    """The time of a log position, the present for None."""
    return (None if as_of is None else moment_of(as_of)) or timezone.now()
