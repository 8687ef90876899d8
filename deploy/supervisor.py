"""Everything that Dossier needs on one machine, started in order, kept running, stopped in reverse.

Postgres and broker (the embedded ones, unless DATABASE_URL and REDIS_URL name others), migrations, then pages
and doors, live updates, worker, scheduler, followers and delivery. `manage.py up` and `manage.py demo` are thin shells
around it.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import IO

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from redis.exceptions import RedisError

from deploy import broker, disk, processes
from deploy.children import MARK, Child, end_left_over, rotate, spawn
from deploy.embedded import EmbeddedError, Home, start_broker, start_postgres
from deploy.postgres.base import VARIABLE as PROCESS
from ingest.commands import heartbeat

Say = Callable[[str], None]
PATIENCE = {"web": 12.0, "otlp": 12.0}
"""Seconds that a process has to stop before it is killed, else 3. Those that serve finish the requests at hand."""
START_PATIENCE = 120.0
LOOK_AROUND = 1.0
"""Seconds between looks at what changes slowly: logs, disk, broker, and the file that says how processes are."""
BROKER_PATIENCE = 15.0
"""Seconds without an answer after which the embedded broker is started anew: it keeps nothing."""
HANGS_AFTER = {"web": 6.0, "events": 10.0, "otlp": 10.0}
"""Seconds without a heartbeat after which a process is ended; 20 where nothing is said."""


class CannotStart(RuntimeError):
    """Dossier cannot start here; the message is one line that says why and what to do."""


class Supervisor:
    """Runs the processes of one home. Use it from the main thread, inside `stopping_on_signals`."""

    def __init__(self, home: Home, say: Say) -> None:
        self.home = home
        self.say = say
        self.servers: list[Child] = []
        self.programs: list[Child] = []
        self.lock: IO[str] | None = None
        self.looked = 0.0
        self.warned = ""
        self.unanswered = 0.0

    def start(self) -> None:
        """Start everything; returns when pages answer. CannotStart or EmbeddedError says why not."""
        self.lock = self.home.claim()
        for pid in end_left_over(self.home.root):
            self.say(f"ended process {pid}, left over from an earlier start")
        check_ports()
        self._prepare()
        self._start_servers()
        self.say("database: migrating")
        call_command("migrate", verbosity=0, interactive=False)
        self._check_key()
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        call_command("collectstatic", verbosity=0, interactive=False)
        connections.close_all()
        self.programs = [self._program(name, command, ask) for name, command, ask in programs()]
        for child in self.programs:
            child.launch()
        self._wait_for_pages()

    def watch(self) -> None:
        """Start again what has ended or hangs. Call it a few times a second."""
        for child in [*self.servers, *self.programs]:
            try:
                child.watch(lambda line: self.say(f"{clock_time()} {line} (logs in {self.home.logs})"))
            except (EmbeddedError, OSError) as error:
                self.say(
                    f"{clock_time()} {child.name} did not start; next try in {child.pause:.0f} s: {error}"
                )
        if time.monotonic() - self.looked >= LOOK_AROUND:
            self.looked = time.monotonic()
            self._look_around()

    def _look_around(self) -> None:
        rotate(self.home.logs)
        for child in self.servers:
            if child.name == "broker" and child.due is None:
                self._ask_broker(child)
        with suppress(OSError):
            warning = disk.measure(self.home.root).warning
            if warning.partition(":")[0] != self.warned.partition(":")[0]:
                self.say(f"{clock_time()} {warning or 'disk: enough is free again'}")
            self.warned = warning
        known = [
            processes.Known(
                one.name, one.state, one.process.pid if one.process else None, one.restarts, one.reason
            )
            for one in (*self.servers, *self.programs)
        ]
        processes.write(self.home.root, known)

    def _ask_broker(self, child: Child) -> None:
        """End a broker that stands still; `Child.watch` then starts it again."""
        try:
            broker.ping()
        except RedisError:
            if not self.unanswered:
                self.unanswered = time.monotonic()
            if time.monotonic() - self.unanswered > BROKER_PATIENCE and child.process is not None:
                self.say(f"{clock_time()} broker hung: no answer for {BROKER_PATIENCE:.0f} s")
                child.process.kill()
                self.unanswered = 0.0
        else:
            self.unanswered = 0.0

    def stop(self) -> None:
        """Say at `/readyz` that this node stops, wait DRAIN_SECONDS, then stop everything, last started first."""
        if any(child.process is not None for child in self.programs):
            with suppress(OSError):
                processes.begin_draining(self.home.root)
                time.sleep(settings.DRAIN_SECONDS)
        for child in reversed(self.programs):
            child.ask_to_stop()
        asked = time.monotonic()
        for child in reversed(self.programs):
            child.end(asked + PATIENCE.get(kind_of(child.name), 3.0))
        connections.close_all()
        for child in reversed(self.servers):
            child.ask_to_stop()
            child.end(time.monotonic() + 3.0)
        processes.forget(self.home.root)
        if self.lock is not None:
            self.lock.close()

    def _prepare(self) -> None:
        self.home.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = self.home.root / "secret_key"
        if not secret.exists():
            secret.touch(mode=0o600)
            secret.write_text(settings.SECRET_KEY)
        processes.forget(self.home.root)
        metrics = self.home.root / "metrics"
        shutil.rmtree(metrics, ignore_errors=True)
        metrics.mkdir(mode=0o700)
        (self.home.root / "heartbeats").mkdir(mode=0o700, exist_ok=True)

    def _check_key(self) -> None:
        from incidents.delivery.key import WrongKeyError, check_key  # when Django is set up

        try:
            check_key()
        except WrongKeyError as error:
            raise CannotStart(f"{error}.") from None

    def _start_servers(self) -> None:
        if not settings.DATABASE_URL:
            self.servers.append(
                Child("database", lambda: start_postgres(self.home), signal.SIGINT, told=self._told)
            )
        if not settings.REDIS_URL:
            self.servers.append(Child("broker", lambda: start_broker(self.home), told=self._told))
        for child in self.servers:
            self.say(f"{child.name}: starting")
            child.launch()

    def _program(self, name: str, command: list[str], ask: int) -> Child:
        log, beat = self.home.logs / f"{name}.log", self.home.root / "heartbeats" / name
        kind = kind_of(name)
        environment = {
            **os.environ,
            MARK: str(self.home.root),
            "DOSSIER_HOME": str(self.home.root),
            "PROMETHEUS_MULTIPROC_DIR": str(self.home.root / "metrics"),
            # There is about one process a core; pools of threads in each would only get in each other's way.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
            PROCESS: kind,
            heartbeat.VARIABLE: str(beat),
        }
        start = partial(spawn, command, log, environment, ask)
        has_beat, patience = (None if kind == "mail" else beat), HANGS_AFTER.get(kind, 20.0)
        return Child(name, start, ask, heartbeat=has_beat, patience=patience, told=self._told)

    def _told(self, name: str, pid: int, reason: str, pause: float) -> None:
        processes.record_restart(self.home.logs, name, pid, reason, pause)

    def _wait_for_pages(self) -> None:
        deadline = time.monotonic() + START_PATIENCE
        address = f"http://{reachable(settings.BIND)}:{settings.PORT}/healthz"
        while not answers(address):
            if time.monotonic() > deadline:
                raise CannotStart(f"pages do not answer; see {self.home.logs / 'web-1.log'}")
            self.watch()
            time.sleep(0.1)


def programs() -> list[tuple[str, list[str], int]]:
    """Name, command and stop signal of each of our own processes, in the order in which they start."""
    root, python = settings.BASE_DIR, sys.executable
    granian = [python, "-m", "granian", "--host", settings.BIND, "--working-dir", str(root), "--no-ws"]
    # Without a respawn of its own: when the worker ends, so does the parent, and the supervisor notices.
    granian += ["--workers-kill-timeout"]
    web = [
        *granian,
        "10",
        "--port",
        str(settings.PORT),
        "--interface",
        "asgi",
        "--workers",
        "1",
    ]
    # Slow strangers hold connections (deploy.gateway): so many of them that senders still find one.
    web += ["--backlog", "4096", "--backpressure", "2048", "--http1-header-read-timeout", "10000"]
    web += ["deploy.web:application"]
    events = [*granian, "2", "--port", str(settings.EVENTS_PORT), "--interface", "asgi", "--workers", "1"]
    events += ["deploy.asgi:application"]
    celery = [python, "-m", "celery", "--workdir", str(root), "--app", "deploy.celery"]
    worker = [*celery, "worker", "--concurrency", str(settings.WORKERS), "--loglevel", "INFO"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    beat = [*celery, "beat", "--loglevel", "INFO", "--pidfile", ""]
    manage = str(root / "manage.py")
    mail = [("mail", [python, manage, "receive_mail"], signal.SIGTERM)] if settings.MAIL_PORT else []
    otlp = [("otlp", [python, manage, "receive_otlp"], signal.SIGTERM)] if settings.OTLP_GRPC_PORT else []
    return [
        # Each listens on the port by itself (SO_REUSEPORT): when one ends, the others get the new connections.
        *((f"web-{number}", web, signal.SIGTERM) for number in range(1, settings.WEB_WORKERS + 1)),
        ("events", events, signal.SIGTERM),
        # SIGQUIT: leave the task, whose message the broker gives out again; SIGTERM would finish it first.
        ("worker", worker, signal.SIGQUIT),
        ("scheduler", beat, signal.SIGTERM),
        ("followers", [python, manage, "follow"], signal.SIGTERM),
        ("delivery", [python, manage, "deliver"], signal.SIGTERM),
        *mail,
        *otlp,
    ]


def kind_of(name: str) -> str:
    """`web` of `web-2`."""
    return name.partition("-")[0]


def clock_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def check_ports() -> None:
    """CannotStart when DOSSIER_BIND is no address of this machine, or, with a port that can be had, when PORT,
    EVENTS_PORT, MAIL_PORT or OTLP_GRPC_PORT is taken or not this user's to open.
    """
    if problem := port_problem(0):
        raise CannotStart(
            f"DOSSIER_BIND is {settings.BIND!r}, which {problem}. It must be an address of "
            "this machine, such as 127.0.0.1, or 0.0.0.0 for all of them."
        )
    if settings.PORT == settings.EVENTS_PORT:
        raise CannotStart(
            f"PORT and EVENTS_PORT are both {settings.PORT}; live updates need one of their own."
        )
    for name in ("PORT", "EVENTS_PORT", "MAIL_PORT", "OTLP_GRPC_PORT"):
        port = getattr(settings, name)
        if port and (problem := port_problem(port)):
            others = (*range(max(port + 1, 1024), 65535), *range(1024, port))
            free = next(p for p in others if not port_problem(p) and not port_problem(p + 1))
            raise CannotStart(f"{name} {port} {problem}. Choose another: {name}={free} make demo")


def port_problem(port: int) -> str | None:
    """Why nothing of this user's can listen at this port of DOSSIER_BIND (0: at any), or None."""
    family = socket.AF_INET6 if ":" in settings.BIND else socket.AF_INET
    try:
        with socket.socket(family) as probe:  # OSError here, too, on a machine without IPv6
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.BIND, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return "is in use"
        return f"cannot be opened: {(error.strerror or str(error)).lower()}"
    return None


def reachable(bind: str) -> str:
    """The host part under which this machine reaches a server that listens on `bind`."""
    if bind in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{bind}]" if ":" in bind else bind


def answers(address: str) -> bool:
    with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(address, timeout=2) as response:
        return bool(response.status == 200)
    return False


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP (a closed terminal) end the block as Ctrl-C does: by KeyboardInterrupt."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def running(home: Home, say: Say) -> Iterator[Supervisor]:
    """A started supervisor that is stopped, undisturbed by further signals, when the block ends."""
    supervisor = Supervisor(home, say)
    try:
        supervisor.start()
        yield supervisor
    finally:
        before = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
        supervisor.stop()
        for number, handler in before.items():
            signal.signal(number, handler)
