"""The page of a receipt: the payload that was sent, and its outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries
from incidents.alerts.receipts import NOT_YET, outcomes_of
from incidents.domain.values import parse_rfc3339
from ingest.api.redact import masked
from ingest.queries import alert_delivery

OPENING = timedelta(minutes=1)
"""Time that the page of a delivery waits for an incident."""
LONGEST_SHOWN = 20_000
"""Characters of a payload that the page shows."""


@page
@require_safe
def receipt(request: HttpRequest, id: str) -> HttpResponse:
    found = outcomes_of(id)
    if found is None:
        raise Http404("no such receipt; it may be older than the retention time")
    actor, result = found
    delivery = alert_delivery(id) if result["kind"] in ("alerts", "change") else None
    text = "" if delivery is None else _readable(delivery.payload)
    context = {
        "id": id,
        "actor": actor,
        "receipt": result,
        "payload": text[:LONGEST_SHOWN],
        "cut": len(text) > LONGEST_SHOWN,
        "titles": _titles(result),
        "waits": _waits(result),
        "not_yet": NOT_YET,
        "team": _team_of(result),
    }
    return show(request, "frontend/incident/receipt.html", context, section="inbox")


def _readable(payload: bytes) -> str:
    """JSON indented, anything else as it came; without the keys that some senders write into their payloads."""
    text = masked(payload.decode(errors="replace"))
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _waits(body: Mapping[str, Any]) -> bool:
    """Whether the incident of an alert that fired is opened any moment: the page then looks again by itself."""
    recent = timezone.now() - parse_rfc3339(body["recorded_at"]) < OPENING
    return recent and any(one["why"] == NOT_YET for one in body.get("alerts", ()))


def _team_of(body: Mapping[str, Any]) -> str:
    """The name of the team that has the incident of a delivery; empty where there is none."""
    if not body["incident"]:
        return ""
    team = queries.get(body["incident"]["id"]).incident.team
    return next((one.name for one in queries.teams() if one.slug == team), team)


def _titles(body: dict[str, object]) -> dict[str, str]:
    fates = body.get("alerts")
    ids = [outcome["alert"] for outcome in fates] if isinstance(fates, list) else []
    return queries.alert_titles(ids)
