"""Event of an update on a status page about an incident, which puts it on the timeline. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from incidents.domain.incident.state import Bodies, Incident

STATUS_PUBLISHED: Final = "incident.status_published"
StatusChange = Literal["published", "edited", "withdrawn"]
_TEXT_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class RecordStatusUpdate:
    """`page` is a slug; `number` of the update counts from 1; `status` is in words."""

    page: str
    name: str
    notice: str
    number: int
    change: StatusChange
    status: str
    text: str


def record_status_update(_: Incident, command: RecordStatusUpdate) -> Bodies:
    """Of a resolved incident, too: the last update follows the resolution."""
    return [(STATUS_PUBLISHED, {name: getattr(command, name) for name in RecordStatusUpdate.__slots__})]


def status_sentence(name: str, body: Mapping[str, Any]) -> str:
    page = f"status page {body['name']}"
    if body["change"] == "withdrawn":
        return f"{name} withdrew the notice from the {page}"
    text = body["text"] if len(body["text"]) <= _TEXT_SHOWN else f"{body['text'][: _TEXT_SHOWN - 1]}…"
    done = "corrected update" if body["change"] == "edited" else "published update"
    return f"{name} {done} {body['number']} on the {page} ({body['status']}): {text}"
