"""Time that `make demo` takes on a machine that has nothing, and on one that has the packages; and its disk space.

The last commit is cloned twice into a fresh directory. The first clone installs with empty package caches, the second
with those that the first has filled; then its demo runs until all stories have their incidents.

    python -m tests.benchmarks.demo
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from deploy.supervisor.children import marked
from tests.acceptance.stack import free_port, wait_for
from tests.places import ROOT

LONGEST = 900.0  # seconds


def main() -> list[dict[str, Any]]:
    """Rows of name, value, unit, bar and note. Takes about five minutes."""
    place = Path(tempfile.mkdtemp(prefix="dossier-bench-"))
    place.chmod(0o755)
    try:
        cold = _install(place, "cold")
        warm = _install(place, "warm")
        rows = [
            _row("install, cold package cache", cold, "s"),
            _row("install, warm package cache", warm, "s"),
            _row("disk: packages", _megabytes(place / "warm" / ".venv"), "MB"),
        ]
        return [*rows, *_demo(place / "warm")]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _install(place: Path, name: str) -> float:
    subprocess.run(["git", "clone", "-q", str(ROOT), str(place / name)], check=True)
    caches = {
        "UV_CACHE_DIR": str(place / "uv"),
        "PIP_CACHE_DIR": str(place / "pip"),
        "PYTHON": sys.executable,
    }
    began = time.monotonic()
    subprocess.run(["make", "-s", "run"], cwd=place / name, env={**os.environ, **caches}, check=True)
    return time.monotonic() - began


def _demo(clone: Path) -> list[dict[str, Any]]:
    home, port, said = clone / ".dossier", free_port(), clone.with_name("said.txt")
    environment = {**os.environ, "PORT": str(port), "DOSSIER_EVENTS_PORT": str(port + 1)}
    environment.pop("DOSSIER_HOME", None)
    began = time.monotonic()
    with said.open("wb") as out:
        process = subprocess.Popen(["make", "-s", "demo"], cwd=clone, env=environment, stdout=out, stderr=out)
    rows = []
    for line, name in (
        ("Login", "start to address and login"),
        ("Incident #1", "start to the first incident"),
        ("every component at fault has its incident", "start to all stories"),
    ):
        wait_for(lambda line=line: line in said.read_text(), LONGEST, line)  # type: ignore[misc]
        rows.append(_row(name, time.monotonic() - began, "s"))
    rows.append(_row("disk: data after the stories", _megabytes(home), "MB"))
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    for pid in _supervisors(home):
        os.kill(pid, signal.SIGINT)
    process.wait(30)
    wait_for(lambda: not marked(home), 30, "the processes to end")
    return [*rows, _row("Ctrl-C to no process left", time.monotonic() - began, "s")]


def _supervisors(home: Path) -> list[int]:
    """The process that has the home; Ctrl-C in a terminal reaches it as it reaches make."""
    return [int((home / "lock").read_text())]


def _megabytes(directory: Path) -> float:
    done = subprocess.run(["du", "-sm", str(directory)], capture_output=True, text=True, check=False)
    return float(done.stdout.split()[0])


def _row(name: str, value: float, unit: str) -> dict[str, Any]:
    return {"name": name, "value": round(value, 1), "unit": unit, "bar": None, "note": ""}


if __name__ == "__main__":
    for row in main():
        print(row)
