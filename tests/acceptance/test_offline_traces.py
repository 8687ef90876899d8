"""Alice has the spans of an application in files: she is told which service is slow, and since when."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import manage

COLUMNS = (
    "TraceID",
    "SpanID",
    "ParentID",
    "PodName",
    "OperationName",
    "StartTimeUnixNano",
    "EndTimeUnixNano",
    "Duration",
)
NOON_NS = 1_700_000_000 // 60 * 60 * 10**9


def verdicts(file: Path) -> list[dict[str, Any]]:
    done = manage("analyze", "trace_blame", f"--input=span={file}", "--every=1m", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def simulated(scenario: str, out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The verdicts on a simulated system, and what was wrong with it."""
    assert manage("simulate", scenario, "--seed", "3", "--out", str(out)).returncode == 0
    return verdicts(out / "span.ndjson"), json.loads((out / "truth.json").read_text())["faults"]


@pytest.mark.parametrize("scenario", ["trace_slow", "trace_exception"])
def test_the_planted_fault_is_named_in_its_minute_and_nothing_before(scenario: str, tmp_path: Path) -> None:
    told, (fault,) = simulated(scenario, tmp_path / "files")
    before = [one for one in told if one["window"]["start"] < fault["start"]]
    first = told[len(before)]["suspects"][0]
    assert fault["component"] in (first["component"], *first["ambiguous_with"])
    assert [one["suspects"] for one in before] == [[]] * 6


def test_a_healthy_system_is_accused_of_nothing(tmp_path: Path) -> None:
    told, _ = simulated("trace_healthy", tmp_path / "files")
    assert {one["status"] for one in told} <= {"quiet", "inconclusive"}


def recorded(path: Path, begins: int, delay_us: int) -> None:
    """A minute of 60 requests to a shop that asks a cart, as a CSV file of spans."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for number in range(60):
            start, trace = begins + number * 10**9, f"{begins}-{number}"
            served = 2000 + 37 * (number % 11)
            asked, whole = served + 900 + delay_us, served + 4000 + delay_us
            for span, parent, pod, operation, at, lasts in (
                ("1", "root", "shop-5b67c48447-fj8b7", "page", 0, whole),
                ("2", "1", "shop-5b67c48447-fj8b7", "call cart", 1000, asked),
                ("3", "2", "cart-579f59597d-wc2lz", "get", 1500, served),
            ):
                begin = start + at * 1000
                rows.writerow((trace, span, parent, pod, operation, begin, begin + lasts * 1000, lasts))


def test_spans_in_csv_become_rows_with_the_normal_minute_before_them(tmp_path: Path) -> None:
    calm, bad, out = tmp_path / "calm.csv", tmp_path / "bad.csv", tmp_path / "span.ndjson"
    recorded(calm, NOON_NS + 86_400 * 10**9, 0)  # a day later, as in recordings that set a normal day apart
    recorded(bad, NOON_NS, 400_000)
    done = manage("convert", "spans", "--to=span", f"--normal={calm}", f"--input={bad}", f"--out={out}")
    assert done.returncode == 0, done.stderr
    _, now = verdicts(out)
    assert now["suspects"][0]["component"] in ("service/cart", "service/shop")
    assert now["window"]["start"] == "2023-11-14T22:13:00Z"


def test_log_records_in_csv_become_counts_with_the_normal_minute_before_them(tmp_path: Path) -> None:
    out = tmp_path / "log_count.ndjson"
    files = {"calm": NOON_NS + 86_400 * 10**9, "bad": NOON_NS}
    for name, begins in files.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(("TimeUnixNano", "PodName", "Log"))
            for number in range(20):
                line = f"12:00:0{number % 10}.1 INFO page {number} served"
                lines.writerow((begins + number * 10**8, "shop-5b67c48447-fj8b7", json.dumps({"log": line})))
    calm, bad = (tmp_path / f"{name}.csv" for name in files)
    done = manage("convert", "logs", f"--normal={calm}", f"--input={bad}", f"--out={out}")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["time"], row["template"], row["severity"], row["count"]) for row in rows] == [
        ("2023-11-14T22:12:00Z", "<*> INFO page <*> served", "info", 20),
        ("2023-11-14T22:13:00Z", "<*> INFO page <*> served", "info", 20),
    ]
    bad.write_text("TimeUnixNano,PodName,Log\nnoon,p,x\n")
    done = manage("convert", "logs", f"--input={bad}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "row 1, field TimeUnixNano: 'noon'" in done.stderr
