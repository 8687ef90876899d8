"""The evidence of an incident as one signed file, for those who have no access to this installation."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from analyzers.queries import EvidenceSubject
from analyzers.queries import evidence_file as signed_file
from incidents.domain.values import rfc3339
from incidents.queries import evidence, get


def evidence_file(reference: str, now: datetime) -> bytes:
    """The runs whose evidence the incident shows: of each analyzer the first and the latest.

    Raises IncidentNotFoundError, and EvidenceExportError where no verdict of an analyzer is attached.
    """
    found = get(reference).incident
    runs = [UUID(piece.finding["run"]) for piece in evidence(found.id) if piece.finding is not None]
    subject = EvidenceSubject(found.number, found.id, found.title, rfc3339(found.opened_at), found.component)
    return signed_file(subject, runs, now)
