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
from types import FrameType
from typing import IO

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from deploy.children import MARK, Child, end_left_over, spawn
from deploy.embedded import EmbeddedError, Home, start_broker, start_postgres

Say = Callable[[str], None]
PATIENCE = 3.0  # seconds that children have to stop before they are killed
START_PATIENCE = 120.0


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
        """Start again what has ended. Call it a few times a second."""
        for child in [*self.servers, *self.programs]:
            try:
                child.watch(lambda line: self.say(f"{line} (logs in {self.home.logs})"))
            except EmbeddedError as error:
                self.say(str(error))
                child.due = time.monotonic() + child.pause

    def stop(self) -> None:
        """Stop everything, last started first."""
        for child in reversed(self.programs):
            child.ask_to_stop()
        deadline = time.monotonic() + PATIENCE
        for child in reversed(self.programs):
            child.end(deadline)
        connections.close_all()
        for child in reversed(self.servers):
            child.ask_to_stop()
            child.end(time.monotonic() + PATIENCE)
        if self.lock is not None:
            self.lock.close()

    def _prepare(self) -> None:
        self.home.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = self.home.root / "secret_key"
        if not secret.exists():
            secret.touch(mode=0o600)
            secret.write_text(settings.SECRET_KEY)
        metrics = self.home.root / "metrics"
        shutil.rmtree(metrics, ignore_errors=True)
        metrics.mkdir(mode=0o700)

    def _check_key(self) -> None:
        from incidents.delivery.key import WrongKeyError, check_key  # when Django is set up

        try:
            check_key()
        except WrongKeyError as error:
            raise CannotStart(f"{error}.") from None

    def _start_servers(self) -> None:
        if not settings.DATABASE_URL:
            self.servers.append(Child("database", lambda: start_postgres(self.home), signal.SIGINT))
        if not settings.REDIS_URL:
            self.servers.append(Child("broker", lambda: start_broker(self.home)))
        for child in self.servers:
            self.say(f"{child.name}: starting")
            child.launch()

    def _program(self, name: str, command: list[str], ask: int) -> Child:
        log = self.home.logs / f"{name}.log"
        environment = {
            **os.environ,
            MARK: str(self.home.root),
            "DOSSIER_HOME": str(self.home.root),
            "PROMETHEUS_MULTIPROC_DIR": str(self.home.root / "metrics"),
            # There is about one process a core; pools of threads in each would only get in each other's way.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        return Child(name, lambda: spawn(command, log, environment, ask), ask)

    def _wait_for_pages(self) -> None:
        deadline = time.monotonic() + START_PATIENCE
        address = f"http://{reachable(settings.BIND)}:{settings.PORT}/healthz"
        while not answers(address):
            if time.monotonic() > deadline:
                raise CannotStart(f"pages do not answer; see {self.home.logs / 'web.log'}")
            self.watch()
            time.sleep(0.1)


def programs() -> list[tuple[str, list[str], int]]:
    """Name, command and stop signal of each of our own processes, in the order in which they start."""
    root, python = settings.BASE_DIR, sys.executable
    granian = [python, "-m", "granian", "--host", settings.BIND, "--working-dir", str(root), "--no-ws"]
    granian += ["--workers-kill-timeout", "2", "--respawn-failed-workers", "--respawn-interval", "0.5"]
    web = [
        *granian,
        "--port",
        str(settings.PORT),
        "--interface",
        "asginl",
        "--workers",
        str(settings.WEB_WORKERS),
    ]
    # Slow strangers hold connections (deploy.gateway): so many of them that senders still find one.
    web += ["--backlog", "4096", "--backpressure", "2048", "--http1-header-read-timeout", "10000"]
    web += ["deploy.web:application"]
    events = [*granian, "--port", str(settings.EVENTS_PORT), "--interface", "asgi", "--workers", "1"]
    events += ["deploy.asgi:application"]
    celery = [python, "-m", "celery", "--workdir", str(root), "--app", "deploy.celery"]
    worker = [*celery, "worker", "--concurrency", str(settings.WORKERS), "--loglevel", "INFO"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    beat = [*celery, "beat", "--loglevel", "INFO", "--pidfile", ""]
    manage = str(root / "manage.py")
    mail = [("mail", [python, manage, "receive_mail"], signal.SIGTERM)] if settings.MAIL_PORT else []
    return [
        ("web", web, signal.SIGTERM),
        ("events", events, signal.SIGTERM),
        # SIGQUIT: leave the task, whose message the broker gives out again; SIGTERM would finish it first.
        ("worker", worker, signal.SIGQUIT),
        ("scheduler", beat, signal.SIGTERM),
        ("followers", [python, manage, "follow"], signal.SIGTERM),
        ("delivery", [python, manage, "deliver"], signal.SIGTERM),
        *mail,
    ]


def check_ports() -> None:
    """CannotStart when DOSSIER_BIND is no address of this machine, or, with a port that can be had, when PORT,
    EVENTS_PORT or MAIL_PORT is taken or not this user's to open.
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
    for name in ("PORT", "EVENTS_PORT", "MAIL_PORT"):
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
