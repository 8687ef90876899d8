"""Changes that were told of shortly before an incident began, about something that the incident is about."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from incidents import queries
from incidents.domain.incident.state import Incident
from ingest.queries import Position, ReportedChange, changes, moment_of, names_of_changed

BEFORE = timedelta(hours=24)
MOST = 20
"""Changes shown on an incident."""
MOST_ALERTS = 50
"""Alerts of an incident whose labels say what it is about."""


def changes_before(it: Incident, as_of: Position | None = None) -> list[ReportedChange]:
    """The latest changes about an incident's component, or about what its alerts name, from a day before it began until
    it was resolved; with `as_of`, at which it was as given, those that were known then.
    """
    alerts, _ = queries.members(it.id, MOST_ALERTS, as_of=as_of)
    labels = [("component", name) for name in it.cause]
    labels += [("component", one.alert.component or "") for one in alerts]
    labels += [label for one in alerts for label in one.alert.labels.items()]
    labels += it.labels.items()
    names = names_of_changed(labels)
    if not names:
        return []
    began = min([it.opened_at, *([it.failing_since] if it.failing_since else [])])
    until = it.resolved_at or timezone.now()
    known_by = None if as_of is None else moment_of(as_of)
    return changes(began - BEFORE, until if known_by is None else min(until, known_by), names, MOST, known_by)
