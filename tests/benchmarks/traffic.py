"""Effects of composed arrivals on integrations that Poisson arrivals of the same mean lack: delay, lag, refusals.

Requests come to a real server at the moments that `analyzers.simulators.traffic` draws, whatever it does meanwhile (an
open loop), at `UTILISATION` of the rate that a closed loop reached just before: alerts as Alertmanager posts them,
alerts of any JSON, samples of remote write, and points of OTLP. Both kinds have the same clients and sizes, and take
turns. A delay counts from the moment at which the request was due. Takes about two minutes; `--door` runs one
integration.

Beside it, on hours of arrivals and without a clock: the wait and the backlog of a single server that is 70 % busy, and
the requests that the rate limit of a key (the real one, `ingest.api.admission`) refuses where each client has a key and
the limit is `HEADROOM` times the mean rate of the heaviest.

    python -m tests.benchmarks.traffic [--seconds S] [--door NAME]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analyzers.simulators.traffic import Arrivals, Plan, composed, poisson, queued
from ingest.api.admission import Intake, OverloadedError
from ingest.integrations.otlp.messages import PROTOBUF
from tests.benchmarks.ingest import _manage, stack
from tests.benchmarks.points import Load, moment, otlp_load, remote_load

UTILISATION = 0.5
BUSY, HEADROOM = 0.7, 2.0
HOURS = 8
"""Hours of arrivals that are drawn."""
SENDERS = 48
ROUNDS = 2
CLIENTS = 60
SEED = 97
Row = dict[str, Any]


@dataclass
class Outcome:
    """Delays in seconds, the largest number of requests that were due and not answered, and answers of 429 or 503."""

    delays: list[float] = field(default_factory=list)
    peak: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Door:
    """An endpoint. `make(client, number, size)` is a body that was not sent before, of `size` alerts or eight times as
    many samples."""

    name: str
    path: str
    headers: dict[str, str]
    make: Callable[[int, int, int], bytes]


def doors(secret: str) -> list[Door]:
    bearer = {"Authorization": f"Bearer {secret}"}
    as_json = {**bearer, "Content-Type": "application/json"}
    written = [remote_load(f"{2**k}", 8 * 2**k, "1.0") for k in range(11)]
    exported = [otlp_load(f"{2**k}", 8 * 2**k, PROTOBUF) for k in range(11)]

    def alertmanager(client: int, number: int, size: int) -> bytes:
        labels = [
            {"alertname": f"Load{number % 40}", "instance": f"c{client}-{number}-{one}"}
            for one in range(size)
        ]
        return json.dumps([{"labels": one} for one in labels]).encode()

    def generic(client: int, number: int, size: int) -> bytes:
        named = [f"g{client}-{number}-{one}" for one in range(size)]
        return json.dumps(
            [{"title": f"Load on {one}", "key": one, "status": "firing"} for one in named]
        ).encode()

    def measured(loads: list[Load]) -> Callable[[int, int, int], bytes]:
        return lambda _client, _number, size: loads[min(10, (size - 1).bit_length())].make(moment())

    return [
        Door("Alertmanager", "/api/v2/alerts", as_json, alertmanager),
        Door("generic alerts", f"/integrations/generic/{secret}", as_json, generic),
        Door("remote write", written[0].path, {**bearer, **written[0].headers}, measured(written)),
        Door("OTLP", exported[0].path, {**bearer, **exported[0].headers}, measured(exported)),
    ]


def post(connection: http.client.HTTPConnection, door: Door, content: bytes) -> int:
    connection.request("POST", door.path, content, door.headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def closed_loop(port: int, door: Door, sizes: list[int], seconds: float) -> float:
    """Requests a second of eight senders that each wait for their answers."""
    done, until = [0] * 8, time.perf_counter() + seconds

    def work(at: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.perf_counter() < until:
            status = post(
                connection, door, door.make(900 + at, done[at], sizes[(at + 8 * done[at]) % len(sizes)])
            )
            assert status in (200, 202, 204), status
            done[at] += 1

    _all([threading.Thread(target=work, args=(at,)) for at in range(8)])
    return sum(done) / seconds


def open_loop(port: int, door: Door, arrivals: Arrivals, first: int) -> Outcome:
    due: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
    outcome, lock, waiting = Outcome(), threading.Lock(), [0]

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while (one := due.get()) is not None:
            status = post(connection, door, one[1])
            with lock:
                waiting[0] -= 1
                outcome.delays.append(time.perf_counter() - one[0])
                outcome.refused += status in (429, 503)
                assert status in (200, 202, 204, 429, 503), status

    threads = [threading.Thread(target=work) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    bodies = [
        door.make(client, first + number, size)
        for number, (client, size) in enumerate(
            zip(arrivals.client.tolist(), arrivals.size.tolist(), strict=True)
        )
    ]
    begun = time.perf_counter()
    for at, content in zip(arrivals.at.tolist(), bodies, strict=True):
        if (early := begun + at - time.perf_counter()) > 0:
            time.sleep(early)
        with lock:
            waiting[0] += 1
            outcome.peak = max(outcome.peak, waiting[0])
        due.put((begun + at, content))
    for _ in threads:
        due.put(None)
    for thread in threads:
        thread.join()
    return outcome


def _all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def refused_by_rate(arrivals: Arrivals, limit: float) -> int:
    """Requests that the rate limit of a key refuses, each client with a key of its own."""
    clock = Clock()
    intake = Intake(limit, 1_000, clock)
    refused = 0
    for at, client in zip(arrivals.at.tolist(), arrivals.client.tolist(), strict=True):
        clock.now = at
        try:
            with intake.admitted(f"client-{client}"):
                pass
        except OverloadedError:
            refused += 1
    return refused


def without_a_clock(hours: int = HOURS) -> Iterator[Row]:
    """The median over hours of each figure, with the least and the largest: overloaded minutes decide a mean."""
    found: dict[str, dict[str, list[float]]] = {"Poisson": {}, "composed": {}}
    for seed in range(hours):
        plan, rng = Plan(), np.random.default_rng([SEED, seed, 2])
        bursty = composed(plan, rng)
        limit = HEADROOM * float(np.bincount(bursty.client).max()) / plan.seconds
        for name, arrivals in (("Poisson", poisson(plan, rng, bursty)), ("composed", bursty)):
            per_row = BUSY * plan.seconds / float(arrivals.size.sum())
            waits = queued(arrivals, per_row, 0.0, 10**9)
            mean_service = BUSY * plan.seconds / len(arrivals.at)
            for what, value in (
                ("index of dispersion, 1 s", arrivals.dispersion(1.0)),
                ("wait, mean, in mean service times", float(waits.waits.mean()) / mean_service),
                (
                    "wait, 99th percentile, in mean service times",
                    float(np.quantile(waits.waits, 0.99)) / mean_service,
                ),
                (
                    "peak backlog, in mean requests",
                    waits.peak * len(arrivals.at) / float(arrivals.size.sum()),
                ),
                (
                    "share refused by the rate limit of a key",
                    refused_by_rate(arrivals, limit) / len(arrivals.at),
                ),
            ):
                found[name].setdefault(what, []).append(value)
    for name, figures in found.items():
        for what, values in figures.items():
            yield {
                "name": f"traffic, {name}: {what}",
                "value": round(float(np.median(values)), 4),
                "unit": "",
                "bar": None,
                "note": f"{min(values):.4g} to {max(values):.4g} in {len(values)} hours",
            }


def main(seconds: float = 4.0) -> list[Row]:
    return [*without_a_clock(), *on_a_server(seconds)]


def on_a_server(seconds: float, only: str = "") -> Iterator[Row]:
    with stack("traffic", DOSSIER_INGEST_RATE_PER_KEY="1000000") as (home, port, _):
        environment = {**os.environ, "DATABASE_URL": home.database_url, "DOSSIER_HOME": str(home.root)}
        scopes = ("--scope", "alerts", "--scope", "telemetry")
        secret = _manage(environment, "create_key", "senders", *scopes).strip()
        for place, door in enumerate(doors(secret)):
            if only not in ("", door.name):
                continue
            yield from _of_door(port, door, seconds, place)


def _of_door(port: int, door: Door, seconds: float, place: int) -> Iterator[Row]:
    rng = np.random.default_rng([SEED, place])
    drawn = composed(Plan(clients=CLIENTS, seconds=60, rate=50), rng).size.tolist()
    closed_loop(port, door, drawn, 1.0)
    capacity = closed_loop(port, door, drawn, 2.5)
    found: dict[str, list[Outcome]] = {"composed": [], "Poisson": []}
    dispersion: dict[str, list[float]] = {"composed": [], "Poisson": []}
    first = 100_000
    for turn in range(ROUNDS):
        plan = Plan(clients=CLIENTS, seconds=seconds, rate=UTILISATION * capacity)
        bursty = composed(plan, np.random.default_rng([SEED, turn]))
        plain = poisson(plan, np.random.default_rng([SEED, turn, 1]), bursty)
        for name, arrivals in (("Poisson", plain), ("composed", bursty)):
            found[name].append(open_loop(port, door, arrivals, first))
            dispersion[name].append(arrivals.dispersion(0.1))
            first += len(arrivals.at)
    yield from _rows(door.name, found, dispersion, capacity)


def _rows(
    door: str, found: dict[str, list[Outcome]], dispersion: dict[str, list[float]], capacity: float
) -> Iterator[Row]:
    """Composed over Poisson at each quantile, with milliseconds; the largest lag; refusals."""
    delays = {name: np.concatenate([one.delays for one in outcomes]) for name, outcomes in found.items()}
    for words, share in (("median", 0.5), ("99th percentile", 0.99)):
        composed_ms, poisson_ms = (
            1000 * float(np.quantile(delays[name], share)) for name in ("composed", "Poisson")
        )
        yield {
            "name": f"traffic, {door}: delay, {words}, composed against Poisson",
            "value": round(composed_ms / poisson_ms, 2),
            "unit": "times",
            "bar": None,
            "note": f"{composed_ms:.1f} and {poisson_ms:.1f} ms of {len(delays['composed'])} requests each, "
            f"{UTILISATION:.0%} of {capacity:.0f}/s",
        }
    peaks = {name: max(one.peak for one in outcomes) for name, outcomes in found.items()}
    refused = {name: sum(one.refused for one in outcomes) for name, outcomes in found.items()}
    spread = {name: statistics.mean(values) for name, values in dispersion.items()}
    yield {
        "name": f"traffic, {door}: most requests due and not answered, composed",
        "value": peaks["composed"],
        "unit": "requests",
        "bar": None,
        "note": f"{peaks['Poisson']} Poisson; variance over mean of 0.1 s {spread['composed']:.1f} and "
        f"{spread['Poisson']:.1f}; answers 429 or 503: {refused['composed']} and {refused['Poisson']}",
    }


if __name__ == "__main__":
    from tests.benchmarks.__main__ import line

    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--door", default="", help="name of the only integration, such as OTLP")
    arguments = parser.parse_args()
    found = on_a_server(arguments.seconds, arguments.door) if arguments.door else main(arguments.seconds)
    for row in found:
        print(line(row), flush=True)
