"""A worker is killed in the middle of a run, or hangs: another one does the run, and it is recorded once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analyzers import registry
from analyzers.commands import RunRequest, request_run
from analyzers.runs.models import Run, State
from analyzers.runs.tasks import execute, tick
from deploy.celery import app
from deploy.supervisor.children import end_group
from incidents.worker.parts import silences
from ingest.commands import lease
from ingest.queries import now_utc, read_stream
from tests.acceptance.stack import wait_for
from tests.integration.analyzers.runs.cases import HOUR, NOW, TOP, Door, healthy, install_plugin

LEASE = timedelta(seconds=2)
DAWDLER = """
    import os, pathlib, time
    from analyzers.contract import *

    def analyze(window, params):
        begun = pathlib.Path(os.environ["DAWDLER_BEGUN"])
        if not begun.exists():  # the first worker gets stuck here, until it is killed or let go on
            begun.touch()
            while not begun.with_suffix(".go").exists():
                time.sleep(0.05)
        rows = tuple((name, table.rows) for name, table in window.sums.items())
        return quiet(evidence=(table("Sums", ("reduction", "rows"), rows),))

    ANALYZER = Analyzer("dawdler", "1.0.0", "Takes its time once", (Input("outcomes", (
        Reduction("sets", kind="path_outcome", group_by=("components",), aggregates={"n": Count()}),
    )),), (), analyze)
"""


class Worker:
    """A Celery worker as the supervisor starts it, in a process group of its own."""

    def __init__(self, plugins: Path, begun: Path, log: Path, database: str, broker: str) -> None:
        self.log = log
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "deploy.settings",
            "DATABASE_URL": database,
            "REDIS_URL": broker,
            "DOSSIER_RUN_LEASE_TIMEOUT": f"{LEASE.seconds}s",
            "PYTHONPATH": str(plugins),
            "DAWDLER_BEGUN": str(begun),
        }
        self.command = [sys.executable, "-m", "celery", "-A", "deploy", "worker", "--concurrency", "1"]
        self.command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """kill -9 of the worker and of what it forked."""
        if self.process is not None:
            end_group(self.process.pid)
            self.process.wait(60)


@pytest.fixture
def worker(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_database: str,
    broker: str,
    settings: object,
) -> Iterator[Worker]:
    settings.RUN_LEASE_TIMEOUT = LEASE  # type: ignore[attr-defined]
    install_plugin(tmp_path, "dawdler", DAWDLER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DAWDLER_BEGUN", str(tmp_path / "begun"))
    registry.refresh()
    one = Worker(tmp_path, tmp_path / "begun", tmp_path / "worker.log", log_database, broker)
    yield one
    one.kill()
    registry.refresh()


def test_a_run_outlives_the_worker_that_is_killed_in_the_middle_of_it(worker: Worker, tmp_path: Path) -> None:
    Door().post(healthy())
    run = request_run(RunRequest("dawdler", start=TOP, end=TOP + HOUR), "user:alice", NOW)
    worker.start()
    wait_for((tmp_path / "begun").exists, 120, worker.log.read_text() if worker.log.exists() else "a worker")
    worker.kill()
    run.refresh_from_db()
    assert (run.state, run.attempts) == (State.RUNNING, 1)

    worker.start()

    def done() -> bool:
        tick()  # as the scheduler does every few seconds
        return Run.objects.get().state == State.DONE

    wait_for(done, 120, "the second worker")
    assert Run.objects.get().attempts == 2
    assert [event.type for event in read_stream(run.stream)] == ["analysis.recorded"]


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGQUIT])
def test_a_worker_that_is_asked_to_stop_finishes_its_run_or_gives_it_back(
    worker: Worker, tmp_path: Path, settings: object, asked: signal.Signals
) -> None:
    """SIGTERM, as Kubernetes sends it, finishes; SIGQUIT, as the supervisor does, gives back. No lease ends here."""
    settings.RUN_LEASE_TIMEOUT = timedelta(hours=1)  # type: ignore[attr-defined]
    worker.environment["DOSSIER_RUN_LEASE_TIMEOUT"] = "1h"
    Door().post(healthy())
    run = request_run(RunRequest("dawdler", start=TOP, end=TOP + HOUR), "user:alice", NOW)
    worker.start()
    wait_for((tmp_path / "begun").exists, 120, "a worker")
    assert worker.process is not None
    worker.process.send_signal(asked)
    if asked == signal.SIGTERM:
        (tmp_path / "begun.go").touch()
    worker.process.wait(60)
    run.refresh_from_db()
    if asked == signal.SIGTERM:
        assert (run.state, run.attempts) == (State.DONE, 1)
    else:
        wait_for(lambda: lease.waiting(Run, now_utc()) == [run.pk], 30, "the run to be free")


def limit_tasks_to(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender of a task says how long it may take. Celery reads that off the task once and keeps it."""
    task: Any = execute
    monkeypatch.setattr(task, "_exec_options", {**task._get_exec_options(), "time_limit": seconds})


def test_a_process_of_the_pool_that_hangs_is_replaced(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the middle of a run: no time limit within that process ends it."""
    assert execute.time_limit == app.conf.task_time_limit
    limit_tasks_to(2, monkeypatch)
    Door().post(healthy())
    request_run(RunRequest("dawdler", start=TOP, end=TOP + HOUR), "user:alice", NOW)
    worker.start()
    wait_for((tmp_path / "begun").exists, 120, "a worker")
    # What is sent from now on has time enough on a busy machine: three lost workers would end the run as failed.
    limit_tasks_to(60, monkeypatch)
    assert worker.process is not None
    children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGSTOP)

    def done() -> bool:
        tick()
        return Run.objects.get().state == State.DONE

    wait_for(done, 60, "another process of the same worker")
    assert worker.process.poll() is None
    wait_for(lambda: "tasks" in silences(), 30, "the note of a task that is done")
