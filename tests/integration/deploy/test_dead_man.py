"""The dead man's ping: a server elsewhere is asked while this node is ready, and hears nothing when it is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from deploy import processes
from deploy.embedded import Home
from deploy.observability import outside
from incidents.worker.parts import alive
from ingest.commands import record_configuration
from ingest.db import database, disk
from ingest.log.read import Follower, run_once
from ingest.log.types import Context
from ingest.queries import now_utc

LONG = timedelta(minutes=2)


class Listener:
    """A server that counts what it is asked, and answers `status`."""

    def __init__(self) -> None:
        self.asked, self.status = list[str](), 200
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                listener.asked.append(self.path)
                self.send_response(listener.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/ping/one"

    def hears_more(self, count: int = 2) -> bool:
        before, deadline = len(self.asked), time.monotonic() + 10
        while len(self.asked) < before + count and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(self.asked) >= before + count

    def is_silent(self) -> bool:
        time.sleep(0.2)  # one that was on its way
        before = len(self.asked)
        time.sleep(0.4)
        return len(self.asked) == before


@pytest.fixture
def listener(
    log_database: str, broker: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Listener]:
    del log_database, broker
    one = Listener()
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,))
    thread.start()
    settings.HOME, settings.DEAD_MAN_URL = Home(tmp_path), one.url
    settings.OUTBOUND_ALLOWED_NETWORKS = (ip_network("127.0.0.0/8"),)
    monkeypatch.setattr(outside, "PING_EVERY", 0.02)
    monkeypatch.setattr(disk, "measure", lambda _: disk.Space(500 * 2**30, 1000 * 2**30))
    yield one
    one.server.shutdown()
    one.server.server_close()
    thread.join(10)


@contextmanager
def pinging() -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=outside.keep_pinging, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()


def test_a_node_that_is_ready_pings_again_and_again(listener: Listener) -> None:
    with pinging():
        assert listener.hears_more(3)
    assert set(listener.asked) == {"/ping/one"}


def delivery_hangs(_: Path) -> Callable[[], None]:
    alive("sending", now_utc() - LONG)
    return lambda: alive("sending", now_utc())


def followers_are_behind(_: Path) -> Callable[[], None]:
    """An event of two minutes ago that the follower has not passed."""
    follower = Follower("test", frozenset({"configuration.changed"}), lambda _: None)
    run_once(follower)
    with pytest.MonkeyPatch.context() as earlier:
        at = database.now() - LONG
        earlier.setattr(database, "now", lambda: at)
        record_configuration("lamp", "l", None, {"watts": 1}, Context("user:alice"))
    return lambda: assert_moved(run_once(follower))


def assert_moved(count: int) -> None:
    assert count == 1


def process_hangs(home: Path) -> Callable[[], None]:
    def write(state: str) -> None:
        processes.write(home, [processes.Known("followers", state, 7, 1, "hung: no heartbeat")])

    write("silent")
    return lambda: write("running")


def node_stops(home: Path) -> Callable[[], None]:
    processes.begin_draining(home)
    return lambda: processes.forget(home)


@pytest.mark.parametrize("trouble", [delivery_hangs, followers_are_behind, process_hangs, node_stops])
def test_no_ping_while_the_node_is_not_ready_and_again_when_it_is(
    listener: Listener, tmp_path: Path, trouble: Callable[[Path], Callable[[], None]]
) -> None:
    with pinging():
        assert listener.hears_more()
        end = trouble(tmp_path)
        assert listener.is_silent()
        end()
        assert listener.hears_more()


def test_a_server_that_fails_is_asked_again(listener: Listener) -> None:
    listener.status = 500
    with pinging():
        assert listener.hears_more(3)
    assert outside.ping(listener.url) is False


def test_an_address_that_is_not_allowed_is_not_asked(listener: Listener, settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = ()
    assert outside.ping(listener.url) is False
    assert listener.asked == []


def test_nothing_is_asked_where_no_address_is_set(listener: Listener, settings: Settings) -> None:
    settings.DEAD_MAN_URL = ""
    with pinging():
        assert listener.is_silent()
    assert listener.asked == []
