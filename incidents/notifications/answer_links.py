"""The link of a message by which its reader answers without signing in: good once, for one person and one incident.

The signed part is the id of a notification and the time; who and about what stands in the notification. That a link was
used or refused is on the audit, and what was done on the incident's timeline under the person's name.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.signing import BadSignature, SignatureExpired, TimestampSigner
from django.db import transaction

from incidents.notifications.models import OVER, Notification
from incidents.security.refusals import record_refusal
from ingest.commands import record_configuration
from ingest.queries import Context, configured

LASTS: Final = timedelta(hours=24)
KIND: Final = "answer_link"
"""Kind on the audit."""
_USED: Final = "used"
_TWICE: Final = "This link was already used: each link works once."


class LinkRefusedError(Exception):
    """The link does nothing: `status` for HTTP, and why as a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def link_of(row: Notification) -> str:
    """The address of a call's link; empty where no person is called, or nothing is left to be answered."""
    if row.person is None or row.about == OVER:
        return ""
    return f"{settings.PUBLIC_URL}/answer/{_signer().sign(row.pk.hex)}"


def open_link(token: str, *, is_answer: bool) -> Notification:
    """The call whose link has this token. Raises LinkRefusedError, which the audit has once for each link and reason;
    an answer (`is_answer`) by a forged link, or by that of a deleted message, once an hour. Looking at a good or a used
    one changes nothing, for scanners of mail look, too."""
    try:
        id_ = _signer().unsign(token)
    except BadSignature:
        if is_answer:
            record_refusal(KIND, "forged", "forged", "system:answer_links")
        raise LinkRefusedError(
            404, "This link is incomplete, or from another Dossier. Copy the whole link from the message."
        ) from None
    row = Notification.objects.filter(pk=uuid.UUID(id_)).first()
    if row is None or row.person is None:
        if is_answer:
            record_refusal(KIND, "deleted", "message deleted", "system:answer_links")
        raise LinkRefusedError(410, "The message of this link has been deleted.")
    if _is_used(row):
        if is_answer:
            _record(row, "repeated", "")
        raise LinkRefusedError(410, _TWICE)
    try:
        _signer().unsign(token, max_age=LASTS)
    except SignatureExpired:
        _record(row, "expired", "")
        hours = LASTS.total_seconds() / 3600
        raise LinkRefusedError(410, f"This link has expired: it was good for {hours:g} hours.") from None
    if not get_user_model().objects.filter(username=row.person, is_active=True).exists():
        _record(row, "no active account", "")
        raise LinkRefusedError(403, f"The account {row.person} is not active.")
    return row


def use(row: Notification, action: str) -> None:
    """Record that its link was used, in the transaction of what it does. Raises LinkRefusedError where it was before,
    StreamVersionError where somebody else uses it at this moment."""
    if _is_used(row):
        raise LinkRefusedError(410, _TWICE)
    _record(row, _USED, action)


def _is_used(row: Notification) -> bool:
    return any((event.body["after"] or {}).get("outcome") == _USED for event in configured(KIND, str(row.pk)))


@transaction.atomic
def _record(row: Notification, outcome: str, action: str) -> None:
    known = configured(KIND, str(row.pk))
    before = known[-1].body["after"] if known else None
    after = {"person": row.person, "incident": str(row.incident), "outcome": outcome, "action": action}
    record_configuration(KIND, str(row.pk), before, after, Context(f"user:{row.person}"))


def _signer() -> TimestampSigner:
    """With a dot between its parts: programs that look for addresses end them at a colon."""
    return TimestampSigner(salt="incidents.answer_link", sep=".")
