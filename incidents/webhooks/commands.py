"""Commands on webhooks. Every change of what they are is recorded; secrets never are."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction

from incidents.domain.values import rfc3339
from incidents.domain.webhooks import payload
from incidents.security import encryption
from incidents.teams.models import Team
from incidents.teams.references import hold_names
from incidents.webhooks.deliveries import WebhookDelivery
from incidents.webhooks.models import Webhook
from incidents.webhooks.send import Address, Try, send
from ingest.commands import record_configuration
from ingest.queries import Context, Position, watermark

KIND = "webhook"
MOST = 50
PREFIX = "whsec_"
OVERLAP = timedelta(days=1)
"""For how long the secret before signs, too, after a rotation."""


class TooManyWebhooksError(ValueError):
    """Each webhook has threads of its own."""


class TeamDeletedError(ValueError):
    """A team that it names was removed meanwhile."""


class ReplayAheadError(ValueError):
    """A replay can only lead back."""


def webhook_as_json(webhook: Webhook) -> dict[str, Any]:
    """A webhook as the log keeps it. The path of its URL may be as good as a password: only a digest tells changes."""
    parts = urlsplit(webhook.url)
    digest = hashlib.sha256(webhook.url.encode()).hexdigest()[:8]
    return {
        "name": webhook.name,
        "url": f"{parts.scheme}://{parts.netloc}/… ({digest})",
        "teams": list(webhook.teams),
        "severities": list(webhook.severities),
        "types": list(webhook.types),
        "active": webhook.active,
        "disabled_reason": webhook.disabled_reason,
        "secret": "set",
    }


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


@transaction.atomic
def create(fields: Mapping[str, Any], context: Context) -> tuple[Webhook, str]:
    """A webhook that receives events from now on, and its secret, to be shown once. Raises TooManyWebhooksError,
    TeamDeletedError."""
    _hold(fields)
    if Webhook.objects.count() >= MOST:
        raise TooManyWebhooksError(f"limit of {MOST} webhooks reached")
    secret = new_secret()
    row = Webhook.objects.create(**fields, secret=encryption.encrypt(secret), position=str(watermark()))
    record_configuration(KIND, row.name, None, webhook_as_json(row), context)
    return row, secret


@transaction.atomic
def change(webhook: Webhook, fields: Mapping[str, Any], context: Context) -> Webhook:
    """Switched on, it goes on from where it stood, as good as new. Raises TeamDeletedError."""
    _hold(fields)
    row = _locked(webhook)
    before = webhook_as_json(row)
    for name, value in fields.items():
        setattr(row, name, value)
    if fields.get("active"):
        resume(row)
    elif "active" in fields and before["active"]:
        row.disabled_reason = "switched off by hand"
    row.save()
    record_configuration(KIND, row.name, before, webhook_as_json(row), context)
    return row


@transaction.atomic
def remove(webhook: Webhook, context: Context) -> None:
    row = _locked(webhook)
    record_configuration(KIND, row.name, webhook_as_json(row), None, context)
    row.delete()


@transaction.atomic
def rotate(webhook: Webhook, context: Context, overlap: timedelta = OVERLAP) -> str:
    """A new secret, to be shown once; the one before signs beside it for `overlap`."""
    row = _locked(webhook)
    before, secret = webhook_as_json(row), new_secret()
    row.previous_secret, row.previous_until = row.secret, datetime.now(UTC) + overlap
    row.secret = encryption.encrypt(secret)
    row.save(update_fields=["secret", "previous_secret", "previous_until"])
    after = {**webhook_as_json(row), "secret": f"new, the one before until {rfc3339(row.previous_until)}"}
    record_configuration(KIND, row.name, before, after, context)
    return secret


@transaction.atomic
def replay(webhook: Webhook, since: Position, context: Context) -> Webhook:
    """Tell everything after a position again. Raises ReplayAheadError for one that it has not come to."""
    row = _locked(webhook)
    before = {**webhook_as_json(row), "position": row.position}
    if since > row.place:
        raise ReplayAheadError("it has not come so far; a replay leads back")
    row.replayed_upto = max(row.replayed_upto, row.position)
    row.position = str(since)
    row.retry_at = None
    row.save(update_fields=["replayed_upto", "position", "retry_at"])
    row.retries.filter(position__gt=row.position).delete()
    row.dead_letters.filter(position__gt=row.position).delete()
    record_configuration(KIND, row.name, before, {**webhook_as_json(row), "position": row.position}, context)
    return row


def resume(webhook: Webhook) -> None:
    """As good as new, from where it stood; the caller saves."""
    webhook.active, webhook.disabled_reason = True, ""
    webhook.failures, webhook.failing_since, webhook.retry_at = 0, None, None


def disable(webhook: Webhook, reason: str) -> None:
    """Stop calling it; missed events are delivered once it is enabled again."""
    before = webhook_as_json(webhook)
    webhook.active, webhook.disabled_reason = False, reason[:2_000]
    webhook.save(update_fields=["active", "disabled_reason"])
    record_configuration(KIND, webhook.name, before, webhook_as_json(webhook), Context("system:webhooks"))


def test(webhook: Webhook, actor: str) -> Try:
    """Send a `webhook.test` now and say what came of it; it changes nothing. Raises DecryptionError."""
    now = datetime.now(UTC)
    id_ = f"webhook/{webhook.name}/test/{secrets.token_hex(8)}"
    body = payload(id_, "webhook.test", actor, now, webhook.position, {}, {"webhook": webhook.name})
    address = Address(webhook.name, webhook.url, tuple(webhook.secrets(now)))
    return send(address, WebhookDelivery(id_, "webhook.test", 0, str(Position.START), 0, body))


def _hold(fields: Mapping[str, Any]) -> None:
    """Keeps the teams that it names from being removed until the transaction ends; they were looked up before."""
    hold_names()
    named = set(fields.get("teams", ()))
    if gone := named - set(Team.objects.filter(slug__in=named).values_list("slug", flat=True)):
        raise TeamDeletedError(f"the team {min(gone)} was removed in the meantime; reload and try again")


def _locked(webhook: Webhook) -> Webhook:
    return Webhook.objects.select_for_update().get(pk=webhook.pk)
