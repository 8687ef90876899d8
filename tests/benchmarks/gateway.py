"""Cost of the gateway in front of the application for one client: a web process as `manage.py up` starts it, beside the
same application served by Granian's own threads, without a gateway.

Both run at the same time on one database. One client with one open connection to each sends the same requests to both
in turns, so that what else the machine does hits both. The figure is the median of the ratios of neighbouring batches;
its interval is by order statistics.

    python -m tests.benchmarks.gateway
"""

from __future__ import annotations

import http.client
import json
import math
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count

from tests.benchmarks.apart import Row, rows_of
from tests.places import ROOT

ROUNDS, BATCH = 40, 25
PATIENCE = 120.0
"""Seconds that the two have to come up."""
Request = Callable[[int], tuple[str, str, bytes]]
"""Method, path and body of the request of this number."""


def main(rounds: int = ROUNDS) -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about a minute."""
    return rows_of("gateway", rounds)


def inside(rounds: int) -> list[Row]:
    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    call_command("migrate", verbosity=0)
    from ingest.api import keys

    secret = keys.create("one client", ["alerts", "incidents:read"])
    connections.close_all()
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    with served(8891, gateway=True) as through, served(8892, gateway=False) as direct:
        return [
            figure("a new alert", alert, rounds, headers, through, direct),
            figure("a read of the API", read, rounds, headers, through, direct),
        ]


def alert(number: int) -> tuple[str, str, bytes]:
    labels = {"alertname": "Down", "instance": f"h{number}-{uuid.uuid4().hex}"}
    return "POST", "/api/v2/alerts", json.dumps([{"labels": labels}]).encode()


def read(_number: int) -> tuple[str, str, bytes]:
    return "GET", "/api/v1/incidents?limit=1", b""


@contextmanager
def served(port: int, *, gateway: bool) -> Iterator[http.client.HTTPConnection]:
    """A connection to a web process that is ready."""
    environment = {**os.environ, "PORT": str(port), "DOSSIER_EVENTS_PORT": str(port + 100)}
    environment |= {"DOSSIER_ALLOW_ROOT": "true", "DOSSIER_WEB_WORKERS": "1"}
    own = ["manage.py", "run", "web"]
    plain = ["-m", "granian", "--interface", "wsgi", "--port", str(port), "--blocking-threads", "16"]
    command = own if gateway else [*plain, "--log-level", "error", "deploy.wsgi:application"]
    process = subprocess.Popen(
        [sys.executable, *command], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command} does not come up")
            time.sleep(0.1)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            yield connection
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=1)) as connection:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
    except OSError:
        return False


def figure(
    name: str,
    request: Request,
    rounds: int,
    headers: dict[str, str],
    through: http.client.HTTPConnection,
    direct: http.client.HTTPConnection,
) -> Row:
    numbers = count()

    def batch(connection: http.client.HTTPConnection) -> float:
        """Seconds of a request, the median of BATCH."""
        taken = []
        for _ in range(BATCH):
            method, path, body = request(next(numbers))
            began = time.perf_counter()
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            response.read()
            taken.append(time.perf_counter() - began)
            if response.status != 200:
                raise RuntimeError(f"{method} {path}: {response.status}")
        return statistics.median(taken)

    for connection in (through, direct):
        batch(connection)  # what is loaded with the first requests
    pairs = [(batch(through), batch(direct)) for _ in range(rounds)]
    ratios = sorted(one / other for one, other in pairs)
    aside = 0.98 * math.sqrt(rounds)
    low = ratios[max(0, math.floor(rounds / 2 - aside) - 1)]
    high = ratios[min(rounds - 1, math.ceil(rounds / 2 + aside))]
    ms = [1000 * statistics.median(column) for column in zip(*pairs, strict=True)]
    return {
        "name": f"{name}, one client, through the gateway against without it",
        "value": round(statistics.median(ratios), 3),
        "unit": "x",
        "bar": "<= 2",
        "note": f"[{low:.3f}, {high:.3f}] of {rounds} pairs of {BATCH} requests; {ms[0]:.2f} and {ms[1]:.2f} ms",
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        print(json.dumps(inside(int(sys.argv[2]))))
    else:
        for row in main():
            print(f"{row['name']:<70} {row['value']} {row['unit']} (bar {row['bar']})  {row['note']}")
