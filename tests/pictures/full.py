"""The configuration of a large organisation, as a file of `manage.py config`: every list of settings is long."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

PEOPLE: Final = 500
TEAMS: Final = 40
MANY: Final = 500
SOME: Final = 60
"""Of what has a card of its own."""
WEBHOOKS: Final = 50
"""As many as there can be."""
WORK: Final = ("compute", "storage", "network", "gpu", "power", "cooling", "images", "billing")


def configuration(now: datetime) -> str:
    """YAML, of the kind that is JSON as well."""
    return json.dumps(
        {
            "teams": [_team(n) for n in range(TEAMS)],
            "users": [{"username": f"engineer-{n:03}", "email": f"e{n}@example.com"} for n in range(PEOPLE)],
            "members": [_member(n) for n in range(PEOPLE)],
            "services": [_service(n) for n in range(MANY)],
            "routes": [_route(n) for n in range(MANY)],
            "channels": [_channel(n) for n in range(MANY)],
            "schedules": [_schedule(n) for n in range(SOME)],
            "escalation_policies": [_policy(n) for n in range(SOME)],
            "silences": [_silence(n, now) for n in range(MANY)],
            "maintenance": [_window(n, now) for n in range(MANY)],
            "inhibitions": [_inhibition(n) for n in range(MANY)],
            "webhooks": [_webhook(n) for n in range(WEBHOOKS)],
        }
    )


def _team(n: int) -> dict[str, Any]:
    work = WORK[n % len(WORK)]
    return {
        "slug": f"{work}-{n:02}",
        "name": f"{work.capitalize()} {n:02}",
        "description": f"What hall {n} has of {work}",
    }


def _slug(n: int) -> str:
    return str(_team(n % TEAMS)["slug"])


def _member(n: int) -> dict[str, Any]:
    role = ("manager", "responder", "responder", "viewer")[n // TEAMS % 4]
    return {"team": _slug(n), "user": f"engineer-{n:03}", "role": role}


def _service(n: int) -> dict[str, Any]:
    work = WORK[n % len(WORK)]
    return {
        "slug": f"{work}-service-{n:03}",
        "name": f"{work.capitalize()} service {n:03}",
        "team": _slug(n),
        "patterns": [f"{work}/hall{n}-*"],
    }


def _route(n: int) -> dict[str, Any]:
    work = WORK[n % len(WORK)]
    return {"name": f"{work}-hall-{n:03}", "pattern": f"{work}/hall{n}-*", "team": _slug(n), "order": 100 + n}


def _channel(n: int) -> dict[str, Any]:
    return {"name": f"room-{n:03}", "kind": "email", "address": f"room-{n:03}@example.com"}


def _schedule(n: int) -> dict[str, Any]:
    turns = [f"engineer-{n + TEAMS * k:03}" for k in range(3)]
    layer = {"name": "weeks", "people": turns, "start": "2026-01-05T09:00", "turn": "1w"}
    return {
        "slug": f"rota-{n:02}",
        "name": f"Rota {n:02} of {_team(n % TEAMS)['name']}",
        "team": _slug(n),
        "time_zone": "Europe/Berlin",
        "layers": [layer],
    }


def _policy(n: int) -> dict[str, Any]:
    steps = [
        {"after": 0, "actions": [{"schedule": f"rota-{n:02}"}]},
        {"after": 300, "actions": [{"team": _slug(n)}]},
    ]
    return {"slug": f"policy-{n:02}", "name": f"Policy {n:02}", "steps": steps, "repeats": 2}


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:00Z")


def _silence(n: int, now: datetime) -> dict[str, Any]:
    return {
        "id": str(UUID(int=n + 1)),
        "matchers": ['alertname="DiskSlow"', f'disk=~"hall{n}-.*"'],
        "starts_at": _written(now - timedelta(hours=1 + n % 5)),
        "ends_at": _written(now + timedelta(hours=1 + n % 90)),
        "comment": f"Disks of hall {n} are being replaced, CHG-{1000 + n}",
    }


def _window(n: int, now: datetime) -> dict[str, Any]:
    start = now + timedelta(hours=n - 10)
    return {
        "slug": f"hall-{n:03}-switches",
        "components": [f"tor/hall{n}-*"],
        "starts_at": _written(start),
        "ends_at": _written(start + timedelta(hours=4)),
        "time_zone": "Europe/Berlin",
        "reason": f"New firmware for the switches of hall {n}",
    }


def _inhibition(n: int) -> dict[str, Any]:
    return {
        "slug": f"hall-{n:03}-down",
        "source_matchers": ['alertname="HallDown"', f'hall="{n}"'],
        "target_matchers": ['severity=~"warning|info"', f'hall="{n}"'],
        "equal": ["hall"],
        "comment": "Nobody needs to hear of each machine in a hall without power",
    }


def _webhook(n: int) -> dict[str, Any]:
    return {"name": f"program-{n:02}", "url": f"https://hooks.example.com/{n}", "severities": ["critical"]}
