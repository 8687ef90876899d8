"""Children of the supervisor: started again when they end, and gone with everything that they forked."""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from deploy import processes
from deploy.embedded import EmbeddedError
from deploy.supervisor import children
from deploy.supervisor.children import Child, Forked, end_left_over, fork, marked, rotate
from ingest import heartbeat

FORKS = "import os, time\nif os.fork(): os.wait()\nelse: time.sleep(60)"
STUBBORN = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(60)"
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
BEATS = "import time\nfrom ingest import heartbeat\nheartbeat.EVERY = 0.05\nheartbeat.start()\ntime.sleep(60)"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_left_over(tmp_path, patience=1)


def child(home: Path, program: str) -> Child:
    return Child("program", lambda: run(home, program, dict(os.environ)))


def run(home: Path, program: str, environment: dict[str, str]) -> Forked:
    (home / "logs").mkdir(exist_ok=True)
    command = [sys.executable, "-c", program]
    start = partial(os.execv, sys.executable, command)
    return fork("program", start, home / "logs" / "program.log", environment, signal.SIGTERM)


def wait_until(home: Path, count: int) -> None:
    deadline = time.monotonic() + 10
    while len(marked(home)) != count:
        assert time.monotonic() < deadline, f"{marked(home)} instead of {count}"
        time.sleep(0.02)


def test_a_child_that_ends_is_started_again_after_a_pause(home: Path) -> None:
    said: list[str] = []
    brief = child(home, "raise SystemExit(3)")
    brief.launch()
    first = brief.process
    while brief.process is first:
        brief.watch(said.append)
        time.sleep(0.02)
    assert said == ["program ended with code 3; it starts again in 0.2 s"]
    brief.end(time.monotonic())


def test_the_pause_grows_while_a_child_keeps_ending(home: Path) -> None:
    brief = child(home, "raise SystemExit(3)")
    brief.launch()
    pauses = []
    for _ in range(3):
        assert brief.process is not None
        brief.process.wait()
        brief.watch(lambda _: None)
        pauses.append(brief.pause)
        brief.launch()
    assert pauses == [0.2, 0.4, 0.8]
    brief.end(time.monotonic())


def test_what_a_killed_child_has_forked_ends_too(home: Path) -> None:
    forking = child(home, FORKS)
    forking.launch()
    wait_until(home, 2)
    assert forking.process is not None
    forking.process.kill()
    forking.process.wait()
    forking.watch(lambda _: None)
    wait_until(home, 0)


def test_a_child_that_does_not_stop_is_killed(home: Path) -> None:
    stubborn = child(home, STUBBORN)
    stubborn.launch()
    while "on" not in (home / "logs" / "program.log").read_text():
        time.sleep(0.02)
    stubborn.ask_to_stop()
    stubborn.end(time.monotonic() + 0.2)
    assert stubborn.process is not None
    assert stubborn.process.returncode == -signal.SIGKILL


def test_left_over_processes_are_told_by_where_their_output_goes(home: Path) -> None:
    forking = child(home, FORKS)
    forking.launch()
    wait_until(home, 2)
    assert len(end_left_over(home)) == 2
    forking.end(time.monotonic())
    assert os.getpid() not in marked(home)


def test_processes_of_another_home_are_left_alone(home: Path) -> None:
    theirs = child(home, "import time; time.sleep(60)")
    theirs.launch()
    wait_until(home, 1)
    assert end_left_over(home / "other") == []
    assert len(marked(home)) == 1
    theirs.end(time.monotonic())


