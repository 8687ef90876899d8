"""A new version takes the place of a running one while Alice's monitoring sends on."""

from __future__ import annotations

import json
import os
import smtplib
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import grpc
import psycopg2
import pytest

from deploy import processes
from deploy.embedded import Home
from tests.acceptance.stack import Stack, free_port, wait_for
from tests.places import ROOT

pytestmark = pytest.mark.timeout(600)
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    one = Stack(tmp_path / "home")
    one.environment |= {"DOSSIER_WEB_WORKERS": "1", "DOSSIER_TASK_WORKERS": "1"}
    yield one
    one.stop()


class Sender(threading.Thread):
    """Sends one thing after the other until told to stop; `refused` has what was not accepted."""

    def __init__(self, send: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self.send, self.stop = send, threading.Event()
        self.accepted, self.refused = 0, list[str]()

    def run(self) -> None:
        while not self.stop.wait(0.05):
            try:
                self.send(self.accepted + len(self.refused))
                self.accepted += 1
            except (OSError, grpc.RpcError) as error:
                self.refused.append(repr(error))


def alert(stack: Stack, key: str, number: int) -> None:
    body = json.dumps([{"labels": {"alertname": "Down", "instance": f"h{number}"}}]).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{stack.address}/api/v2/alerts", body, headers)
    with urllib.request.urlopen(request, timeout=60):
        pass


def greeting(port: int, _number: int) -> None:
    """Greeting of a mail server; `smtplib` raises OSError where it is not welcome."""
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as server:
        server.noop()


def export(port: int, key: str, _number: int) -> None:
    """An empty export by a new connection, as of a collector that has just started.

    A request that reaches a server in the moment in which it stops may be cancelled: the OTLP specification lists
    CANCELLED among what a collector sends again, so that nothing is lost by it.
    """
    with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METRICS)
        for again in (True, False):
            try:
                call(b"", metadata=(("authorization", f"Bearer {key}"),), timeout=60)
                return
            except grpc.RpcError as error:
                if not again or error.code() is not grpc.StatusCode.CANCELLED:
                    raise


def replace(stack: Stack) -> subprocess.CompletedProcess[str]:
    """As somebody would who knows the home and nothing else."""
    known = {name: stack.environment[name] for name in ("DJANGO_SETTINGS_MODULE", "DOSSIER_HOME")}
    environment = {**os.environ, **known, "DOSSIER_ALLOW_ROOT": "true"}
    command = [sys.executable, "manage.py", "up", "--replace"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400, check=False
    )


def opens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def pids(stack: Stack) -> dict[str, int | None]:
    return {one.name: one.pid for one in (processes.read(stack.home) or ([], 0.0))[0]}


def test_nothing_is_refused_while_a_version_replaces_another(stack: Stack) -> None:
    mail, otlp = free_port(), free_port()
    stack.environment |= {"DOSSIER_INBOUND_EMAIL_PORT": str(mail), "DOSSIER_OTLP_GRPC_PORT": str(otlp)}
    stack.start()
    wait_for(lambda: "scheduler" in pids(stack), 60, "all processes")
    before = pids(stack)
    key = stack.manage("create_key", "alice", "--scope", "alerts", "--scope", "telemetry").split()[-1]
    alice = Sender(partial(alert, stack, key))
    senders = [alice, Sender(partial(greeting, mail)), Sender(partial(export, otlp, key))]
    wait_for(lambda: opens(mail) and opens(otlp), 60, "the ports of mail and OTLP")
    for one in senders:
        one.start()
    wait_for(lambda: all(one.accepted for one in senders), 60, "each kind of sender")

    done = replace(stack)
    wait_for(lambda: pids(stack).keys() == before.keys(), 60, "all processes")
    seen = [one.accepted for one in senders]
    wait_for(
        lambda: all(one.accepted > n for one, n in zip(senders, seen, strict=True)), 60, "the new version"
    )
    for one in senders:
        one.stop.set()
    for one in senders:
        one.join(60)

    assert (done.returncode, "replaced: " in done.stdout) == (0, True), done.stderr
    assert [one.refused for one in senders] == [[], [], []]
    after = pids(stack)
    assert {name for name in before if before[name] == after[name]} == {"database", "broker"}
    query = "SELECT count(*), count(DISTINCT stream) FROM log_event WHERE type = 'alert.reported'"
    with psycopg2.connect(Home(stack.home).database_url) as database, database.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone() == (alice.accepted, alice.accepted)
    database.close()
