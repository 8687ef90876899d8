"""The web process alone, over a test's database."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from django.test import override_settings

from deploy.children import end_group, spawn
from deploy.supervisor import answers, programs
from tests.acceptance.stack import free_port, wait_for


class Web:
    """The pages-and-doors process as the supervisor would start it."""

    def __init__(self, database_url: str, log: Path, workers: int) -> None:
        self.log, self.port, self.workers = log, free_port(), workers
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "deploy.settings",
            "DATABASE_URL": database_url,
            "PORT": str(self.port),
            "DOSSIER_LOG_LEVEL": "WARNING",
        }
        self.address = f"http://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        with override_settings(PORT=self.port, WEB_WORKERS=self.workers):
            commands = [command for name, command, _ in programs() if name.startswith("web-")]
        self.processes = [spawn(command, self.log, self.environment, signal.SIGTERM) for command in commands]
        wait_for(lambda: answers(f"{self.address}/healthz"), 120, f"the web process, see {self.log}")

    def kill(self) -> None:
        """SIGKILL to the processes and everything that they forked, at once."""
        for process in self.processes:
            end_group(process.pid)
        for process in self.processes:
            process.wait()
        self.processes = []
