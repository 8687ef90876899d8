"""A new version in place of the running one, without a pause: `manage.py up --replace`.

The new version, beside the running one, imports, migrates and collects; where that fails nothing has changed. Then it
asks: the running supervisor replaces its own program by the new one (exec), and with it keeps its id, its servers, its
processes and its listening sockets. The new supervisor starts its web processes on these, and has the old ones finish.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.embedded import EmbeddedError, Home
from deploy.env import VARIABLES
from deploy.supervisor.children import Child, Forked

HANDED = "DOSSIER_HANDED_OVER"
"""In the environment of a supervisor that takes over: what it takes over."""
OF_THE_VERSION = ("PATH", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables that belong to a version; all others stay as they are."""


class ReplacementError(RuntimeError):
    """Nothing is replaced; the message says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """`program` is the interpreter and `manage.py` of the new version; `failed` is the supervisor's answer."""

    program: list[str]
    variables: dict[str, str]
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Handed:
    """File descriptors of the home's lock and of the sockets, and ids of the children, by name."""

    lock: int
    sockets: dict[str, int]
    children: dict[str, int]

    def opened(self) -> dict[str, socket.socket]:
        return {name: socket.socket(fileno=number) for name, number in self.sockets.items()}


# The new version, beside the running one
# ----------------------------------------------------------------------------------------------------------
def running(home: Home) -> int:
    """The id of the home's supervisor. ReplacementError where none runs."""
    try:
        home.claim().close()
    except EmbeddedError:
        return int((home.root / "lock").read_text())
    raise ReplacementError(f"Dossier does not run in {home.root}; start it with manage.py up")


def its_environment(supervisor: int) -> dict[str, str]:
    """This process' environment with the settings of the running one. ReplacementError where one is set to something
    else here: settings change by a restart."""
    lines = Path(f"/proc/{supervisor}/environ").read_bytes().split(b"\0")
    theirs = dict(line.decode().split("=", 1) for line in lines if b"=" in line)
    other = [name for name in VARIABLES if os.environ.get(name, "") not in ("", theirs.get(name, ""))]
    if other:
        raise ReplacementError(
            f"{', '.join(sorted(other))}: set to something else than where process {supervisor} runs. Unset it here;"
            " a setting changes by a restart"
        )
    retained = {name: theirs[name] for name in VARIABLES if name in theirs}
    return {**os.environ, **retained}


def request_replacement(home: Home, program: Sequence[str]) -> None:
    variables = {name: os.environ.get(name, "") for name in OF_THE_VERSION}
    write(home, Request(list(program), variables))


def outcome(home: Home) -> str | None:
    """None while it goes on, empty when it is done, else why it failed."""
    if (request := read(home)) is None:
        return ""
    return request.failed or None


# The supervisor
# ----------------------------------------------------------------------------------------------------------
def write(home: Home, request: Request) -> None:
    fresh = _file(home).with_suffix(".new")
    fresh.write_text(json.dumps(asdict(request)))
    fresh.replace(_file(home))


def read(home: Home) -> Request | None:
    try:
        return Request(**json.loads(_file(home).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget(home: Home) -> None:
    _file(home).unlink(missing_ok=True)


def become(request: Request, handed: Handed) -> None:
    """Replace this process' program by the new version. Returns only where that cannot be started: OSError."""
    for number in (handed.lock, *handed.sockets.values()):
        os.set_inheritable(number, True)
    changed = {name: value for name, value in request.variables.items() if value}
    retained = {name: value for name, value in os.environ.items() if name not in OF_THE_VERSION}
    environment = {**retained, **changed, HANDED: json.dumps(asdict(handed))}
    sys.stdout.flush()
    os.execve(request.program[0], [*request.program, *sys.argv[1:]], environment)


def taken_over() -> Handed | None:
    """Sockets handed over by an earlier version, once."""
    if (result := os.environ.pop(HANDED, None)) is None:
        return None
    found = json.loads(result)
    return Handed(found["lock"], found["sockets"], found["children"])


def hand_over(lock: int, sockets: Mapping[str, socket.socket], children: Sequence[Child]) -> Handed:
    pids = {child.name: child.process.pid for child in children if child.process and child.due is None}
    return Handed(lock, {name: opened.fileno() for name, opened in sockets.items()}, pids)


def adopt(child: Child, handed: Handed) -> bool:
    """Whether `child` runs already; then it is kept running from here on."""
    if (pid := handed.children.get(child.name)) is None:
        return False
    process = Forked(pid)
    with suppress(ProcessLookupError):
        if process.poll() is None:
            child.adopt(process)
            return True
    return False


def _file(home: Home) -> Path:
    return home.root / "replace.json"
