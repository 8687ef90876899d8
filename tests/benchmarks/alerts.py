"""Alerts through HTTP to committed, beside Alertmanager (in memory, writes nothing) and Alerta (the same Postgres).

All take what they take from their own senders: Dossier and Alertmanager arrays at `POST /api/v2/alerts`, Alerta one
alert a request. 16 clients each, one product at a time, in turns; new alerts first and then the same ones again. What a
storm that is held costs is in `alert_storm`.

    python -m tests.benchmarks.alerts
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from deploy.embedded import Home
from tests.benchmarks.ingest import _manage, stack
from tests.benchmarks.sending import send
from tests.senders.daemons import ALERTMANAGER, alertmanager, free_port, missing

CLIENTS = 16
SECONDS = 4.0
WARM = 2.0
"""Seconds for which the first requests of a server are not counted."""
TURNS = 3
PEER = ("alerta-server==9.1.0", "gunicorn", "psycopg2-binary", "setuptools<80")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Product:
    """Something that takes alerts: where, with which headers, how many in a body, and what it says yes with."""

    name: str
    port: int
    path: str
    headers: str
    yes: bytes


def main() -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about three minutes."""
    if told := missing(ALERTMANAGER):
        raise RuntimeError(told)
    with contextlib.ExitStack() as running:
        home, port, _ = running.enter_context(stack("alerts", DOSSIER_INGEST_RATE_PER_KEY="1000000"))
        environment = {**os.environ, "DATABASE_URL": home.database_url, "DOSSIER_HOME": str(home.root)}
        scopes = ("--scope", "alerts", "--scope", "incidents:read")
        key = _manage(environment, "create_key", "alerts", *scopes).strip()
        directory = Path(running.enter_context(tempfile.TemporaryDirectory()))
        receiver = {"name": "nobody"}
        other = running.enter_context(alertmanager(directory, [receiver]))
        dossier = Product("Dossier", port, "/api/v2/alerts", f"Authorization: Bearer {key}\r\n", b" 200 ")
        in_memory = Product("Alertmanager", int(other.rpartition(":")[2]), "/api/v2/alerts", "", b" 200 ")
        return list(_rates(dossier, in_memory, running, home))


# Rates
# ----------------------------------------------------------------------------------------------------------
def _rates(dossier: Product, other: Product, running: contextlib.ExitStack, home: Home) -> Iterator[Row]:
    peer = _alerta(running, home)
    _sent(dossier, _arrays(dossier, 1, "first"), WARM)
    if peer is not None:
        _sent(peer, _alerta_requests(peer, 10**6), WARM)
        rates: dict[str, list[float]] = {"ours": [], "theirs": [], "again": []}
        for turn in range(TURNS):
            rates["theirs"].append(_sent(peer, _alerta_requests(peer, turn * 10**5)))
            rates["ours"].append(_sent(dossier, _arrays(dossier, 1, f"peer {turn}")))
            same = (_request(peer, json.dumps(_alerta_alert(n % 100))) for n in itertools.count())
            rates["again"].append(_sent(peer, same))
        ours, theirs, again = (statistics.median(measured) for measured in rates.values())
        note = (
            f"{ours:,.0f} against {theirs:,.0f} alerts/s; repeats there {again:,.0f}; median of {TURNS} turns"
        )
        yield _row("new alerts, 1 a body, against Alerta", ours / theirs, "x", ">= 15", note)
    for batch, bars in ((1, (None, None)), (64, (">= 0.15", ">= 0.5"))):
        measured: dict[str, list[float]] = {}
        for turn in range(TURNS):
            for product in (dossier, other):
                tag, known = f"{batch} {turn}", list[bytes]()
                fresh = _remembered(_arrays(product, batch, tag), known)
                measured.setdefault(f"{product.name} new", []).append(batch * _sent(product, fresh))
                rate = batch * _sent(product, itertools.cycle(known))
                measured.setdefault(f"{product.name} again", []).append(rate)
        for word, bar in zip(("new", "again"), bars, strict=True):
            ours, theirs = (statistics.median(measured[f"{p.name} {word}"]) for p in (dossier, other))
            note = f"{ours:,.0f} against {theirs:,.0f} alerts/s, median of {TURNS} turns of {SECONDS:.0f} s"
            what = "new alerts" if word == "new" else "repeats of firing alerts"
            yield _row(f"{what}, {batch} a body, against Alertmanager", ours / theirs, "x", bar, note)


