"""Queries about webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Any, TypeVar

from django.db.models import Count, F, Manager, OrderBy, QuerySet, Window
from django.db.models.functions import RowNumber

from incidents.domain.incident.evolve import EVENT_TYPES
from incidents.security.encryption import DecryptionError
from incidents.webhooks.models import Webhook, WebhookAttempt, WebhookDeadLetter, WebhookRetry
from ingest.queries import now_utc, read_all


def lag_of(webhook: Webhook) -> float:
    """Seconds since the oldest event was recorded that it has not come to; 0 when it is at the end of the log."""
    ahead = read_all(webhook.place, 1, EVENT_TYPES)
    return max(0.0, (now_utc() - ahead[0].recorded_at).total_seconds()) if ahead else 0.0


def unreadable() -> list[str]:
    """Names of webhooks that are switched on and whose secret cannot be decrypted under the present key."""
    return [row.name for row in Webhook.objects.filter(active=True) if not is_readable(row)]


LOST_WITHIN = timedelta(days=1)


def lost_deliveries(now: datetime) -> list[str]:
    """Webhooks that were switched off by their failures, and those that gave events up within LOST_WITHIN, with their
    number and the last reason."""
    switched_off = Webhook.objects.filter(active=False).exclude(disabled_reason="")
    given_up = WebhookDeadLetter.objects.filter(at__gte=now - LOST_WITHIN, webhook__active=True)
    counts = given_up.order_by().values_list("webhook__name").annotate(Count("pk"))
    found = [
        f"{name}: is switched off: {shorten(reason, 200)}"
        for name, reason in switched_off.order_by("name").values_list("name", "disabled_reason")
    ]
    return found + [
        f"{name}: {count} events were given up since yesterday, the last one at {last.at:%H:%M} UTC"
        f" ({shorten(last.reason, 200)})"
        for name, count in sorted(counts)
        if (last := given_up.filter(webhook__name=name).order_by("-id").first())
    ]


def is_readable(webhook: Webhook) -> bool:
    try:
        webhook.secrets(now_utc())
    except DecryptionError:
        return False
    return True


def telling_of(team: str) -> list[str]:
    """Webhooks that want the incidents of a team, in words."""
    return [
        f"the webhook {name}"
        for name in Webhook.objects.filter(teams__contains=[team]).values_list("name", flat=True)
    ]


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """Progress of a webhook: seconds behind, its last deliveries, the oldest waiting one and the last that was given
    up."""

    lag: float
    attempts: list[WebhookAttempt]
    retries: list[WebhookRetry]
    held_total: int
    dead_letters: list[WebhookDeadLetter]
    dead_total: int
    first_dead: WebhookDeadLetter | None
    """The one that stands first in the log."""


def webhook_statuses(webhooks: Sequence[Webhook], most: int) -> dict[int, WebhookStatus]:
    """By primary key, with as many statements for fifty of them as for one, but for those that are at different places
    of the log; at most so many rows of each kind."""
    keys = [one.pk for one in webhooks]
    attempts = _newest(WebhookAttempt.objects.filter(webhook__in=keys), F("id").desc(), most)
    retries = _newest(WebhookRetry.objects.filter(webhook__in=keys), F("since").asc(), most)
    dead_letters = _newest(WebhookDeadLetter.objects.filter(webhook__in=keys), F("id").desc(), most)
    held_totals, dead_totals = _totals(WebhookRetry.objects, keys), _totals(WebhookDeadLetter.objects, keys)
    first = (
        WebhookDeadLetter.objects.filter(webhook__in=keys)
        .order_by("webhook_id", "position")
        .distinct("webhook_id")
    )
    first_dead = {one.webhook_id: one for one in first}
    lags = {place: lag_of(one) for place, one in {one.position: one for one in webhooks}.items()}
    return {
        one.pk: WebhookStatus(
            lags[one.position],
            attempts.get(one.pk, []),
            retries.get(one.pk, []),
            held_totals.get(one.pk, 0),
            dead_letters.get(one.pk, []),
            dead_totals.get(one.pk, 0),
            first_dead.get(one.pk),
        )
        for one in webhooks
    }


Row = TypeVar("Row", WebhookAttempt, WebhookRetry, WebhookDeadLetter)


def _newest(rows: QuerySet[Row], order: OrderBy, most: int) -> dict[int, list[Row]]:
    place = Window(RowNumber(), partition_by="webhook_id", order_by=order)
    found: dict[int, list[Row]] = {}
    for row in rows.annotate(place=place).filter(place__lte=most).order_by("webhook_id", "place"):
        found.setdefault(row.webhook_id, []).append(row)
    return found


def _totals(rows: Manager[Any], keys: Sequence[int]) -> dict[int, int]:
    counted = rows.filter(webhook__in=keys).order_by().values_list("webhook").annotate(Count("pk"))
    return dict(counted)
