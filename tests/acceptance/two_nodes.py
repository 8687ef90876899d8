"""Two nodes on one Postgres and one broker, senders that know both addresses, and a receiver of their messages.

The senders repeat what was not acknowledged, as Prometheus does with two Alertmanagers.
"""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2

from deploy import processes
from deploy.embedded import Home, start_broker, start_postgres, stop
from tests.acceptance.stack import Stack, wait_for
from tests.integration.sinks import Sink, http_sink

EVERY = 0.5
"""Seconds between two alerts."""
KEYS = 20
"""Senders: a hundred alerts of one within minutes are a storm, and one incident."""
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
    servers: dict[str, int] = field(default_factory=dict)
    """Ids of the processes that both share, by name."""

    def known(self, node: Stack) -> dict[str, processes.Known]:
        return {one.name: one for one in (processes.read(node.home) or ([], 0.0))[0]}

    def running(self, node: Stack) -> bool:
        known = self.known(node)
        return len(known) >= 6 and all(one.state == "running" for one in known.values())


@contextmanager
def two_nodes(place: Path, **environment: str) -> Iterator[Pair]:
    """Both nodes, not started yet; gone afterwards."""
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
                **environment,
            }
        pids = {"postgres": servers[0].pid, "broker": servers[1].pid}
        try:
            yield Pair(shared, nodes, sink, servers=pids)
        finally:
            for node in nodes:
                if node.process is not None:
                    node.stop(signal.SIGKILL)
            wait_for(lambda: not any(node.processes() for node in nodes), 60, "the end of both")
            for server in reversed(servers):
                stop(server)
            shutil.rmtree(place, ignore_errors=True)


def set_up(pair: Pair, place: Path) -> None:
    one = pair.nodes[0]
    file = place / "both.yaml"
    file.write_text(CONFIGURATION)
    one.manage("config", "apply", str(file))
    make = f"for n in range({KEYS}): print(keys.create(f'sender-{{n}}', ['alerts']))"
    said = one.manage("shell", "--no-imports", "-c", f"from ingest.api import keys\n{make}")
    pair.keys = said.split()
    assert len(pair.keys) == KEYS


def told(pair: Pair) -> set[str]:
    return {alert for _, _, alert in pair.arrived}


def send(pair: Pair, over: threading.Event, lasting: int | None = None) -> None:
    """One new alert after another; whichever node does not take it, the other is asked. Each is resolved after so many
    later ones; None: it stays.
    """
    for number in itertools.count():
        if over.is_set():
            return
        name, tries = f"Down{number}", 0
        pair.sent[name] = time.monotonic()
        alerts = [alert(number)]
        if lasting is not None and number >= lasting:
            alerts.append({**alert(number - lasting), "endsAt": datetime.now(UTC).isoformat()})
        for each in alerts:
            key = pair.keys[int(each["labels"]["instance"][1:]) % KEYS]
            while not post(pair.nodes[(number + tries) % 2], key, json.dumps([each]).encode()):
                tries += 1
                time.sleep(0.1)
        pair.taken.append(time.monotonic())
        over.wait(EVERY)


def alert(number: int) -> dict[str, Any]:
    return {"labels": {"alertname": f"Down{number}", "instance": f"h{number}", "severity": "critical"}}


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
