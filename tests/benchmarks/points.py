"""Points of OTLP and samples of remote write, through HTTP to committed, against what decoding them costs alone.

Both in the same run. Decoding is one thread without a server; the server has two processes, and shares the cores with
the senders and with Postgres. Every body is new, because one that was stored before is not stored again. 4,000 series
in all, known after the first bodies, as with a real sender.

    python -m tests.benchmarks.points
"""

from __future__ import annotations

import http.client
import itertools
import json
import statistics
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cramjam
import psycopg2
from google.protobuf import json_format

from ingest.integrations.otlp import messages, parse
from ingest.integrations.otlp.messages import JSON, PROTOBUF, SIGNALS
from ingest.integrations.remote_write import parse as remote_write
from ingest.integrations.remote_write.messages import V1, V2
from ingest.telemetry.decode.columns import Bounds
from tests.benchmarks.ingest import stack

CLIENTS = 8
SECONDS = 2.5
ROUNDS = 3
DECODED = 5
"""Bodies that are decoded each time that decoding is measured."""
SERIES = 4_000
REGION = "default"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """One sort of body: how to make one of points that are all of one time, and how to decode it."""

    name: str
    points: int
    path: str
    headers: dict[str, str]
    make: Callable[[int], bytes]
    decode: Callable[[bytes], Any]