def test_a_long_log_begins_anew_while_its_process_writes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MOST_LOG_BYTES", 10)
    with (home / "program.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=log)
    assert process.stdin is not None
    process.stdin.write(b"x" * 11 + b"\n")
    process.stdin.flush()
    while (home / "program.log").stat().st_size < 12:
        time.sleep(0.02)
    rotate(home)
    process.stdin.write(b"new\n")
    process.stdin.close()
    process.wait()
    assert (home / "program.log").read_text() == "new\n"
    assert (home / "program.log.1").read_text() == "x" * 11 + "\n"


@pytest.fixture
def beating(home: Path) -> Iterator[Child]:
    """A process with a heartbeat, that has shown it."""
    one = child(home, BEATS)
    one.heartbeat, one.patience = home / "beat", 0.5
    environment = {**os.environ, heartbeat.VARIABLE: str(home / "beat")}
    one.start = lambda: run(home, BEATS, environment)
    one.launch()
    while one.state != "running":
        one.watch(lambda _: None)
        time.sleep(0.02)
    yield one
    one.end(time.monotonic())


def test_a_forked_process_leaves_what_is_the_supervisors(home: Path) -> None:
    """Its terminal, what it does at its end, and its way on after the fork."""
    (home / "logs").mkdir()
    began, log = os.getpid(), home / "logs" / "web-1.log"
    atexit.register(print, "the supervisor's end")

    def told() -> None:
        facts = os.getppid() == began, os.getsid(0) == os.getpid(), dict(os.environ)
        sys.stdout.write(f"{Path('/proc/self/comm').read_text().strip()} {facts}")
        raise SystemExit(4)

    forked = fork("web-1", told, log, {"A": "b"}, signal.SIGTERM)
    assert forked.wait(10) == 4
    assert log.read_text() == "web-1 (True, True, {'A': 'b'})"


def test_an_error_in_a_forked_process_is_in_its_log(home: Path) -> None:
    (home / "logs").mkdir()
    forked = fork("web-1", partial(divmod, 1, 0), home / "logs" / "web-1.log", {}, signal.SIGTERM)
    assert forked.wait(10) == 1
    assert "ZeroDivisionError" in (home / "logs" / "web-1.log").read_text()


def test_a_stopped_process_is_ended_and_its_restart_is_told(beating: Child) -> None:
    told = list[tuple[str, str]]()
    beating.on_end = lambda name, _pid, reason, _pause: told.append((name, reason))
    assert beating.process is not None
    beating.process.send_signal(signal.SIGSTOP)
    while beating.state != "ended":
        beating.watch(lambda _: None)
        time.sleep(0.02)
    assert beating.process.returncode == -signal.SIGKILL
    assert beating.restarts == 1
    assert [name for name, _ in told] == ["program"]
    assert told[0][1].startswith("hung: no heartbeat")


def test_a_supervisor_that_stood_still_itself_ends_nothing(
    beating: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert beating.process is not None
    beating.process.send_signal(signal.SIGSTOP)
    beating.watch(lambda _: None)
    monkeypatch.setattr(children, "LONGEST_STEP", 0.1)
    real = time.monotonic
    monkeypatch.setattr("deploy.supervisor.children.time.monotonic", lambda: real() + 3600)
    beating.watch(lambda _: None)
    assert beating.process.poll() is None
    beating.process.send_signal(signal.SIGCONT)


def test_the_pause_grows_while_a_child_cannot_be_started(home: Path) -> None:
    def fails() -> subprocess.Popen[bytes]:
        raise EmbeddedError("no space left")

    broken, pauses = Child("database", fails), list[float]()
    for _ in range(3):
        with pytest.raises(EmbeddedError):
            broken.launch()
        pauses.append(broken.pause)
    assert pauses == [0.2, 0.4, 0.8]
    assert broken.state == "ended"
    del home


def test_a_restart_leaves_a_line_with_time_and_reason(home: Path) -> None:
    processes.record_restart(home, "web-1", 7, "was killed by SIGKILL", 0.5)
    (line,) = (home / processes.RESTARTS).read_text().splitlines()
    told = json.loads(line)
    assert datetime.fromisoformat(told.pop("at")).tzinfo is not None
    assert told == {
        "process": "web-1",
        "pid": 7,
        "reason": "was killed by SIGKILL",
        "starts_again_in_seconds": 0.5,
    }


def test_a_process_that_begins_to_beat_after_its_supervisor_ended_ends_itself(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as supervisor:
        supervisor.wait()
    program = "import time; from ingest import heartbeat; heartbeat.ORPHANED = 0.5; heartbeat.start(); time.sleep(60)"
    told = {heartbeat.VARIABLE: str(home / "beat"), heartbeat.SUPERVISOR: str(supervisor.pid)}
    left = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **told}, timeout=50, check=False
    )
    assert left.returncode == -signal.SIGKILL
