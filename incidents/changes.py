"""Changes that were told of shortly before a ticket began, about something that the ticket is about."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from incidents import queries
from ingest.queries import ReportedChange, changes, names_of_changed

BEFORE = timedelta(hours=24)
MOST = 20
"""Changes shown on a ticket."""
MOST_ALERTS = 50
"""Alerts of a ticket whose labels say what it is about."""


def changes_before(reference: str) -> list[ReportedChange]:
    """The latest changes about a ticket's component, or about what its alerts name, from a day before it began until
    it was resolved. Raises NoSuchIncident.
    """
    it = queries.get(reference).incident
    alerts, _ = queries.members(reference, MOST_ALERTS)
    labels = [("component", name) for name in it.cause]
    labels += [("component", one.alert.component or "") for one in alerts]
    labels += [label for one in alerts for label in one.alert.labels.items()]
    labels += it.labels.items()
    names = names_of_changed(labels)
    if not names:
        return []
    began = min([it.opened_at, *([it.failing_since] if it.failing_since else [])])
    return changes(began - BEFORE, it.resolved_at or timezone.now(), names, MOST)
