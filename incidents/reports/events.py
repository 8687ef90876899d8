"""Events of reports: `report.produced`, one in each stream `report/<id>`."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from ingest.commands import EventType, register_event_type


def _with_sections(body: dict[str, Any]) -> dict[str, Any]:
    """A report of a day (schema 1) as one of any period: what it did not look at is not there."""
    day = date.fromisoformat(body["day"])
    return {
        "id": f"daily-{day}",
        "schedule": "daily",
        "title": "Daily report",
        "period": {
            "cadence": "daily",
            "name": str(day),
            "words": f"{day:%a %-d %b %Y}",
            "zone": "UTC",
            "start": f"{day}T00:00:00Z",
            "end": f"{day + timedelta(days=1)}T00:00:00Z",
        },
        "scope": {"region": None, "team": None},
        "position": None,
        "runs": {**body["runs"], "schedules": body["schedules"]},
        "blamed": body["blamed"],
        "incidents": {"opened": body["opened"], "resolved": body["resolved"]},
        "response": None,
        "analyses": [],
        "scorecards": [],
        "changes": None,
    }


PRODUCED = register_event_type(EventType("report.produced", schema=2, upcasters={1: _with_sections}))
