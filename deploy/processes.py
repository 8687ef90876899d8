"""Processes of the supervisor, in a file that pages, `/readyz` and `/metrics` read."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

SILENT = 15.0
"""Seconds after which the supervisor itself, which writes every second, counts as hanging."""
TASKS = "tasks"
"""Heartbeat in the database that tells when any worker did its last task."""
DRAINING = "draining"
RESTARTS = "restarts.jsonl"
"""In the directory of the logs: one line for each process that ended or was ended, with time and reason."""


@dataclass(frozen=True, slots=True)
class Known:
    """`state`: running, starting (no heartbeat yet), silent (no heartbeat of late) or ended."""

    name: str
    state: str
    pid: int | None
    restarts: int
    reason: str


def write(home: Path, known: list[Known]) -> None:
    """Replace the file. On a full disk the old one stays, and is dated as of now."""
    file = _file(home)
    try:
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps([asdict(one) for one in known]))
        fresh.replace(file)
    except OSError:
        with suppress(OSError):
            os.utime(file)


def read(home: Path) -> tuple[list[Known], float] | None:
    """The processes, and how many seconds ago the supervisor wrote of them; None where no supervisor runs."""
    try:
        text, at = _file(home).read_text(), _file(home).stat().st_mtime
        return [Known(**one) for one in json.loads(text)], max(0.0, time.time() - at)
    except (OSError, ValueError, TypeError):
        return None


def run_as_root(home: Path) -> bool:
    """Whether a process that the supervisor keeps running is root's."""
    known, _ = read(home) or ([], 0.0)
    for one in known:
        with suppress(OSError):  # it has ended meanwhile
            if one.pid and Path(f"/proc/{one.pid}").stat().st_uid == 0:
                return True
    return False


def forget(home: Path) -> None:
    """Before the start, and when all have ended."""
    _file(home).unlink(missing_ok=True)
    (home / DRAINING).unlink(missing_ok=True)


def begin_draining(home: Path) -> None:
    (home / DRAINING).touch()


def is_draining(home: Path) -> bool:
    return (home / DRAINING).exists()


def record_restart(logs: Path, name: str, pid: int, reason: str, pause: float) -> None:
    """Append a line to RESTARTS; a full disk loses it."""
    line = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "process": name,
        "pid": pid,
        "reason": reason,
        "starts_again_in_seconds": round(pause, 1),
    }
    with suppress(OSError), (logs / RESTARTS).open("a") as file:
        file.write(json.dumps(line) + "\n")


def _file(home: Path) -> Path:
    return home / "processes.json"
