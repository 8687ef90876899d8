"""`manage.py up` started by root: nothing that it starts is root."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import processes
from deploy.privileges import obstacle, owner
from tests.acceptance.stack import Stack, wait_for

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]


@pytest.fixture
def stack() -> Iterator[Stack]:
    """In a directory that every user gets to, which those of pytest are not."""
    above = Path(tempfile.mkdtemp(prefix="dossier-r-"))
    above.chmod(0o755)
    if problem := obstacle(above / "home", owner(above / "home")):
        shutil.rmtree(above)
        pytest.skip(f"root would stay root here: {problem}")
    one = Stack(above / "home")
    one.environment |= {"DOSSIER_WEB_WORKERS": "1", "DOSSIER_TASK_WORKERS": "1"}
    yield one
    one.stop()
    shutil.rmtree(above)


def pids(stack: Stack) -> dict[str, int | None]:
    return {one.name: one.pid for one in (processes.read(stack.home) or ([], 0.0))[0]}


def is_ready(stack: Stack) -> bool:
    try:
        with urllib.request.urlopen(f"{stack.address}/readyz", timeout=5):
            return True
    except OSError:
        return False


def users(stack: Stack) -> set[int]:
    """Of the supervisor, what it started, and what that forked."""
    assert stack.process is not None
    every = {stack.process.pid, *stack.processes(), *(pid for pid in pids(stack).values() if pid)}
    return {Path(f"/proc/{pid}").stat().st_uid for pid in every}


def test_everything_runs_as_the_owner_of_the_home_also_after_a_crash(stack: Stack) -> None:
    stack.start()
    wait_for(lambda: "scheduler" in pids(stack), 60, "all processes")
    account = owner(stack.home)
    assert account.uid != 0
    assert users(stack) == {account.uid}
    database = pids(stack)["database"]
    assert database is not None
    os.kill(database, signal.SIGKILL)
    wait_for(lambda: pids(stack)["database"] not in (database, None) and is_ready(stack), 60, "the database")
    assert users(stack) == {account.uid}
    assert stack.manage("create_key", "alice", "--scope", "alerts")  # by root, who is let in
