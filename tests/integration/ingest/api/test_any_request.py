"""Whatever comes to an endpoint: never a 500, never half of it stored, and what was stored can be shown."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import zstandard
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploy.wsgi import application
from incidents import queries
from incidents.follower import follower
from ingest.api import keys
from tests.following import follow_to_the_end
from tests.unit.ingest.integrations.test_any_body import ALERT, ANY, BODIES, EVENT, LABELS, MESSAGE, ODD

pytestmark = pytest.mark.usefixtures("log_database")
EXAMPLES = int(os.environ.get("ANY_REQUEST_EXAMPLES", "8"))
TABLES = ("log_event", "alert", "alert_delivery", "alert_heartbeat", "reported_change", "telemetry_receipt")
"""Tables that an endpoint writes to; of telemetry only the receipts, without which no row is read."""

# Requests
# ----------------------------------------------------------------------------------------------------------
ENDPOINTS = (
    "/api/v2/alerts",
    "/integrations/alertmanager/{key}",
    "/integrations/grafana/{key}",
    "/integrations/generic/{key}",
    "/integrations/cloudevents/{key}",
    "/integrations/heartbeat/{key}",
    "/v2/enqueue",
    "/v2/change/enqueue",
    "/v1/metrics",
    "/v1/logs",
    "/v1/traces",
    "/api/v1/write",
    "/api/v1/telemetry/probe",
    "/api/v1/telemetry/path_outcome",
    "/api/v1/telemetry/topology",
    "/api/v1/telemetry/observation",
)
MEDIA_TYPES = (
    "application/json",
    "application/json; charset=utf-16",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
    "application/x-protobuf",
    "application/x-protobuf;proto=io.prometheus.write.v2.Request",
    "application/x-www-form-urlencoded",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "multipart/form-data; boundary=x",
    "text/plain",
    "",
    "a/b/c;;;=",
)
ENCODINGS = ("", "identity", "gzip", "zstd", "snappy", "br", "gzip, gzip")
TIME = datetime.now(UTC).isoformat()
ROW = st.fixed_dictionaries(
    {},
    optional={
        name: right | ANY
        for name, right in {
            "time": st.just(TIME) | st.integers(),
            "src": ODD,
            "dst": ODD,
            "sent": st.integers(),
            "lost": st.integers(),
            "components": st.lists(ODD),
            "attempts": st.integers() | st.floats(),
            "failures": st.integers(),
            "component": ODD,
            "parents": st.lists(ODD),
            "labels": LABELS,
            "region": ODD,
        }.items()
    },
)
CLOUD_EVENT = st.fixed_dictionaries(
    {"specversion": st.just("1.0") | ODD, "id": ODD, "source": ODD, "type": ODD},
    optional={"subject": ODD, "time": ODD, "data": ANY | BODIES, "data_base64": ODD, "datacontenttype": ODD},
)
OTLP = st.fixed_dictionaries(
    {},
    optional={
        "resourceLogs": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "resource": ANY,
                    "scopeLogs": st.lists(
                        st.fixed_dictionaries(
                            {"logRecords": st.lists(ANY | st.just({"severityNumber": 17}))}
                        ),
                        max_size=2,
                    ),
                },
            ),
            max_size=2,
        ),
        "resourceMetrics": ANY,
        "resourceSpans": ANY,
    },
)
SAID = {"routing_key": "{key}", "event_action": "trigger"}


def _with_key(told: dict[str, Any]) -> dict[str, Any]:
    return {**SAID, **{name: value for name, value in told.items() if name != "routing_key"}}


VALUES = st.one_of(
    ANY, BODIES, st.lists(ALERT, max_size=3), MESSAGE, EVENT.map(_with_key), ROW, st.lists(ROW, max_size=3)
) | st.one_of(CLOUD_EVENT, st.lists(CLOUD_EVENT, max_size=2), OTLP)
JSON = VALUES.map(lambda value: json.dumps(value).encode())
ODD_JSON = st.sampled_from(
    [
        b'{"title": NaN, "key": Infinity}',
        b'{"title": "\\ud800", "key": "\\udfff x", "labels": {"\\ud800": "\\u0000"}}',
        b'{"title": "\\u0000", "key": "\\u0000"}',
        b'{"title": 1e400, "key": ' + b"9" * 5_000 + b"}",
        b"[" * 5_000,
        b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
        b'{"title": "a", "title": "b", "key": "k", "status": "firing"}',
        b'[{"labels": {"alertname": "\\ud800", "a\\u0000b": "\\u0000"}}]',
        b'[{"labels": {"alertname": "x"}, "startsAt": "9999-12-31T23:59:59-23:59", "endsAt": "0001-01-01T00:00:00Z"}]',
        b"\xef\xbb\xbf[]",
        b"\xff\xfe[\x00]\x00",
    ]
)
BODY = st.one_of(JSON, ODD_JSON, st.binary(max_size=200), st.lists(JSON).map(b"\n".join))
EXACT = {
    "labels": {"alertname": "Slow", "disk": "d7"},
    "annotations": {"summary": "Disk d7 is slow"},
    "status": "firing",
    "startsAt": TIME,
}
RIGHT: dict[str, Any] = {
    "/api/v2/alerts": [EXACT],
    "/integrations/alertmanager/{key}": {"version": "4", "status": "firing", "alerts": [EXACT]},
    "/integrations/grafana/{key}": {"version": "1", "status": "firing", "alerts": [EXACT]},
    "/integrations/generic/{key}": {"title": "a", "key": "k", "status": "firing", "severity": "error"},
    "/integrations/cloudevents/{key}": {
        "specversion": "1.0",
        "id": "1",
        "source": "/a",
        "type": "t",
        "subject": "h",
    },
    "/v2/enqueue": {
        **SAID,
        "payload": {"summary": "s", "source": "h-1", "severity": "error", "custom_details": {}},
    },
    "/v2/change/enqueue": {
        "routing_key": "{key}",
        "payload": {"summary": "s", "source": "h-1", "timestamp": TIME},
    },
    "/api/v1/telemetry/path_outcome": {"time": TIME, "components": ["tor/t1"], "attempts": 9, "failures": 1},
    "/api/v1/telemetry/topology": {
        "time": TIME,
        "component": "tor/t1",
        "parents": ["dc/a"],
        "labels": {"a": "b"},
    },
    "/v1/logs": {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"severityNumber": 17, "body": {}}]}]}]},
}
"""Bodies that each endpoint takes."""
OF_ITS_OWN = {
    "/integrations/cloudevents/{key}": "application/cloudevents+json",
    "/api/v1/telemetry/path_outcome": "application/x-ndjson",
    "/api/v1/telemetry/topology": "application/x-ndjson",
}


ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 10**400, 1e308, "", "\x00", "\ud800", "é" * 5_000, "9999-12-31T23:59:59-23:59", [], {}, [[None]],
    {"\x00": "\ud800", "": {"a": ["\udfff"]}},
)  # fmt: skip


def _with_one_odd(told: Any) -> Iterator[Any]:
    """The value with each of its parts, in turn, replaced by each odd value."""
    yield from ODD_VALUES
    for place, inner in (
        told.items() if isinstance(told, dict) else enumerate(told if isinstance(told, list) else ())
    ):
        for changed in _with_one_odd(inner):
            if isinstance(told, dict):
                yield {**told, place: changed}
            else:
                yield [*told[:place], changed, *told[place + 1 :]]


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "deflate": zlib.compress,
}
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "HTTP_IDEMPOTENCY_KEY": ODD | st.text(max_size=5),
        "HTTP_CE_ID": ODD,
        "HTTP_CE_SOURCE": ODD,
        "HTTP_CE_TYPE": ODD,
        "HTTP_CE_SPECVERSION": st.sampled_from(["1.0", "0.3", "%ff", ""]),
        "HTTP_CE_TIME": ODD,
        "HTTP_X_REQUEST_ID": ODD,
        "QUERY_STRING": st.sampled_from(["", "name=a&every=5m", "name=%00&every=1s", "every=\xff", "name=%ed%a0%80"]),
    },
)  # fmt: skip


def ask(method: str, path: str, body: bytes, environ: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    told: list[Any] = []

    def started(*said: Any) -> Callable[[bytes], object]:
        told.extend(said)
        return told.append

    latin = {name: value.encode(errors="replace").decode("latin-1") for name, value in environ.items()}
    parts = application(
        {
            "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "",
            "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "localhost", "wsgi.url_scheme": "http", "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body), "wsgi.errors": io.StringIO(), **latin,
        },
        started,
    )  # fmt: skip
    answered = b"".join(parts)
    return int(told[0].split()[0]), dict(told[1]), answered


OF_DOSSIER = {
    "log_event": "body::json->>'key' LIKE 'dossier:%%'",
    "alert": "key LIKE 'dossier:%%'",
    "alert_delivery": "content_type = ''",
}
"""Rows in which Dossier itself tells of a sender that it refuses: no part of the request."""


def counted() -> dict[str, int]:
    """Rows that requests made."""
    parts = [
        f"SELECT '{name}', count(*) FILTER (WHERE ({OF_DOSSIER.get(name, 'false')}) IS NOT TRUE) FROM {name}"
        for name in TABLES
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts).replace("%%", "%"))
        return dict(cursor.fetchall())


def send(key: str, method: str, path: str, body: bytes, environ: dict[str, str]) -> bool:
    """Whether it was stored; what was not stored left nothing, and what was has a receipt."""
    before = counted()
    headers = {"HTTP_AUTHORIZATION": f"Bearer {key}", **environ}
    status, told, answer = ask(method, path.format(key=key), body, headers)
    assert status < 500, (status, answer)
    receipt = told.get("Dossier-Receipt")
    if receipt is None:
        assert counted() == before, (status, answer)
        return False
    assert ask("GET", f"/api/v1/receipts/{receipt}", b"", headers)[0] == 200
    return True


@pytest.fixture
def key() -> str:
    return keys.create("anyone", ["alerts", "telemetry", "incidents:read"])


def can_all_be_shown() -> None:
    """Alerts that are stored become incidents, and everything that lists them lists them."""
    follow_to_the_end(follower())
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    for path in ("/", "/api/v2/alerts/groups", "/api/v1/incidents", "/api/v1/changes", "/silences"):
        assert alice.get(path).status_code == 200
    for view in queries.list_incidents(limit=20).items:
        assert alice.get(f"/incidents/{view.incident.number}").status_code == 200


@pytest.mark.parametrize("path", RIGHT)
def test_a_message_with_anything_odd_anywhere_is_stored_or_refused(key: str, path: str) -> None:
    media_type = OF_ITS_OWN.get(path, "application/json")
    stored = 0
    for told in (RIGHT[path], *_with_one_odd(RIGHT[path])):
        body = json.dumps(told).replace("{key}", key).encode()
        stored += send(key, "POST", path, body, {"CONTENT_TYPE": media_type})
    assert stored >= 1
    can_all_be_shown()


def test_any_request_to_any_endpoint_is_answered_and_stored_whole_or_not_at_all(key: str) -> None:
    def check_endpoint(path: str) -> None:
        @settings(
            max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        @given(
            method=st.sampled_from(["POST"] * 6 + ["PUT", "OPTIONS", "DELETE"]),
            body=BODY,
            media_type=st.sampled_from(("application/json", "application/x-ndjson", *MEDIA_TYPES)),
            encoding=st.sampled_from(("",) * 6 + ENCODINGS),
            packed=st.booleans(),
            more=HEADERS,
        )
        def check(
            method: str, body: bytes, media_type: str, encoding: str, packed: bool, more: dict[str, str]
        ) -> None:
            body = body.replace(b"{key}", key.encode())
            sent = PACKED[encoding](body) if packed and encoding in PACKED else body
            headers = {"CONTENT_TYPE": media_type, **more}
            if encoding:
                headers["HTTP_CONTENT_ENCODING"] = encoding
            send(key, method, path, sent, headers)

        check()

    for path in ENDPOINTS:
        check_endpoint(path)
    can_all_be_shown()


def test_any_credential_is_good_or_refused() -> None:
    @settings(suppress_health_check=list(HealthCheck), database=None)
    @given(
        path=st.sampled_from(ENDPOINTS),
        secret=st.sampled_from(["", "dsr_", "dsr_\x00", "%00", "a/b", "\xff"]) | st.text(max_size=10),
        scheme=st.sampled_from(["Bearer ", "Basic ", "basic", "", "Digest x"]),
    )
    def check(path: str, secret: str, scheme: str) -> None:
        told = secret.encode(errors="replace").decode("latin-1")
        headers = {"HTTP_AUTHORIZATION": scheme + secret, "CONTENT_TYPE": "application/json"}
        status, _, _ = ask("POST", path.replace("{key}", told), b"[]", headers)
        assert 400 <= status < 500

    check()
    assert counted() == dict.fromkeys(TABLES, 0)
