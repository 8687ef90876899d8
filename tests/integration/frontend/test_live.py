"""The live-updates process, as a process: who may listen, and what they hear."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection
from psycopg2.extensions import cursor as Cursor

from deploy.embedded import Home, stop
from frontend.live import make_token
from incidents import commands
from incidents.commands import Report
from ingest.queries import Context, watermark
from tests.places import ROOT

SENDER = Context("key:monitoring")
_LINES: list[http.client.HTTPConnection] = []


@pytest.fixture(autouse=True)
def hang_up() -> Iterator[None]:
    """Close what a test opened."""
    yield
    while _LINES:
        _LINES.pop().close()


@pytest.fixture
def port(log_database: str, home: Home) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        chosen = int(probe.getsockname()[1])
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "DATABASE_URL": log_database,
        "DOSSIER_HOME": str(home.root),
        "DOSSIER_SECRET_KEY": settings.SECRET_KEY,
    }
    command = [sys.executable, "-m", "granian", "--host", "127.0.0.1", "--port", str(chosen), "--no-ws"]
    # As `manage.py up` starts it: a worker with a live stream open would wait for its end, ten seconds a test.
    command += ["--workers-kill-timeout", "1"]
    command += ["--interface", "asgi", "--workers", "1", "deploy.asgi:application"]
    with (home.root / "live-test.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        wait_for(chosen)
        yield chosen
    finally:
        stop(process, number=signal.SIGTERM, patience=10)


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if get(port, "/healthz").status == 200:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "the live-updates process does not start"
        time.sleep(0.1)


def get(port: int, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    _LINES.append(connection)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def next_message(stream: http.client.HTTPResponse) -> dict[str, str]:
    """The fields of the next event; comments and settings are passed over."""
    fields: dict[str, str] = {}
    while True:
        line = stream.readline().decode().rstrip("\n")
        name, _, value = line.partition(": ")
        if not line and "event" in fields:
            return fields
        assert line != ": still here", "nothing was heard between two heartbeats"
        if line and name in ("event", "id", "data"):
            fields[name] = value


def listen(port: int, after: str = "") -> http.client.HTTPResponse:
    return get(port, f"/events?token={make_token('alice')}&after={after}", Origin="http://127.0.0.1:8000")


def test_a_ticket_is_heard_of_within_a_second(port: int) -> None:
    stream = listen(port)
    assert stream.getheader("Access-Control-Allow-Origin") == "http://127.0.0.1:8000"
    opened = commands.open_incident(Report("Rack 12 loses packets"), SENDER).incident
    heard = json.loads(next_message(stream)["data"])
    assert (heard["about"], heard["id"], heard["number"]) == ("incidents", opened.id, opened.number)


def test_nothing_between_a_page_and_its_stream_is_missed(port: int) -> None:
    rendered = str(watermark())
    opened = commands.open_incident(Report("Opened in between"), SENDER).incident
    heard = json.loads(next_message(listen(port, after=rendered))["data"])
    assert heard["id"] == opened.id


def test_who_listens_is_sent_to_the_pages_while_the_database_is_away(
    port: int, administrator: Cursor
) -> None:
    stream, rendered, name = listen(port), str(watermark()), connection.get_connection_params()["dbname"]
    connection.close()
    administrator.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        administrator.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        assert next_message(stream)["event"] == "bye"
    finally:
        administrator.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    opened = commands.open_incident(Report("Opened afterwards"), SENDER).incident
    assert json.loads(next_message(listen(port, after=rendered))["data"])["id"] == opened.id


def test_nobody_listens_without_a_token_or_from_another_site(port: int) -> None:
    assert get(port, "/events").status == 403
    assert get(port, "/events?token=alice:x:y").status == 403
    stream = get(port, f"/events?token={make_token('alice')}", Origin="https://elsewhere.example")
    assert stream.getheader("Access-Control-Allow-Origin") is None
