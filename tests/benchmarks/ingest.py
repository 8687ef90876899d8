"""Telemetry through HTTP to committed, against the ceiling of the same rows copied by the server from a file.

Everything is counted: keys, decompression (none here), validation, names, receipts, the event in the log, the
flush to disk. The web server runs as it is deployed (granian, 2 workers of 16 threads) with the settings of a
fresh install, on a cluster of its own with fsync on; the senders share the machine with both. Before and
after each slice of sending the ceiling is measured again: one binary `COPY FROM` a file, on the server, into
a table made like the kind's own. A slice is held against those two, and a figure is the median of its slices,
so that a slow minute of the machine is shared by both sides.

    python -m tests.benchmarks.ingest
"""

from __future__ import annotations

import io
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg2
import pyarrow as pa

from deploy.embedded import Home, start_postgres, stop
from ingest.telemetry.store.write import TO_2000
from tests.benchmarks.sending import is_whole, send
from tests.places import ROOT

UNITS = 20_000
SYMPTOMS = ("disk_timeout", "host_down", "nic_flap", "unknown")
SECONDS = 3.0
ROUNDS = 3
CEILING_ROWS = 1_000_000
BODIES = 12
"""Different bodies of each sort, sent in turn."""
ACCEPTED = b" 202 "
NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True)
class Load:
    """One sort of body, and the share of the ceiling that it is to reach."""

    name: str
    media_type: str
    rows: int
    bar: str


LOADS = (
    Load("Arrow, 50,000 rows a body", ARROW, 50_000, ">= 0.5"),
    Load("NDJSON, 5,000 rows a body", NDJSON, 5_000, ">= 0.25"),
    Load("NDJSON, 100 rows a body", NDJSON, 100, ">= 0.05"),
)


