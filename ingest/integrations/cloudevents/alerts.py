"""CloudEvents to alerts: health events of NVSentinel by their own fields, everything else through a mapping. Pure.

NVSentinel's event exporter (https://github.com/NVIDIA/NVSentinel, docs/configuration/event-exporter.md) sends what its
monitors find with `data.healthEvent`. Each impacted entity becomes an alert of its own, because each heals on its own:
a GPU of a node is `gpu/NODE-VALUE`. What only names an entity another way (its PCI address, its UUID) is a label.
A GPU that the event names by its serial number is `gpu/SERIAL`; otherwise the label `slot` (NODE:VALUE) lets placements
name the part (`name_parts` of `ingest.alerts.store`). Without entities the node itself is meant. `isHealthy` resolves.
Its events come in any order and more than once: `generatedTimestamp` is the alert's time, and an event that is older
than what is known changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingest.integrations import gpu
from ingest.integrations.cloudevents.parse import Event, Events
from ingest.integrations.generic import apply
from ingest.integrations.generic.schema import mapping
from ingest.integrations.json_body import called, scalar
from ingest.integrations.normalized import (
    Alert,
    InvalidPayloadError,
    Notes,
    Parsed,
    Refused,
    Severity,
    instant,
    key_of,
)
from ingest.telemetry.kinds.declare import is_component

DEFAULT = mapping(
    {
        "title": {
            "from": ["$.data.title", "$.data.summary", "$.data.message", "{type}: {subject}", "$.type"]
        },
        "key": {
            "from": [
                "$.data.dedup_key",
                "$.data.fingerprint",
                "{source}#{type}#{subject}",
                "{source}#{type}",
            ]
        },
        "status": {"from": ["$.status", "$.data.status", "$.data.state"], "default": "firing"},
        "severity": {"from": ["$.severity", "$.data.severity", "$.data.level"], "default": "warning"},
        "component": {"from": ["$.component", "$.data.component", "$.subject"], "default": ""},
        "group": "$.type",
        "description": {"from": ["$.data.description", "$.data.details", "$.data.message"], "default": ""},
        "starts_at": {"from": ["$.time"], "default": ""},
        "labels": {"type": "$.type", "source": "$.source", "subject": "$.subject", "event": "$.id"},
    }
)
"""For events of any type, where an integration has no mapping of its own. The event is the payload: `$.type`,
`$.subject`, extensions by their names, `$.data`."""

ACTIONS = {
    "0": "",
    "2": "COMPONENT_RESET",
    "5": "CONTACT_SUPPORT",
    "6": "RUN_FIELDDIAG",
    "15": "RESTART_VM",
    "24": "RESTART_BM",
    "25": "REPLACE_VM",
    "26": "RUN_DCGMEUD",
    "99": "",
}
"""Recommended actions of NVSentinel by the number of their enum, which is what its exporter writes; none and unknown
are not worth a line."""
THINGS_BY_OTHER_NAMES = {
    "gpu_uuid": "gpu",
    "uuid": "gpu",
    "pci": "pci",
    "pci_bus_id": "pci",
    "serial": "serial",
}
"""Types of entities that name what has another name already, and the kind that they are where it has not."""
MOST_ENTITIES = 200
_NOT_IN_KIND = re.compile(r"[^a-z0-9_]+")
_NOT_IN_NAME = re.compile(r"[\s/]+")


def alerts(found: Events, how: apply.Mapping = DEFAULT) -> Parsed:
    """The alerts of events, the earliest first where all say when; refused ones with their place in the batch."""
    made: list[Alert] = []
    refused = list(found.refused)
    for event in found.events:
        try:
            made += _nvsentinel(event) if _is_health_event(event) else _mapped(event, how)
        except InvalidPayloadError as bad:
            refused.append(Refused(event.place, bad.field, bad.reason))
    if all(alert.starts_at is not None for alert in made):
        made.sort(key=lambda alert: alert.starts_at or datetime.min.replace(tzinfo=UTC))
    return Parsed(tuple(made), tuple(sorted(refused, key=lambda one: one.place)))


def _mapped(event: Event, how: apply.Mapping) -> list[Alert]:
    items = apply.apply(how, event.plain).items
    for item in items:
        if item.refused:
            raise InvalidPayloadError(item.refused_field, item.refused)
    return [item.alert for item in items if item.alert is not None]


# NVSentinel
# ----------------------------------------------------------------------------------------------------------
def _is_health_event(event: Event) -> bool:
    return isinstance(event.data, dict) and isinstance(event.data.get("healthEvent"), dict)


def _nvsentinel(event: Event) -> list[Alert]:
    body = event.data["healthEvent"]
    healthy = body.get("isHealthy", False)
    if not isinstance(healthy, bool):
        raise InvalidPayloadError(
            "data.healthEvent.isHealthy", f"must be true or false, not {called(healthy)}"
        )
    things, names = _entities(body)
    at = _generated(body) or instant(event.attributes.get("time"))
    health = _Health(body, event, _text(body, "nodeName"), _text(body, "checkName"), names, healthy, at)
    single = len(things) == 1
    return [_alert(health, kind, value, single) for kind, value in things or [("node", "")]]


@dataclass(frozen=True, slots=True)
class _Health:
    """A health event: what it says, and what all of its alerts have in common."""

    payload: Mapping[str, Any]
    event: Event
    node: str
    check: str
    names: Mapping[str, str]
    healthy: bool
    at: datetime | None

    def text_of(self, field: str) -> str:
        text = scalar(self.payload.get(field))
        if field != "recommendedAction":
            return text
        return scalar(self.payload.get("customRecommendedAction")) or ACTIONS.get(text, text)

    def component(self, kind: str, value: str) -> str | None:
        name = "-".join(_NOT_IN_NAME.sub("-", part) for part in (self.node, value) if part)
        return f"{kind}/{name}" if is_component(f"{kind}/{name}") else None

    def labels(self) -> dict[str, str]:
        found = {
            name: self.text_of(name) for name in ("agent", "componentClass", "errorCode", "recommendedAction")
        }
        fixed = {"node": self.node, "check": self.check, "event": self.event.attributes["id"]}
        return {**self.names, **{name: text for name, text in found.items() if text}, **fixed}


def _alert(health: _Health, kind: str, value: str, single: bool) -> Alert:
    notes, message = Notes(), health.text_of("message")
    component, labels = health.component(kind, value), health.labels()
    if kind == "gpu" and value:
        labels["slot"] = gpu.slot_of(health.node, value)
        serial = _NOT_IN_NAME.sub("-", health.names.get("serial", ""))
        if single and is_component(f"gpu/{serial}"):
            component = f"gpu/{serial}"
            del labels["slot"]
    where = f"{kind} {value} of {health.node}" if value else health.node
    severity: Severity = "critical" if health.payload.get("isFatal") is True else "warning"
    lines = [message]
    for field, called_ in (("errorCode", "Error codes"), ("recommendedAction", "Recommended action")):
        lines += [f"{called_}: {words}"] if (words := health.text_of(field)) else []
    return Alert(
        key=key_of(f"nvsentinel/{health.node}/{health.check}/{kind}/{value}"),
        status="resolved" if health.healthy else "firing",
        title=notes.line("the title", f"{health.check} on {where}" + (f": {message}" if message else "")),
        severity=severity,
        group=notes.line("the group", health.check),
        component=component,
        description=notes.text("the description", "\n".join(filter(None, lines))),
        labels=notes.labels(labels),
        starts_at=health.at,
        notes=tuple(notes.texts),
    )


def _entities(health: Mapping[str, Any]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Impacted entities, as kinds and values, and their other names."""
    entities = health.get("entitiesImpacted") or []
    if not isinstance(entities, list) or len(entities) > MOST_ENTITIES:
        raise InvalidPayloadError(
            "data.healthEvent.entitiesImpacted", f"must be an array of at most {MOST_ENTITIES} entities"
        )
    things: dict[tuple[str, str], None] = {}
    others: dict[tuple[str, str], None] = {}
    for one in entities:
        if not isinstance(one, dict):
            raise InvalidPayloadError(
                "data.healthEvent.entitiesImpacted", f"must hold entities, not {called(one)}"
            )
        kind = _NOT_IN_KIND.sub("_", scalar(one.get("entityType")).strip().lower()).strip("_")
        value = scalar(one.get("entityValue")).strip()
        if kind and value:
            (others if kind in THINGS_BY_OTHER_NAMES else things)[kind, value] = None
    if things or not others:
        return list(things), dict(list(others))
    # Only other names: the first one has to do.
    (kind, value), *rest = others
    return [(THINGS_BY_OTHER_NAMES[kind], value)], dict(rest)


def _text(health: Mapping[str, Any], field: str) -> str:
    text = health.get(field)
    if not isinstance(text, str) or not text.strip():
        raise InvalidPayloadError(f"data.healthEvent.{field}", "is required and must be a text")
    return text.strip()


def _generated(health: Mapping[str, Any]) -> datetime | None:
    """RFC 3339 as protobuf's JSON has it, or seconds and nanoseconds apart."""
    timestamp = health.get("generatedTimestamp")
    try:
        if isinstance(timestamp, dict):
            return datetime.fromtimestamp(
                float(timestamp.get("seconds", 0)) + float(timestamp.get("nanos", 0)) / 1e9, UTC
            )
        return instant(timestamp)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise InvalidPayloadError("data.healthEvent.generatedTimestamp", str(error)[:200]) from None
