"""`manage.py demo`: everything that `up` starts, with a region's world fed through the public endpoint."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from argparse import ArgumentParser
from datetime import UTC, datetime, timedelta
from io import StringIO
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from deploy import privileges
from deploy.demo import roster
from deploy.demo.cluster import ClusterOperator
from deploy.demo.feed import Feeder
from deploy.demo.notes import Notes
from deploy.demo.pager import LOOPBACK, Pager
from deploy.demo.responders import Responders
from deploy.demo.screen import Screen
from deploy.demo.sender import PersonSender, RequestRejectedError, Sender, SenderStoppedError
from deploy.demo.witness import Witness
from deploy.demo.world import HEALTHY
from deploy.embedded import EmbeddedError, Home
from deploy.privileges import PrivilegeError
from deploy.supervisor.programs import Program
from deploy.supervisor.supervisor import StartupError, reachable, running, stopping_on_signals

SPEED = 50.0
MINUTES = 225  # of data time, see analyzers.simulators.region


class Command(BaseCommand):
    help = "Start Dossier with a demo world that sends to its public endpoints; Ctrl-C stops it."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reset", action="store_true", help="delete the data of the demo and exit")
        parser.add_argument(
            "--speed",
            type=float,
            default=SPEED,
            help=f"speed of the stories: minutes of data per minute ({SPEED:.0f})",
        )

    def handle(self, *args: Any, reset: bool, speed: float, **options: Any) -> None:
        screen = Screen(sys.stdout)
        try:
            if reset:
                forget(settings.HOME)
                screen.say(f"deleted {settings.HOME.root}")
                return
            with stopping_on_signals():
                show(settings.HOME, screen, speed)
        except (StartupError, EmbeddedError, PrivilegeError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            screen.say("stopped; `make demo` continues, `make demo-reset` deletes the data")


def show(home: Home, screen: Screen, speed: float) -> None:
    """Run until interrupted."""
    # The demo's people have their pagers on this machine; processes are forks of this one.
    settings.OUTBOUND_ALLOWED_NETWORKS = [*settings.OUTBOUND_ALLOWED_NETWORKS, ip_network(LOOPBACK)]
    with running(home, screen.say) as supervisor:
        file = home.root / "demo.json"
        introduce(Notes.load(file) or begin(file, speed), screen)
        supervisor.run(Program("world", lambda _: feed(file, screen, speed), beats=False, logs=False))
        while True:
            supervisor.watch()
            time.sleep(0.2)


def feed(file: Path, screen: Screen, speed: float) -> None:
    """In a process of its own: send the world, and compare incidents with what is true of it. Goes on for ever."""
    notes = Notes.load(file)
    assert notes is not None
    address = f"http://{reachable(settings.BIND_ADDRESS)}:{settings.PORT}"
    sender = Sender(address, notes.key, threading.Event())
    feeder = Feeder(notes, sender, screen, speed)
    threading.Thread(target=Witness(sender, screen, feeder.demo).run, daemon=True).start()
    if notes.cluster_key:
        cluster = Sender(address, notes.cluster_key, sender.stop)
        operator = ClusterOperator(cluster, sender, screen, feeder.demo, lambda: notes.sent or 0)
        threading.Thread(target=operator.run, daemon=True).start()
    if notes.admin_key:
        threading.Thread(target=respond, args=(notes, address, screen, feeder), daemon=True).start()
    feeder.run()
    sender.stop.wait()  # what the endpoint refuses it would refuse again


def respond(notes: Notes, address: str, screen: Screen, feeder: Feeder) -> None:
    """Set up people, rotations and policies, then have the people work on the incidents."""
    stop = feeder.stop
    pager = Pager(screen, notes.pager_port)
    pager.start()
    moved, notes.pager_port = pager.port != notes.pager_port, pager.port
    people = {name: PersonSender(address, name, notes.password, stop) for name in roster.PEOPLE}
    try:
        if roster.set_up(Sender(address, notes.admin_key, stop), notes.password, pager.address, moved=moved):
            roster.override(people[roster.STORAGE], datetime.now(UTC))
            screen.say(f"  People: {', '.join(people)}; two rotations, an override")
    except RequestRejectedError as error:
        screen.say(f"  People: Dossier rejected their set-up: {error}")
    except SenderStoppedError:
        pass
    else:
        alerts = Sender(address, notes.alerts_key, stop)
        Responders(people, alerts, screen, feeder.demo, lambda: notes.sent or 0).run()


def begin(path: Path, speed: float) -> Notes:
    """Make the demo's user and key, and choose its data time so that the stories end about now."""
    password = secrets.token_urlsafe(9)
    user, _ = get_user_model().objects.get_or_create(
        username="demo", defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    key = _key("demo", "telemetry", "incidents:read")
    cluster_key = _key("demo-cluster", "incidents:read", "remediation:request", "remediation:answer")
    admin_key, alerts_key = _key("demo-admin", "admin"), _key("demo-prometheus", "alerts")
    connections.close_all()
    ahead = timedelta(minutes=(MINUTES - HEALTHY) / speed)
    start = (datetime.now(UTC) + ahead - timedelta(minutes=MINUTES)).replace(second=0, microsecond=0)
    notes = Notes(
        path,
        "demo",
        password,
        key,
        start,
        cluster_key=cluster_key,
        admin_key=admin_key,
        alerts_key=alerts_key,
    )
    notes.save()
    return notes


def _key(name: str, *scopes: str) -> str:
    """A new key, of that name with something random."""
    output = StringIO()
    wanted = [word for scope in scopes for word in ("--scope", scope)]
    call_command("create_key", f"{name}-{secrets.token_hex(3)}", *wanted, stdout=output)
    return output.getvalue().split()[-1]


def introduce(notes: Notes, screen: Screen) -> None:
    address = settings.PUBLIC_URL
    screen.say()
    screen.say(f"  Dossier   {address}/")
    screen.say(f"  Login     {notes.user} / {notes.password}")
    if notes.admin_key:
        screen.say(f"  People    {', '.join(roster.PEOPLE)}: the same password")
    screen.say("  Look at   1. the inbox: incidents open by themselves during the stories")
    screen.say("            2. an incident: suspect, probability and evidence; acknowledge and resolve it")
    screen.say(f"            3. last week's report, at {address}/reports")
    screen.say(f"  As JSON   curl -H 'Authorization: Bearer {notes.key}' {address}/api/v1/incidents")
    screen.say("  Ctrl-C stops everything.")
    screen.say()


def forget(home: Home) -> None:
    if settings.DATABASE_URL:
        raise CommandError(
            "DATABASE_URL is set: delete its data yourself; --reset deletes embedded data only."
        )
    with home.claim(), privileges.raised():
        home.forget()
