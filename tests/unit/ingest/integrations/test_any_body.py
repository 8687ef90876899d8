"""Any body on any endpoint of alerts is alerts, refusals or InvalidPayloadError; never another error, never without an
end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations import grafana, opsgenie, pagerduty, prometheus
from ingest.integrations.generic import apply
from ingest.integrations.normalized import (
    LONGEST_LINE,
    LONGEST_NAME,
    MOST_LABELS,
    SEVERITIES,
    Alert,
    InvalidPayloadError,
)
from ingest.telemetry.kinds.declare import is_component

HOW = apply.mapping(
    {
        "title": "{title}{labels.a}",
        "key": {"from": ["$.key", "$.labels.alertname", "k"]},
        "status": {"from": "$.status", "default": "firing"},
        "severity": "$.severity",
        "component": "$.component",
        "description": "{annotations[0]}{$root.payload.summary}",
        "starts_at": {"from": ["$.startsAt", "$.timestamp"]},
        "labels": "$.labels",
        "links": [{"href": "$.generatorURL"}],
    }
)


def _event(body: bytes) -> list[Alert]:
    return [pagerduty.event(body, "new").alert]


def _change(body: bytes) -> list[Alert]:
    pagerduty.change(body)
    return []


OPEN = Alert("a", "firing", "Disk is full")


def _note(body: bytes) -> list[Alert]:
    opsgenie.note_of(body)
    return []


ENDPOINTS: dict[str, Callable[[bytes], Any]] = {
    "prometheus": lambda body: prometheus.alerts(body, datetime(2026, 1, 31, tzinfo=UTC)).alerts,
    "alertmanager": lambda body: prometheus.webhook(body).alerts,
    "grafana": lambda body: grafana.webhook(body).alerts,
    "pagerduty": _event,
    "pagerduty change": _change,
    "opsgenie": lambda body: [opsgenie.created(body, "new"), opsgenie.acted(body, OPEN, "resolved")],
    "opsgenie note": _note,
    "generic": lambda body: apply.receive(HOW, body).parsed.alerts,
}

_WORDS = "4 1 firing resolve trigger error tor/t1 1e999 https://a/b http://[::1 2026-01-31T12:00:00Z"
ODD = st.sampled_from(
    ["", " ", "\x00", "\ufffd", "é" * 400, "a\nb", "9999-12-31T23:59:59-23:59", *_WORDS.split()]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | ODD
ANY = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(ODD | st.text(), v, max_size=4), max_leaves=8
)


def _half_right(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with these fields, each as it should be or anything."""
    return st.fixed_dictionaries({}, optional={name: right | ANY for name, right in fields.items()})


TIMES = ODD | st.integers()
LABELS = st.dictionaries(st.sampled_from(["alertname", "instance", "severity", "component", "a"]) | ODD, ODD)
ALERT = _half_right(
    labels=LABELS,
    annotations=LABELS,
    status=ODD,
    startsAt=TIMES,
    endsAt=TIMES,
    generatorURL=ODD,
    fingerprint=ODD,
    values=LABELS,
    imageURL=ODD,
)
MESSAGE = _half_right(
    version=ODD, alerts=st.lists(ALERT, max_size=3), truncatedAlerts=st.integers(), externalURL=ODD
)
EVENT = _half_right(
    routing_key=ODD,
    event_action=ODD,
    dedup_key=ODD,
    payload=_half_right(
        summary=ODD,
        source=ODD,
        severity=ODD,
        component=ODD,
        timestamp=TIMES,
        custom_details=ANY,
        **{"class": ODD},
    ),
    links=st.lists(_half_right(href=ODD, text=ODD), max_size=3),
    images=st.lists(_half_right(src=ODD, href=ODD, alt=ODD), max_size=3),
    client=ODD,
    client_url=ODD,
)
OPSGENIE = _half_right(
    message=ODD,
    alias=ODD,
    priority=st.sampled_from(["P1", "p9"]) | ODD,
    entity=ODD,
    details=ANY,
    tags=ANY,
    responders=ANY,
    note=ODD,
    user=ODD,
)
BODIES = st.one_of(ANY, st.lists(ALERT, max_size=3), MESSAGE, EVENT, OPSGENIE)


def taken(endpoint: str, body: bytes) -> Iterable[Alert]:
    """The alerts of a body, none of one that is refused."""
    try:
        alerts: Iterable[Alert] = ENDPOINTS[endpoint](body)
    except InvalidPayloadError:
        return []
    return alerts


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@given(value=BODIES)
def test_any_json_is_alerts_or_a_refusal(endpoint: str, value: Any) -> None:
    for alert in taken(endpoint, json.dumps(value).encode()):
        assert 1 <= len(alert.key) <= LONGEST_NAME
        assert len(alert.title) <= LONGEST_LINE
        assert len(alert.labels) <= MOST_LABELS
        assert alert.severity in SEVERITIES
        assert alert.component is None or is_component(alert.component)
        assert "\x00" not in json.dumps(
            [alert.key, alert.title, alert.description, dict(alert.labels)], ensure_ascii=False
        )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@given(body=st.binary(max_size=200))
def test_any_bytes_are_alerts_or_a_refusal(endpoint: str, body: bytes) -> None:
    taken(endpoint, body)


LARGE = {
    "deep": b'{"labels":' * 60 + b"1" + b"}" * 60,
    "one long text": json.dumps([{"labels": {"alertname": "x" * 90_000}}]).encode(),
    "many labels": json.dumps([{"labels": {f"l{n}": "x" for n in range(4_000)}}]).encode(),
    "many alerts": json.dumps([{"labels": {"a": str(n)}} for n in range(1_000)]).encode(),
    "many links": json.dumps(
        {"routing_key": "r", "event_action": "resolve", "dedup_key": "k", "links": [{"href": "x"}] * 2_500}
    ).encode(),
    "many details": json.dumps(
        {"routing_key": "r", "payload": {"summary": "s", "custom_details": [[{}] * 10_000]}}
    ).encode(),
    "spaces": b" " * 50_000 + b"[]",
    "a long number": b"[" + b"9" * 4_300 + b"]",
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_odd_large_bodies_end(endpoint: str) -> None:
    for body in LARGE.values():
        taken(endpoint, body)
