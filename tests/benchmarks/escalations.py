"""Escalations due at once, to a receiver on this machine: how long until all are there, and that none is there twice.

Every incident has a policy whose next step calls one of twenty people by HTTP; what one person is told at the
same moment may be one message. `manage.py deliver` runs (DELIVERERS=N of it, 2 by default) and all become due
at one moment, the commit of the transaction that opens them; in the second turn one of them is killed
(SIGKILL) half-way and started again. A message that was under way when it was killed is sent again under the
same `Idempotency-Key`; told twice is a incident that stands in messages of two keys.

    nice python -m tests.benchmarks.escalations

ESCALATIONS=N for another number than 6,000.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from deploy.embedded import Home, start_postgres, stop
from tests.benchmarks.ingest import _manage
from tests.places import ROOT

TICKETS = int(os.environ.get("ESCALATIONS", "6000"))
DELIVERERS = int(os.environ.get("DELIVERERS", "2"))
PEOPLE = 20
PATIENCE = 900.0
"""Seconds."""
Row = dict[str, Any]


class Receiver(ThreadingHTTPServer):
    """Takes everything; keeps the key of each message and the incident that it is about."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.tickets: set[str] = set()
        self.told: set[tuple[str, str]] = set()
        self.at: list[float] = []
        super().__init__(("127.0.0.1", 0), _Taking)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/page"


class _Taking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, about = (
            self.headers["Idempotency-Key"],
            {one["id"] for one in (*body["incidents"], *body["others"])},
        )
        self.server.keys.append(key)
        self.server.tickets |= about
        self.server.told |= {(key, ticket) for ticket in about}
        self.server.at.append(time.perf_counter())
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def main() -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about ten minutes, most of it to open the incidents."""
    with ExitStack() as running:
        environment = running.enter_context(_database())
        os.environ.update(environment)
        import django

        django.setup()
        rows: list[Row] = []
        for killed in (False, True):
            receiver = Receiver()
            processes = [_deliver(environment) for _ in range(DELIVERERS)]
            began = time.perf_counter()
            open_tickets(receiver.url)
            opened = time.perf_counter() - began
            rows += _measured(environment, receiver, killed, opened, processes)
            receiver.shutdown()
        return rows


@contextmanager
def _database() -> Iterator[dict[str, str]]:
    home = Home(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "bench" / "escalations")
    home.forget()
    database = start_postgres(home, settings={"shared_buffers": "512MB", "max_wal_size": "4GB"})
    environment = {
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "DOSSIER_HOME": str(home.root),
        "DATABASE_URL": home.database_url,
        "DOSSIER_OUTBOUND_ALLOWED_NETWORKS": "127.0.0.0/8",
        "DOSSIER_ALLOW_ROOT": "true",
        # Without it each process has a key of its own, and none reads the addresses of another.
        "DOSSIER_SECRET_KEY": secrets.token_urlsafe(48),
    }
    try:
        _manage({**os.environ, **environment}, "migrate", "--verbosity", "0")
        yield environment
    finally:
        stop(database)
        home.forget()


def open_tickets(url: str) -> None:
    """As if opened ten minutes ago, each with its escalation started; the first step of all of them is overdue."""
    from django.contrib.auth.models import User
    from django.db import transaction

    from incidents.commands import Report
    from incidents.domain.escalation.policy import policy_from
    from incidents.domain.incident import commands as c
    from incidents.domain.routing.rules import Subject, route
    from incidents.incident.models import IncidentRow
    from incidents.incident.repository import next_number, record, record_opening
    from incidents.notifications.models import ContactMethod, Preferences
    from incidents.teams.models import routing_table
    from ingest.queries import Context

    IncidentRow.objects.all().delete()
    ContactMethod.objects.all().delete()
    bench, at = Context("user:bench"), datetime.now(UTC) - timedelta(minutes=10)
    for number in range(PEOPLE):
        user, _ = User.objects.get_or_create(username=f"person-{number}")
        Preferences.objects.get_or_create(user=user, defaults={"bundle_seconds": 0})
        ContactMethod.objects.create(user=user, name="hook", kind="webhook", address=url)
    routing = route(Subject(), routing_table())
    with transaction.atomic():  # one for all: opening them is not what is measured
        for number in range(TICKETS):
            steps = [{"after": 60, "actions": [{"person": f"person-{number % PEOPLE}"}]}]
            policy = policy_from({"slug": "bench", "name": "Bench", "steps": steps})
            opening = c.Open(str(uuid.uuid4()), next_number(), routing, Report(f"Disk {number} is gone"))
            opened = record_opening(opening, bench, at)
            record(opened.incident.id, c.StartEscalation(policy, "it was opened"), bench, at)


def _measured(
    environment: dict[str, str],
    receiver: Receiver,
    killed: bool,
    opened: float,
    processes: list[subprocess.Popen[bytes]],
) -> list[Row]:
    began, before = time.perf_counter(), sum(map(_cpu, processes))
    if killed:
        _until(lambda: len(receiver.tickets) >= TICKETS // 2, "half of them")
        processes[0].kill()
        processes[0].wait()
        processes[0] = _deliver(environment)
    _until(lambda: len(receiver.tickets) >= TICKETS, "all of them")
    seconds = max(receiver.at) - began
    used = sum(map(_cpu, processes)) - before
    time.sleep(3)
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(30)
    again = len(receiver.keys) - len(set(receiver.keys))
    twice = len(receiver.told) - TICKETS
    how = "killed half-way" if killed else "undisturbed"
    first = min(receiver.at) - began
    note = (
        f"{TICKETS / seconds:,.0f}/s, {DELIVERERS} processes, the first after {first:.1f} s"
        f"{'' if killed else f', {used:.1f} s of CPU of the processes'};"
        f" {again} sent again under the same key; incidents opened in {opened:.0f} s"
    )
    return [
        row(f"{TICKETS:,} escalations due at once, {how}: all received", seconds, "s", "< 10", note),
        row(
            f"incidents told more than once, {how}",
            twice,
            "",
            "= 0",
            f"in {len(set(receiver.keys)):,} messages",
        ),
        row(
            f"notifications in the database, {how}",
            _notifications() - TICKETS,
            "",
            "= 0",
            "beyond one an incident",
        ),
    ]


def _notifications() -> int:
    from incidents.incident.models import IncidentRow
    from incidents.notifications.models import Notification

    return Notification.objects.filter(incident__in=IncidentRow.objects.values("pk")).count()


def _deliver(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(ROOT / "manage.py"), "deliver"]
    environment = {**os.environ, **environment}
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)


def _cpu(process: subprocess.Popen[bytes]) -> float:
    """Seconds so far."""
    told = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def _until(done: Any, what: str) -> None:
    deadline = time.perf_counter() + PATIENCE
    while not done():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.05)


def row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 2), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    for found in main():
        print(found)
