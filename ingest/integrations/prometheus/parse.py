"""What Prometheus and Alertmanager send: `POST /api/v2/alerts`, and Alertmanager's webhook, version 4. Pure.

The formats are those of Alertmanager's OpenAPI document (github.com/prometheus/alertmanager, `api/v2/openapi.yaml`)
and of https://prometheus.io/docs/alerting/latest/configuration/#webhook_config.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from ingest.integrations.json_body import called, read, read_object
from ingest.integrations.normalized import Alert, InvalidPayloadError, Parsed, Status
from ingest.integrations.prometheus.cache import remembered
from ingest.integrations.prometheus.labels import (
    build,
    each,
    fingerprint,
    instant_of,
    labels_of,
    text_of,
    texts,
)

RESOLVE_TIMEOUT = timedelta(minutes=5)
"""How long an alert without an end fires when it is not sent again: Alertmanager's default."""
VERSION = "4"
QUERY = "Query in Prometheus"
"""What the link to `generatorURL` is called."""
DIGITS = frozenset("0123456789abcdef")


def alerts(body: bytes, now: datetime) -> Parsed:
    """What a body of `POST /api/v2/alerts` holds, as Alertmanager would take it at `now`.

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
    """What a message of Alertmanager's webhook holds. The status of each alert counts, not the group's.

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
    """What an item says but for its end."""
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
        told=truncated(message, "max_alerts"),
    )


def _matchers(labels: Mapping[str, str]) -> str:
    """The filter `{name="value", …}` of Alertmanager's own pages, for an address. Cut where addresses get too long."""
    told = ""
    for name in sorted(labels, key=lambda name: (name != "alertname", name)):
        value = labels[name].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        longer = f'{told}, {name}="{value}"' if told else f'{name}="{value}"'
        if len(quote(longer, safe="")) > 1_500:
            break
        told = longer
    return quote(f"{{{told}}}", safe="")


def _short(value: object) -> str:
    return f"{value[:40]!r}" if isinstance(value, str) else called(value)
