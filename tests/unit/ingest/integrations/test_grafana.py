"""Bodies of Grafana's webhook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest.integrations import grafana
from ingest.integrations.normalized import Alert, InvalidPayloadError
from ingest.integrations.prometheus import fingerprint

LABELS = {"alertname": "High memory", "zone": "us-1", "grafana_folder": "Fleet"}


def sent(**more: Any) -> Alert:
    item = {"status": "firing", "labels": LABELS, "startsAt": "2026-01-31T12:00:00.157076+02:00", **more}
    [alert] = grafana.webhook(json.dumps({"version": "1", "orgId": 1, "alerts": [item]}).encode()).alerts
    return alert


def test_the_values_that_a_rule_saw_are_described() -> None:
    assert sent(values={"B": 44.2, "A": 1}).description == "Values: A = 1, B = 44.2"


def test_panel_dashboard_and_silence_are_linked() -> None:
    urls = {
        "panelURL": "https://g/p",
        "dashboardURL": "https://g/d",
        "silenceURL": "https://g/s",
        "generatorURL": "",
    }
    assert [link["text"] for link in sent(**urls).links] == ["Panel", "Dashboard", "Silence in Grafana"]


def test_a_picture_is_shown_only_over_https() -> None:
    assert sent(imageURL="https://g/i.png").images[0]["src"] == "https://g/i.png"
    assert sent(imageURL="http://g/i.png").images == ()
    assert sent(imageURL="http://g/i.png").links[0]["href"] == "http://g/i.png"


def test_an_identity_covers_labels_that_grafana_keeps_to_itself() -> None:
    assert sent(fingerprint="c6eadffa33fcdf37").key == "c6eadffa33fcdf37"
    assert sent(fingerprint="").key == fingerprint(LABELS)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"ruleId": 1, "state": "alerting"}, "old alerting"),
        ({"anything": "else"}, "custom payload"),
        ({"version": "4", "alerts": []}, "endpoint of its own"),
    ],
)
def test_other_forms_are_refused_with_what_they_are(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidPayloadError, match=reason):
        grafana.webhook(json.dumps(body).encode())
