"""The short way of telemetry past Django's handler: it answers as the long way does."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connection
from pytest_django import Settings

from deploy.wsgi import ShortWay
from ingest.api import keys
from ingest.log.read import read_stream

pytestmark = pytest.mark.usefixtures("log_database")

OF_THEIR_OWN = {"Dossier-Receipt", "X-Request-ID"}
Answer = tuple[str, dict[str, str], bytes]


def body() -> bytes:
    return json.dumps({"time": datetime.now(UTC).isoformat(), "unit": "vm/1"}).encode() + b"\n"


def ask(application: Any, path: str, sent: bytes, method: str = "POST", **headers: str) -> Answer:
    told: list[Any] = []
    environ = {
        "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "localhost", "wsgi.url_scheme": "http",
        "CONTENT_TYPE": "application/x-ndjson", "CONTENT_LENGTH": str(len(sent)), "wsgi.input": io.BytesIO(sent),
        "wsgi.errors": io.StringIO(), **headers,
    }  # fmt: skip
    parts: Iterable[bytes] = application(environ, lambda *said: told.extend(said))
    return told[0], dict(told[1]), b"".join(parts)


def headers_of_its_own(answer: Answer) -> set[str]:
    return set(answer[1]) & OF_THEIR_OWN


@pytest.fixture
def short() -> ShortWay:
    return ShortWay(get_wsgi_application())


@pytest.fixture
def key() -> dict[str, str]:
    return {"HTTP_AUTHORIZATION": f"Bearer {keys.create('feeder', ['telemetry'])}"}


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("/api/v1/telemetry/unit_failure", None, "202 Accepted"),
        ("/api/v1/telemetry/unit_failure", b"{}\n", "400 Bad Request"),
        ("/api/v1/telemetry/nonsense", b"{}\n", "404 Not Found"),
    ],
)
def test_an_endpoint_answers_the_same_on_both_ways(
    short: ShortWay, key: dict[str, str], path: str, sent: bytes | None, status: str
) -> None:
    ways = [
        ask(way, path, body() if sent is None else sent, **key) for way in (short, get_wsgi_application())
    ]
    assert [way[0] for way in ways] == [status, status]
    headers = [{k: v for k, v in way[1].items() if k not in OF_THEIR_OWN} for way in ways]
    assert headers[0] == headers[1]
    assert headers_of_its_own(ways[0]) == headers_of_its_own(ways[1])
    assert len(ways[0][2]) == len(ways[1][2]) == int(headers[0]["Content-Length"])


def test_the_request_id_of_the_sender_is_kept_in_the_log(short: ShortWay, key: dict[str, str]) -> None:
    _, headers, _ = ask(short, "/api/v1/telemetry/unit_failure", body(), **key, HTTP_X_REQUEST_ID="abc")
    assert headers["X-Request-ID"] == "abc"
    assert read_stream(f"receipt/{headers['Dossier-Receipt']}")[0].trace == "abc"


def test_without_a_key_nothing_is_taken(short: ShortWay) -> None:
    assert ask(short, "/api/v1/telemetry/unit_failure", body())[0] == "401 Unauthorized"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/v1/telemetry/unit_failure", "200 OK"), ("POST", "/v1/nothing-here", "404 Not Found")],
)
def test_what_is_no_body_for_an_endpoint_goes_the_long_way(
    short: ShortWay, method: str, path: str, status: str
) -> None:
    assert ask(short, path, b"", method)[0] == status


def test_an_error_that_nobody_expected_is_answered_without_a_word_about_it(
    short: ShortWay, key: dict[str, str], settings: Settings
) -> None:
    settings.TELEMETRY_RETENTION = "a length of time that is none"
    status, _, told = ask(short, "/api/v1/telemetry/unit_failure", body(), **key)
    assert (status, b"Traceback" in told) == ("500 Internal Server Error", False)


def test_a_connection_that_broke_is_made_anew_for_the_next_body(short: ShortWay, key: dict[str, str]) -> None:
    path = "/api/v1/telemetry/unit_failure"
    assert ask(short, path, body(), **key)[0] == "202 Accepted"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (server,) = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [server])
    other.close()
    answers = [ask(short, path, body(), **key)[0] for _ in range(2)]
    assert answers == ["503 Service Unavailable", "202 Accepted"]
