"""Each attempt to tell somebody of an incident, as an event on it: it changes nothing else about the incident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from incidents.domain.incident.refusals import Bodies
from incidents.domain.incident.state import Incident
from incidents.domain.time import optional_rfc3339

Outcome = Literal["sent", "failed", "held", "stopped", "given_up"]


@dataclass(frozen=True, slots=True)
class NoteNotified:
    """`person` or `method` is None where there is none; `why` is what was answered, or why it is held or ended.

    `reason` is why they are called, `attempt` counts from 1, `tickets` are those that one message was about, `until`
    when it is tried next. `method` is a name, never an address.
    """

    notification: str
    person: str | None
    method: str | None
    kind: str | None
    outcome: Outcome
    why: str
    reason: str
    attempt: int = 0
    tickets: int = 1
    until: datetime | None = None


def note_notified(_: Incident, command: NoteNotified) -> Bodies:
    body = {name: getattr(command, name) for name in NoteNotified.__slots__ if name != "until"}
    return [("incident.notified", {**body, "until": optional_rfc3339(command.until)})]


def sentence(_: str, body: Mapping[str, Any]) -> str:
    whom = _recipient(body)
    others = body["tickets"] - 1
    if body["outcome"] == "sent":
        together = (
            f", with {others} other incident{'' if others == 1 else 's'} in one message" if others else ""
        )
        return f"Notified {whom}{together}: {body['reason']}"
    if body["outcome"] == "failed":
        return f"Attempt {body['attempt']} to notify {whom} failed: {body['why']}"
    if body["outcome"] == "held":
        return f"Notification to {whom} delayed: {body['why']}"
    if body["outcome"] == "stopped":
        return f"Notification to {whom} cancelled: {body['why']}"
    return f"Could not reach {whom}: {body['why']}"


def _recipient(body: Mapping[str, Any]) -> str:
    if body["person"] is None:
        return str(body["method"])
    return str(body["person"]) + ("" if body["method"] is None else f" by {body['method']}")
