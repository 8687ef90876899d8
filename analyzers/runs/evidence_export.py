"""Evidence files of recorded runs. What they hold and how they are checked: `analyzers.runs.evidence_file`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings

from analyzers.runs.evidence_file import (
    FORMAT,
    MOST_JUDGED,
    EvidenceFile,
    Judged,
    PastWindow,
    Subject,
    public_text,
    sign,
    signing_key,
)
from analyzers.runs.execution import RECORDED
from analyzers.runs.models import Run, State, StoredVerdict, StoredWindow
from ingest.commands import seal_log
from ingest.queries import UncoveredEventError, prove_event, read_stream, rfc3339


class EvidenceExportError(Exception):
    """There is nothing to export, or not yet; the text is one sentence."""


def evidence_key() -> str:
    """The public key that evidence files of this installation are signed with. Raises EvidenceExportError."""
    if not settings.SECRET_KEY_IS_STORED:
        raise EvidenceExportError(
            "Evidence cannot be signed: the secret key ends with this process. Set DOSSIER_SECRET_KEY."
        )
    return public_text(signing_key(settings.SECRET_KEY))


def evidence_file(subject: Subject, run_ids: Sequence[UUID], now: datetime) -> bytes:
    """The signed evidence of these runs, in this order. Seals what the log has not sealed yet.

    Raises EvidenceExportError where no run came to a verdict, or where the log cannot be sealed that far yet.
    """
    evidence_key()
    done = Run.objects.filter(pk__in=run_ids, state=State.DONE, repeats=None).in_bulk()
    runs = [done[one] for one in dict.fromkeys(run_ids) if one in done][:MOST_JUDGED]
    if not runs:
        raise EvidenceExportError(
            "No verdict of an analyzer is attached to this incident: nothing to export."
        )
    seal_log()
    try:
        judged = [_judged(run) for run in runs]
    except UncoveredEventError:
        raise EvidenceExportError("The newest verdict is not sealed yet: export again in a minute.") from None
    hashes = {digest for run in runs for digest in (run.window_hash, *(past["hash"] for past in run.history))}
    stored = StoredWindow.objects.filter(hash__in=hashes).order_by("hash")
    file = EvidenceFile(FORMAT, rfc3339(now), subject, judged, {one.hash: bytes(one.body) for one in stored})
    return sign(file, signing_key(settings.SECRET_KEY))


def _judged(run: Run) -> Judged:
    recorded = next(event for event in read_stream(run.stream) if event.type == RECORDED.name)
    verdict = StoredVerdict.objects.filter(pk=run.verdict_hash).first()
    return Judged(
        prove_event(run.stream, recorded.version),
        None if verdict is None else bytes(verdict.body).decode(),
        [PastWindow(past["end"], past["hash"]) for past in run.history],
    )
