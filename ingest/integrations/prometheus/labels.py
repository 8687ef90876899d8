"""Alerts that are labels and annotations, as Prometheus, Alertmanager and Grafana write them. Pure.

- Their identity is the fingerprint of the labels.
- The title is the annotation `summary`, `title` or the first line of `description`; else the rule and where it fired.
- `alertname`, the rule that fired, is what a storm is grouped by: not `cluster` or `namespace`, which say where.
- Annotations are kept as sent; those that are addresses become links, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from ingest.integrations.json_body import called
from ingest.integrations.normalized import (
    MOST_ALERTS,
    Alert,
    InvalidPayloadError,
    Notes,
    Parsed,
    Refused,
    Status,
    component_of,
    instant,
    is_address,
    severity_of,
)

TITLES = ("summary", "title", "description", "message")
DESCRIPTIONS = ("description", "message")
LINKS: Mapping[str, str] = {
    "runbook_url": "Runbook",
    "runbook": "Runbook",
    "dashboard_url": "Dashboard",
    "dashboard": "Dashboard",
}
"""What links of well-known annotations are called; others go by the annotation's name."""

FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
_64_BITS = 2**64 - 1
REMEMBERED = 256
"""Characters of the longest label that is hashed once and not for every alert that has it."""


def fingerprint(labels: Mapping[str, str]) -> str:
    """Prometheus' fingerprint of a label set: 16 hexadecimal digits.

    64-bit FNV-1a over name, 0xFF, value, 0xFF of every label in bytewise order of names, as in
    `LabelSet.Fingerprint` of github.com/prometheus/common/model. 0xFF is in no UTF-8 text, so no two sets run together.
    """
    digest = FNV_OFFSET
    for name in sorted(labels):  # as their bytes in UTF-8 are sorted
        hashed = _hashed if len(name) + len(labels[name]) <= REMEMBERED else _hashed.__wrapped__
        factor, offset = hashed(name, labels[name], digest & 255)
        digest = (digest * factor + offset) & _64_BITS
    return f"{digest:016x}"


@lru_cache(maxsize=10_000)
def _hashed(name: str, value: str, low: int) -> tuple[int, int]:
    """What a label makes of a digest that ends in the byte `low`: digest * factor + offset.

    FNV-1a looks at nothing but that byte of the digest, and labels are mostly those of other alerts, too.
    """
    text = b"%b\xff%b\xff" % (name.encode(), value.encode())
    digest = low
    for byte in text:
        digest = (digest ^ byte) * FNV_PRIME & _64_BITS
    factor = pow(FNV_PRIME, len(text), 2**64)
    return factor, (digest - low * factor) & _64_BITS


def each(items: Sequence[Any], read: Callable[[Any], Alert]) -> Parsed:
    """Every item read; the ones that `read` raises InvalidPayloadError for are refused with their place.

    Raises InvalidPayloadError for more than MOST_ALERTS.
    """
    if len(items) > MOST_ALERTS:
        raise InvalidPayloadError("", f"must be at most {MOST_ALERTS} alerts, not {len(items)}")
    alerts: list[Alert] = []
    refused: list[Refused] = []
    for place, item in enumerate(items):
        try:
            if not isinstance(item, dict):
                raise InvalidPayloadError("", f"must be an object with labels, not {called(item)}")
            alerts.append(read(item))
        except InvalidPayloadError as bad:
            refused.append(Refused(place, bad.field, bad.reason))
    return Parsed(tuple(alerts), tuple(refused))


def labels_of(item: Mapping[str, Any]) -> dict[str, str]:
    """The labels of an alert without empty ones, which mean that there is none. At least one must be left."""
    labels = {name: value for name, value in texts(item, "labels").items() if value}
    if not labels:
        raise InvalidPayloadError("labels", "at least one label pair required")
    if "" in labels:
        raise InvalidPayloadError("labels", 'invalid label set: invalid name ""')
    return labels


def texts(item: Mapping[str, Any], field: str) -> dict[str, str]:
    """An object of texts, empty where the field is missing or null."""
    found = item.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidPayloadError(field, f"must be an object of texts, not {called(found)}")
    for name, value in found.items():
        if not isinstance(value, str):
            raise InvalidPayloadError(
                field, f"the value of {name[:50]!r} must be a text, not {called(value)}"
            )
    return found


def instant_of(item: Mapping[str, Any], field: str) -> datetime | None:
    try:
        return instant(item.get(field))
    except ValueError as error:
        raise InvalidPayloadError(field, str(error)) from None


def text_of(item: Mapping[str, Any], field: str) -> str:
    """A text, empty where the field is missing or is something else."""
    found = item.get(field)
    return found if isinstance(found, str) else ""


def build(
    labels: dict[str, str],
    annotations: Mapping[str, str],
    *,
    status: Status,
    key: str,
    starts_at: datetime | None,
    expires_at: datetime | None = None,
    links: Iterable[tuple[object, object]] = (),
    images: tuple[Mapping[str, str], ...] = (),
    details: str = "",
    told: Iterable[str] = (),
) -> Alert:
    """An alert of its labels and annotations, by Prometheus' kin, who say again what still fires; `details` are lines
    below the description, `told` notes to add."""
    notes = Notes(list(told))
    linked = [
        (text.strip(), LINKS.get(name, name.replace("_", " ").capitalize()))
        for name, text in annotations.items()
        if is_address(text.strip())
    ]
    return Alert(
        key=key,
        status=status,
        title=notes.line("the title", _title(labels, annotations)),
        severity=severity_of(labels.get("severity") or labels.get("priority")),
        group=notes.line("the group", labels.get("alertname", "")),
        component=component_of(labels),
        description=notes.text("the description", _description(annotations, details)),
        annotations=notes.annotations(annotations),
        labels=notes.labels(labels),
        links=notes.links([*links, *linked]),
        images=images,
        starts_at=starts_at,
        expires_at=expires_at,
        notes=tuple(notes.told),
        says_again=True,
    )


def _title(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    for name in TITLES:
        text = annotations.get(name, "").strip()
        if text:
            return text.splitlines()[0]
    place = labels.get("instance") or component_of(labels)
    rule = labels.get("alertname") or "Alert"
    if place:
        return f"{rule} on {place}"
    rest = ", ".join(
        f'{name}="{labels[name]}"' for name in sorted(labels) if name not in ("alertname", "severity")
    )
    return f"{rule} {{{rest}}}" if rest else rule


def _description(annotations: Mapping[str, str], details: str) -> str:
    main = next((text for name in DESCRIPTIONS if (text := annotations.get(name, "").strip())), "")
    return "\n\n".join(filter(None, (main, details)))
