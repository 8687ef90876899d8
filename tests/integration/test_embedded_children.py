"""Children of the supervisor: started again when they end, and gone with everything that they forked."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import children
from deploy.children import MARK, Child, end_left_over, marked, spawn

FORKS = "import os, time\nif os.fork(): os.wait()\nelse: time.sleep(60)"
STUBBORN = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(60)"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_left_over(tmp_path, patience=1)


def child(home: Path, program: str) -> Child:
    environment = {**os.environ, MARK: str(home)}
    return Child("program", lambda: run(home, program, environment))


def run(home: Path, program: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return spawn([sys.executable, "-c", program], home / "program.log", environment, signal.SIGTERM)


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
    assert said == ["program ended with code 3; it starts again in 1 s"]
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
    assert pauses == [1.0, 2.0, 4.0]
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
    while "on" not in (home / "program.log").read_text():
        time.sleep(0.02)
    stubborn.ask_to_stop()
    stubborn.end(time.monotonic() + 0.2)
    assert stubborn.process is not None
    assert stubborn.process.returncode == -signal.SIGKILL


def test_left_over_processes_are_told_by_their_environment(home: Path) -> None:
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


def test_a_long_log_is_put_aside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "KEPT_LOG", 10)
    (home / "program.log").write_text("x" * 11)
    run(home, "print('new')", dict(os.environ)).wait()
    assert (home / "program.log").read_text() == "new\n"
    assert (home / "program.log.1").read_text() == "x" * 11
