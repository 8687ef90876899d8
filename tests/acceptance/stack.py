"""A whole Dossier in processes of its own: `manage.py up` or `demo` in a fresh home on free ports."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy.supervisor.children import marked
from tests.places import ROOT


def free_port() -> int:
    """A port that is free, and the next one too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


def wait_for(condition: Callable[[], bool], seconds: float, what: str = "it") -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.05)


class Stack:
    """One Dossier. `start` returns when pages answer."""

    def __init__(self, home: Path, *command: str, port: int | None = None) -> None:
        self.home, self.command, self.port = home, command or ("up",), port or free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "deploy.settings",
            "DOSSIER_HOME": str(home),
            "DOSSIER_ALLOW_ROOT": "true",
            "PORT": str(self.port),
            "DOSSIER_EVENTS_PORT": str(self.port + 1),
        }

    @property
    def address(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def said(self) -> str:
        return self.said_in.read_text()

    @property
    def said_in(self) -> Path:
        return self.home.with_name(f"{self.home.name}-said.txt")

    def launch(self) -> subprocess.Popen[bytes]:
        with self.said_in.open("ab") as out:
            command = [sys.executable, "manage.py", *self.command]
            self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=out, stderr=out)
        return self.process

    def start(self, seconds: float = 120) -> None:
        process = self.launch()
        wait_for(lambda: self.answers() or process.poll() is not None, seconds, "pages")
        assert process.poll() is None, self.said

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/healthz", timeout=1):
                return True
        except OSError:
            return False

    def get(self, path: str, key: str) -> Any:
        request = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def stop(self, number: int = signal.SIGTERM, seconds: float = 60) -> float:
        """Signal the supervisor; the seconds until it has ended."""
        assert self.process is not None
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(seconds)
        return time.monotonic() - began

    def processes(self) -> list[int]:
        """Every process of this home but the supervisor and the database."""
        return marked(self.home)