def _alerta_requests(peer: Product, begin: int = 0) -> Iterator[bytes]:
    for number in itertools.count(begin):
        yield _request(peer, json.dumps(_alerta_alert(number)))


def _remembered(requests: Iterable[bytes], known: list[bytes]) -> Iterator[bytes]:
    for request in requests:
        known.append(request)
        yield request


def _arrays(product: Product, batch: int, tag: str) -> Iterator[bytes]:
    # Written once: who makes the bodies has the processor that it takes from those who read them.
    text = json.dumps(_alert("NAME"))
    for number in itertools.count():
        alerts = [text.replace("NAME", f"{tag} {number} {place}") for place in range(batch)]
        yield _request(product, f"[{', '.join(alerts)}]")


def _alert(name: str) -> dict[str, Any]:
    labels = {"alertname": "HostDown", "instance": f"{name}:9100", "severity": "critical", "job": "node"}
    annotations = {"summary": f"{name} does not answer", "description": "No answer for five minutes."}
    return {
        "labels": labels,
        "annotations": annotations,
        "generatorURL": "http://prometheus:9090/graph?g0.expr=up",
    }


def _alerta_alert(number: int) -> dict[str, Any]:
    return {
        "resource": f"host-{number}",
        "event": "HostDown",
        "environment": "Production",
        "service": ["node"],
        "severity": "critical",
        "text": "No answer for five minutes.",
    }


def _request(product: Product, body: str) -> bytes:
    head = (
        f"POST {product.path} HTTP/1.1\r\nHost: localhost\r\n{product.headers}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


def _sent(product: Product, requests: Iterable[bytes], seconds: float = SECONDS) -> float:
    """Requests a second that were answered with yes, from CLIENTS connections. Raises AssertionError for a no."""
    sent = send(product.port, requests, CLIENTS, seconds, product.yes)
    return sent.requests / sent.seconds


# Alerta
# ----------------------------------------------------------------------------------------------------------
def _alerta(running: contextlib.ExitStack, home: Home) -> Product | None:
    """An Alerta on a database of its own in the same cluster; None where it cannot be installed."""
    python = _environment(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "alerta-venv")
    if python is None:
        return None
    with contextlib.closing(psycopg2.connect(home.database_url)) as connection:
        connection.autocommit = True
        connection.cursor().execute("CREATE DATABASE alerta")
    port = free_port()
    variables = {
        **os.environ,
        "DATABASE_URL": home.database_url.replace("/dossier?", "/alerta?"),
        "SECRET_KEY": "of a benchmark",
        "AUTH_REQUIRED": "false",
        "HOME": str(home.root),
    }
    command = [
        python,
        "-m",
        "gunicorn",
        "--preload",
        "--workers",
        "2",
        "--threads",
        "16",
        "--bind",
        f"127.0.0.1:{port}",
    ]
    with (home.logs / "alerta.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "alerta.app:create_app()"], env=variables, stdout=log, stderr=log
        )
    running.callback(server.wait, 20)
    running.callback(server.terminate)
    product = Product("Alerta", port, "/alert", "", b" 201 ")
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return product
        time.sleep(0.1)
    raise RuntimeError((home.logs / "alerta.log").read_text()[-2000:])


def _environment(venv: Path) -> str | None:
    python, marker = venv / "bin" / "python", venv / PEER[0]
    if not marker.exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEER]
        if subprocess.run(install, check=False).returncode != 0:
            print("Alerta could not be installed: its rows are left out", file=sys.stderr)
            return None
        marker.touch()
    return str(python)


def _row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 3), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    for row in main():
        bar = f"   (bar {row['bar']})" if row["bar"] else ""
        print(f"{row['name']:<60} {row['value']:>10,} {row['unit']}{bar}  {row['note']}")
