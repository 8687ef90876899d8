"""A process that is kept running: started, watched, started again after a pause, stopped with all it forked.

Each child leads a session of its own, so that Ctrl-C in a terminal reaches the supervisor alone and all that
the child has forked can be ended with it. The kernel ends a child whose parent dies
(`embedded.die_with_parent`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded import die_with_parent

MARK = "DOSSIER_SUPERVISED"
"""In the environment of every child (and so of what it forks): the home it belongs to."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a child that ended is started again
CALM = 30.0  # seconds after which a child counts as running well, and the pause is short again
KEPT_LOG = 20 * 2**20


@dataclass(slots=True)
class Child:
    """One process: how it starts, which signal asks it to stop, and what has become of it."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    ask: int = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float | None = None
    """When to start it again, on the monotonic clock; None while it runs."""

    def launch(self) -> None:
        self.process, self.started, self.due = self.start(), time.monotonic(), None

    def watch(self, say: Callable[[str], None]) -> None:
        """Notice that the process has ended, and start it again when its pause is over."""
        now = time.monotonic()
        if self.due is not None:
            if now >= self.due:
                self.launch()
        elif self.process is not None and self.process.poll() is not None:
            end_group(self.process.pid)
            self.pause = FIRST_PAUSE if now - self.started > CALM else min(self.pause * 2, LONGEST_PAUSE)
            self.due = now + self.pause
            say(f"{self.name} {ending(self.process.returncode)}; it starts again in {self.pause:.0f} s")

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.ask)

    def end(self, deadline: float) -> None:
        """Wait until `deadline` (monotonic clock) for the process to end, then kill what is left of it."""
        if self.process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, deadline - time.monotonic()))
        end_group(self.process.pid)
        self.process.wait()


def spawn(
    command: Sequence[str], log: Path, environment: Mapping[str, str], on_parent_death: int
) -> subprocess.Popen[bytes]:
    """Start `command` with its output appended to `log`. Call it from the main thread."""
    if log.exists() and log.stat().st_size > KEPT_LOG:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=die_with_parent(on_parent_death),
        )


def end_group(leader: int) -> None:
    """Kill what a process that led a session has left behind (workers that it forked)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def ending(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def end_left_over(home: Path, patience: float = 3.0) -> list[int]:
    """End the processes that an earlier supervisor of `home` has left behind; returns their ids.

    They are told by their environment, which no unrelated process carries. Call it only with the home's lock
    held: then no supervisor is alive that they could belong to.
    """
    found = marked(home)
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + patience
        for pid in marked(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while marked(home) and time.monotonic() < deadline:
            time.sleep(0.05)
    return found


def marked(home: Path) -> list[int]:
    """The processes, other than this one, whose environment says that they belong to `home`."""
    wanted = f"{MARK}={home}".encode()
    return [
        pid
        for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        if pid != os.getpid() and wanted in _environment(pid)
    ]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended meanwhile, or is another user's
        return []
