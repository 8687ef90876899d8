"""Heartbeat of this process: a file that it writes once a second while every one of its loops makes progress.

The supervisor names the file and ends a process whose file stays as it is; a process that outlives its supervisor ends
itself. A stopped process writes nothing; a loop that hangs does not report its progress, and then the process writes
nothing either. The database has no part in it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

VARIABLE = "DOSSIER_HEARTBEAT"
"""Environment: the file that this process writes. Without it there is no heartbeat."""
SUPERVISOR = "DOSSIER_SUPERVISOR"
"""Environment: the process id of the supervisor, which may be gone before this process looks for its parent."""
EVERY = 0.5  # seconds
ORPHANED = 10.0
"""Seconds without the parent process after which this one is killed; the kernel has asked it to end before."""

_parts: dict[str, tuple[float, float]] = {}


def progress(part: str, limit: float) -> None:
    """Report that a loop goes on, and after how many seconds without a further report it counts as hanging."""
    _parts[part] = (time.monotonic(), limit)


def rest(part: str) -> None:
    """The loop has ended, or waits for something that may take any time."""
    _parts.pop(part, None)


def hanging() -> list[str]:
    """Names of the loops that are past their limits."""
    now = time.monotonic()
    return sorted(part for part, (at, limit) in list(_parts.items()) if now - at > limit)


def start() -> None:
    """Write the file from a thread of its own until the process ends; without VARIABLE nothing is done."""
    if path := os.environ.get(VARIABLE):
        threading.Thread(target=_beat, args=(Path(path),), name="heartbeat", daemon=True).start()


def _beat(file: Path) -> None:
    mine, parent, alone = f"{os.getpid()}\n", os.getppid(), 0.0
    supervisor = int(os.environ.get(SUPERVISOR) or 0)
    while True:
        alone = alone + EVERY if os.getppid() != parent or _is_gone(supervisor) else 0.0
        # The kernel's signal came while no handler was set: Celery's worker, as it set its own handlers.
        if alone >= ORPHANED:
            os.kill(os.getpid(), signal.SIGKILL)
        if not hanging():
            try:
                file.write_text(mine)
            except OSError:  # a full disk: the date of the file changes all the same
                _touch(file)
        time.sleep(EVERY)


def _is_gone(process: int) -> bool:
    if not process:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another user's
        return False
    return False


def _touch(file: Path) -> None:
    try:
        os.utime(file)
    except OSError:
        return
