"""Two nodes on one Postgres and one broker: every process of either is killed or frozen while alerts come in.

The senders know both addresses and repeat what was not acknowledged, as Prometheus does with two Alertmanagers.
Written to TABLE: for each blow the longest time from an alert to its message, without a 2xx, and without
a tick of the scheduler.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import redis

from tests.acceptance.stack import Stack, wait_for
from tests.acceptance.two_nodes import Pair, hear, send, set_up, told, two_nodes
from tests.settings import HOME_OF_TESTS

TABLE = HOME_OF_TESTS.parent / "dossier-two-nodes.txt"
LONGEST = 10.0
"""Seconds that nothing may stand still for, whichever process is lost."""


@pytest.fixture
def pair() -> Iterator[Pair]:
    place = Path(tempfile.mkdtemp(prefix="dossier-two-"))
    with two_nodes(place) as both:
        yield both
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


def watch_ticks(pair: Pair, over: threading.Event) -> None:
    client = redis.Redis(unix_socket_path=str(pair.home.broker_socket))
    commands: Any = client
    with commands.monitor() as monitor:
        while not over.is_set():
            command = str(monitor.next_command()["command"])
            if command.startswith("LPUSH") and "runs.tick" in command:
                pair.ticks.append(time.monotonic())
    client.close()
