"""What can be asked of webhooks."""

from __future__ import annotations

from datetime import UTC, datetime

from incidents.domain.evolve import EVENT_TYPES
from incidents.webhooks.models import Webhook
from ingest.queries import read_all


def lag_of(webhook: Webhook) -> float:
    """Seconds since the oldest event was recorded that it has not come to; 0 when it is at the end of the log."""
    ahead = read_all(webhook.place, 1, EVENT_TYPES)
    return max(0.0, (datetime.now(UTC) - ahead[0].recorded_at).total_seconds()) if ahead else 0.0


def telling_of(team: str) -> list[str]:
    """Webhooks that want the tickets of a team, in words."""
    return [
        f"the webhook {name}"
        for name in Webhook.objects.filter(teams__contains=[team]).values_list("name", flat=True)
    ]
