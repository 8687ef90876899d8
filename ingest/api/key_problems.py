"""Integrations that need somebody: requests that are refused, keys that end soon although they are used."""

from __future__ import annotations

from datetime import datetime, timedelta
from textwrap import shorten

from django.db.models import Q

from ingest.api.models import IntegrationKey, Rejection

REFUSED_WITHIN = timedelta(hours=1)
ENDS_WITHIN = timedelta(days=7)
USED_WITHIN = timedelta(days=2)


def key_problems(now: datetime) -> list[str]:
    """A sentence for each, by name of the integration."""
    keys = IntegrationKey.objects.filter(revoked_at=None)
    used = Q(last_used_at__gte=now - USED_WITHIN)
    ending = keys.filter(used, expires_at__gt=now, expires_at__lte=now + ENDS_WITHIN)
    found = [
        (name, f"{name}: its key ends at {ends:%Y-%m-%d %H:%M} UTC and is in use")
        for name, ends in ending.values_list("name", "expires_at")
    ]
    refused = Rejection.objects.filter(
        at__gte=now - REFUSED_WITHIN, integration__in=keys.values_list("name", flat=True)
    )
    found += [
        (
            one.integration,
            f"{one.integration}: {one.endpoint} refused a request at {one.at:%H:%M} UTC with {one.status}"
            f" ({shorten(one.reason, 200)}); {one.times} in all",
        )
        for one in refused
    ]
    return [sentence for _, sentence in sorted(found)]
