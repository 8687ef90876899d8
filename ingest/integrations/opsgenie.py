"""Requests of clients of Opsgenie's Alert API to `/v2/alerts`. Pure.

The format is that of https://docs.opsgenie.com/docs/alert-api. What differs: a message above 130 characters is kept up
to the length of a title, where Opsgenie cuts it, and alerts of one alias are one alert after it was closed, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from ingest.integrations.json_body import leaves, read_object, scalar
from ingest.integrations.normalized import (
    Alert,
    InvalidPayloadError,
    Notes,
    Severity,
    component_of,
    host_of,
    is_address,
    key_of,
    severity_of,
)
from ingest.telemetry.kinds.declare import is_component

LONGEST_ALIAS = 512
PRIORITIES: Final = ("P1", "P2", "P3", "P4", "P5")
DEFAULT_PRIORITY: Final = "P3"
_OF_SEVERITY: Final[Mapping[Severity, str]] = {
    "critical": "P1",
    "error": "P2",
    "warning": "P3",
    "info": "P5",
}


def created(body: bytes, new_alias: str) -> Alert:
    """The alert of a body of `POST /v2/alerts`. `new_alias` becomes the alias of one that has none.

    Raises InvalidPayloadError: no message, an alias that is no text, a priority that is none of P1 to P5.
    """
    value = read_object(body)
    message, alias = scalar(value.get("message")).strip(), value.get("alias")
    if not message:
        raise InvalidPayloadError("message", "must not be empty")
    if alias is not None and not isinstance(alias, str):
        raise InvalidPayloadError("alias", "must be a text")
    if alias and len(alias) > LONGEST_ALIAS:
        raise InvalidPayloadError("alias", f"must have at most {LONGEST_ALIAS} characters, not {len(alias)}")
    priority = _priority(value.get("priority"))
    notes = Notes()
    labels, texts = _details(value)
    labels["priority"] = priority
    source = scalar(value.get("source")).strip()
    description = "\n\n".join([text for text in (scalar(value.get("description")).strip(), *texts) if text])
    return Alert(
        key=key_of(alias or new_alias),
        status="firing",
        title=notes.line("the message", message),
        severity=severity_of(priority),
        component=_component(scalar(value.get("entity")).strip(), labels),
        description=notes.text("the description", _noted(description, value)),
        labels=notes.labels(labels),
        links=notes.links([(source, "Source")] if is_address(source) else ()),
        notes=tuple(notes.texts),
    )


def acted(body: bytes, alert: Alert, status: str) -> Alert:
    """An alert that is closed (`resolved`) or `acknowledged` by a body of `/v2/alerts/ID/close` or `…/acknowledge`.

    The note of the body is added to the description. Raises InvalidPayloadError for what is no object.
    """
    value = body_of(body)
    notes = Notes()
    description = notes.text("the description", _noted(alert.description, value))
    changed = structs.replace(alert, description=description, notes=(*alert.notes, *notes.texts))
    return changed.over() if status == "resolved" else structs.replace(changed, status="acknowledged")


def note_of(body: bytes) -> str:
    """The text of a body of `/v2/alerts/ID/notes`, with who wrote it. Raises InvalidPayloadError without one."""
    value = read_object(body)
    if not scalar(value.get("note")).strip():
        raise InvalidPayloadError("note", "must not be empty")
    return _noted("", value)


def body_of(body: bytes) -> Mapping[str, Any]:
    """The object of a body, which may be empty. Raises InvalidPayloadError."""
    return read_object(body) if body.strip() else {}


def note_of_value(value: Mapping[str, Any]) -> str:
    """The note of a body with who wrote it; empty without one."""
    return _noted("", value)


def text_of(value: Mapping[str, Any], field: str) -> str:
    """Raises InvalidPayloadError where there is none."""
    text = scalar(value.get(field)).strip()
    if not text:
        raise InvalidPayloadError(field, "must not be empty")
    return text


def reference_of(value: Mapping[str, Any], field: str, *names: str) -> str:
    """The name or id of the object in a field, the first of `names` that it has. Raises InvalidPayloadError where
    it has none of them."""
    given = value.get(field)
    found = [scalar(given.get(name)).strip() for name in names] if isinstance(given, Mapping) else []
    if not any(found):
        raise InvalidPayloadError(f"{field}.{names[0]}", "must not be empty")
    return next(name for name in found if name)


def words_of(value: Mapping[str, Any], field: str) -> list[str]:
    """A list of texts, or texts separated by commas. Raises InvalidPayloadError where there is none."""
    given = value.get(field)
    listed = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    words = [word for one in listed if (word := scalar(one).strip())]
    if not words:
        raise InvalidPayloadError(field, "must be a list of texts")
    return words


def details_of(value: Mapping[str, Any]) -> str:
    """Details, one a line. Raises InvalidPayloadError where there is none."""
    found = [f"{path}: {text.strip()}" for path, text in leaves(value.get("details")).items() if path]
    if not found:
        raise InvalidPayloadError("details", "must be an object")
    return "\n".join(found)


def severity_of_priority(word: object) -> Severity:
    """Raises InvalidPayloadError for what is none of P1 to P5."""
    if word in (None, ""):
        raise InvalidPayloadError("priority", f"must be one of {', '.join(PRIORITIES)}")
    return severity_of(_priority(word))


def priority_of(alert: Alert) -> str:
    """P1 to P5: as its sender wrote it, or what its severity comes to."""
    priority = alert.labels.get("priority", "").upper()
    return priority if priority in PRIORITIES else _OF_SEVERITY[alert.severity]


def _priority(word: object) -> str:
    if word in (None, ""):
        return DEFAULT_PRIORITY
    priority = str(word).strip().upper()
    if priority not in PRIORITIES:
        raise InvalidPayloadError(
            "priority", f"must be one of {', '.join(PRIORITIES)}, not {str(word)[:20]!r}"
        )
    return priority


def _details(value: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Details that become labels, and those that are too long for one."""
    labels: dict[str, str] = {}
    texts: list[str] = []
    for path, text in leaves(value.get("details")).items():
        if not path or "\n" in text.strip() or len(text) > 200:
            texts.append(f"{path}:\n{text.strip()}" if path else text.strip())
        else:
            labels[path] = text
    for name in ("entity", "source", "user"):
        if text := scalar(value.get(name)).strip():
            labels.setdefault(name, text)
    tags = value.get("tags")
    if isinstance(tags, list) and (words := [word for tag in tags if (word := scalar(tag).strip())]):
        labels.setdefault("tags", ", ".join(words))
    if team := _team(value):
        labels.setdefault("team", team)
    return labels, texts


def _team(value: Mapping[str, Any]) -> str:
    """The name of the first team that is to respond."""
    for field in ("responders", "teams"):
        found = value.get(field)
        for one in found if isinstance(found, list) else []:
            if (
                isinstance(one, dict)
                and one.get("type", "team") == "team"
                and (name := scalar(one.get("name")))
            ):
                return name
    return ""


def _component(entity: str, labels: Mapping[str, str]) -> str | None:
    """The entity if it is `kind/name`, else what the details name, else an entity that is a host."""
    if is_component(entity) and not is_address(entity):
        return entity
    named = component_of({name: text for name, text in labels.items() if name not in ("entity", "source")})
    return named or host_of(entity)


def _noted(text: str, value: Mapping[str, Any]) -> str:
    """A text with the note of a body after it, and who wrote that."""
    note, by = scalar(value.get("note")).strip(), scalar(value.get("user")).strip()
    if not note:
        return text
    return "\n\n".join(filter(None, (text, f"{by}: {note}" if by else note)))
