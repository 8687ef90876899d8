"""Appending to the event log with 8 writers, against naive inserts and against the `eventsourcing` library.

All figures are ratios within one run, on a cluster of its own with fsync on; a probe of the disk stands
beside them. Each writer is a process that appends to its own streams, 1 or 10 events a transaction, while a
reader follows. The naive side is what one writes without thinking of readers: one multi-row INSERT of the
same columns with an identity column as the position, no hash, no trigger, no watermark, no notification;
its reader asks for `position > last` and is counted too. The library (psycopg 3, in an environment of its
own) has a reader as well. The sides take turns in short slices; a figure is the median of the turns' ratios,
so that a slow minute of the machine is shared by all.

    python -m tests.benchmarks.append
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.embedded import Home, start_postgres, stop
from tests.places import ROOT

WRITERS = 8
SLICES = 16
SECONDS = 1.5
PEER = ("eventsourcing==9.5.6", "psycopg[binary,pool]>=3.2,<4")


def main() -> list[dict[str, Any]]:
    """Rows of name, value, unit, bar and a note. Takes about three minutes."""
    root = Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute()
    home = Home(root / "bench" / "append")
    home.forget()
    peer = _peer_python(root / "bench-venv")
    server = start_postgres(home)
    crews: list[Crew] = []
    try:
        _worker(sys.executable, "append_writer", home, "migrate").wait()
        crews = [Crew(home, side) for side in ("naive", "log")]
        if peer is not None:
            crews.append(Crew(home, "peer", peer))
        return _measure(home, crews)
    finally:
        for crew in crews:
            crew.dismiss()
        stop(server)
        home.forget()


@dataclass(slots=True)
class Crew:
    """The writers of one side, and its reader, waiting for their turn."""

    home: Home
    side: str
    python: str = sys.executable
    writers: list[subprocess.Popen[str]] = field(init=False)
    reader: subprocess.Popen[str] = field(init=False)
    rates: list[float] = field(default_factory=list)
    skipped: int = 0

    def __post_init__(self) -> None:
        module = "append_peer" if self.side == "peer" else "append_writer"
        if self.side == "peer":
            _worker(self.python, module, self.home, "create").wait()
        self.reader = _worker(self.python, module, self.home, self.side, "read")
        self.writers = [_worker(self.python, module, self.home, self.side) for _ in range(WRITERS)]
        for process in self._all():
            _hear(process)

    def _all(self) -> list[subprocess.Popen[str]]:
        return [*self.writers, self.reader]

    def take_turn(self, batch: int) -> None:
        """Write for one slice; note the events a second, and how many the reader did not get to see."""
        _say(self.reader, "follow")
        _hear(self.reader)
        for writer in self.writers:
            _say(writer, f"{batch} {SECONDS}")
        results = [json.loads(_hear(writer)) for writer in self.writers]
        self.rates.append(sum(count / seconds for count, seconds in results))
        _say(self.reader, "end")
        self.skipped += sum(count for count, _ in results) - int(_hear(self.reader))

    def dismiss(self) -> None:
        for process in self._all():
            with process:
                process.kill()


def _worker(python: str, module: str, home: Home, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-m", f"tests.benchmarks.{module}", str(home.run), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"{process.args!r} ended"
    return line.strip()


def _measure(home: Home, crews: list[Crew]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    probes = [_fsync_probe(home)]
    for batch in (1, 10):
        for crew in crews:
            crew.take_turn(batch)  # warms caches and plans, not counted
            crew.rates, crew.skipped = [], 0
        for turn in range(SLICES):
            for crew in crews if turn % 2 else reversed(crews):
                crew.take_turn(batch)
        rows += _rows(
            f"append, {WRITERS} writers, {batch} a transaction", {crew.side: crew for crew in crews}
        )
        probes.append(_fsync_probe(home))
    note = f"before, between and after: {', '.join(f'{probe:.2f}' for probe in probes)}"
    rows.append(_row("fsync of 8 kB on this disk", statistics.median(probes), "ms", None, note))
    return rows


def _rows(name: str, crews: dict[str, Crew]) -> list[dict[str, Any]]:
    log, naive = crews["log"], crews["naive"]
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    rows = [
        _row(name, statistics.median(log.rates), "events/s", None, machine),
        _against(f"{name}, against naive inserts", log, naive, ">= 0.65", "naive"),
        _row(f"{name}, skipped by the reader", log.skipped, "events", "= 0", ""),
        _row(f"{name}, skipped by the naive reader", naive.skipped, "events", None, ""),
    ]
    if "peer" in crews:
        rows.append(_against(f"{name}, against eventsourcing", log, crews["peer"], ">= 2.5", PEER[0]))
    return rows


def _against(name: str, log: Crew, other: Crew, bar: str, called: str) -> dict[str, Any]:
    ratios = sorted(mine / theirs for mine, theirs in zip(log.rates, other.rates, strict=True))
    note = (
        f"{called}: {statistics.median(other.rates):,.0f} events/s; turns {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )
    return _row(name, statistics.median(ratios), "x", bar, note)


def _row(name: str, value: float, unit: str, bar: str | None, note: str) -> dict[str, Any]:
    return {"name": name, "value": round(value, 3), "unit": unit, "bar": bar, "note": note}


def _fsync_probe(home: Home) -> float:
    """Median time of a write of 8 kB and its fsync beside the cluster's data, in ms."""
    path, times = home.root / "probe", []
    with path.open("wb") as file:
        for _ in range(100):
            started = time.perf_counter()
            file.write(b"x" * 8192)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    path.unlink()
    return statistics.median(times) * 1000


def _peer_python(venv: Path) -> str | None:
    """The interpreter of an environment with the library, made on first use; None where it cannot be
    installed."""
    python, marker = venv / "bin" / "python", venv / PEER[0]
    if not marker.exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEER]
        if subprocess.run(install, check=False).returncode != 0:
            print(f"{PEER[0]} could not be installed: its rows are left out", file=sys.stderr)
            return None
        marker.touch()
    return str(python)


if __name__ == "__main__":
    for row in main():
        bar = f"   (bar {row['bar']})" if row["bar"] else ""
        print(f"{row['name']:<60} {row['value']:>12,} {row['unit']}{bar}  {row['note']}")
