"""An hour of two nodes on one Postgres with retention, old telemetry and old parts of the log in files, and messages.

Bodies of 10,000 rows go to both nodes in turn, alerts come and end at a fixed pace, each with its message; partitions
are a minute long, move into files after three, and are past retention after a third of the time. Once a minute a line
says what is in use. Memory is the anonymous part of the proportional set size of each process, after a warm-up of a
quarter of the time; lag is that of followers, of messages behind their alerts and of bodies behind their time.

    python -m tests.benchmarks.soak [SECONDS [ROWS_A_SECOND]]
"""

from __future__ import annotations

import io
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psycopg2
import pyarrow as pa

from tests.acceptance.stack import wait_for
from tests.acceptance.two_nodes import Pair, hear, send, set_up, told, two_nodes
from tests.benchmarks import soak_ingest
from tests.benchmarks.__main__ import line
from tests.benchmarks.soak_ingest import ROWS, Pace

SECONDS, RATE = 3600, 10_000
LASTING = 240
"""Alerts after which one is resolved: two minutes."""
EVERY = 10.0
HOT, PARTITION, SWEEP = 180, 60, 300
"""Seconds: age at which rows move, length of a partition, time between two sweeps."""
KEPT_OPEN = 3600
"""Seconds for which a file stays past its retention, for readers that have it open."""
OF_ROW, OF_ROW_IN_FILE, OF_BODY, OF_INCIDENT = 70, 12, 950, 19_500
"""Bytes, as the page on sizing has them: an incident of one alert with two messages, until it is resolved."""
LOG_PART = 5_000
STAMP = pa.timestamp("us", "UTC")
PATHS = pa.array([[f"host/h{path % 512}", f"tor/t{path % 12}"] for path in range(6_144)])
LARGEST_GROWTH, LONGEST_LAG = 5.0, 5.0
EDGE = 120.0
"""Seconds at each end whose median is compared."""
Row = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """Samples of one run: per process (name and id) its times and MiB, per sort of lag the largest in seconds. A
    server and its children, one a session, count by their mean."""

    memory: dict[tuple[str, int], list[tuple[float, float]]] = field(default_factory=dict)
    servers: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """Per server the MiB of it and its children in all, and their number."""
    lags: dict[str, float] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def lag(self, name: str, seconds: float) -> None:
        self.lags[name] = max(self.lags.get(name, 0.0), seconds)
        self.late[name] = self.late.get(name, 0) + (seconds > LONGEST_LAG)


def main(seconds: float = SECONDS, rate: int = RATE) -> list[Row]:
    """Rows of name, value, unit, bar and a note; prints a line a minute."""
    place = Path(tempfile.mkdtemp(prefix="dossier-soak-"))
    files = place / "cold"
    limits = {
        "DOSSIER_TELEMETRY_COLD": str(files),
        "DOSSIER_TELEMETRY_PARTITION_INTERVAL": f"{PARTITION}s",
        "DOSSIER_TELEMETRY_HOT": f"{HOT}s",
        "DOSSIER_TELEMETRY_RETENTION": f"{seconds / 3:.0f}s",
        "DOSSIER_LOG_PART": str(LOG_PART),
        "DOSSIER_LOG_HOT": "1",
    }
    files.mkdir()
    files.chmod(0o777)  # the nodes may run under another account
    try:
        with two_nodes(place, **limits) as pair:
            pair.nodes[0].manage("migrate", "--verbosity", "0")
            for node in pair.nodes:
                node.launch()
            for node in pair.nodes:
                wait_for(lambda node=node: node.answers() and pair.running(node), 240, "both nodes")  # type: ignore[misc]
            set_up(pair, place)
            return list(figures(pair, *soak(pair, files, seconds, rate), seconds))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def soak(pair: Pair, files: Path, seconds: float, rate: int) -> tuple[Seen, list[Pace], dict[str, float]]:
    """Samples, the pace of the bodies of each node, and growth of the amounts of `disk`."""
    key = pair.nodes[0].manage("create_key", "soak", "--scope", "telemetry").split()[-1]
    paces = [Pace(rate / ROWS / len(pair.nodes)) for _ in pair.nodes]
    over, broken = threading.Event(), list[BaseException]()

    def bodies(pace: Pace, port: int) -> None:
        try:
            soak_ingest.send(pace, port, key, seconds, "path_outcome", paths)
        except BaseException as error:
            broken.append(error)
            raise

    threads = [
        threading.Thread(target=send, args=(pair, over, LASTING)),
        threading.Thread(target=hear, args=(pair, over)),
        *(
            threading.Thread(target=bodies, args=(pace, node.port))
            for pace, node in zip(paces, pair.nodes, strict=True)
        ),
    ]
    seen, began = Seen(), time.monotonic()
    first = disk(pair, files)
    for thread in threads:
        thread.start()
    try:
        while (now := time.monotonic() - began) < seconds and not broken:
            look(pair, seen, now)
            if seen.looks % round(60 / EVERY) == 1:
                print(said(pair, seen, paces, now, disk(pair, files)), flush=True)
            time.sleep(max(0.0, EVERY - (time.monotonic() - began - now)))
        last = disk(pair, files)
        wait_for(lambda: told(pair) >= set(list(pair.sent)[:-20]), 60, "the last messages")
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    if broken:
        raise broken[0]
    return seen, paces, {name: last[name] - first[name] for name in last}


