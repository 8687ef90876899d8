"""Findings of planned work: an incident that blames what is worked on says so, once for each time of the window."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from incidents.domain.incident import commands as c
from incidents.domain.incident.state import Incident
from incidents.domain.time import rfc3339
from incidents.incident.models import TimelineEntry
from incidents.incident.repository import record
from incidents.suppression.models import MaintenanceWindow
from incidents.suppression.suppressor import windows_in_force
from ingest.queries import Context


def note_planned(incident: Incident, at: datetime, context: Context) -> None:
    """Note the windows in force whose patterns fit what the incident blames."""
    for one in windows_in_force(at):
        name = next((name for name in sorted(incident.cause) if one.window.names(name)), None)
        if name is None:
            continue
        noted = TimelineEntry.objects.filter(incident__pk=incident.id, type="incident.maintenance_noted")
        until = rfc3339(one.span.ends_at)
        if not noted.filter(body__window=one.window.slug, body__until=until).exists():
            record(
                incident.id, c.RecordMaintenance(one.window.slug, name, one.span.ends_at, one.why), context
            )


def windows_on(service: str) -> list[str]:
    """Planned work on a service that is not over, in words."""
    going_on = Q(ends_at__gt=timezone.now()) | ~Q(rule="")
    found = MaintenanceWindow.objects.filter(going_on, services__contains=[service])
    return [f"the maintenance window {slug}" for slug in found.values_list("slug", flat=True)]
