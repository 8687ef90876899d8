"""A whole Dossier some of whose processes stop or are killed: it is said, and they are started again."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy import processes
from tests.acceptance.stack import Stack, wait_for

WANTED = {"web-1", "web-2", "scheduler"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one = Stack(tmp_path_factory.mktemp("hangs") / "home")
    one.environment["DOSSIER_DRAIN_SECONDS"] = "5"
    yield one
    one.stop()


@pytest.fixture
def stack(node: Stack) -> Stack:
    """The node, started anew where a test has stopped it: they run in any order."""
    if node.process is None or node.process.poll() is not None:
        node.start()
        wait_for(lambda: readiness(node)[0] == 200, 120, "readiness")
    wait_for(
        lambda: {name for name, one in known(node).items() if one.state == "running"} >= WANTED,
        120,
        "heartbeats",
    )
    return node


def known(stack: Stack) -> dict[str, processes.Known]:
    return {one.name: one for one in (processes.read(stack.home) or ([], 0.0))[0]}


def readiness(stack: Stack) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"{stack.address}/readyz", timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError:
        return 0, {"reasons": []}


def pid_of(stack: Stack, name: str) -> int:
    (file,) = (stack.home / "heartbeats").glob(f"{name}-*[0-9]")
    while not (told := file.read_text()):  # empty in the moment in which it is written again
        time.sleep(0.01)
    return int(told)


def test_processes_that_stand_still_are_started_again(stack: Stack) -> None:
    stopped = {name: pid_of(stack, name) for name in ("web-1", "scheduler")}
    for pid in stopped.values():
        os.kill(pid, signal.SIGSTOP)
    for name, pid in stopped.items():
        wait_for(lambda name=name: known(stack)[name].restarts == 1, 60, f"the end of {name}, which hangs")  # type: ignore[misc]
        wait_for(lambda name=name: known(stack)[name].state == "running", 120, "a new process")  # type: ignore[misc]
        assert pid_of(stack, name) != pid
        lines = (stack.home / "logs" / processes.RESTARTS).read_text().splitlines()
        (told,) = [line for line in map(json.loads, lines) if line["process"] == name]
        assert told["reason"].startswith("hung: no heartbeat")
    wait_for(lambda: readiness(stack)[0] == 200, 60, "readiness")


def test_a_killed_web_process_is_covered_by_the_other(stack: Stack) -> None:
    os.kill(known(stack)["web-2"].pid or 0, signal.SIGKILL)
    wait_for(lambda: known(stack)["web-2"].restarts == 1, 30, "its end to be noticed")
    wait_for(lambda: stack.answers(), 2, "the other")
    wait_for(lambda: known(stack)["web-2"].state == "running", 120, "a new process")


def test_a_node_that_is_told_to_stop_is_not_ready_first(stack: Stack) -> None:
    assert stack.process is not None
    stack.process.send_signal(signal.SIGTERM)
    wait_for(lambda: readiness(stack)[1]["reasons"] == ["this node is stopping"], 5, "draining")
    stack.process.wait(60)
    assert not Path(stack.home / processes.DRAINING).exists()
