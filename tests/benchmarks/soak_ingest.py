"""A rate of rows held for minutes, while partitions rotate, retention drops them and windows are read.

Senders post Arrow bodies of 10,000 rows, none older than a second, at a fixed pace. Partitions are one minute long
and kept for three, so that one a minute is made and one dropped; a reader asks for the last minute's sums all the
time.

    python -m tests.benchmarks.soak_ingest [SECONDS [ROWS_A_SECOND]]
"""

from __future__ import annotations

import io
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg2
import pyarrow as pa

from tests.benchmarks.ingest import ARROW, SYMPTOMS, answer_of, head_of, stack
from tests.places import ROOT

SECONDS, RATE = 600, 120_000
ROWS = 10_000
SENDERS = 4
BEHIND = 5.0
"""Seconds that a body may leave behind its time before the pace counts as lost."""
READER = """
import json, sys, time
from datetime import UTC, datetime, timedelta
import django
django.setup()
from ingest.commands import maintain_partitions
from ingest.queries import read_window
from ingest.telemetry.windows.reductions import Count, CountDistinct, Input, Reduction
sums = {"n": Count(), "units": CountDistinct("unit")}
one = Input("soak", (Reduction("n", "unit_failure", ("symptom",), sums, slice=timedelta(seconds=10)),))
until, maintained, done = time.monotonic() + float(sys.argv[1]), 0.0, {"made": 0, "dropped": 0, "deleted": 0}
took, rows = [], []
while time.monotonic() < until:
    if time.monotonic() > maintained + 10:
        maintained = time.monotonic()
        done = {name: done[name] + count for name, count in maintain_partitions(datetime.now(UTC)).items()}
    began, now = time.monotonic(), datetime.now(UTC)
    found = read_window(one, "default", now - timedelta(seconds=70), now - timedelta(seconds=10))["n"]
    took.append(time.monotonic() - began)
    rows.append(int(found.values["n"].sum()))
    time.sleep(5)
print(json.dumps({"seconds": took, "rows": rows, **done}))
"""


@dataclass(slots=True)
class Pace:
    """Bodies are due at a fixed rate; the senders take the next one when it is due."""

    rate: float
    started: float = field(default_factory=time.monotonic)
    taken: int = 0
    late: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self) -> None:
        with self.lock:
            due = self.started + self.taken / self.rate
            self.taken += 1
        now = time.monotonic()
        self.late = max(self.late, now - due)
        if due > now:
            time.sleep(due - now)


def main(seconds: float = SECONDS, rate: int = RATE) -> list[dict[str, Any]]:
    """Rows of name, value, unit, bar and a note."""
    limits = {"DOSSIER_TELEMETRY_PARTITION_INTERVAL": "1m", "DOSSIER_TELEMETRY_RETENTION": "3m"}
    with stack("soak", **limits) as (home, port, secret):
        environment = {
            **os.environ,
            "DOSSIER_HOME": str(home.root),
            "DATABASE_URL": home.database_url,
            **limits,
        }
        environment["DJANGO_SETTINGS_MODULE"] = "deploy.settings"
        command = [sys.executable, "-c", READER, str(seconds)]
        reader = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        pace = Pace(rate / ROWS)
        took = send(pace, port, secret, seconds)
        output, _ = reader.communicate(timeout=120)
        if reader.returncode != 0:
            raise RuntimeError("the reader of windows failed")
        return figures(pace, took, json.loads(output), partitions(home.database_url), rate)


def send(
    pace: Pace,
    port: int,
    secret: str,
    seconds: float,
    kind: str = "unit_failure",
    make: Callable[[np.random.Generator], bytes] | None = None,
) -> float:
    """Post bodies at the pace; says how many seconds it took. Raises AssertionError for any answer but 202."""
    make = make or _body
    failed: list[bytes] = []

    def post(sender: int) -> None:
        chance = np.random.default_rng(sender)
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                while time.monotonic() < pace.started + seconds and not failed:
                    pace.wait()
                    body = make(chance)
                    connection.sendall(head_of(ARROW, len(body), secret, kind) + body)
                    answer = answer_of(connection)
                    if b" 202 " not in answer[:20]:
                        failed.append(answer)
        except OSError as error:
            failed.append(repr(error).encode())

    threads = [threading.Thread(target=post, args=(sender,)) for sender in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise AssertionError(failed[0].decode(errors="replace"))
    return time.monotonic() - pace.started


def _body(chance: np.random.Generator) -> bytes:
    first = int(chance.integers(0, 10)) * 2000
    names = pa.array([f"vm/v{unit:05}" for unit in range(first, first + 2000)])
    times = int(time.time() * 1e6) - chance.integers(0, 1_000_000, ROWS)
    table = pa.table(
        {
            "time": pa.array(np.sort(times), pa.timestamp("us", "UTC")),
            "unit": pa.DictionaryArray.from_arrays(pa.array(chance.integers(0, 2000, ROWS, np.int32)), names),
            "symptom": pa.DictionaryArray.from_arrays(
                pa.array(chance.integers(0, 4, ROWS, np.int8)), pa.array(SYMPTOMS)
            ),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def partitions(database_url: str) -> int:
    """Number of partitions."""
    with psycopg2.connect(database_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'telemetry_unit_failure'::regclass"
        )
        row = cursor.fetchone()
        assert row is not None
        return int(row[0])


def figures(pace: Pace, took: float, read: dict[str, Any], left: int, rate: int) -> list[dict[str, Any]]:
    held = pace.taken * ROWS / took
    windows = f"the last minute's sums, {len(read['seconds'])} times, {statistics.median(read['rows']):,.0f} rows each"

    def row(name: str, value: float, unit: str, bar: str | None = None, note: str = "") -> dict[str, Any]:
        return {"name": name, "value": value, "unit": unit, "bar": bar, "note": note}

    return [
        row("rows a second held", round(held), "rows/s", f">= {rate * 0.99:.0f}", f"for {took:.0f} s"),
        row("latest body behind its time", round(pace.late, 2), "s", f"<= {BEHIND}"),
        row("partitions dropped", read["dropped"], "", None, f"{left} left at the end"),
        row("reading a window, median", round(statistics.median(read["seconds"]), 2), "s", None, windows),
    ]


if __name__ == "__main__":
    for figure in main(*map(int, sys.argv[1:])):
        print(*(str(value) for value in figure.values() if value is not None), sep="  ")
