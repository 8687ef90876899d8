"""Charlie, who has no account, sends forms one byte at a time: probes, alerts and Alice's pages answer meanwhile."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import pytest
from pytest_django import DjangoDbBlocker

from deploy.embedded import Home
from ingest.api import keys
from tests.acceptance.web import Web
from tests.databases.clones import Databases

CONNECTIONS = 60
PATIENCE = 60  # seconds; without the gateway nothing answers for as long as the bytes trickle


@pytest.fixture(scope="module")
def web(
    databases: Databases,
    django_db_blocker: DjangoDbBlocker,
    postgres: Home,
    broker: str,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Web]:
    """Two processes for all tests here: none asks what another one sent."""
    with django_db_blocker.unblock(), databases.one() as name:
        web = Web(
            f"postgresql://dossier@/{name}?host={postgres.run}", tmp_path_factory.mktemp("web") / "web.log", 2
        )
        web.start()
        yield web
        web.close()


def new_key(scope: str) -> str:
    return keys.create(f"sender {uuid.uuid4().hex}", [scope])


def cookie(web: Web) -> str:
    with urllib.request.urlopen(f"{web.address}/accounts/login/", timeout=PATIENCE) as page:
        found = re.search(r"csrftoken=([^;]+)", page.headers["Set-Cookie"])
    assert found is not None
    return found[1]


def form(web: Web, token: str, length: int = 50_000) -> bytes:
    lines = [
        "POST /accounts/login/ HTTP/1.1",
        f"Host: 127.0.0.1:{web.port}",
        f"Cookie: csrftoken={token}",
        f"Origin: {web.address}",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {length}",
        "",
        "login=",
    ]
    return "\r\n".join(lines).encode()


def telemetry(web: Web, key: str, length: int = 50_000) -> bytes:
    lines = [
        "POST /api/v1/telemetry/unit_failure HTTP/1.1",
        f"Host: 127.0.0.1:{web.port}",
        f"Authorization: Bearer {key}",
        "Content-Type: application/x-ndjson",
        f"Content-Length: {length}",
        "",
        "{",
    ]
    return "\r\n".join(lines).encode()


@pytest.fixture(params=["visitor", "key"])
def trickle(request: pytest.FixtureRequest, web: Web) -> Iterator[None]:
    """Connections whose bodies come a byte at a time for as long as the test runs."""
    head = form(web, cookie(web)) if request.param == "visitor" else telemetry(web, new_key("telemetry"))
    over = threading.Event()
    with ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(("127.0.0.1", web.port))) for _ in range(CONNECTIONS)
        ]
        for connection in opened:
            connection.sendall(head)

        def go_on() -> None:
            while not over.wait(0.5):
                for connection in opened:
                    connection.sendall(b"a")

        sender = threading.Thread(target=go_on)
        sender.start()
        yield
        over.set()
        sender.join()


def ask(
    web: Web, method: str, path: str, body: str | bytes | Iterable[bytes] | None = None, **headers: str
) -> tuple[int, bytes]:
    """Status and body of an answer, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.usefixtures("trickle")
def test_probes_alerts_and_pages_answer_while_bodies_trickle(web: Web) -> None:
    sender = {
        "Authorization": f"Bearer {new_key('alerts')}",
        "Content_Type": "application/json",
    }
    for n in range(4):  # both web processes
        for path in ("/healthz", "/readyz", "/accounts/login/"):
            assert ask(web, "GET", path)[0] in (200, 503), path
        alert = json.dumps([{"labels": {"alertname": "Fans", "instance": str(n)}}])
        assert ask(web, "POST", "/api/v2/alerts", alert, **sender)[0] == 200


@pytest.mark.last
def test_a_body_that_does_not_come_in_time_is_refused_and_its_connection_closed(web: Web) -> None:
    web.kill()
    web.environment["DOSSIER_BODY_TIMEOUT_SECONDS"] = "1"
    web.start()
    for head, status in (
        (form(web, cookie(web)), b"408"),
        (telemetry(web, new_key("telemetry")), b"503"),
    ):
        with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE) as connection:
            connection.sendall(head)
            assert connection.recv(4096).split()[1] == status
            while connection.recv(4096):
                pass  # until it is closed


def test_a_large_body_is_read_from_known_senders_only(web: Web) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE) as connection:
        connection.sendall(form(web, cookie(web), 1_000_000))
        connection.sendall(b"a" * 200_000)
        assert b"413" in connection.recv(4096)
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE) as connection:
        connection.sendall(telemetry(web, "dsr_wrong", 1_000_000))
        assert b" 401 " in connection.recv(4096)


def test_bytes_of_the_path_and_of_a_large_body_arrive_as_sent(web: Web) -> None:
    key = new_key("telemetry")
    row = json.dumps({"time": "2026-01-01T00:00:00Z", "unit": "vm/ü"}, ensure_ascii=False).encode() + b"\n"
    sender = {"Authorization": f"Bearer {key}", "Content_Type": "application/x-ndjson"}
    _, answer = ask(web, "POST", "/api/v1/telemetry/gr%C3%BCn", row, **sender)
    assert "grün" in json.loads(answer)["detail"]
    # An iterable goes out in chunks, without a length.
    status, answer = ask(web, "POST", "/api/v1/telemetry/unit_failure", iter([row * 100] * 50), **sender)
    assert (status, len(json.loads(answer)["errors"])) == (400, 20), (
        "the rows are too old: all of them were read"
    )
