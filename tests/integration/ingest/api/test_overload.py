"""Overload: each sender hears "later" in the way that it understands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from prometheus_client import REGISTRY

from ingest.api import admission, keys

pytestmark = pytest.mark.usefixtures("log_database")
EVENT = {"event_action": "trigger", "payload": {"summary": "CPU is hot", "source": "a", "severity": "error"}}
CLOUD_EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "b", "subject": "host/a"}


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of an integration that has sent all that it may."""
    used_up = admission.Intake(0.01, 16)
    monkeypatch.setattr(admission, "intake", lambda: used_up)
    with used_up.admitted("greedy"):
        pass
    return keys.create("greedy", ["alerts", "telemetry"])


@pytest.mark.parametrize(
    ("path", "body", "media_type", "status"),
    [
        ("/api/v2/alerts", [{"labels": {"a": "b"}}], "application/json", 503),
        ("/integrations/alertmanager/{key}", {"version": "4", "alerts": []}, "application/json", 503),
        ("/integrations/grafana/{key}", {"version": "1", "alerts": []}, "application/json", 503),
        ("/integrations/generic/{key}", {"title": "a"}, "application/json", 503),
        ("/integrations/heartbeat/{key}?name=a", {}, "application/json", 503),
        ("/integrations/cloudevents/{key}", CLOUD_EVENT, "application/cloudevents+json", 429),
        ("/v2/enqueue", {**EVENT, "routing_key": "{key}"}, "application/json", 429),
        (
            "/v2/change/enqueue",
            {"routing_key": "{key}", "payload": {"summary": "s"}},
            "application/json",
            429,
        ),
        ("/v1/metrics", {}, "application/json", 429),
        ("/v1/logs", {}, "application/json", 429),
        ("/api/v1/write", {}, "application/x-protobuf", 503),
        ("/api/v1/telemetry/probe", {}, "application/x-ndjson", 429),
    ],
)
def test_who_sends_too_much_hears_it_as_it_understands_it_and_nothing_is_stored(
    key: str, path: str, body: Any, media_type: str, status: int
) -> None:
    told = json.dumps(body).replace("{key}", key)
    answer = Client().post(
        path.format(key=key), told, content_type=media_type, HTTP_AUTHORIZATION=f"Bearer {key}"
    )
    assert answer.status_code == status
    assert int(answer["Retry-After"]) >= 1
    assert b"more than" in answer.content
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_event")
        assert cursor.fetchone() == (0,)


def test_rejections_are_counted_by_endpoint_and_reason(key: str) -> None:
    labels = {"endpoint": "generic", "reason": "rate"}
    before = REGISTRY.get_sample_value("dossier_ingest_requests_rejected_total", labels) or 0
    Client().post(f"/integrations/generic/{key}", {"title": "a"}, content_type="application/json")
    assert REGISTRY.get_sample_value("dossier_ingest_requests_rejected_total", labels) == before + 1
