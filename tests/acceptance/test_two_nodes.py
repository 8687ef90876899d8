"""Two nodes on one Postgres and one broker: every process of either is killed or frozen while alerts come in.

The senders know both addresses and repeat what was not acknowledged, as Prometheus does with two Alertmanagers.
Written to TABLE: for each blow the longest time from an alert to its message, without a 2xx, and without
a tick of the scheduler.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import redis

from deploy import processes
from deploy.embedded import Home, start_broker, start_postgres, stop
from tests.acceptance.stack import Stack, wait_for
from tests.integration.sinks import Sink, http_sink
from tests.settings import HOME_OF_TESTS

TABLE = HOME_OF_TESTS.parent / "dossier-two-nodes.txt"
EVERY = 0.5
"""Seconds between two alerts."""
KEYS = 20
"""Senders: a hundred alerts of one within minutes are a storm, and one incident."""
LONGEST = 10.0
"""Seconds that nothing may stand still for, whichever process is lost."""
CONFIGURATION = """
channels:
- {name: pager, kind: webhook, address: "${CHANNEL_ADDRESS_PAGER}"}
routes:
- {name: everything, pattern: "", team: on-call, order: 0}
escalation_policies:
- {slug: both, name: Both, team: on-call, steps: [{after: 0, actions: [{channel: pager}]}], repeats: 0}
"""


@dataclass
class Pair:
    """Both nodes, what they share, and what was seen of them."""

    home: Home
    nodes: list[Stack]
    sink: Sink
    keys: list[str] = field(default_factory=list)
    sent: dict[str, float] = field(default_factory=dict)
    taken: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    arrived: list[tuple[float, str, str]] = field(default_factory=list)

    def known(self, node: Stack) -> dict[str, processes.Known]:
        return {one.name: one for one in (processes.read(node.home) or ([], 0.0))[0]}

    def running(self, node: Stack) -> bool:
        known = self.known(node)
        return len(known) >= 6 and all(one.state == "running" for one in known.values())


@pytest.fixture
def pair() -> Iterator[Pair]:
    place = Path(tempfile.mkdtemp(prefix="dossier-two-"))
    shared = Home(place / "shared")
    servers = [start_postgres(shared), start_broker(shared)]
    with http_sink() as sink:
        nodes = [Stack(place / name / "home") for name in ("a", "b")]
        for node in nodes:
            node.home.parent.mkdir()
            node.environment |= {
                "DATABASE_URL": shared.database_url,
                "REDIS_URL": shared.broker_url,
                "DOSSIER_SECRET_KEY": "both",
                "CHANNEL_ADDRESS_PAGER": sink.url,
                "CHANNEL_SECRET_PAGER": "shared",
                "DOSSIER_OUTBOUND_ALLOWED_NETWORKS": "127.0.0.0/8",
                "DOSSIER_WEB_WORKERS": "1",
                "DOSSIER_TASK_WORKERS": "1",
                "DOSSIER_DRAIN_SECONDS": "0",
            }
        yield Pair(shared, nodes, sink)
        for node in nodes:
            if node.process is not None:
                node.stop(signal.SIGKILL)
        wait_for(lambda: not any(node.processes() for node in nodes), 60, "the end of both")
    for server in reversed(servers):
        stop(server)
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_no_process_of_either_node_is_missed(pair: Pair, tmp_path: Path) -> None:
    for node in pair.nodes:  # both at once on an empty database
        node.launch()
    for node in pair.nodes:
        wait_for(lambda node=node: node.answers() and pair.running(node), 240, "both nodes")  # type: ignore[misc]
    set_up(pair, tmp_path)
    sent, over = threading.Event(), threading.Event()
    sender = threading.Thread(target=send, args=(pair, sent))
    threads = [sender, *(threading.Thread(target=work, args=(pair, over)) for work in (hear, watch_ticks))]
    for thread in threads:
        thread.start()
    table: list[str] = []
    try:
        wait_for(lambda: len(pair.arrived) > 5 and len(pair.ticks) > 1, 120, "messages and ticks")
        for node, name, blow in blows(pair):
            table.append(strike(pair, node, name, blow))
            TABLE.write_text("\n".join([*table, ""]))
        sent.set()
        sender.join(60)
        wait_for(lambda: told(pair) >= set(pair.sent), 60, "the last messages")
    except AssertionError:
        table += whereabouts(pair, sorted(set(pair.sent) - told(pair)))
        raise
    finally:
        TABLE.write_text("\n".join([*table, ""]))
        sent.set()
        over.set()
        for thread in threads:
            thread.join(60)
    once = Counter(alert for _, alert in {(message, alert) for _, message, alert in pair.arrived})
    again = len(pair.arrived) - len({(message, alert) for _, message, alert in pair.arrived})
    table.append(f"{len(pair.sent)} alerts, {len(once)} told, {again} messages sent again under the same id")
    TABLE.write_text("\n".join([*table, ""]))
    assert set(once) == set(pair.sent)
    assert set(once.values()) == {1}
    assert "ound" in pair.nodes[0].manage("verify_log", "--without-seals")
    assert not [line for line in table if "TOO LONG" in line]


def whereabouts(pair: Pair, missing: list[str]) -> list[str]:
    """State in the database of alerts without a message."""
    query = (
        "SELECT i.number, i.title, i.alerts, n.state, d.state, d.lease_until, d.holder, d.why FROM incident i"
        " LEFT JOIN notifications_notification n ON n.incident = i.id"
        " LEFT JOIN notifications_notificationdelivery d ON d.notification_id = n.id WHERE i.title LIKE %s"
    )
    with closing(psycopg2.connect(pair.home.database_url)) as session, session.cursor() as cursor:
        found = []
        for name in missing:
            cursor.execute(query, (f"{name} %",))
            found.append(f"no message of {name}: {cursor.fetchall()}")
        cursor.execute("SELECT number, title, alerts FROM incident WHERE alerts > 1")
        return [*found, f"incidents of several alerts: {cursor.fetchall()}"]


def set_up(pair: Pair, place: Path) -> None:
    one = pair.nodes[0]
    file = place / "both.yaml"
    file.write_text(CONFIGURATION)
    one.manage("config", "apply", str(file))
    make = f"for n in range({KEYS}): print(keys.create(f'sender-{{n}}', ['alerts']))"
    said = one.manage("shell", "--no-imports", "-c", f"from ingest.api import keys\n{make}")
    pair.keys = said.split()
    assert len(pair.keys) == KEYS


def blows(pair: Pair) -> Iterator[tuple[Stack, str, str]]:
    for node in pair.nodes:
        for name in ("web-1", "events", "followers", "delivery", "worker", "scheduler"):
            yield node, name, "killed"
        for name in ("followers", "delivery", "scheduler"):
            yield node, name, "frozen"
        yield node, "supervisor", "killed"


def strike(pair: Pair, node: Stack, name: str, blow: str) -> str:
    """Kill or freeze a process, wait until it is there again, and say what stood still for how long."""
    began = time.monotonic()
    if name == "supervisor":
        assert node.process is not None
        node.stop(signal.SIGKILL)
        wait_for(lambda: not node.processes(), 60, "the end of all processes")
        time.sleep(LONGEST)  # the other does everything meanwhile
        node.start()
    else:
        before = pair.known(node)[name]
        assert before.pid is not None
        os.killpg(before.pid, signal.SIGKILL if blow == "killed" else signal.SIGSTOP)
        wait_for(lambda: pair.known(node)[name].restarts > before.restarts, 90, f"the end of {name}")
    wait_for(lambda: pair.running(node), 120, f"{name} again")
    time.sleep(8)
    return line(pair, f"{'AB'[pair.nodes.index(node)]} {name} {blow}", began, time.monotonic())


def line(pair: Pair, what: str, began: float, ended: float) -> str:
    arrived = {alert: at for at, _, alert in reversed(pair.arrived)}
    waits = [
        arrived.get(alert, ended) - at for alert, at in list(pair.sent.items()) if began - 5 <= at < ended - 2
    ]
    figures = {
        "alert to message": max(waits, default=0.0),
        "no 2xx": gap(pair.taken, began, ended),
        "no tick": gap(pair.ticks, began, ended),
    }
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in figures.items())
    # A tick comes every five seconds where all is well.
    late = max(figures["alert to message"], figures["no 2xx"], figures["no tick"] - 5) > LONGEST
    return f"{what}: {told}{' TOO LONG' if late else ''}"


def gap(times: list[float], began: float, ended: float) -> float:
    seen = [began, *(at for at in list(times) if began <= at <= ended), ended]
    return max(later - earlier for earlier, later in itertools.pairwise(seen))


def told(pair: Pair) -> set[str]:
    return {alert for _, _, alert in pair.arrived}


def send(pair: Pair, over: threading.Event) -> None:
    """One new alert after another; whichever node does not take it, the other is asked."""
    for number in itertools.count():
        if over.is_set():
            return
        name, tries = f"Down{number}", 0
        pair.sent[name] = time.monotonic()
        labels = {"alertname": name, "instance": f"h{number}", "severity": "critical"}
        body = json.dumps([{"labels": labels}]).encode()
        while not post(pair.nodes[(number + tries) % 2], pair.keys[number % KEYS], body):
            tries += 1
            time.sleep(0.1)
        pair.taken.append(time.monotonic())
        over.wait(EVERY)


def post(node: Stack, key: str, body: bytes) -> bool:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{node.address}/api/v2/alerts", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return False


def hear(pair: Pair, over: threading.Event) -> None:
    """Note when each message came."""
    seen = 0
    with closing(psycopg2.connect(pair.home.database_url)) as session, session.cursor() as cursor:
        while not over.is_set() or len(pair.sink.got) > seen:
            for got in pair.sink.got[seen:]:
                seen += 1
                text = json.loads(got.body)
                titles = [one["title"] for one in text["incidents"]]
                for one in text["others"]:  # beyond the first twenty a message has numbers only
                    cursor.execute("SELECT title FROM incident WHERE number = %s", (one["number"],))
                    titles += [str(title) for (title,) in cursor.fetchall()]
                at = time.monotonic()
                pair.arrived += [(at, str(text["id"]), title.split()[0]) for title in titles]
            session.rollback()
            time.sleep(0.05)


def watch_ticks(pair: Pair, over: threading.Event) -> None:
    client = redis.Redis(unix_socket_path=str(pair.home.broker_socket))
    commands: Any = client
    with commands.monitor() as monitor:
        while not over.is_set():
            command = str(monitor.next_command()["command"])
            if command.startswith("LPUSH") and "runs.tick" in command:
                pair.ticks.append(time.monotonic())
    client.close()
