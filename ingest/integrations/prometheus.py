"""Payloads of Prometheus and Alertmanager: `POST /api/v2/alerts`, and Alertmanager's webhook, version 4. Pure but
for the cache of alerts.

The formats are those of Alertmanager's OpenAPI document (github.com/prometheus/alertmanager, `api/v2/openapi.yaml`)
and of https://prometheus.io/docs/alerting/latest/configuration/#webhook_config.

- The identity of an alert is the fingerprint of its labels.
- The title is the annotation `summary`, `title` or the first line of `description`; else the rule and where it fired.
- `alertname`, the rule that fired, is what a storm is grouped by: not `cluster` or `namespace`, which say where.
- Annotations are kept as sent; those that are addresses become links, too.

A Prometheus sends every alert that fires once a minute, byte for byte as before but for `endsAt`. The cache holds what
the same bytes gave when they were read in full, so nothing is taken here that would not be taken there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

import msgspec

from ingest.integrations import gpu
from ingest.integrations.json_body import called, read, read_object
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

RESOLVE_TIMEOUT = timedelta(minutes=5)
"""Time for which an alert without an end fires when it is not sent again: Alertmanager's default."""
VERSION = "4"
QUERY = "Query in Prometheus"
"""Name of the link to `generatorURL`."""
DIGITS = frozenset("0123456789abcdef")


def alerts(body: bytes, now: datetime) -> Parsed:
    """Alerts of a body of `POST /api/v2/alerts`, as Alertmanager would take it at `now`.

    Good alerts are taken although others of the body are refused, as Alertmanager does. An end that has passed means
    resolved. A firing alert expires at its end, or RESOLVE_TIMEOUT from now where it has none: who sends it keeps it
    alive by sending it again. `starts_at` is None where the sender gives no start: it cannot tell one firing from
    the next. Raises InvalidPayloadError for a body that is no array.
    """
    if (known := remembered(body, _sent)) is not None:
        with contextlib.suppress(InvalidPayloadError):
            return Parsed(tuple(_until(alert, end, now) for alert, end in known))
    items = read(body)
    if not isinstance(items, list):
        raise InvalidPayloadError("", f"must be an array of alerts, not {called(items)}")
    return each(items, lambda item: _until(_sent(item), instant_of(item, "endsAt"), now))


def webhook(body: bytes) -> Parsed:
    """Alerts of a message of Alertmanager's webhook. The status of each alert counts, not the group's.

    `endsAt` of a firing alert is not used: a message comes once in `repeat_interval`, and the resolved one later.
    Raises InvalidPayloadError for any other version or a body that a template has changed.
    """
    message = read_object(body)
    if "alerts" not in message:
        raise InvalidPayloadError(
            "alerts", "is missing; is this Alertmanager's own body, without `payload` in webhook_configs?"
        )
    if message.get("version") != VERSION:
        raise InvalidPayloadError("version", f'must be "4", not {_short(message.get("version"))}')
    return each(alerts_of(message), lambda item: _delivered(item, message))


def alerts_of(message: Mapping[str, Any]) -> list[Any]:
    """The array `alerts` of a message."""
    items = message["alerts"]
    if not isinstance(items, list):
        raise InvalidPayloadError("alerts", f"must be an array, not {called(items)}")
    return items


def status_of(item: Mapping[str, Any]) -> Status:
    """`firing` or `resolved`."""
    match item.get("status"):
        case "firing":
            return "firing"
        case "resolved":
            return "resolved"
        case other:
            raise InvalidPayloadError("status", f'must be "firing" or "resolved", not {_short(other)}')


