"""Rows of the kinds that hold lists, sets and ids, through HTTP to committed, against plain ones in the same run; and
how long a window takes to find its intervals among many.

Senders, servers and rounds are those of the benchmark `ingest`. A probe has 3 round-trip times and 5 hops (one of
20,000 paths), a span three ids that nobody has seen before, a benchmark 20 values, a metric six labels.

    python -m tests.benchmarks.kinds
"""

from __future__ import annotations

import io
import itertools
import json
import os
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import django
import numpy as np
import pyarrow as pa

from tests.benchmarks.ingest import ACCEPTED, ARROW, NDJSON, head_of, stack
from tests.benchmarks.sending import send

PLAIN = "unit_failure"
KINDS = (PLAIN, "probe", "span", "benchmark", "metric")
ROWS = {NDJSON: 5_000, ARROW: 20_000}
BODIES = 6
CLIENTS = 8
SECONDS = 2.5
ROUNDS = 3
PATHS = 20_000
INTERVALS = (100_000, 1_000_000)
READS = 5
NOW = datetime.now(UTC)
Row = dict[str, Any]


def main() -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about two minutes."""
    with stack("kinds") as (home, port, secret):
        figures = through_the_endpoint(port, secret)
        os.environ.update(DJANGO_SETTINGS_MODULE="deploy.settings", DATABASE_URL=home.database_url)
        django.setup()
        return figures + among_intervals()


# The endpoint
# ----------------------------------------------------------------------------------------------------------
def through_the_endpoint(port: int, secret: str) -> list[Row]:
    requests = {
        (kind, media_type): [request(kind, media_type, seed, secret) for seed in range(BODIES)]
        for kind in KINDS
        for media_type in ROWS
    }
    for made in requests.values():
        # Names and partitions are there, as after the first minutes.
        send(port, itertools.cycle(made), CLIENTS, 1.0, ACCEPTED)
    rates: dict[tuple[str, str], list[float]] = {load: [] for load in requests}
    for _ in range(ROUNDS):
        for (kind, media_type), made in requests.items():
            sent = send(port, itertools.cycle(made), CLIENTS, SECONDS, ACCEPTED)
            rates[kind, media_type].append(ROWS[media_type] * sent.requests / sent.seconds)
    return [
        figure(kind, media_type, rates[kind, media_type], rates[PLAIN, media_type])
        for kind, media_type in requests
        if kind != PLAIN
    ]


def figure(kind: str, media_type: str, rates: list[float], plain: list[float]) -> Row:
    shares = [rate / beside for rate, beside in zip(rates, plain, strict=True)]
    written = "NDJSON" if media_type == NDJSON else "Arrow"
    return {
        "name": f"{kind}, {written}, {ROWS[media_type]:,} rows a body, {CLIENTS} clients",
        "value": round(statistics.median(shares), 3),
        "unit": f"of {PLAIN}",
        "bar": None,
        "note": f"{statistics.median(rates):,.0f} rows/s, share {min(shares):.3f} to {max(shares):.3f}",
    }


def request(kind: str, media_type: str, seed: int, secret: str) -> bytes:
    rows = MAKERS[kind](ROWS[media_type], np.random.default_rng(seed))
    body = ndjson(rows) if media_type == NDJSON else arrow(rows)
    return head_of(media_type, len(body), secret, kind) + body


def ndjson(rows: list[Row]) -> bytes:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def arrow(rows: list[Row]) -> bytes:
    table = pa.Table.from_pylist(rows)
    # Few different texts, as senders would write them.
    for place, field in enumerate(table.schema):
        if field.type == pa.string() and field.name not in ("trace", "span", "parent"):
            coded = table.column(place).combine_chunks().dictionary_encode()
            table = table.set_column(place, field.name, coded)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def times(count: int, chance: np.random.Generator) -> list[str]:
    """Of the last ten minutes."""
    moments = (NOW - timedelta(seconds=seconds) for seconds in chance.uniform(0, 600, count).tolist())
    return [f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z" for moment in moments]


def failures(count: int, chance: np.random.Generator) -> list[Row]:
    units = chance.integers(0, 20_000, count).tolist()
    at = times(count, chance)
    return [
        {"time": at[row], "unit": f"vm/v{unit:05}", "symptom": "disk_timeout"}
        for row, unit in enumerate(units)
    ]


def probes(count: int, chance: np.random.Generator) -> list[Row]:
    at, delays = times(count, chance), chance.gamma(2, 100, (count, 3)).round(2).tolist()
    rows = []
    for row, path in enumerate(chance.integers(0, PATHS, count).tolist()):
        src, dst, spine = path % 200, path // 200 + 200, path % 16
        racks = src // 10, dst // 10
        hops = [f"link/h{src}~t{racks[0]}", f"link/t{racks[0]}~s{spine}", f"switch/s{spine}"]
        hops += [f"link/s{spine}~t{racks[1]}", f"link/t{racks[1]}~h{dst}"]
        rows.append(
            {
                "time": at[row], "src": f"host/h{src}", "dst": f"host/h{dst}", "sent": 3, "lost": 0,
                "rtt_us": delays[row], "hops": hops,
            }
        )  # fmt: skip
    return rows


def spans(count: int, chance: np.random.Generator) -> list[Row]:
    at, ids = times(count, chance), chance.bytes(32 * count).hex()
    services, lengths = chance.integers(0, 30, count).tolist(), chance.gamma(2, 500, count).round(1).tolist()
    rows = []
    for row, service in enumerate(services):
        mine = ids[64 * row : 64 * row + 64]
        rows.append(
            {
                "time": at[row], "trace": mine[:32], "span": mine[32:48], "parent": mine[48:],
                "service": f"service-{service}", "instance": f"service-{service}-{row % 5}",
                "operation": f"GET /{service}", "duration_us": lengths[row], "error": row % 50 == 0,
            }
        )  # fmt: skip
    return rows


def benchmarks(count: int, chance: np.random.Generator) -> list[Row]:
    at, values = times(count, chance), chance.normal(100, 1, (count, 20)).round(4).tolist()
    return [
        {
            "time": at[row], "node": f"node/n{row % 1000}", "benchmark": "gemm", "metric": f"m{row % 50}",
            "values": values[row],
        }
        for row in range(count)
    ]  # fmt: skip


def metrics(count: int, chance: np.random.Generator) -> list[Row]:
    """Samples of 5,000 series with six labels each."""
    at, values = times(count, chance), chance.normal(50, 10, count).tolist()
    rows = []
    for row, series in enumerate(chance.integers(0, 5_000, count).tolist()):
        host, name = divmod(series, 25)
        labels = {"instance": f"host-{host}:9100", "job": "node", "cluster": "dc1", "mode": f"m{name}"}
        labels |= {"rack": f"r{host // 20}", "__unit__": "percent"}
        rows.append({"time": at[row], "name": f"node_{name}", "labels": labels, "value": values[row]})
    return rows


MAKERS = {PLAIN: failures, "probe": probes, "span": spans, "benchmark": benchmarks, "metric": metrics}


# Intervals
# ----------------------------------------------------------------------------------------------------------
def among_intervals() -> list[Row]:
    """Seconds that the last hour takes to read, the more is kept; the month as a whole for comparison."""
    figures, kept = [], 0
    took: list[float] = []
    for wanted in INTERVALS:
        keep(wanted - kept, seed=wanted)
        kept = wanted
        took.append(read(timedelta(hours=1)))
        figures.append(
            {
                "name": f"last hour among {kept:,} uptimes of 30 days",
                "value": round(took[-1], 4),
                "unit": "s",
                "bar": None,
                "note": f"all 30 days {read(timedelta(days=30)):.2f} s",
            }
        )
    growth = np.log(took[-1] / took[0]) / np.log(INTERVALS[-1] / INTERVALS[0])
    return [
        *figures,
        {
            "name": "growth with what is kept",
            "value": round(float(growth), 2),
            "unit": "exponent",
            "bar": "<= 1.2",
            "note": "",
        },
    ]


def keep(count: int, seed: int) -> None:
    """Minutes of downtime of 20,000 units, spread over the last 30 days."""
    from django.db import connection

    from ingest.telemetry.decode.body import decode_ndjson
    from ingest.telemetry.decode.columns import Bounds
    from ingest.telemetry.kinds import KINDS as DECLARED
    from ingest.telemetry.store.write import Delivery, receive

    chance = np.random.default_rng(seed)
    starts = (NOW.timestamp() - chance.uniform(120, 30 * 86400, count)).tolist()
    units = chance.integers(0, 20_000, count).tolist()
    rows = [
        {"start": int(start * 1e9), "unit": f"vm/v{unit}", "end": int((start + 60) * 1e9), "state": "down"}
        for start, unit in zip(starts, units, strict=True)
    ]
    receive(
        decode_ndjson(DECLARED["uptime"], ndjson(rows), "default", Bounds()), Delivery("bench", bytes(32), 1)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE telemetry_uptime")  # as the server does by itself, sooner or later


def read(length: timedelta) -> float:
    """Seconds to read the window that ends now; the median of several."""
    from ingest.queries import read_window, watermark
    from ingest.telemetry.windows.reductions import Count, Input, Reduction

    raw = Input("raw", (Reduction("raw", "uptime", ("unit", "start", "end", "state"), {"n": Count()}),))
    took = []
    for _ in range(READS if length < timedelta(days=1) else 1):
        began = time.perf_counter()
        read_window(raw, "default", NOW - length, NOW, watermark())
        took.append(time.perf_counter() - began)
    return statistics.median(took)


if __name__ == "__main__":
    for row in main():
        print(f"{row['name']:<64} {row['value']:>10,} {row['unit']:<18} {row['bar'] or ''}  {row['note']}")
