"""Prometheus and Alertmanager of Debian's packages, each in a directory and on a port of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

PROMETHEUS, ALERTMANAGER, AMTOOL = "prometheus", "prometheus-alertmanager", "amtool"


def missing(*programs: str) -> str:
    """Why tests with these programs skip; empty when all are there."""
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
    with _running(command, directory / "prometheus.log", f"http://127.0.0.1:{port}/-/ready") as address:
        yield address


@contextmanager
def alertmanager(directory: Path, receivers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """An Alertmanager that sends every group to all of `receivers`, as in its configuration; its address."""
    routes = [{"receiver": receiver["name"], "continue": True} for receiver in receivers]
    (directory / "alertmanager.yml").write_text(
        json.dumps(
            {
                "route": {
                    "receiver": receivers[0]["name"],
                    "group_by": ["alertname"],
                    "group_wait": "1s",
                    "group_interval": "1s",
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
    with _running(command, directory / "alertmanager.log", f"http://127.0.0.1:{port}/-/ready") as address:
        yield address


@contextmanager
def _running(command: Sequence[str], log: Path, ready: str) -> Iterator[str]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            _wait_until_ready(process, ready, log)
            yield ready.removesuffix("/-/ready")
        finally:
            process.terminate()
            process.wait(20)


def _wait_until_ready(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"stopped at once: {log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(ready, timeout=1) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(f"not ready within 30 s: {log.read_text()[-2000:]}")
