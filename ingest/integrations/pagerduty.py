"""Requests of clients of PagerDuty's Events API v2 to `/v2/enqueue` and `/v2/change/enqueue`. Pure.

The format is that of https://developer.pagerduty.com/docs/send-alert-event and …/send-change-event. What differs:

- A summary above 1,024 characters is shortened, with a note. PagerDuty answers 400, and alerts were lost by it
  (github.com/prometheus/alertmanager/issues/1700). Its other bounds hold here, too:
  a `dedup_key` of at most 255 characters, four severities (in any case), 512 KB an event.
- `payload.timestamp` is when this message was made, and each repeat has another: it is not the start of the firing.
- `class` is what a storm is grouped by (the kind of event); `group` is a part of the service, and a label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ingest.integrations.json_body import leaves, read_object, scalar
from ingest.integrations.normalized import (
    Alert,
    InvalidPayloadError,
    Notes,
    Severity,
    Status,
    component_of,
    host_of,
    instant,
    is_address,
    key_of,
    severity_of,
)
from ingest.telemetry.kinds.declare import is_component

LONGEST_KEY = 255
LARGEST = 512 * 1_024
"""Bytes of an event."""
SEVERITIES: Final = ("critical", "error", "warning", "info")
ACTIONS: Final[Mapping[str, Status]] = {
    "trigger": "firing",
    "acknowledge": "acknowledged",
    "resolve": "resolved",
}
WITHOUT_KEY = "dsr_…"


class InvalidEventError(InvalidPayloadError):
    """An event that is refused, with everything that is wrong with it."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("", "; ".join(errors))
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True)
class PagerDutyEvent:
    """An event of an integration. `dedup_key` is as the sender wrote it, for the answer; `alert.key` may be shorter."""

    routing_key: str
    dedup_key: str
    alert: Alert


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed, to be shown beside incidents."""

    routing_key: str
    summary: str
    source: str = ""
    at: datetime | None = None
    details: Mapping[str, str] | None = None
    """By dotted path."""
    links: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def event(body: bytes, new_key: str) -> PagerDutyEvent:
    """The alert of a body of `/v2/enqueue`. `new_key` becomes the key of a trigger that has none: always a new alert.

    Raises InvalidPayloadError, or InvalidEventError where the event breaks PagerDuty's rules.
    """
    value = read_object(body)
    errors: list[str] = []
    routing_key = _required(value, "routing_key", errors)
    action = _required(value, "event_action", errors)
    if action and action not in ACTIONS:
        errors.append(
            "'event_action' is invalid (must be one of the following: 'trigger', 'acknowledge' or 'resolve')"
        )
    dedup_key = value.get("dedup_key")
    if dedup_key is not None and not isinstance(dedup_key, str):
        errors.append("'dedup_key' is invalid (must be a string)")
    elif dedup_key is not None and len(dedup_key) > LONGEST_KEY:
        errors.append(f"'dedup_key' is too long (maximum is {LONGEST_KEY} characters)")
    elif not dedup_key and action in ("acknowledge", "resolve"):
        errors.append("'dedup_key' is missing or blank")
    payload = value.get("payload")
    if payload is None or (action != "trigger" and not isinstance(payload, dict)):
        payload = {}
    if action == "trigger":
        _check(payload, errors)
    if errors:
        raise InvalidEventError(errors)
    key = dedup_key or new_key
    return PagerDutyEvent(routing_key, key, _alert(value, payload, key, ACTIONS[action]))


def change(body: bytes) -> Change:
    """The change of a body of `/v2/change/enqueue`. Raises as `event`."""
    value = read_object(body)
    errors: list[str] = []
    routing_key = _required(value, "routing_key", errors)
    payload = value.get("payload")
    if isinstance(payload, dict):
        _required(payload, "summary", errors, "payload.")
    else:
        errors.append("'payload' is missing or is not an object")
    if errors or not isinstance(payload, dict):
        raise InvalidEventError(errors)
    notes = Notes()
    return Change(
        routing_key=routing_key,
        summary=notes.line("the summary", payload["summary"]),
        source=notes.line("the source", scalar(payload.get("source"))),
        at=_moment(payload.get("timestamp"), notes),
        details=notes.labels(leaves(payload.get("custom_details"))),
        links=notes.links(_links(value)),
        notes=tuple(notes.texts),
    )


def without_key(body: bytes, routing_key: str) -> bytes:
    """A body that was read, as it is kept: the key in it would let whoever reads it there send, too."""
    stored = body.replace(routing_key.encode(), WITHOUT_KEY.encode())
    value = read_object(stored, len(stored))
    if value["routing_key"] != routing_key:
        return stored
    return json.dumps({**value, "routing_key": WITHOUT_KEY}).encode()  # it was written with escapes


def refusal(bad: InvalidPayloadError) -> dict[str, Any]:
    """The body of a 400."""
    errors = list(bad.errors) if isinstance(bad, InvalidEventError) else [str(bad)]
    return {"status": "invalid event", "message": "Event object is invalid", "errors": errors}


def _required(body: Mapping[str, Any], name: str, errors: list[str], within: str = "") -> str:
    value = body.get(name)
    if isinstance(value, str) and value.strip():
        return value
    wrong = (
        "is missing or blank" if value is None or isinstance(value, str) else "is invalid (must be a string)"
    )
    errors.append(f"'{within}{name}' {wrong}")
    return ""


def _check(payload: object, errors: list[str]) -> None:
    if not isinstance(payload, dict):
        errors.append("'payload' is invalid (must be an object)")
        return
    _required(payload, "summary", errors, "payload.")
    _required(payload, "source", errors, "payload.")
    severity = _required(payload, "severity", errors, "payload.")
    if severity and severity.strip().lower() not in SEVERITIES:
        errors.append(
            "'payload.severity' is invalid"
            " (must be one of the following: 'critical', 'error', 'warning' or 'info')"
        )


def _alert(body: Mapping[str, Any], payload: Mapping[str, Any], key: str, status: Status) -> Alert:
    notes = Notes()
    details = payload.get("custom_details")
    labels = {
        name: text
        for name in ("source", "class", "group", "component")
        if (text := scalar(payload.get(name)))
    }
    texts: list[str] = []
    for path, text in leaves(details).items():
        # Alertmanager's sender writes whole lists of alerts into one detail.
        if not path or "\n" in text.strip() or len(text) > 200:
            texts.append(f"{path}:\n{text.strip()}" if path else text.strip())
        else:
            labels.setdefault(path, text)
    return Alert(
        key=key_of(key),
        status=status,
        title=notes.line("the summary", scalar(payload.get("summary")) or key),
        severity=_severity(payload),
        group=notes.line("the class", scalar(payload.get("class"))),
        component=_component(body, payload, labels),
        description=notes.text("the description", "\n\n".join(texts)),
        labels=notes.labels(labels),
        links=notes.links(_links(body)),
        images=_images(body, notes),
        notes=tuple(notes.texts),
    )


def _severity(payload: Mapping[str, Any]) -> Severity:
    return severity_of(scalar(payload.get("severity")))


def _component(body: Mapping[str, Any], payload: Mapping[str, Any], labels: Mapping[str, str]) -> str | None:
    """`payload.component` or `source` if they are `kind/name`, else what details name, else a source that is a host."""
    source = scalar(payload.get("source")).strip()
    for text in (scalar(payload.get("component")).strip(), source):
        if is_component(text) and not is_address(text):
            return text
    named = component_of({name: text for name, text in labels.items() if name not in ("source", "component")})
    if named is None and source != body.get("client"):
        return host_of(source)
    return named


def _links(body: Mapping[str, Any]) -> list[tuple[object, object]]:
    links: list[tuple[object, object]] = [
        (scalar(link.get("href")), scalar(link.get("text"))) for link in _objects(body, "links")
    ]
    if client := scalar(body.get("client_url")):
        links.append((client, scalar(body.get("client")) or "Sender"))
    return links


def _images(body: Mapping[str, Any], notes: Notes) -> tuple[dict[str, str], ...]:
    images = []
    for image in _objects(body, "images")[:20]:
        src, href = scalar(image.get("src")), scalar(image.get("href"))
        if not (src.startswith("https://") and is_address(src)):
            notes.texts.append("an image was left out, its src is no https address")
            continue
        alt = notes.line("an image's text", scalar(image.get("alt")))
        images.append({"src": src, "href": href if is_address(href) else "", "alt": alt})
    return tuple(images)


def _objects(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = body.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _moment(text: object, notes: Notes) -> datetime | None:
    """Clients write `+00:00Z`, too."""
    try:
        return instant(re.sub(r"([+-]\d\d:\d\d)Z$", r"\1", text) if isinstance(text, str) else text)
    except ValueError as error:
        notes.texts.append(f"payload.timestamp {error}")
        return None
