"""The web process alone, over a test's database."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from deploy.embedded import die_with_parent
from deploy.supervisor.children import end_group
from deploy.supervisor.supervisor import answers
from tests.acceptance.stack import free_port, wait_for
from tests.places import ROOT


class Web:
    """The pages-and-endpoints processes as the supervisor would start them: on one socket, which outlives them."""

    def __init__(self, database_url: str, log: Path, workers: int) -> None:
        self.log, self.port, self.workers = log, free_port(), workers
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "deploy.settings",
            "DATABASE_URL": database_url,
            "PORT": str(self.port),
            "DOSSIER_LOG_LEVEL": "WARNING",
            "DOSSIER_ALLOW_ROOT": "true",
        }
        self.address = f"http://127.0.0.1:{self.port}"
        self.socket = socket.create_server(("127.0.0.1", self.port))
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.processes = [self._spawn() for _ in range(self.workers)]
        wait_for(lambda: answers(f"{self.address}/healthz"), 120, f"the web process, see {self.log}")

    def _spawn(self) -> subprocess.Popen[bytes]:
        number = self.socket.fileno()
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "manage.py", "run", "web", "--fd", str(number)],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(number,),
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )

    def kill(self) -> None:
        """SIGKILL to the processes and everything that they forked, at once."""
        for process in self.processes:
            end_group(process.pid)
        for process in self.processes:
            process.wait()
        self.processes = []

    def close(self) -> None:
        self.kill()
        self.socket.close()
