"""Refusals of `manage.py up --replace` before anything is replaced, and what it keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded import Home
from deploy.supervisor import replacement
from deploy.supervisor.children import Child, Forked


def test_nothing_is_replaced_where_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(
        replacement.ReplacementError, match=r"Dossier does not run in .*; start it with manage\.py up"
    ):
        replacement.running(Home(tmp_path))


def test_the_supervisor_is_who_has_the_home(tmp_path: Path) -> None:
    with Home(tmp_path).claim():
        assert replacement.running(Home(tmp_path)) == os.getpid()


def test_settings_are_those_of_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "8100")
    program = "print('up', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as theirs:
        assert theirs.stdout is not None
        assert theirs.stdout.readline() == b"up\n"  # the kernel shows no environment while exec still runs
        monkeypatch.delenv("PORT")
        assert replacement.its_environment(theirs.pid)["PORT"] == "8100"
        monkeypatch.setenv("PORT", "8200")
        with pytest.raises(replacement.ReplacementError, match=r"^PORT: set to something else"):
            replacement.its_environment(theirs.pid)
        theirs.kill()


def test_a_request_is_done_when_it_is_gone_and_tells_why_it_failed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert replacement.outcome(home) == ""
    replacement.request_replacement(home, ["python", "manage.py"])
    assert replacement.outcome(home) is None
    replacement.write(home, replacement.Request(["python"], {}, failed="no such file"))
    assert replacement.outcome(home) == "no such file"


def test_what_is_handed_over_is_taken_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"lock": 7, "sockets": {"web-1": 8}, "children": {"web-1": 9}}
    monkeypatch.setenv(replacement.HANDED, json.dumps(told))
    assert replacement.taken_over() == replacement.Handed(7, {"web-1": 8}, {"web-1": 9})
    assert replacement.taken_over() is None


def test_a_child_that_ended_meanwhile_is_not_adopted() -> None:
    child = Child("database", lambda: Forked(0))
    assert not replacement.adopt(child, replacement.Handed(0, {}, {}))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        assert replacement.adopt(child, replacement.Handed(0, {}, {"database": running.pid}))
        assert child.state == "running"
        running.kill()
