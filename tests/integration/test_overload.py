"""Overload: each sender hears "later" in the way that it understands, and reads leave room for senders."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.test import Client
from prometheus_client import REGISTRY

from deploy.wsgi import ReadsAtOnce
from ingest.api import keys, limits

pytestmark = pytest.mark.usefixtures("log_database")
EVENT = {"event_action": "trigger", "payload": {"summary": "CPU is hot", "source": "a", "severity": "error"}}
CLOUD_EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "b", "subject": "host/a"}


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of an integration that has sent all that it may."""
    used_up = limits.Intake(0.01, 16)
    monkeypatch.setattr(limits, "intake", lambda: used_up)
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


def test_refusals_are_counted_by_door_and_reason(key: str) -> None:
    labels = {"door": "generic", "why": "rate"}
    before = REGISTRY.get_sample_value("dossier_intake_refused_total", labels) or 0
    Client().post(f"/integrations/generic/{key}", {"title": "a"}, content_type="application/json")
    assert REGISTRY.get_sample_value("dossier_intake_refused_total", labels) == before + 1


# Reads
# ----------------------------------------------------------------------------------------------------------
class Slow:
    """An application whose answers wait until they may go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.inside = threading.Semaphore(0)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] == "GET" and environ["PATH_INFO"] == "/slow":
            self.inside.release()
            self.go.wait(30)
        start_response("200 OK", [])
        return [b"ok"]


def ask(application: Any, path: str, method: str = "GET") -> tuple[str, dict[str, str]]:
    told: list[Any] = []
    environ = {
        "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "localhost", "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(), "wsgi.errors": io.StringIO(),
    }  # fmt: skip
    list(application(environ, lambda *said: told.extend(said)))
    return told[0], dict(told[1])


@pytest.fixture
def busy() -> Iterator[ReadsAtOnce]:
    """As many reads under way as there may be."""
    slow = Slow()
    application = ReadsAtOnce(slow, 3)
    readers = [threading.Thread(target=ask, args=(application, "/slow")) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in readers:
        assert slow.inside.acquire(timeout=30)
    yield application
    slow.go.set()
    for reader in readers:
        reader.join()


def test_a_read_too_many_is_refused_at_once_and_told_when_to_come_again(busy: ReadsAtOnce) -> None:
    status, headers = ask(busy, "/incidents")
    assert (status, headers["Retry-After"]) == ("503 Service Unavailable", "1")


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/v2/alerts"), ("POST", "/slow"), ("GET", "/healthz"), ("GET", "/metrics")],
)
def test_what_writes_and_what_says_whether_all_is_well_is_never_refused(
    busy: ReadsAtOnce, method: str, path: str
) -> None:
    assert ask(busy, path, method)[0] == "200 OK"


def test_reads_are_taken_again_after_one_that_failed() -> None:
    def broken(environ: Any, start_response: Any) -> Any:  # noqa: ARG001
        raise RuntimeError("broken")

    application = ReadsAtOnce(broken, 1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="broken"):
            ask(application, "/")


def test_the_real_pages_answer_through_it() -> None:
    assert ask(ReadsAtOnce(get_wsgi_application(), 1), "/api/schema")[0] == "200 OK"