def key_of(item: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """The fingerprint that a message gives, which may cover labels that it does not show; else that of its labels."""
    given = text_of(item, "fingerprint").lower()
    return given if len(given) == 16 and DIGITS.issuperset(given) else fingerprint(labels)


def truncated(message: Mapping[str, Any], setting: str) -> list[str]:
    """A note where the sender left alerts out of a message."""
    left_out = message.get("truncatedAlerts")
    if not isinstance(left_out, int) or left_out <= 0:
        return []
    alerts = "alert of this group was" if left_out == 1 else "alerts of this group were"
    return [f"{left_out} more {alerts} left out by the sender ({setting})"]


def _sent(item: Mapping[str, Any]) -> Alert:
    """Alert of an item, without its end."""
    labels = labels_of(item)
    return build(
        labels,
        texts(item, "annotations"),
        status="firing",
        key=fingerprint(labels),
        starts_at=instant_of(item, "startsAt"),
        links=[(text_of(item, "generatorURL"), QUERY)],
    )


def _until(alert: Alert, ends: datetime | None, now: datetime) -> Alert:
    """The alert with its end, which may have passed."""
    expires = ends or now + RESOLVE_TIMEOUT
    if expires < (alert.starts_at or ends or now):
        raise InvalidPayloadError("endsAt", "start time must be before end time")
    return alert.until(expires) if expires > now else alert.over()


def _delivered(item: Mapping[str, Any], message: Mapping[str, Any]) -> Alert:
    labels = labels_of(item)
    links = [(text_of(item, "generatorURL"), QUERY)]
    alertmanager = text_of(message, "externalURL").rstrip("/")
    if alertmanager:
        links += [
            (f"{alertmanager}/#/alerts", "Alertmanager"),
            (f"{alertmanager}/#/silences/new?filter={_matchers(labels)}", "Silence in Alertmanager"),
        ]
    return build(
        labels,
        texts(item, "annotations"),
        status=status_of(item),
        key=key_of(item, labels),
        starts_at=instant_of(item, "startsAt"),
        links=links,
        reported=truncated(message, "max_alerts"),
    )


def _matchers(labels: Mapping[str, str]) -> str:
    """The filter `{name="value", …}` of Alertmanager's own pages, for an address. Cut where addresses get too long."""
    text = ""
    for name in sorted(labels, key=lambda name: (name != "alertname", name)):
        value = labels[name].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        longer = f'{text}, {name}="{value}"' if text else f'{name}="{value}"'
        if len(quote(longer, safe="")) > 1_500:
            break
        text = longer
    return quote(f"{{{text}}}", safe="")


def _short(value: object) -> str:
    return f"{value[:40]!r}" if isinstance(value, str) else called(value)


MOST = 100_000
"""Alerts that a process remembers, at about half a KiB each. When it is full it is emptied: of more alerts than that,
sent in turn, the one that was met last is as far from coming back as any other."""
LONGEST = 2_000
"""Bytes of the longest alert that is remembered."""

_ABSENT = msgspec.Raw()


class _Item(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    labels: msgspec.Raw
    annotations: msgspec.Raw = _ABSENT
    startsAt: msgspec.Raw = _ABSENT
    generatorURL: msgspec.Raw = _ABSENT
    endsAt: msgspec.Raw = _ABSENT


_items = msgspec.json.Decoder(list[_Item]).decode
_texts = msgspec.json.Decoder(dict[str, str]).decode
_text = msgspec.json.Decoder(str).decode
# Packed: as objects they would take three times the room, and the garbage collector a walk through all of them.
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Alert).decode
_known: dict[bytes, bytes] = {}  # by the digest of what was sent, because that is as long as the alert


def remembered(
    body: bytes, read: Callable[[Mapping[str, Any]], Alert]
) -> list[tuple[Alert, datetime | None]] | None:
    """The alerts of a body, each with its end; `read` makes one of what `endsAt` has no part in.

    None where the body holds anything but what Prometheus writes, or `read` raises ValueError: the body is to be read
    in full, for what is wrong with it.
    """
    try:
        items = _items(body)
        return None if len(items) > MOST_ALERTS else [(_alert(i, read), _end(bytes(i.endsAt))) for i in items]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def _alert(item: _Item, read: Callable[[Mapping[str, Any]], Alert]) -> Alert:
    # NUL stands in no JSON, so the parts do not run into each other.
    text = b"\0".join((item.labels, item.annotations, item.startsAt, item.generatorURL))
    digest = blake2b(text, digest_size=16).digest()
    known = _known.get(digest)
    if known is not None:
        return _unpack(known)
    alert = read(
        {
            "labels": _texts(item.labels),
            "annotations": _texts(item.annotations) if item.annotations is not _ABSENT else None,
            "startsAt": _text(item.startsAt) if item.startsAt is not _ABSENT else None,
            "generatorURL": _text(item.generatorURL) if item.generatorURL is not _ABSENT else None,
        }
    )
    if len(text) <= LONGEST:
        if len(_known) >= MOST:
            _known.clear()
        _known[digest] = _pack(alert)
    return alert


@lru_cache(maxsize=1_000)
def _end(raw: bytes) -> datetime | None:
    """Alerts that are sent together mostly end together."""
    return instant(_text(raw)) if raw else None


TITLES = ("summary", "title", "description", "message")
DESCRIPTIONS = ("description", "message")
LINKS: Mapping[str, str] = {
    "runbook_url": "Runbook",
    "runbook": "Runbook",
    "dashboard_url": "Dashboard",
    "dashboard": "Dashboard",
}
"""Names of links of well-known annotations; others go by the annotation's name."""

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
    """Digest, that ends in the byte `low`, with a label: digest * factor + offset.

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
    reported: Iterable[str] = (),
) -> Alert:
    """An alert of its labels and annotations, by Prometheus' kin, who say again what still fires; `details` are lines
    below the description, `reported` notes to add."""
    notes = Notes(list(reported))
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
        component=gpu.component_in(labels) or component_of(labels),
        description=notes.text("the description", _description(annotations, details)),
        annotations=notes.annotations(annotations),
        labels=notes.labels(labels),
        links=notes.links([*links, *linked]),
        images=images,
        starts_at=starts_at,
        expires_at=expires_at,
        notes=tuple(notes.texts),
        resends=True,
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
