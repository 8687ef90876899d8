"""Alice starts Dossier on her machine, kills it in every way she can think of, and starts it again."""

import json
import os
import re
import shutil
import signal
import socket
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.embedded import Home
from tests.acceptance.stack import Stack, wait_for

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    home = Path(tempfile.mkdtemp(prefix="dossier-a-")) / "home"
    stack = Stack(home)
    stack.environment |= {
        "DOSSIER_WEB_WORKERS": "1",
        "DOSSIER_TASK_WORKERS": "1",
    }  # one of each starts sooner
    yield stack
    if stack.process is not None:
        stack.stop(signal.SIGKILL)
        wait_for(lambda: not stack.processes(), 60)
    Home(home).forget()
    shutil.rmtree(home.parent)


def running(stack: Stack) -> Stack:
    if stack.process is None or stack.process.poll() is not None:
        stack.start()
    return stack


def all_gone(home: Path) -> bool:
    postgres = home / "postgres" / "postmaster.pid"
    return not postgres.exists()


def test_everything_starts_and_is_ready(stack: Stack) -> None:
    running(stack)
    wait_for(lambda: len(stack.processes()) >= 8, 120, "all processes")
    with urllib.request.urlopen(f"{stack.address}/readyz") as response:
        told = json.loads(response.read())
    assert (told["ready"], told["reasons"]) == (True, [])


def test_the_files_of_the_console_are_kept_by_browsers_until_they_change(stack: Stack) -> None:
    running(stack)
    with urllib.request.urlopen(f"{stack.address}/accounts/login/") as page:
        found = re.search(rb'src="(/static/dossier/theme\.[0-9a-f]{12}\.js)"', page.read())
    assert found
    with urllib.request.urlopen(stack.address + found[1].decode()) as file:
        assert "immutable" in file.headers["Cache-Control"]


def test_a_second_one_on_the_same_home_is_refused(stack: Stack) -> None:
    running(stack)
    second = Stack(stack.home)
    assert second.launch().wait(120) == 1
    assert "in use by process" in second.said


def test_a_taken_port_is_named_with_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = Stack(tmp_path / "other", port=taken.getsockname()[1])
        assert other.launch().wait(120) == 1
    assert f"PORT {other.port} is in use" in other.said
    assert "Traceback" not in other.said


def test_a_killed_web_process_comes_back(stack: Stack) -> None:
    running(stack)
    before = web_processes(stack)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: bool(web_processes(stack) - before), 60, "another web process")
    wait_for(stack.answers, 120, "pages")


@pytest.mark.last
def test_a_killed_supervisor_leaves_no_process(stack: Stack) -> None:
    running(stack)
    stack.stop(signal.SIGKILL)
    wait_for(lambda: not stack.processes() and all_gone(stack.home), 60, "all processes to end")


@pytest.mark.last
def test_it_starts_again_after_a_kill_and_stops_within_seconds(stack: Stack) -> None:
    running(stack)
    assert stack.stop(signal.SIGINT) < 60
    assert stack.processes() == []
    assert all_gone(stack.home)


def web_processes(stack: Stack) -> set[int]:
    return {pid for pid in stack.processes() if Path(f"/proc/{pid}/comm").read_text().startswith("web-")}