def main() -> list[dict[str, Any]]:
    """Rows of name, value, unit, bar and a note. Takes about a minute."""
    with stack("ingest") as (home, port, secret):
        ceiling = Ceiling(home)
        warm_up(port, secret)
        ceilings = [ceiling.measure()]
        slices: dict[tuple[Load, int], list[Slice]] = {
            (load, clients): [] for load in LOADS for clients in (1, 8)
        }
        requests = {load: [request(load, seed, secret) for seed in range(BODIES)] for load in LOADS}
        for _ in range(ROUNDS):
            for (load, clients), measured in slices.items():
                before = ceiling.stored()
                sent = send(port, itertools.cycle(requests[load]), clients, SECONDS, ACCEPTED)
                if ceiling.stored() - before != sent.requests * load.rows:
                    raise AssertionError("the table does not hold what was accepted")
                ceilings.append(ceiling.measure())
                rate = load.rows * sent.requests / sent.seconds
                measured.append(Slice(rate, rate / statistics.mean(ceilings[-2:]), sent.waits))
        ceiling.close()
    return figures(slices, ceilings)


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows a second, their share of the ceiling around them, and what each body waited, in milliseconds."""

    rate: float
    share: float
    waits: list[float]


def figures(slices: dict[tuple[Load, int], list[Slice]], ceilings: list[float]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "name": "ceiling: binary COPY FROM file",
            "value": round(statistics.median(ceilings)),
            "unit": "rows/s",
            "bar": None,
            "note": f"{min(ceilings):,.0f} to {max(ceilings):,.0f} over {len(ceilings)} measurements",
        }
    ]
    for (load, clients), measured in slices.items():
        waits = statistics.quantiles([wait for one in measured for wait in one.waits], n=100)
        shares = sorted(one.share for one in measured)
        note = f"{statistics.median(one.rate for one in measured):,.0f} rows/s"
        note += f", p50 {waits[49]:.1f} ms, p99 {waits[98]:.1f} ms, share {shares[0]:.3f} to {shares[-1]:.3f}"
        rows.append(
            {
                "name": f"{load.name}, {clients} client{'s' if clients > 1 else ''}",
                "value": round(statistics.median(shares), 3),
                "unit": "of ceiling",
                "bar": load.bar if clients > 1 else None,
                "note": note,
            }
        )
    return rows


# The servers
# ----------------------------------------------------------------------------------------------------------
@contextmanager
def stack(name: str, **environment: str) -> Iterator[tuple[Home, int, str]]:
    """A cluster and a web server of our own: their home, the port and a good key. Gone afterwards."""
    home = Home(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "bench" / name)
    home.forget()
    database = start_postgres(home, settings={"shared_buffers": "512MB", "max_wal_size": "4GB"})
    web: list[subprocess.Popen[bytes]] = []
    variables = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deploy.settings",  # under pytest those of the tests would be inherited
        "DOSSIER_HOME": str(home.root),
        "DATABASE_URL": home.database_url,
        "DOSSIER_ALLOW_ROOT": "true",
        **environment,
    }
    try:
        _manage(variables, "migrate", "--verbosity", "0")
        secret = _manage(variables, "create_key", "bench", "--scope", "telemetry").strip()
        with _listening() as first, _listening(int(first.getsockname()[1])) as second:
            web = _start_web(variables, home, (first, second))
            yield home, int(first.getsockname()[1]), secret
    finally:
        for process in web:
            process.terminate()
        for process in web:
            process.wait(20)
        stop(database)
        home.forget()


def _manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(
        command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _listening(port: int = 0) -> socket.socket:
    """One of several sockets at the port, as `manage.py up` opens them."""
    return socket.create_server(("127.0.0.1", port), reuse_port=True)


def _start_web(
    environment: dict[str, str], home: Home, opened: Sequence[socket.socket]
) -> list[subprocess.Popen[bytes]]:
    """A process for each socket, once they answer."""
    command = [sys.executable, str(ROOT / "manage.py"), "run", "web", "--fd"]
    with (home.logs / "web.log").open("wb") as log:
        web = [
            subprocess.Popen(
                [*command, str(number)], env=environment, cwd=ROOT, stdout=log, stderr=log, pass_fds=(number,)
            )
            for number in (one.fileno() for one in opened)
        ]
    deadline = time.monotonic() + 180  # a busy machine
    while (home.logs / "web.log").read_text().count("Started worker") < len(web):
        if any(process.poll() is not None for process in web) or time.monotonic() > deadline:
            for process in web:
                process.terminate()
            raise RuntimeError((home.logs / "web.log").read_text()[-2000:])
        time.sleep(0.1)
    return web


# The ceiling
# ----------------------------------------------------------------------------------------------------------
class Ceiling:
    """Rows of the same content, copied by the server itself from a file in binary form."""

    def __init__(self, home: Home) -> None:
        self.connection = psycopg2.connect(home.database_url)
        self.connection.autocommit = True
        self.directory = Path(tempfile.mkdtemp(prefix="dossier-bench-"))
        self.directory.chmod(0o755)  # the server may run under another account
        self.file = self.directory / "rows"
        self.file.write_bytes(self._rows())
        self.file.chmod(0o644)
        self._run(
            "CREATE TABLE ceiling (LIKE telemetry_unit_failure INCLUDING ALL) PARTITION BY RANGE (time)"
        )
        self._run("CREATE TABLE ceiling_one PARTITION OF ceiling FOR VALUES FROM (MINVALUE) TO (MAXVALUE)")

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _rows(self) -> bytes:
        columns = (
            ("time", ">i8"),
            ("receipt", ">i8"),
            ("region", ">i4"),
            ("unit", ">i4"),
            ("symptom", ">i4"),
        )
        layout = [("fields", ">i2")]
        for name, wire in columns:
            layout += [(f"{name} width", ">i4"), (name, wire)]
        rows = np.zeros(CEILING_ROWS, np.dtype(layout))
        rows["fields"] = 5
        for name, wire in layout[2::2]:
            rows[f"{name} width"] = np.dtype(wire).itemsize
        chance = np.random.default_rng(0)
        now = int(datetime.now(UTC).timestamp() * 1e6)
        rows["time"] = now - TO_2000 - chance.integers(0, 600_000_000, CEILING_ROWS)
        rows["receipt"] = np.arange(CEILING_ROWS) // 5000
        rows["unit"] = chance.integers(1, UNITS, CEILING_ROWS)
        rows["symptom"] = chance.integers(1, 5, CEILING_ROWS)
        return b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff"

    def measure(self) -> float:
        """Rows a second, committed."""
        self._run("TRUNCATE ceiling")
        self._run("CHECKPOINT")
        began = time.perf_counter()
        self._run(f"COPY ceiling (time, receipt, region, unit, symptom) FROM '{self.file}' (FORMAT binary)")
        return CEILING_ROWS / (time.perf_counter() - began)

    def stored(self) -> int:
        return int(self._run("SELECT count(*) FROM telemetry_unit_failure")[0][0])

    def close(self) -> None:
        self.connection.close()
        shutil.rmtree(self.directory)


# The senders
# ----------------------------------------------------------------------------------------------------------
def request(load: Load, seed: int, secret: str) -> bytes:
    """A whole HTTP request, made beforehand: the senders are to cost as little as they can."""
    body = _arrow(load.rows, seed) if load.media_type == ARROW else _ndjson(load.rows, seed)
    return head_of(load.media_type, len(body), secret) + body


def head_of(media_type: str, length: int, secret: str, kind: str = "unit_failure") -> bytes:
    head = (
        f"POST /api/v1/telemetry/{kind} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {secret}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
    )
    return head.encode()


def _columns(rows: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Times of the last ten minutes (microseconds since 1970), numbers of units and of symptoms."""
    chance = np.random.default_rng(seed)
    now = int(datetime.now(UTC).timestamp() * 1e6)
    times = np.sort(now - chance.integers(0, 600_000_000, rows))
    return times, chance.integers(0, UNITS, rows), chance.integers(0, len(SYMPTOMS), rows)


def _ndjson(rows: int, seed: int) -> bytes:
    times, units, symptoms = _columns(rows, seed)
    moments = np.datetime_as_string(times.astype("datetime64[us]"))
    lines = (
        json.dumps(
            {"time": f"{moment}Z", "unit": f"vm/v{unit:05}", "symptom": SYMPTOMS[symptom]},
            separators=(",", ":"),
        )
        for moment, unit, symptom in zip(moments, units, symptoms, strict=True)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _arrow(rows: int, seed: int) -> bytes:
    times, units, symptoms = _columns(rows, seed)
    names = pa.array([f"vm/v{unit:05}" for unit in range(UNITS)])
    table = pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "unit": pa.DictionaryArray.from_arrays(pa.array(units, pa.int32()), names),
            "symptom": pa.DictionaryArray.from_arrays(pa.array(symptoms, pa.int8()), pa.array(SYMPTOMS)),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def warm_up(port: int, secret: str) -> None:
    """Every worker meets every name once, as after its first minutes."""
    load = Load("warm up", ARROW, 50_000, "")
    send(port, itertools.repeat(request(load, 0, secret)), 8, 3.0, ACCEPTED)


def answer_of(connection: socket.socket) -> bytes:
    """Status line, headers and body of the next answer."""
    answer = b""
    while True:
        received = connection.recv(65536)
        if not received:
            raise ConnectionError("the server closed the connection")
        answer += received
        if is_whole(answer):
            return answer


if __name__ == "__main__":
    for figure in main():
        print(
            f"{figure['name']:<44} {figure['value']:>12,} {figure['unit']} {figure['bar'] or ''}  {figure['note']}"
        )
