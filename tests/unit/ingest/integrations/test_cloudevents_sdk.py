"""Events that the CloudEvents SDK writes are read here as they were meant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent

from ingest.integrations.cloudevents.parse import events

AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
ATTRIBUTES: dict[str, Any] = {"id": "a 7/ü", "source": "/shop", "type": "com.example.disk.full", "specversion": "1.0",
    "time": AT, "subject": "disk/h1-3", "severity": "error"}  # fmt: skip


@pytest.mark.parametrize("write", [http.to_structured_event, http.to_binary_event])
@pytest.mark.parametrize(
    ("data", "content_type"),
    [({"message": "No space left"}, "application/json"), ("No space left", "text/plain")],
)
def test_an_event_of_the_sdk_arrives_whole(write: Any, data: Any, content_type: str) -> None:
    message = write(CloudEvent(ATTRIBUTES | {"datacontenttype": content_type}, data))
    (event,) = events(message.body, message.headers).events
    told = dict(event.attributes)
    assert datetime.fromisoformat(told.pop("time")) == AT
    assert told == {name: ATTRIBUTES[name] for name in ATTRIBUTES if name != "time"} | {
        "datacontenttype": content_type
    }
    assert event.data == data
