"""Everything that Dossier needs on one machine, started in order, kept running, stopped in reverse.

Postgres and broker (the embedded ones, unless DATABASE_URL and REDIS_URL name others), migrations, then our own
processes (`deploy.supervisor.programs`), intake first. They are forks of this one, which imports what they run while
the database starts, and which holds the listening sockets: while a process that ended is started again, connections
go to the others of its kind, or wait where there are none.
`manage.py up` and `manage.py demo` are thin shells around it.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import shutil
import signal
import socket
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from redis.exceptions import RedisError

from deploy import broker, env, privileges, processes
from deploy.embedded import EmbeddedError, Home, start_broker, start_postgres
from deploy.postgres.base import VARIABLE as PROCESS
from deploy.static import collect
from deploy.supervisor import replacement
from deploy.supervisor.children import Child, Forked, Process, end_left_over, fork, rotate
from deploy.supervisor.preflight import complaint
from deploy.supervisor.programs import Program, kind_of, listen, listen_for, preload, programs
from deploy.supervisor.replacement import Handed, Request
from deploy.supervisor.root_start import leave_root
from ingest.commands import heartbeat
from ingest.db import disk

Say = Callable[[str], None]
PATIENCE = {"web": 12.0, "otlp": 12.0, "mail": 12.0}
"""Seconds that a process has to stop before it is killed, else 3. Those that serve finish the requests at hand."""
START_PATIENCE = 120.0
LOOK_AROUND = 1.0
"""Seconds between looks at what changes slowly: logs, disk, broker, and the file that says how processes are."""
BROKER_PATIENCE = 15.0
"""Seconds without an answer after which the embedded broker is started anew: it keeps nothing."""
HANGS_AFTER = {"web": 6.0, "events": 10.0, "otlp": 10.0}
"""Seconds without a heartbeat after which a process is ended; 20 where nothing is said."""
LOG_OF_MIGRATIONS = "migrations.log"
"""In the directory of the logs: tracebacks of migrations that failed."""

_stop_requested: list[bool] = []
"""Since the signal: an exception that is raised while Python finalizes an object is lost."""


class StartupError(RuntimeError):
    """Dossier cannot start here; the message is one line that says why and what to do."""


class Supervisor:
    """Runs the processes of one home. Use it from the main thread, inside `stopping_on_signals`.

    Started by root it goes on as the owner of the home, where that user gets to the code (`deploy.privileges`).
    """

    def __init__(self, home: Home, say: Say) -> None:
        self.home = home
        self.say = say
        self.servers: list[Child] = []
        self.programs: list[Child] = []
        self.sockets: dict[str, socket.socket] = {}
        self.lock: IO[str] | None = None
        self.taking_over = False
        self.looked = 0.0
        self.warned = ""
        self.unanswered = 0.0

    def start(self) -> None:
        """Start everything; returns when pages answer. StartupError, EmbeddedError or PrivilegeError says why not."""
        if (handed := replacement.taken_over()) is not None:
            self._take_over(handed)
            return
        self.lock = self.home.claim()
        for pid in end_left_over(self.home.root):
            self.say(f"ended process {pid}, left over from an earlier start")
        with privileges.raised():
            self.sockets = open_ports()
        leave_root(self.home, self.say)
        self._prepare()
        for child in self._servers():
            self.say(f"{child.name}: starting")
            self.servers.append(child)
            child.launch()
        make_ready(self.say)
        gc.collect()
        gc.freeze()  # a round that walked through it would copy what the forks share
        for program in programs():
            self.run(program)
        self._wait_for_pages()

    def _take_over(self, handed: Handed) -> None:
        """Go on with the servers and sockets of the version before, and put our processes in the place of its own."""
        self.lock, self.sockets, self.taking_over = os.fdopen(handed.lock, "a+"), handed.opened(), True
        for child in self._servers():
            self.servers.append(child)
            if not replacement.adopt(child, handed):
                child.launch()
        preload()
        gc.collect()
        gc.freeze()
        every = programs()
        for program in every:
            if program.overlaps:
                self.run(program)
        if self._beats():
            self._end_replaced(handed)
            for program in every:
                if not program.overlaps:
                    self.run(program)
            replacement.forget(self.home)
        else:
            self._go_on_with(handed)
        self.taking_over = False

    def _beats(self) -> bool:
        """Wait until every process that was started shows a heartbeat; whether they did in time."""
        deadline = time.monotonic() + START_PATIENCE
        while any(child.state != "running" for child in self.programs):
            if time.monotonic() > deadline:
                return False
            self.watch()
            time.sleep(0.1)
        return True

    def _go_on_with(self, handed: Handed) -> None:
        """Keep the processes of the version before: those of this one do not come up."""
        late = ", ".join(child.name for child in self.programs if child.state != "running")
        for child in self.programs:
            child.end(time.monotonic())
        self.programs = [self._child(program) for program in programs()]
        for child in self.programs:
            if not replacement.adopt(child, handed):
                child.launch()
        why = f"{late} did not come up, see {self.home.logs}; those before go on"
        if (request := replacement.read(self.home)) is not None:
            replacement.write(self.home, replace(request, failed=why))
        self.say(f"{clock_time()} not replaced: {why}")

    def _end_replaced(self, handed: Handed) -> None:
        """Ask the processes of the version before to stop, all at once, and wait as long as each may take."""
        asks, servers = {one.name: one.ask for one in programs()}, {child.name for child in self.servers}
        old = [
            Child(name, partial(Forked, pid), asks.get(name, signal.SIGTERM), Forked(pid))
            for name, pid in handed.children.items()
            if name not in servers
        ]
        for child in old:
            child.ask_to_stop()
        requested_at = time.monotonic()
        for child in sorted(old, key=patience):
            child.end(requested_at + patience(child))

    def _hand_over(self, request: Request) -> None:
        """Become the version that asks for it; goes on where that cannot be started."""
        self.say(f"{clock_time()} replaced by {request.program[1]}")
        connections.close_all()
        assert self.lock is not None
        children = [*self.servers, *self.programs]
        try:
            replacement.become(request, replacement.hand_over(self.lock.fileno(), self.sockets, children))
        except OSError as error:
            replacement.write(self.home, replace(request, failed=f"{request.program[0]}: {error.strerror}"))

    def run(self, program: Program) -> None:
        """Start it and keep it running."""
        self.programs.append(self._child(program))
        self.programs[-1].launch()

    def _child(self, program: Program) -> Child:
        child = Child(program.name, lambda: self._fork(child, program), program.ask, on_end=self._ended)
        child.patience = HANGS_AFTER.get(program.kind, 20.0)
        return child

    def watch(self) -> None:
        """Start again what has ended or hangs. Call it a few times a second."""
        if _stop_requested:
            raise KeyboardInterrupt
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
        if not self.taking_over and (request := replacement.read(self.home)) and not request.failed:
            self._hand_over(request)
        rotate(self.home.logs)
        for child in self.servers:
            if child.name == "broker" and child.due is None:
                self._ask_broker(child)
        with suppress(OSError):
            warning = disk.measure(self.home.root).warning
            if warning.partition(":")[0] != self.warned.partition(":")[0]:
                self.say(f"{clock_time()} {warning or 'disk: enough free space again'}")
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
        """Say at `/readyz` that this node stops, wait DOSSIER_DRAIN_SECONDS, then stop everything, last started
        first."""
        if any(child.process is not None for child in self.programs):
            with suppress(OSError):
                processes.begin_draining(self.home.root)
                time.sleep(settings.DRAIN_SECONDS)
        for child in reversed(self.programs):
            child.ask_to_stop()
        requested_at = time.monotonic()
        for child in reversed(self.programs):
            child.end(requested_at + patience(child))
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
            settings.SECRET_KEY_IS_STORED = True  # the processes are forks of this one
        processes.forget(self.home.root)
        replacement.forget(self.home)
        for name in ("metrics", "heartbeats"):
            shutil.rmtree(self.home.root / name, ignore_errors=True)
            (self.home.root / name).mkdir(mode=0o700)

    def _servers(self) -> list[Child]:
        """Those that this node runs itself."""
        database = Child(
            "database", lambda: start_postgres(self.home), signal.SIGINT, on_end=self._record_restart
        )
        broker = Child("broker", lambda: start_broker(self.home), on_end=self._record_restart)
        return [
            *([] if settings.DATABASE_URL else [database]),
            *([] if settings.REDIS_URL else [broker]),
        ]

    def _fork(self, child: Child, program: Program) -> Process:
        environment = {**os.environ, "DOSSIER_HOME": str(self.home.root), PROCESS: program.kind}
        if program.beats:
            child.heartbeat = self.home.root / "heartbeats" / f"{program.name}-{time.monotonic_ns()}"
            environment[heartbeat.VARIABLE] = str(child.heartbeat)
            environment[heartbeat.SUPERVISOR] = str(os.getpid())
        connections.close_all()

        def run() -> None:
            if self.lock is not None:
                self.lock.close()  # the home is the supervisor's, and free when that has ended
            for name, opened in self.sockets.items():
                if name != program.name:
                    opened.close()
            program.run(self.sockets.get(program.name))

        log = self.home.logs / f"{program.name}.log" if program.logs else None
        return fork(program.name, run, log, environment, program.ask, program.nice)

    def _ended(self, name: str, pid: int, reason: str, pause: float) -> None:
        """Until it is started again, connections go to the others at its port; without one they wait."""
        others = [one for one in self.programs if kind_of(one.name) == kind_of(name) and one.due is None]
        if others and name in self.sockets:
            with suppress(OSError):
                self.sockets[name].shutdown(socket.SHUT_RDWR)  # listens again when the new process does
        self._record_restart(name, pid, reason, pause)

    def _record_restart(self, name: str, pid: int, reason: str, pause: float) -> None:
        processes.record_restart(self.home.logs, name, pid, reason, pause)

    def _wait_for_pages(self) -> None:
        deadline = time.monotonic() + START_PATIENCE
        address = f"http://{reachable(settings.BIND_ADDRESS)}:{settings.PORT}/healthz"
        while not answers(address):
            if time.monotonic() > deadline:
                raise StartupError(f"pages do not answer; see {self.home.logs / 'web-1.log'}")
            self.watch()
            time.sleep(0.1)


def clock_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def patience(child: Child) -> float:
    """Seconds that it has to stop."""
    return PATIENCE.get(kind_of(child.name), 3.0)


def make_ready(say: Say) -> None:
    """All that can be done before processes of this version run: files, imports, migrations. StartupError where the
    database has secrets under another key, or migrations of a newer version."""
    collect()  # before the import, which lists the files that are there
    preload()
    from incidents.notifications.key import WrongKeyError, check_key  # when Django is set up

    migrate(say)
    try:
        check_key()
    except WrongKeyError as error:
        raise StartupError(f"{error}.") from None


def migrate(say: Say) -> None:
    """Apply the migrations that the database lacks. StartupError names the one that failed; LOG_OF_MIGRATIONS has the
    traceback."""
    from deploy.observability.health import foreign_database, migrated

    output = io.StringIO()
    try:
        if reason := foreign_database():
            raise StartupError(reason)
        if not migrated():
            if not settings.MIGRATE_ON_START:
                raise StartupError(
                    "The database lacks migrations of this version: run `manage.py migrate` first"
                    " (DOSSIER_MIGRATE_ON_START is false)."
                )
            say("database: migrating")
            call_command("migrate", verbosity=1, interactive=False, no_color=True, stdout=output)
    except Exception as error:
        # A migration may be any code.
        if isinstance(error, StartupError) or complaint(error) is not None:
            raise
        log = settings.HOME.logs / LOG_OF_MIGRATIONS
        with suppress(OSError), log.open("a") as file:
            file.write(f"{clock_time()}\n{''.join(traceback.format_exception(error))}")
        why = str(error).partition("\n")[0]
        raise StartupError(
            f"The database cannot be migrated: {failed_migration(error, output.getvalue())}{type(error).__name__}:"
            f" {why}. Migrations before it are applied. The traceback is in {log}"
        ) from error


def failed_migration(error: BaseException, text: str) -> str:
    """`app.name: ` of the migration that failed, or `file:line: ` of one that cannot be read; else empty."""
    if at := re.search(r"Applying (\S+?)\.\.\.\s*\Z", text):
        return f"{at[1]}: "
    frames = traceback.extract_tb(error.__traceback__)
    files = [one for one in frames if Path(one.filename).parent.name == "migrations"]
    return f"{'/'.join(Path(files[-1].filename).parts[-3:])}:{files[-1].lineno}: " if files else ""


def open_ports() -> dict[str, socket.socket]:
    """The sockets of pages and live updates, bound. StartupError when DOSSIER_BIND_ADDRESS is no address of this
    machine, or, with a port that can be had, when one of PORT, DOSSIER_EVENTS_PORT, DOSSIER_INBOUND_EMAIL_PORT and
    DOSSIER_OTLP_GRPC_PORT is taken or not this user's to open.
    """
    if problem := port_problem(0):
        raise StartupError(
            f"DOSSIER_BIND_ADDRESS is {settings.BIND_ADDRESS!r}, which {problem}. It must be an address of "
            "this machine, such as 127.0.0.1, or 0.0.0.0 for all of them."
        )
    if settings.PORT == settings.EVENTS_PORT:
        raise StartupError(
            f"PORT and DOSSIER_EVENTS_PORT are both {settings.PORT}; live updates need one of their own."
        )
    for name in ("PORT", "DOSSIER_EVENTS_PORT", "DOSSIER_INBOUND_EMAIL_PORT", "DOSSIER_OTLP_GRPC_PORT"):
        port = getattr(settings, name.removeprefix(env.PREFIX))
        if port and (problem := port_problem(port)):
            others = (*range(max(port + 1, 1024), 65535), *range(1024, port))
            free = next(p for p in others if not port_problem(p) and not port_problem(p + 1))
            raise StartupError(f"{name} {port} {problem}. Choose another: {name}={free} make demo")
    return listen_for({program.name: program.port for program in programs() if program.port})


def port_problem(port: int) -> str | None:
    """Reason why no process of this user can listen at this port of DOSSIER_BIND_ADDRESS (0: at any), or None."""
    try:
        listen(port).close()  # OSError here, too, on a machine without IPv6
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
        _stop_requested.append(True)
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        _stop_requested.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def running(home: Home, say: Say) -> Iterator[Supervisor]:
    """A started supervisor that is stopped, undisturbed by further signals, when the block ends."""
    for line in env.unread():
        say(f"settings: {line}")
    supervisor = Supervisor(home, say)
    try:
        supervisor.start()
        yield supervisor
    finally:
        before = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
        supervisor.stop()
        for number, handler in before.items():
            signal.signal(number, handler)
