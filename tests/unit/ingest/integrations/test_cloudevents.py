"""CloudEvents: the three modes, the handshake, health events of NVSentinel, and events of any type."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.cloudevents import alerts
from ingest.integrations.cloudevents.parse import (
    MOST_EVENTS,
    Event,
    UnsupportedContentTypeError,
    events,
    handshake,
)
from ingest.integrations.generic.schema import mapping
from ingest.integrations.normalized import Alert, InvalidPayloadError, Parsed

STRUCTURED = {"Content-Type": "application/cloudevents+json; charset=UTF-8"}
BATCHED = {"Content-Type": "application/cloudevents-batch+json"}
EVENT: dict[str, Any] = {
    "specversion": "1.0", "id": "7", "source": "/shop", "type": "com.example.disk.full",
    "subject": "disk/h1-3", "time": "2026-03-01T12:00:00Z", "data": {"message": "No space left", "level": "error"},
}  # fmt: skip


def structured(**change: Any) -> Event:
    told = {name: value for name, value in (EVENT | change).items() if value is not None}
    (event,) = events(json.dumps(told).encode(), STRUCTURED).events
    return event


def parsed(*told: dict[str, Any]) -> Parsed:
    return alerts.alerts(events(json.dumps(told).encode(), BATCHED))


# Modes
# ----------------------------------------------------------------------------------------------------------
def test_an_event_says_the_same_in_every_mode() -> None:
    attributes = {name: value for name, value in EVENT.items() if name != "data"}
    headers = {f"Ce-{name.title()}": value for name, value in attributes.items()} | {
        "Content-Type": "application/json"
    }
    (binary,) = events(json.dumps(EVENT["data"]).encode(), headers).events
    (batched,) = events(json.dumps([EVENT]).encode(), BATCHED).events
    assert binary.plain == structured().plain | {"datacontenttype": "application/json"}
    assert batched == structured()


def test_headers_are_percent_decoded_once() -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "a%2525",
        "ce-source": "/caf%C3%A9",
        "ce-type": "t",
        "ce-subject": "100%",
    }
    (event,) = events(b"", headers).events
    assert [event.attributes[name] for name in ("id", "source", "subject")] == ["a%25", "/café", "100%"]


@pytest.mark.parametrize(
    ("body", "content_type", "data"),
    [
        (b'{"a": 1}', "application/json", {"a": 1}), (b"[1]", "application/problem+json", [1]),
        (b"hello", "text/plain", "hello"), ("café".encode("latin-1"), "text/plain; charset=iso-8859-1", "café"),
        (b"\x00\xff", "image/png", None), (b"", "application/json", None),
    ],
)  # fmt: skip
def test_data_is_read_by_its_own_type(body: bytes, content_type: str, data: Any) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "s",
        "ce-type": "t",
        "content-type": content_type,
    }
    assert events(body, headers).events[0].data == data


def test_data_in_base64_is_read_by_its_type() -> None:
    told = base64.b64encode(b'{"a": 1}').decode()
    assert structured(data=None, data_base64=told).data == {"a": 1}
    assert structured(data=None, data_base64=told, datacontenttype="text/plain").data == '{"a": 1}'
    assert structured(data=None, data_base64=told, datacontenttype="image/png").data is None


def test_binary_data_without_a_type_is_kept() -> None:
    told = base64.b64encode(b"\x00\xff").decode()
    assert structured(data=None, data_base64=told).data == told


def test_a_body_in_another_charset_is_read() -> None:
    body = json.dumps(EVENT | {"subject": "café"}, ensure_ascii=False).encode("utf-16")
    headers = {"Content-Type": "application/cloudevents+json; charset=utf-16"}
    assert events(body, headers).events[0].attributes["subject"] == "café"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/cloudevents+avro", "application/cloudevents", "application/cloudevents-batch+protobuf",
        "application/json", "", "application/cloudevents+json; charset=klingon",
        "application/cloudevents+json; charset=base64",
    ],
)  # fmt: skip
def test_what_is_in_no_known_format_is_unsupported(content_type: str) -> None:
    with pytest.raises(UnsupportedContentTypeError):
        events(json.dumps(EVENT).encode(), {"Content-Type": content_type})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"specversion": "0.3"}, "specversion"), ({"specversion": None}, "specversion"), ({"id": None}, "id"),
        ({"id": ""}, "id"), ({"id": 7}, "id"), ({"source": " "}, "source"), ({"type": None}, "type"),
        ({"time": "yesterday"}, "time"), ({"time": "2026-03-01T12:00:00"}, "time"), ({"subject": ["a"]}, "subject"),
        ({"data_base64": "AA=="}, "data_base64"), ({"data": None, "data_base64": "!"}, "data_base64"),
        ({"extension": {}}, "extension"),
    ],
)  # fmt: skip
def test_an_event_that_is_none_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        structured(**change)
    assert refused.value.field == field


def test_a_batch_may_be_empty_and_bad_events_are_refused_alone() -> None:
    assert parsed() == Parsed(())
    found = parsed(EVENT, {"id": "8"}, EVENT | {"id": "9", "subject": "disk/h2-1"})
    assert [alert.component for alert in found.alerts] == ["disk/h1-3", "disk/h2-1"]
    assert [(one.place, one.field) for one in found.refused] == [(1, "specversion")]


def test_an_event_that_is_twice_in_a_batch_counts_once() -> None:
    assert len(parsed(EVENT, EVENT, EVENT | {"source": "/other"}).alerts) == 2


def test_a_batch_has_a_limit() -> None:
    with pytest.raises(InvalidPayloadError, match="at most 100000 events, not 100001"):
        parsed(*[EVENT] * (MOST_EVENTS + 1))


def test_the_handshake_grants_what_is_asked() -> None:
    assert handshake(
        {"WebHook-Request-Origin": "eventemitter.example.com", "WebHook-Request-Rate": "120"}
    ) == {
        "Allow": "POST, OPTIONS",
        "WebHook-Allowed-Origin": "eventemitter.example.com",
        "WebHook-Allowed-Rate": "*",
    }
    assert handshake({}) == handshake({"webhook-request-origin": "a\r\nb"}) == {"Allow": "POST, OPTIONS"}


# Any type
# ----------------------------------------------------------------------------------------------------------
def alert_of(**change: Any) -> Alert:
    told = {name: value for name, value in (EVENT | change).items() if value is not None}
    (alert,) = parsed(told).alerts
    return alert


def test_an_event_of_any_type_becomes_an_alert() -> None:
    alert = alert_of()
    assert (alert.title, alert.severity, alert.status) == ("No space left", "error", "firing")
    assert (alert.component, alert.group) == ("disk/h1-3", "com.example.disk.full")
    assert alert.key == "/shop#com.example.disk.full#disk/h1-3"
    assert alert.starts_at == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_an_event_without_data_is_named_by_type_and_subject() -> None:
    assert alert_of(data=None).title == "com.example.disk.full: disk/h1-3"
    bare = alert_of(data=None, subject=None, time=None)
    assert (bare.title, bare.key, bare.component) == (
        "com.example.disk.full",
        "/shop#com.example.disk.full",
        None,
    )


def test_extensions_say_severity_and_status() -> None:
    alert = alert_of(severity="critical", status="resolved")
    assert (alert.severity, alert.status) == ("critical", "resolved")


def test_the_mapping_of_an_integration_comes_first() -> None:
    how = mapping({"title": "{type} by {source}", "key": "$.id"})
    (alert,) = alerts.alerts(events(json.dumps([EVENT]).encode(), BATCHED), how).alerts
    assert (alert.title, alert.key) == ("com.example.disk.full by /shop", "7")


# NVSentinel
# ----------------------------------------------------------------------------------------------------------
GPU = {"entityType": "GPU", "entityValue": "0"}
NAMES = [
    {"entityType": "PCI", "entityValue": "0000:3b:00.0"},
    {"entityType": "GPU_UUID", "entityValue": "GPU-1a"},
]


def health(at: str = "2026-03-01T12:00:00.123456789Z", id_: str = "e1", **change: Any) -> dict[str, Any]:
    told = {
        "version": 1, "agent": "gpu-health-monitor", "componentClass": "GPU", "checkName": "GpuMemWatch",
        "isFatal": True, "isHealthy": False, "message": "double bit ECC error", "recommendedAction": "RESTART_BM",
        "errorCode": ["79", "48"], "entitiesImpacted": [GPU, *NAMES], "nodeName": "gpu-17", "generatedTimestamp": at,
    } | change  # fmt: skip
    return {"specversion": "1.0", "id": id_, "source": "nvsentinel://dc1/healthevents",
        "type": "com.nvidia.nvsentinel.health.v1", "data": {"healthEvent": told}}  # fmt: skip


def test_a_health_event_becomes_an_alert_of_its_gpu() -> None:
    (alert,) = parsed(health()).alerts
    assert (alert.component, alert.severity, alert.status) == ("gpu/gpu-17-0", "critical", "firing")
    assert alert.title == "GpuMemWatch on gpu 0 of gpu-17: double bit ECC error"
    assert alert.group == "GpuMemWatch"
    assert alert.description == "double bit ECC error\nError codes: 79, 48\nRecommended action: RESTART_BM"
    assert (alert.labels["pci"], alert.labels["gpu_uuid"]) == ("0000:3b:00.0", "GPU-1a")
    assert alert.starts_at == datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def test_a_gpu_that_is_named_by_its_serial_number_is_that_part() -> None:
    serial = {"entityType": "SERIAL", "entityValue": "1652821001"}
    (alert,) = parsed(health(entitiesImpacted=[GPU, serial])).alerts
    assert (alert.component, "slot" in alert.labels) == ("gpu/1652821001", False)


def test_a_gpu_that_is_named_by_its_number_has_its_slot() -> None:
    (alert,) = parsed(health()).alerts
    assert alert.labels["slot"] == "gpu-17:0"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"recommendedAction": 24}, ["RESTART_BM"]),
        ({"recommendedAction": 0}, []),
        ({"recommendedAction": 77}, ["77"]),
        ({"recommendedAction": 100, "customRecommendedAction": "RESEAT"}, ["RESEAT"]),
    ],
)
def test_the_action_is_a_word_though_the_exporter_writes_its_number(told: Any, shown: list[str]) -> None:
    (alert,) = parsed(health(**told)).alerts
    assert [line for line in alert.description.split("\n") if "action" in line] == [
        f"Recommended action: {word}" for word in shown
    ]


@pytest.mark.parametrize(
    ("entities", "components"),
    [
        ([], ["node/gpu-17"]), (None, ["node/gpu-17"]),
        ([GPU, {"entityType": "GPU", "entityValue": "3"}, GPU], ["gpu/gpu-17-0", "gpu/gpu-17-3"]),
        (NAMES, ["pci/gpu-17-0000:3b:00.0"]), (NAMES[1:], ["gpu/gpu-17-GPU-1a"]),
        ([{"entityType": "NIC", "entityValue": "mlx5 0"}], ["nic/gpu-17-mlx5-0"]),
    ],
)  # fmt: skip
def test_every_entity_that_is_hit_has_an_alert(entities: Any, components: list[str]) -> None:
    assert [alert.component for alert in parsed(health(entitiesImpacted=entities)).alerts] == components


def test_health_resolves_what_was_ill_and_events_are_put_in_order() -> None:
    found = parsed(
        health("2026-03-01T12:05:00Z", "e2", isHealthy=True, isFatal=False),
        health("2026-03-01T12:00:00Z", "e1"),
    ).alerts
    assert [alert.status for alert in found] == ["firing", "resolved"]
    assert found[0].key == found[1].key


def test_a_warning_is_what_is_not_fatal() -> None:
    assert parsed(health(isFatal=False)).alerts[0].severity == "warning"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nodeName": ""}, "nodeName"), ({"checkName": 7}, "checkName"), ({"isHealthy": "yes"}, "isHealthy"),
        ({"generatedTimestamp": "now"}, "generatedTimestamp"),
        ({"generatedTimestamp": {"seconds": "x"}}, "generatedTimestamp"),
        ({"entitiesImpacted": 7}, "entitiesImpacted"), ({"entitiesImpacted": {"a": 1}}, "entitiesImpacted"),
        ({"entitiesImpacted": ["GPU 0"]}, "entitiesImpacted"),
    ],
)  # fmt: skip
def test_a_health_event_that_is_none_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    (refused,) = parsed(health(**change)).refused
    assert refused.field == f"data.healthEvent.{field}"


def test_a_time_may_come_as_seconds_and_nanoseconds() -> None:
    told: Any = {"seconds": "1772366400", "nanos": 500_000_000}
    assert parsed(health(told)).alerts[0].starts_at == datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)


# Anything
# ----------------------------------------------------------------------------------------------------------
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([*EVENT, "healthEvent", "nodeName", "checkName", "entitiesImpacted", "entityType",
            "entityValue", "generatedTimestamp", "isHealthy", "seconds", "nanos", "data_base64"]), inner, max_size=5),
    max_leaves=9,
)  # fmt: skip


def body_of(*told: dict[str, Any]) -> bytes:
    return json.dumps(told).encode()


CHANGES = st.dictionaries(st.sampled_from(sorted(health()["data"]["healthEvent"])), JSON)
BODIES = (
    st.binary(max_size=40)
    | JSON.map(lambda told: json.dumps(told).encode())
    | st.dictionaries(st.sampled_from([*EVENT, "data_base64"]), JSON).map(lambda told: body_of(EVENT | told))
    | CHANGES.map(
        lambda told: body_of(EVENT | {"data": {"healthEvent": health()["data"]["healthEvent"] | told}})
    )
)
NAMED = st.sampled_from(["content-type", "ce-id", "ce-specversion", "ce-source", "ce-type", "ce-time"])


@given(BODIES, st.sampled_from([STRUCTURED, BATCHED]) | st.dictionaries(NAMED, st.text(max_size=20)))
def test_any_request_becomes_alerts_or_is_refused(body: bytes, headers: dict[str, str]) -> None:
    try:
        found = alerts.alerts(events(body, headers))
    except (InvalidPayloadError, UnsupportedContentTypeError):
        return
    assert all(alert.title and len(alert.key) <= 255 for alert in found.alerts)
