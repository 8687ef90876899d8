"""Outcomes of requests that were answered with a 2xx.

The receipt of an incident command is made of the events that it recorded, so it costs no event of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from incidents import queries
from incidents.domain.incident.state import Incident
from incidents.domain.values import rfc3339
from incidents.incident.repository import stream_of
from ingest.queries import (
    CHANGES_ENDPOINT,
    AlertDelivery,
    Event,
    TelemetryReceipt,
    alert_delivery,
    changes_of_receipt,
    read_stream,
    read_versions,
    telemetry_receipt,
)

_INCIDENT = re.compile(r"i-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9]{1,9})-([0-9]{1,9})")
_OTHER = re.compile(r"[A-Za-z0-9_-]{1,80}")
_OUTCOMES = {"incident.opened": "opened", "incident.report_joined": "joined"}


def receipt_of(incident_id: str, events: Sequence[Event]) -> str:
    return f"i-{incident_id}-{events[0].version}-{events[-1].version}"


def outcomes_of(id: str) -> tuple[str, dict[str, Any]] | None:
    """Sender of a request, as an actor, and its outcome; None for an unknown receipt."""
    return _incident(id) or _configuration(id) or _telemetry(id) or _alerts(id)


def _incident(id: str) -> tuple[str, dict[str, Any]] | None:
    """Actor and outcome of a command."""
    parts = _INCIDENT.fullmatch(id)
    if parts is None:
        return None
    incident_id, first, last = parts[1], int(parts[2]), int(parts[3])
    events = [e for e in read_stream(stream_of(incident_id), after_version=first - 1) if e.version <= last]
    if not events or events[0].version != first or events[-1].version != last:
        return None
    view = queries.get(incident_id)
    return events[0].actor, {
        "kind": "incident",
        "recorded_at": rfc3339(events[0].recorded_at),
        "outcome": _OUTCOMES.get(events[0].type, "changed"),
        "incident": {"id": incident_id, "number": view.incident.number, "url": view.url},
        "events": [{"id": e.id, "type": e.type, "position": str(e.position)} for e in events],
    }


NOT_YET = "no incident yet"


def _configuration(id: str) -> tuple[str, dict[str, Any]] | None:
    if not (events := changes_of_receipt(id)):
        return None
    return events[0].actor, {
        "kind": "configuration",
        "recorded_at": rfc3339(events[0].recorded_at),
        "outcome": f"{_in_words([_changed(event) for event in events])}; configuration does not open incidents",
        "incident": None,
        "events": [{"id": e.id, "type": e.type, "position": str(e.position)} for e in events],
    }


def _changed(event: Event) -> str:
    done = "made" if event.body["before"] is None else "removed" if event.body["after"] is None else "changed"
    return f"{event.body['kind']} {done}"


def _alerts(id: str) -> tuple[str, dict[str, Any]] | None:
    delivery = alert_delivery(id)
    if delivery is None:
        return None
    answers = _change(delivery) if delivery.endpoint == CHANGES_ENDPOINT else _delivered(delivery)
    return f"key:{delivery.integration}", {**answers, "payload": _payload(delivery)}


def _payload(delivery: AlertDelivery) -> dict[str, Any]:
    return {
        "endpoint": delivery.endpoint,
        "content_type": delivery.content_type,
        "bytes": len(delivery.payload),
        "sha256": delivery.sha256,
    }


def _change(delivery: AlertDelivery) -> dict[str, Any]:
    (one,) = delivery.fates
    events = read_stream(f"change/{one.alert}")
    outcome = "stored; changes do not open incidents and are shown on related ones"
    return {
        "kind": "change",
        "recorded_at": rfc3339(delivery.received_at),
        "outcome": outcome if one.outcome == "recorded" else "duplicate of a stored change",
        "incident": None,
        "events": [{"id": e.id, "type": e.type, "position": str(e.position)} for e in events],
        "change": one.alert,
    }


def _delivered(delivery: AlertDelivery) -> dict[str, Any]:
    """Outcome of each alert: the incident that it joined and the reason, or why it called nobody."""
    ids = [one.alert for one in delivery.fates]
    incidents = queries.incidents_of(ids)
    whys = queries.suppressed(ids)
    for joined in {incident.id for incident in incidents.values()}:
        whys |= queries.why_members(
            joined, [id_ for id_ in ids if id_ in incidents and incidents[id_].id == joined]
        )
    changed = [one for one in delivery.fates if one.outcome not in ("repeated", "ignored")]
    events = [read_versions(f"alert/{one.alert}", [one.version])[0] for one in changed]
    first = next((incidents[id_] for id_ in ids if id_ in incidents), None)
    return {
        "kind": "alerts",
        "recorded_at": rfc3339(delivery.received_at),
        "outcome": _in_words(
            [one.outcome for one in delivery.fates], len(delivery.refused), len(delivery.left_out)
        ),
        "incident": None if first is None else _reference(first),
        "events": [{"id": e.id, "type": e.type, "position": str(e.position)} for e in events],
        "alerts": [
            {
                "alert": one.alert,
                "outcome": one.outcome,
                "why": one.why
                or whys.get(one.alert)
                or _not_yet(one.outcome, has_incident=one.alert in incidents),
                "incident": _reference(incidents[one.alert]) if one.alert in incidents else None,
            }
            for one in delivery.fates
        ],
        "refused": [
            {"alert": place, "field": field, "reason": reason} for place, field, reason in delivery.refused
        ],
        "left_out": [{"alert": place, "reason": reason} for place, reason in delivery.left_out],
    }


def _not_yet(outcome: str, *, has_incident: bool) -> str | None:
    """The follower makes incidents a moment after the sender had its answer."""
    return NOT_YET if outcome == "fired" and not has_incident else None


def _in_words(outcomes: Sequence[str], refused: int = 0, left_out: int = 0) -> str:
    counted = Counter([*outcomes, *["refused"] * refused, *["ignored"] * left_out])
    return ", ".join(f"{count} {outcome}" for outcome, count in counted.items()) or "empty"


def _reference(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "number": incident.number,
        "url": f"{settings.PUBLIC_URL}/incidents/{incident.number}",
    }


def _telemetry(id: str) -> tuple[str, dict[str, Any]] | None:
    receipt = telemetry_receipt(id) if _OTHER.fullmatch(id) else None
    return None if receipt is None else (f"key:{receipt.key}", _stored(receipt))


def _stored(receipt: TelemetryReceipt) -> dict[str, Any]:
    return {
        "kind": "telemetry",
        "recorded_at": rfc3339(receipt.recorded_at),
        "outcome": "stored; incidents are opened by analyzer runs on these rows",
        "incident": None,
        "events": [
            {"id": f"receipt/{receipt.id}@{n}", "type": "telemetry.received", "position": str(one.position)}
            for n, one in enumerate(receipt.stored, start=1)
        ],
        "telemetry": {
            "kind": receipt.kind,
            "rows": receipt.rows,
            "bytes": receipt.bytes,
            "sha256": receipt.sha256,
            "stored": [
                {"region": one.region, "rows": one.rows, "first": one.first, "last": one.last}
                for one in receipt.stored
            ],
        },
    }
