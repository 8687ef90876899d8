"""A schedule, the people of it, and what is asked over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client

from incidents.domain.values import rfc3339
from incidents.oncall import queries

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
LAYER = {"name": "primary", "people": ["alice", "bob"], "start": "2026-01-05T09:00", "turn": "1d"}
STORAGE = {"slug": "storage", "name": "Storage on call", "time_zone": "Europe/Berlin", "layers": [LAYER]}
HOLIDAYS = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20201225\r\n"
    "RRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


def make_people() -> None:
    for name in ("alice", "bob", "charlie"):
        get_user_model().objects.create(username=name, is_staff=name == "alice")


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client


def call(method: str, path: str, body: object = None, who: str = "alice") -> Any:
    given = () if body is None else (body,)
    return getattr(signed_in(who), method)(f"/api/v1/{path}", *given, content_type="application/json")


def storage(**more: Any) -> Any:
    answer = call("post", "schedules", {**STORAGE, **more})
    assert answer.status_code == 201, answer.content
    return answer.json()


def in_days(number: float) -> str:
    return rfc3339(NOW + number * DAY)


def shift_of(person: str) -> tuple[str, str]:
    """The next whole shift of somebody."""
    found = [one for one in queries.shifts("storage", NOW, NOW + 5 * DAY) if one.person == person]
    return rfc3339(found[1].start), rfc3339(found[1].end)
