"""A process that is kept running: started, watched, started again after a pause, stopped with all it forked.

Each child leads a session of its own, so that Ctrl-C in a terminal reaches the supervisor alone and all that
the child has forked can be ended with it. The kernel ends a child whose parent dies
(`embedded.die_with_parent`). Our own processes are forks of the supervisor, which has imported what they run; servers
are programs of others (`deploy.embedded`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from deploy.embedded import SERVER_LOGS, EmbeddedError, die_with_parent, name_process

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0  # seconds before a child that ended is started again
STABLE_AFTER = 30.0  # seconds after which a child counts as running well, and the pause is short again
MOST_LOG_BYTES = 20 * 2**20
"""Bytes of a log file after which it begins anew; the one before is kept."""
START = 180.0
"""Seconds that a process has for its first heartbeat."""
LONGEST_STEP = 1.0
"""Seconds of silence that one look counts at most: a supervisor that stood still itself has seen nothing."""


class Process(Protocol):
    """Interface of a process for `Child`: `subprocess.Popen` has it, and `Forked`."""

    pid: int

    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A child of this process by its id. It may have been forked before this process replaced its program (exec)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                pid, status = self.pid, signal.SIGKILL
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(0.01)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass(slots=True)
class Child:
    """One process: how it starts, which signal asks it to stop, and what has become of it."""

    name: str
    start: Callable[[], Process]
    ask: int = signal.SIGTERM
    process: Process | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float | None = None
    """Time of the next start, on the monotonic clock; None while it runs."""
    heartbeat: Path | None = None
    """The file that the process writes while its loops go on."""
    patience: float = 20.0
    """Seconds without a heartbeat after which it is ended and started again."""
    on_end: Callable[[str, int, str, float], None] = lambda *_: None
    """Called with name, pid, reason and pause for each end that was not asked for."""
    restarts: int = 0
    reason: str = ""
    silence: float = 0.0
    _seen: int = 0
    _looked: float = 0.0

    def launch(self) -> None:
        """Start it. A start that fails raises EmbeddedError or OSError, and the pause before the next one grows."""
        if self.heartbeat is not None:
            self.heartbeat.unlink(missing_ok=True)
        self._seen, self.silence, self._looked = 0, 0.0, time.monotonic()
        try:
            self.process, self.started, self.due = self.start(), time.monotonic(), None
        except (EmbeddedError, OSError):
            self.pause = min(self.pause * 2, LONGEST_PAUSE)
            self.due = time.monotonic() + self.pause
            raise

    def adopt(self, process: Process) -> None:
        """Keep one running that an earlier version of the supervisor has started; it has no heartbeat here."""
        self.process, self.started, self.due = process, time.monotonic(), None

    @property
    def state(self) -> str:
        """running, starting, silent or ended; as of the last look."""
        if self.due is not None or self.process is None:
            return "ended"
        if self.heartbeat is None or (self._seen and self.silence < self.patience / 2):
            return "running"
        return "silent" if self._seen else "starting"

    def watch(self, say: Callable[[str], None]) -> None:
        """Notice that the process has ended, and start it again when its pause is over."""
        now = time.monotonic()
        if self.due is not None:
            if now >= self.due:
                self.launch()
        elif self.process is not None and (reason := self._over(now)):
            pid = self.process.pid
            end_group(pid)
            self.process.wait()
            stable = now - self.started > STABLE_AFTER
            self.pause = FIRST_PAUSE if stable else min(self.pause * 2, LONGEST_PAUSE)
            self.due = now + self.pause
            self.restarts, self.reason = self.restarts + 1, reason
            self.on_end(self.name, pid, reason, self.pause)
            say(f"{self.name} {reason}; it starts again in {self.pause:.1f} s")

    def _over(self, now: float) -> str:
        """Reason why the process ended, empty while it runs. One that hangs is over, too."""
        assert self.process is not None
        if (code := self.process.poll()) is not None:
            return ending(code)
        step, self._looked = min(now - self._looked, LONGEST_STEP), now
        if self.heartbeat is None:
            return ""
        try:
            at = self.heartbeat.stat().st_mtime_ns
        except FileNotFoundError:
            at = 0
        if at != self._seen:
            self._seen, self.silence = at, 0.0
            return ""
        self.silence += step
        if self.silence < (self.patience if self._seen else START):
            return ""
        return f"hung: no heartbeat for {self.silence:.0f} s"

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


def fork(
    name: str,
    run: Callable[[], None],
    log: Path | None,
    environment: Mapping[str, str],
    on_parent_death: int,
    nice: int = 0,
) -> Forked:
    """Start a process that calls `run` and ends when that returns. Its output is appended to `log`; None: it goes where
    ours goes.

    Call it from the main thread, with no other thread running and no connection open.
    """
    parent, die = os.getpid(), die_with_parent(on_parent_death)
    output = None if log is None else os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        if output is not None:
            os.close(output)
        return Forked(pid)
    code = 1
    try:
        os.setsid()
        die()
        if os.getppid() != parent:
            os._exit(1)
        _set_up_child(name, output, environment, nice)
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001  # the boundary of a process: the supervisor's code must not go on in it
        traceback.print_exc()
    finally:
        _leave(code)
    raise AssertionError


def _set_up_child(name: str, output: int | None, environment: Mapping[str, str], nice: int) -> None:
    """Leave what is the supervisor's: its signals, terminal, environment, and what it does when it ends."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    atexit._clear()
    os.environ.clear()
    os.environ.update(environment)
    os.nice(nice)
    name_process(name)


def _leave(code: int) -> None:
    """End as an interpreter does: its threads are waited for, what was registered is called."""
    try:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def rotate(logs: Path) -> None:
    """Begin each log file anew that has grown beyond MOST_LOG_BYTES; the one before is kept as `*.log.1`.

    The processes go on writing to the same file, which they opened to append. What is written in the moment between
    copy and cut is lost. A full disk leaves the file as it is.
    """
    for log in logs.glob("*.log"):
        with contextlib.suppress(OSError):
            if log.stat().st_size > MOST_LOG_BYTES:
                shutil.copyfile(log, log.with_suffix(".log.1"))
                os.truncate(log, 0)


def end_group(leader: int) -> None:
    """Kill what a process that led a session has left behind (workers that it forked)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def ending(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def end_left_over(home: Path, patience: float = 3.0) -> list[int]:
    """End the processes that an earlier supervisor of `home` has left behind; returns their ids.

    Call it only with the home's lock held: then no supervisor is alive that they could belong to.
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
    """The processes that a supervisor of `home` forked, and their forks: their output goes to one of its logs."""
    logs = (home / "logs").resolve()
    return [
        pid
        for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        if pid != os.getpid() and _is_in(logs, pid)
    ]


def _is_in(logs: Path, pid: int) -> bool:
    try:
        output = Path(f"/proc/{pid}/fd/1").readlink()
    except OSError:  # it has ended meanwhile, or is another user's
        return False
    return output.parent == logs and output.name not in SERVER_LOGS
