"""Our own processes: the name of each, the function that it runs, the signal that asks it to stop.

`manage.py up` forks them from a process that has imported everything, so that one that ended is there again at once;
`manage.py run NAME` is one of them alone.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, cast

from django.conf import settings
from django.core.management import call_command, get_commands, load_command_class

BACKLOG = 4096
"""Connections that wait while no process takes them up, and those that slow strangers hold (`deploy.gateway`)."""
WEB, EVENTS = "deploy.web", "deploy.asgi"
SERVERS = ("granian.server.mp", "celery.bin.celery", "celery.worker.worker", "celery.apps.worker")
COLD = ("duckdb", "pyarrow.compute", "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet")
"""Libraries that read old telemetry and the log in files: 30 MB in each process that imports them alone."""
NOT_URGENT = 5
"""Niceness of the worker: analyses leave the processor to intake, incidents and messages."""


@dataclass(frozen=True, slots=True)
class Program:
    """`run` returns when the process was asked to stop. `port` is the one it listens on, None for one without or one
    that opens it by itself (gRPC takes no open socket)."""

    name: str
    run: Callable[[socket.socket | None], None]
    ask: signal.Signals = signal.SIGTERM
    port: int | None = None
    nice: int = 0
    overlaps: bool = False
    """Whether it serves before the one of an earlier version ends (`--replace`)."""
    beats: bool = True
    """Whether it shows by a heartbeat that it makes progress (`ingest.heartbeat`)."""
    logs: bool = True
    """Whether its output goes to a log of its own, or where the supervisor's goes."""

    @property
    def kind(self) -> str:
        return kind_of(self.name)


def programs() -> list[Program]:
    """In the order in which they start: intake first."""
    web, events = partial(serve, WEB, kill_after=10), partial(serve, EVENTS, kill_after=2)
    mail = (
        [Program("mail", mail_server, port=settings.INBOUND_EMAIL_PORT)]
        if settings.INBOUND_EMAIL_PORT
        else []
    )
    otlp = [Program("otlp", otlp_server, overlaps=True)] if settings.OTLP_GRPC_PORT else []
    return [
        *(
            Program(f"web-{number}", web, port=settings.PORT, overlaps=True)
            for number in range(1, settings.WEB_WORKERS + 1)
        ),
        Program("followers", partial(command, "follow")),
        Program("delivery", partial(command, "deliver")),
        Program("events", events, port=settings.EVENTS_PORT),
        *mail,
        *otlp,
        # SIGQUIT: leave the task, whose message the broker gives out again; SIGTERM would finish it first.
        Program("worker", worker, signal.SIGQUIT, nice=NOT_URGENT),
        Program("scheduler", scheduler),
    ]


def kind_of(name: str) -> str:
    """`web` of `web-2`."""
    return name.partition("-")[0]


def listen(port: int, *, one_of_several: bool = False) -> socket.socket:
    """A socket bound to this port of DOSSIER_BIND_ADDRESS. OSError where it cannot be opened, `one_of_several` where
    another than such a one is at the port."""
    opened = socket.socket(socket.AF_INET6 if ":" in settings.BIND_ADDRESS else socket.AF_INET)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one_of_several:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.bind((settings.BIND_ADDRESS, port))
    except OSError:
        opened.close()
        raise
    return opened


def listen_for(ports: Mapping[str, int]) -> dict[str, socket.socket]:
    """By program a socket at its port. OSError where one cannot be opened.

    Programs at one port have a socket each, over which Linux spreads connections: of one that they share, whoever wakes
    first takes all that come together, so that a few senders that stay connected keep one of two processes busy.
    """
    at = list(ports.values())
    return {name: listen(port, one_of_several=at.count(port) > 1) for name, port in ports.items()}


def preload() -> None:
    """Import what the processes run, so that those forked from this one need not."""
    import_module(WEB)
    import_module(EVENTS)
    for name in ("follow", "deliver"):
        load_command_class(get_commands()[name], name)
    from deploy.celery import app  # before Arrow, whose allocator it chooses

    for library in (*SERVERS, *(COLD if settings.TELEMETRY_COLD else ())):
        import_module(library)
    app.loader.import_default_modules()


def serve(target: str, opened: socket.socket | None, *, kill_after: int) -> None:
    """Serve the ASGI application of the module `target` until SIGTERM; requests at hand have `kill_after` seconds."""
    from granian import _granian
    from granian.constants import Interfaces
    from granian.http import HTTP1Settings
    from granian.server.mp import MPServer

    if opened is None:
        raise ValueError("a server needs a socket")
    # Granian's worker is a fork of this process, so that it need not import either.
    multiprocessing.set_start_method("fork", force=True)
    opened.listen(BACKLOG)
    opened.setblocking(False)
    host, port = opened.getsockname()[:2]
    number, holder = opened.fileno(), cast(Any, _granian).SocketHolder

    class Server(MPServer):
        """Granian on a socket that is open; of its own it would open one that ends with it."""

        def _init_shared_socket(self) -> None:
            vars(self).update(_shd=holder(number, False, BACKLOG), _sfd=number, _ssp=None, _sso=None)

    server = Server(
        f"{target}:application",
        host,
        port,
        interface=Interfaces.ASGI,
        workers=1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=2048,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
        workers_kill_timeout=kill_after,
        working_dir=settings.BASE_DIR,
    )
    # Without a respawn of its own: when the worker ends, so does its parent, and the supervisor notices.
    server.serve(target_loader=_load)


def _load(target: str) -> Any:
    """In the process that serves."""
    module, _, name = target.partition(":")
    loaded = import_module(module)
    if module == WEB:
        from deploy.web import prepare

        prepare()
    return getattr(loaded, name)


def command(name: str, _opened: socket.socket | None, options: Mapping[str, Any] | None = None) -> None:
    call_command(name, **(options or {}))


def mail_server(opened: socket.socket | None) -> None:
    call_command("receive_mail", opened=opened)


def otlp_server(_opened: socket.socket | None) -> None:
    call_command("receive_otlp", shared=True)


def worker(_opened: socket.socket | None) -> None:
    few = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    _celery("worker", "--concurrency", str(settings.TASK_WORKERS), "--loglevel", "INFO", *few)


def scheduler(_opened: socket.socket | None) -> None:
    _celery("beat", "--loglevel", "INFO", "--pidfile", "")


def _celery(*arguments: str) -> None:
    from deploy.celery import app

    words: Sequence[str] = arguments
    app.start(argv=list(words))
