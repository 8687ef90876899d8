"""Prometheus and Alertmanager of Debian's packages, each in a directory and on a port of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

PROMETHEUS, ALERTMANAGER, AMTOOL = "prometheus", "prometheus-alertmanager", "amtool"


def missing(*programs: str) -> str:
    """Reason why tests with these programs skip; empty when all are there."""
    absent = [program for program in programs if which(program) is None]
    return f"needs {', '.join(absent)} (deploy/install-senders.sh)" if absent else ""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def prometheus(
    directory: Path, rules: Sequence[Mapping[str, Any]], alertmanagers: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """A Prometheus that evaluates `rules` every second and sends alerts to `alertmanagers`; its address.

    Both are as in its configuration: a rule is `{"alert", "expr", "labels", …}`, an alertmanager
    `{"static_configs": [{"targets": ["127.0.0.1:8000"]}], "authorization": {…}}`.
    """
    (directory / "rules.yml").write_text(json.dumps({"groups": [{"name": "rules", "rules": rules}]}))
    (directory / "prometheus.yml").write_text(
        json.dumps(
            {
                "global": {"evaluation_interval": "1s", "external_labels": {"cluster": "dc1"}},
                "rule_files": [str(directory / "rules.yml")],
                "alerting": {"alertmanagers": alertmanagers},
            }
        )
    )
    port = free_port()
    command = [
        PROMETHEUS,
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.external-url=http://prometheus.example.com:9090",
        "--web.route-prefix=/",
        "--rules.alert.resend-delay=5s",
    ]
    address = f"http://127.0.0.1:{port}"
    with running(command, directory / "prometheus.log", lambda: answers(f"{address}/-/ready")):
        yield address


@contextmanager
def alertmanager(
    directory: Path, receivers: Sequence[Mapping[str, Any]], interval: str = "1s"
) -> Iterator[str]:
    """An Alertmanager that sends every group to all of `receivers`, as in its configuration, and again after an
    `interval` where it has changed; its address.
    """
    routes = [{"receiver": receiver["name"], "continue": True} for receiver in receivers]
    (directory / "alertmanager.yml").write_text(
        json.dumps(
            {
                "route": {
                    "receiver": receivers[0]["name"],
                    "group_by": ["alertname"],
                    "group_wait": "1s",
                    "group_interval": interval,
                    "routes": routes,
                },
                "receivers": receivers,
            }
        )
    )
    port = free_port()
    command = [
        ALERTMANAGER,
        f"--config.file={directory / 'alertmanager.yml'}",
        f"--storage.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.external-url=http://alertmanager.example.com:9093",
        "--web.route-prefix=/",
        "--cluster.listen-address=",
    ]
    address = f"http://127.0.0.1:{port}"
    with running(command, directory / "alertmanager.log", lambda: answers(f"{address}/-/ready")):
        yield address


@contextmanager
def running(command: Sequence[str], log: Path, ready: Callable[[], bool]) -> Iterator[None]:
    """A program while it is entered, from when it is ready until it has ended."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            end = time.monotonic() + 30
            while not ready():
                if process.poll() is not None:
                    raise RuntimeError(f"{command[0]} stopped at once: {log.read_text()[-2000:]}")
                if time.monotonic() > end:
                    raise TimeoutError(f"{command[0]} is not ready within 30 s: {log.read_text()[-2000:]}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(20)


def answers(address: str) -> bool:
    """Whether something answers 200 there."""
    try:
        with urllib.request.urlopen(address, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