def main() -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about two minutes."""
    loads = [
        otlp_load("OTLP protobuf", 8_000, PROTOBUF),
        otlp_load("OTLP protobuf", 1_000, PROTOBUF),
        otlp_load("OTLP JSON", 1_000, JSON),
        remote_load("remote write 1.0", 2_000, "1.0"),
        remote_load("remote write 2.0", 2_000, "2.0"),
    ]
    with stack("points") as (home, port, secret):
        measured: dict[str, list[tuple[float, float]]] = {}
        for load in loads:
            send(load, port, secret, 1.5)  # series and partitions are there, as after the first minutes
            decoding(load)
        for _ in range(ROUNDS):
            for load in loads:
                before = stored(home.database_url)
                rate = send(load, port, secret, SECONDS, before, home.database_url)
                name = f"{load.name}, {load.points:,} a body, {CLIENTS} clients"
                measured.setdefault(name, []).append((rate, decoding(load)))
    return [figure(name, rates) for name, rates in measured.items()]


def figure(name: str, rates: list[tuple[float, float]]) -> Row:
    shares = [sent / decoded for sent, decoded in rates]
    sent, decoded = (statistics.median(rate[which] for rate in rates) for which in (0, 1))
    note = f"{sent:,.0f} points/s committed, {decoded:,.0f} decoded alone"
    return {
        "name": name,
        "value": round(statistics.median(shares), 3),
        "unit": "of decoding alone",
        "bar": None,
        "note": f"{note}, share {min(shares):.3f} to {max(shares):.3f}",
    }


def decoding(load: Load) -> float:
    """Points a second that one thread decodes, for good bodies that it has not seen."""
    bodies = [load.make(moment()) for _ in range(DECODED)]
    began = time.perf_counter()
    for body in bodies:
        load.decode(body)
    return DECODED * load.points / (time.perf_counter() - began)


# Bodies
# ----------------------------------------------------------------------------------------------------------
_moments = itertools.count(time.time_ns() // 10**6 - 20 * 60_000)


def moment() -> int:
    """Milliseconds since 1970, each once, of the last twenty minutes."""
    return next(_moments)


FIRST = 1_790_000_000_000
"""The time in the bodies that others are made of: as long on the wire as any of this century."""


def labels_of(number: int) -> dict[str, str]:
    host, name = divmod(number % SERIES, 40)
    told = {"instance": f"host-{host}:9100", "job": "node", "cluster": "dc1", "rack": f"r{host // 20}"}
    return {"__name__": f"node_{name}", **told, "mode": f"m{name % 8}"}


def otlp_load(name: str, points: int, form: str) -> Load:
    request: Any = SIGNALS["metrics"].request()
    scope = request.resource_metrics.add().scope_metrics.add()
    for number in range(points):
        told = labels_of(number)
        metric = scope.metrics.add(name=told.pop("__name__"))
        point = metric.gauge.data_points.add(time_unix_nano=FIRST * 10**6, as_double=number * 1.5)
        for key, value in told.items():
            point.attributes.add(key=key).value.string_value = value
    if form == PROTOBUF:
        body, old = request.SerializeToString(), struct.pack("<Q", FIRST * 10**6)
    else:
        body, old = json.dumps(json_format.MessageToDict(request)).encode(), str(FIRST * 10**6).encode()

    def make(at: int) -> bytes:
        new = struct.pack("<Q", at * 10**6) if form == PROTOBUF else str(at * 10**6).encode()
        return bytes(body.replace(old, new))

    def decode(body: bytes) -> object:
        return parse.metrics(messages.read(SIGNALS["metrics"], body, form), REGION, Bounds())

    return Load(name, points, "/v1/metrics", {"Content-Type": form}, make, decode)


def remote_load(name: str, samples: int, version: remote_write.Version) -> Load:
    told = [labels_of(number) for number in range(samples)]
    texts = itertools.chain.from_iterable(pair for labels in told for pair in labels.items())
    symbols = {text: place for place, text in enumerate(dict.fromkeys(("", *texts)))}
    series = []
    for number, labels in enumerate(told):
        sample = V1["Sample"](value=number * 1.5 + 1, timestamp=FIRST).SerializeToString()
        if version == "1.0":
            pairs = [V1["Label"](name=n, value=v).SerializeToString() for n, v in labels.items()]
            series.append(V1["TimeSeries"](labels=pairs, samples=[sample]).SerializeToString())
        else:
            refs = [symbols[text] for pair in labels.items() for text in pair]
            series.append(V2["TimeSeries"](labels_refs=refs, samples=[sample]))
    first = version == "1.0"
    whole = (
        V1["WriteRequest"](timeseries=series) if first else V2["Request"](symbols=symbols, timeseries=series)
    )
    body, old = whole.SerializeToString(), V1["Sample"](timestamp=FIRST).SerializeToString()
    proto = "prometheus.WriteRequest" if version == "1.0" else "io.prometheus.write.v2.Request"
    headers = {"Content-Type": f"application/x-protobuf;proto={proto}", "Content-Encoding": "snappy"}

    def make(at: int) -> bytes:
        return bytes(
            cramjam.snappy.compress_raw(body.replace(old, V1["Sample"](timestamp=at).SerializeToString()))
        )

    def decode(body: bytes) -> object:
        return remote_write.rows(remote_write.unpack(body), version, REGION, Bounds())

    return Load(name, samples, "/api/v1/write", headers, make, decode)


# Senders
# ----------------------------------------------------------------------------------------------------------
def stored(url: str) -> int:
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM telemetry_metric")
        row = cursor.fetchone()
        assert row is not None
        return int(row[0])


def send(load: Load, port: int, secret: str, seconds: float, before: int = 0, url: str = "") -> float:
    """Points a second that are accepted. With `url` the table must hold exactly these more than `before`."""
    accepted: list[int] = []
    failed: list[str] = []
    headers = {"Authorization": f"Bearer {secret}", **load.headers}
    begun = time.perf_counter()

    def post() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.perf_counter() - begun < seconds and not failed:
            connection.request("POST", load.path, load.make(moment()), headers)
            answer = connection.getresponse()
            told = answer.read()
            if answer.status not in (200, 204) or not answer.headers.get("Dossier-Receipt"):
                failed.append(f"{answer.status} {told[:300]!r}")
            accepted.append(1)
        connection.close()

    threads = [threading.Thread(target=post) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    if failed:
        raise AssertionError(f"{load.name}: {failed[0]}")
    if url and stored(url) - before != len(accepted) * load.points:
        raise AssertionError(f"{load.name}: the table does not hold what was accepted")
    return len(accepted) * load.points / took


if __name__ == "__main__":
    for row in main():
        print(f"{row['name']:<52} {row['value']:>8} {row['unit']:<18} {row['note']}")
