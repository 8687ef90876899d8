"""New alerts from the endpoint's parser to their incidents: processor time an alert of each step, and what a minute of
10,000 a second comes to.

In one process on a Postgres of its own with fsync on, without HTTP: bodies of 64 are read and stored by one thread,
then the follower `incidents` catches up, alone. Alerts of a rule are one incident; of 200 rules the first 100 have an
incident each, the rest are a storm.

    python -m tests.benchmarks.alert_costs [ALERTS]
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.apart import Row, rows_of

ALERTS, BODY = 30_000, 64
WARM = 3_000
RULES = (1, 20, 200)
RATE, MINUTES = 10_000, 10
"""New alerts a second, and for how long, that are computed from what was measured."""


def main(alerts: int = ALERTS) -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about two minutes."""
    return rows_of("alert_costs", alerts)


def inside(alerts: int) -> list[Row]:
    """All figures, in a process whose settings lead to the benchmark's database."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    # As the processes of web and of followers do.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    _measured("warm", 2, WARM)
    return [row for rules in RULES for row in _rows(rules, alerts)]


def _rows(rules: int, alerts: int) -> Iterator[Row]:
    shape = "one rule" if rules == 1 else f"{rules} rules"
    stored, followed, rate = _measured(f"bench-{rules}", rules, alerts)
    note = f"{alerts:,} new alerts in bodies of {BODY}: {{:.0f}} ours, {{:.0f}} Postgres'"
    for name, (ours, server) in (("stored", stored), ("placed in incidents", followed)):
        told = note.format(1e6 * ours, 1e6 * server)
        yield _row(f"{shape}: an alert {name}", 1e6 * (ours + server), "us of processor", None, told)
    late = max(0.0, MINUTES * 60 * (RATE / rate - 1))
    told = (
        f"{rate:,.0f} alerts/s by one follower; on paper {late:,.0f} s late after {MINUTES} min of {RATE:,}/s"
    )
    yield _row(f"{shape}: one follower, with Postgres on the same cores", rate, "alerts/s", None, told)


Cost = tuple[float, float]


def _measured(integration: str, rules: int, alerts: int) -> tuple[Cost, Cost, float]:
    """Processor seconds an alert, ours and Postgres', of storing and of placing; alerts a second of the follower."""
    from incidents.follower import follower
    from ingest.log.read import run_once

    def drain() -> None:
        while run_once(follower()):
            pass

    from incidents.incident.models import MemberAlert

    drain()
    before = MemberAlert.objects.count()
    alerts += -alerts % BODY
    bodies = [_body(rules, first) for first in range(0, alerts, BODY)]

    def store() -> None:
        for body in bodies:
            _store(integration, body)

    stored, _ = _timed(store, alerts)
    followed, seconds = _timed(drain, alerts)
    _expect_placed(before + alerts)
    return stored, followed, alerts / seconds


def _timed(work: Callable[[], object], alerts: int) -> tuple[Cost, float]:
    began, ours, server = time.perf_counter(), time.process_time(), _server_seconds()
    work()
    seconds = time.perf_counter() - began
    return ((time.process_time() - ours) / alerts, (_server_seconds() - server) / alerts), seconds


def _server_seconds() -> float:
    """Processor seconds of the session: the work of the flush is the server's, too, but small beside it."""
    from django.db import connection

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


def _store(integration: str, body: bytes) -> None:
    from ingest.alerts.deliveries import Delivery
    from ingest.alerts.store import receive
    from ingest.integrations import prometheus

    parsed = prometheus.alerts(body, datetime.now(UTC))
    receive(parsed, Delivery(integration, "alertmanager", "application/json", body))


def _body(rules: int, first: int) -> bytes:
    return json.dumps([_alert(rules, number) for number in range(first, first + BODY)]).encode()


def _alert(rules: int, number: int) -> dict[str, Any]:
    labels = {
        "alertname": f"rule {number % rules}",
        "instance": f"h{number}:9100",
        "severity": "critical",
        "job": "node",
    }
    annotations = {"summary": f"h{number} does not answer", "description": "No answer for five minutes."}
    ends = (datetime.now(UTC) + timedelta(hours=6)).isoformat()
    return {
        "labels": labels,
        "annotations": annotations,
        "endsAt": ends,
        "generatorURL": "http://prometheus:9090",
    }


def _expect_placed(alerts: int) -> None:
    from incidents.incident.models import MemberAlert

    placed = MemberAlert.objects.count()
    if placed != alerts:
        raise RuntimeError(f"{placed:,} of {alerts:,} alerts are in incidents")


def _row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 1), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        print(json.dumps(inside(int(sys.argv[2]))))
    else:
        print(json.dumps(main(*map(int, sys.argv[1:])), indent=1))