def paths(chance: np.random.Generator) -> bytes:
    """A body of rows of the last second: attempts over paths of a host and a switch."""
    table = pa.table(
        {
            "time": pa.array(np.sort(int(time.time() * 1e6) - chance.integers(0, 1_000_000, ROWS)), STAMP),
            "components": PATHS.take(pa.array(chance.integers(0, len(PATHS), ROWS))),
            "attempts": np.full(ROWS, 10),
            "failures": (chance.random(ROWS) < 0.01).astype(int),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


# What is in use
# ----------------------------------------------------------------------------------------------------------
def look(pair: Pair, seen: Seen, now: float) -> None:
    """Take a sample of memory and lag."""
    seen.looks += 1
    for name, pid in named(pair):
        with suppress(OSError):
            seen.memory.setdefault((name, pid), []).append((now, memory(pid)))
    for name, pid in pair.servers.items():
        sizes = each(pid)
        seen.servers.setdefault(name, []).append((sum(sizes), len(sizes)))
    seen.lag("message behind its alert", waiting(pair))
    for node in pair.nodes:
        with suppress(OSError):
            for name, value in metrics(node.address, "dossier_follower_lag_seconds").items():
                seen.lag(f"follower {name}", value)


def named(pair: Pair) -> Iterator[tuple[str, int]]:
    """Name and id of each process: those of the nodes with their children, servers with theirs as one."""
    for letter, node in zip("AB", pair.nodes, strict=True):
        if node.process is not None:
            yield f"{letter} supervisor", node.process.pid
        for name, known in sorted(pair.known(node).items()):
            if known.pid:
                yield f"{letter} {name}", known.pid
                for number, child in enumerate(children(known.pid), start=1):
                    yield f"{letter} {name}, child {number}", child
    for name, pid in pair.servers.items():
        yield f"{name}, mean of its processes", -pid


def children(pid: int) -> list[int]:
    """Ids of the children of a process and of theirs, ascending."""
    found = list[int]()
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return sorted([*found, *(below for child in found for below in children(child))])


def memory(pid: int) -> float:
    """MiB of a process; of a negative id the mean of it and its children."""
    return _anonymous(pid) if pid > 0 else statistics.fmean(each(-pid))


def each(pid: int) -> list[float]:
    """MiB of a process and of each of its children."""
    sizes = [_anonymous(pid)]
    for child in children(pid):
        with suppress(OSError):
            sizes.append(_anonymous(child))
    return sizes


def _anonymous(pid: int) -> float:
    for text in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if text.startswith("Pss_Anon:"):
            return int(text.split()[1]) / 1024
    return 0.0


def waiting(pair: Pair) -> float:
    """Seconds that the slowest of the last messages took, or that one is missing by now."""
    now = time.monotonic()
    arrived = {alert: at for at, _, alert in reversed(pair.arrived[-400:])}
    recent = [(name, at) for name, at in list(pair.sent.items())[-60:] if at < now - 1]
    return max((arrived.get(name, now) - at for name, at in recent), default=0.0)


def metrics(address: str, name: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{address}/metrics", timeout=30) as answer:
        lines = [text for text in answer.read().decode().splitlines() if text.startswith(name)]
    return {text.split('"')[1]: float(text.rsplit(" ", 1)[1]) for text in lines}


def disk(pair: Pair, files: Path) -> dict[str, float]:
    """Bytes of telemetry, of the log and of all else in Postgres, bytes of files, and amounts for computing them."""
    of = "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0) FROM pg_inherits WHERE inhparent::regclass::text"
    queries = {
        "rows": f"{of} LIKE 'telemetry_%'",
        "log": f"{of} = 'log_event'",
        "streams": "SELECT pg_total_relation_size('log_stream')",
        "all": "SELECT pg_database_size(current_database())",
        "events": "SELECT coalesce(max(seq), 0) FROM log_event",
        "bodies": "SELECT count(*) FROM log_event WHERE type = 'telemetry.received'",
        "rows in files": "SELECT coalesce(sum(rows), 0) FROM telemetry_cold WHERE state <> 'writing'",
        "parts in files": "SELECT count(*) FROM log_cold WHERE state <> 'writing'",
        "runs": "SELECT count(*) FROM runs_run WHERE state = 'done'",
    }
    found = dict[str, float]()
    with closing(psycopg2.connect(pair.home.database_url)) as session:
        session.autocommit = True
        for name, query in queries.items():
            with session.cursor() as cursor:
                cursor.execute(query)
                found[name] = float(cursor.fetchone()[0])  # type: ignore[index]
    found["files"] = sum(file.stat().st_size for file in files.rglob("*") if file.is_file())
    return found


def said(pair: Pair, seen: Seen, paces: list[Pace], now: float, used: dict[str, float]) -> str:
    lags = ", ".join(f"{name} {value:.1f}" for name, value in seen.lags.items())
    sizes = ", ".join(f"{name} {value:,.0f}" for name, value in used.items())
    late = max(pace.late for pace in paces)
    load = os.getloadavg()[0]
    by_name = ", ".join(
        f"{name} {samples[-1][1]:.1f}" for (name, _), samples in seen.memory.items() if samples[-1][0] == now
    )
    return (
        f"{now:.0f} s, load {load:.1f}, {len(pair.sent)} alerts, {len(pair.arrived)} messages; worst lag: {lags},"
        f" body {late:.1f}; {sizes}; MiB: {by_name}"
    )


# The figures
# ----------------------------------------------------------------------------------------------------------
def figures(
    pair: Pair, seen: Seen, paces: list[Pace], used: dict[str, float], seconds: float
) -> Iterator[Row]:
    for (name, _), samples in sorted(seen.memory.items()):
        begin = max(samples[0][0] + seconds / 12, seconds / 4)
        end = max(at for each in seen.memory.values() for at, _ in each)
        edge = min(EDGE, seconds / 10)
        if samples[-1][0] < end or begin + 2 * edge > end:
            yield _row(
                f"MiB of {name}, replaced or too young",
                samples[-1][1],
                "MiB",
                None,
                f"for {len(samples)} looks",
            )
            continue
        start = statistics.median(size for at, size in samples if begin <= at <= begin + edge)
        middle = statistics.median(
            size for at, size in samples if abs(at - (begin + end) / 2) <= edge / 2 + EVERY
        )
        last = statistics.median(size for at, size in samples if at >= end - edge)
        note = f"{start:.1f} MiB from {begin:.0f} s on, {middle:.1f} half-way, {last:.1f} at the end"
        yield _row(f"growth of {name}", 100 * (last / start - 1), "%", f"<= {LARGEST_GROWTH:g}", note)
    for name, looks in seen.servers.items():
        (early, few), (late, many) = looks[len(looks) // 4], looks[-1]
        note = f"{many} processes, one a session; {early:.1f} MiB in {few} after a quarter of the time"
        yield _row(f"MiB of {name} in all", late, "MiB", None, note)
    for name, lag in seen.lags.items():
        note = f"{seen.late[name]} of {seen.looks} looks above the bar"
        yield _row(f"longest lag, {name}", lag, "s", f"<= {LONGEST_LAG:g}", note)
    note = f"{sum(pace.taken for pace in paces) * ROWS:,} rows"
    yield _row(
        "longest lag, body behind its time",
        max(pace.late for pace in paces),
        "s",
        f"<= {LONGEST_LAG:g}",
        note,
    )
    yield from _disk(pair, paces, used, seconds)


def _disk(pair: Pair, paces: list[Pace], used: dict[str, float], seconds: float) -> Iterator[Row]:
    """Bytes that were added beside those that the page on sizing computes for this load."""
    bodies = sum(pace.taken for pace in paces)
    rate = bodies * ROWS / seconds
    computed = {
        "rows": rate * (HOT + PARTITION + SWEEP) * OF_ROW,
        "files": rate * min(seconds, seconds / 3 + KEPT_OPEN + SWEEP) * OF_ROW_IN_FILE,
        "rest": bodies * OF_BODY + len(pair.sent) * OF_INCIDENT,
    }
    measured = {"rows": used["rows"], "files": used["files"], "rest": used["all"] - used["rows"]}
    parts = ", ".join(f"{name} {measured[name] / 1e6:.0f} of {computed[name] / 1e6:.0f}" for name in computed)
    share = sum(measured.values()) / sum(computed.values())
    yield _row("bytes on disk, against the computed ones", share, "x", "<= 1.1", f"MB: {parts}")
    amounts = ", ".join(
        f"{used[name]:,.0f} {name}" for name in ("events", "rows in files", "parts in files", "runs")
    )
    yield _row("messages", len(pair.arrived), "", None, f"{len(pair.sent)} alerts; {amounts}")


def _row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 2), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    for figure in main(*map(int, sys.argv[1:])):
        print(line(figure), flush=True)
