"""Messages of Grafana's contact point "webhook", by POST or PUT. Pure.

The format is Alertmanager's with additions, see
https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/:
`version` is "1", `orgId` and `state` are there, alerts carry values and the addresses of panel, dashboard and silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.integrations.json_body import read_object
from ingest.integrations.normalized import Alert, InvalidPayloadError, Parsed, is_address
from ingest.integrations.prometheus import (
    alerts_of,
    build,
    each,
    instant_of,
    key_of,
    labels_of,
    status_of,
    text_of,
    texts,
    truncated,
)

VERSION = "1"
RULE = "Rule in Grafana"
"""Name of the link to `generatorURL`."""
LINKS = (
    ("generatorURL", RULE),
    ("panelURL", "Panel"),
    ("dashboardURL", "Dashboard"),
    ("silenceURL", "Silence in Grafana"),
)


def webhook(body: bytes) -> Parsed:
    """Alerts of a message: one of each of `alerts`, whose own status counts.

    Raises InvalidPayloadError for the body of Grafana's old alerting (before version 9) and for a custom payload.
    """
    message = read_object(body)
    if "alerts" not in message:
        if "ruleId" in message or "ruleName" in message:
            raise InvalidPayloadError(
                "alerts",
                "is missing: this is Grafana's old alerting, which Grafana 11 removed; use a contact point",
            )
        raise InvalidPayloadError(
            "alerts", "is missing; is this Grafana's own body, without a custom payload?"
        )
    if message.get("version") != VERSION:
        raise InvalidPayloadError(
            "version", 'must be "1"; Alertmanager sends "4", and has an endpoint of its own'
        )
    return each(alerts_of(message), lambda item: _delivered(item, message))


def _delivered(item: Mapping[str, Any], message: Mapping[str, Any]) -> Alert:
    labels = labels_of(item)
    image = text_of(item, "imageURL")
    links = [(text_of(item, field), text) for field, text in LINKS]
    shown = image.startswith("https://") and is_address(image)
    if image and not shown:
        links.append((image, "Picture of the panel"))
    return build(
        labels,
        texts(item, "annotations"),
        status=status_of(item),
        key=key_of(item, labels),
        starts_at=instant_of(item, "startsAt"),
        links=links,
        images=({"src": image, "href": text_of(item, "panelURL"), "alt": "The panel when the rule fired"},)
        if shown
        else (),
        details=_values(item),
        reported=truncated(message, "maxAlerts"),
    )


def _values(item: Mapping[str, Any]) -> str:
    values = item.get("values")
    if not isinstance(values, dict) or not values:
        return text_of(item, "valueString")
    return "Values: " + ", ".join(f"{name} = {value}" for name, value in sorted(values.items())[:50])
