"""Proposals of an incident: those that wait for a person, and those that were decided."""

from __future__ import annotations

from typing import Final

from incidents.domain.incident.proposals import ACCEPTED, DECLINED
from incidents.domain.incident.state import Incident
from incidents.domain.proposals import Proposal
from incidents.incident.models import IncidentRow, TimelineEntry
from incidents.incident.projection import state_of

MOST_SHOWN: Final = 5


def decided_proposals(incident_id: str) -> list[TimelineEntry]:
    """The timeline entries of those that were accepted or declined, oldest first."""
    return list(
        TimelineEntry.objects.filter(incident__pk=incident_id, type__in=(ACCEPTED, DECLINED)).order_by(
            "version"
        )
    )


def open_proposals(most: int = MOST_SHOWN) -> tuple[list[tuple[Incident, Proposal]], int]:
    """The proposals that wait for a person, those of the newest incidents first, and how many incidents have any."""
    waiting = IncidentRow.objects.filter(proposals__isnull=False).order_by("-number")
    rows = list(waiting[: most + 1])
    found = [(state, one) for state in map(state_of, rows[:most]) for one in state.proposals]
    return found, waiting.count() if len(rows) > most else len(rows)
