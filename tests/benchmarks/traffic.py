"""Effects of composed arrivals on an integration that Poisson arrivals of the same mean lack: delay, lag, refusals.

Alerts come to a real server at the moments that `analyzers.simulators.traffic` draws, whatever it does meanwhile (an
open loop), at `UTILISATION` of the rate that a closed loop reached in the same run. Both kinds have the same clients
and sizes, and take turns. A delay counts from the moment at which the request was due.

Beside it, on hours of arrivals and without a clock: the wait and the backlog of a single server that is 70 % busy, and
the requests that the rate limit of a key (the real one, `ingest.api.admission`) refuses where each client has a key and
the limit is `HEADROOM` times the mean rate of the heaviest.

    python -m tests.benchmarks.traffic [--seconds S]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analyzers.simulators.traffic import Arrivals, Plan, composed, poisson, queued
from ingest.api.admission import Intake, OverloadedError
from tests.benchmarks.ingest import _manage, stack

UTILISATION = 0.5
BUSY, HEADROOM = 0.7, 2.0
HOURS = 8
"""Hours of arrivals that are drawn."""
SENDERS = 48
ROUNDS = 2
SEED = 97
Row = dict[str, Any]


@dataclass
class Outcome:
    """Delays in seconds, the largest number of requests that were due and not answered, and answers of 429 or 503."""

    delays: list[float] = field(default_factory=list)
    peak: int = 0
    refused: int = 0


def body(client: int, number: int, size: int) -> bytes:
    labels = [
        {"alertname": f"Load{number % 40}", "instance": f"c{client}-{number}-{one}"} for one in range(size)
    ]
    return json.dumps([{"labels": one} for one in labels]).encode()


def post(connection: http.client.HTTPConnection, secret: str, content: bytes) -> int:
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    connection.request("POST", "/api/v2/alerts", content, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def closed_loop(port: int, secret: str, sizes: list[int], seconds: float) -> float:
    """Requests a second of eight senders that each wait for their answers."""
    done, until = [0] * 8, time.perf_counter() + seconds

    def work(at: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.perf_counter() < until:
            post(connection, secret, body(900 + at, done[at], sizes[done[at] % len(sizes)]))
            done[at] += 1

    _all([threading.Thread(target=work, args=(at,)) for at in range(8)])
    return sum(done) / seconds


def open_loop(port: int, secret: str, arrivals: Arrivals, first: int) -> Outcome:
    due: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
    outcome, lock, waiting = Outcome(), threading.Lock(), [0]

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while (one := due.get()) is not None:
            status = post(connection, secret, one[1])
            with lock:
                waiting[0] -= 1
                outcome.delays.append(time.perf_counter() - one[0])
                outcome.refused += status in (429, 503)
                assert status in (200, 202, 429, 503), status

    threads = [threading.Thread(target=work) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    bodies = [
        body(client, first + number, size)
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


def main(seconds: float = 30.0) -> list[Row]:
    return [*without_a_clock(), *on_a_server(seconds)]


def on_a_server(seconds: float) -> list[Row]:
    with stack("traffic", DOSSIER_INGEST_RATE_PER_KEY="1000000") as (home, port, _):
        environment = {**os.environ, "DATABASE_URL": home.database_url, "DOSSIER_HOME": str(home.root)}
        secret = _manage(environment, "create_key", "alerts", "--scope", "alerts").strip()
        rng = np.random.default_rng(SEED)
        drawn = composed(Plan(clients=60, seconds=seconds, rate=50), rng).size.tolist()
        closed_loop(port, secret, drawn, 2.0)
        capacity = closed_loop(port, secret, drawn, 5.0)
        found: dict[str, list[Outcome]] = {"composed": [], "Poisson": []}
        dispersion: dict[str, list[float]] = {"composed": [], "Poisson": []}
        first = 0
        for turn in range(ROUNDS):
            plan = Plan(clients=60, seconds=seconds, rate=UTILISATION * capacity)
            bursty = composed(plan, np.random.default_rng([SEED, turn]))
            plain = poisson(plan, np.random.default_rng([SEED, turn, 1]), bursty)
            for name, arrivals in (("Poisson", plain), ("composed", bursty)):
                found[name].append(open_loop(port, secret, arrivals, first))
                dispersion[name].append(arrivals.dispersion(1.0))
                first += len(arrivals.at)
    return [
        row for name, outcomes in found.items() for row in _rows(name, outcomes, dispersion[name], capacity)
    ]


def _rows(name: str, outcomes: list[Outcome], dispersion: list[float], capacity: float) -> list[Row]:
    delays = np.concatenate([one.delays for one in outcomes])
    note = (
        f"{len(delays)} requests, {UTILISATION:.0%} of {capacity:.0f}/s; dispersion {np.mean(dispersion):.1f}"
    )
    p50, p99 = (round(float(np.quantile(delays, share)) * 1000, 1) for share in (0.5, 0.99))
    refused = sum(one.refused for one in outcomes)
    return [
        {"name": f"traffic, {name}: delay, median", "value": p50, "unit": "ms", "bar": None, "note": note},
        {
            "name": f"traffic, {name}: delay, 99th percentile",
            "value": p99,
            "unit": "ms",
            "bar": None,
            "note": note,
        },
        {
            "name": f"traffic, {name}: peak lag",
            "value": max(one.peak for one in outcomes),
            "unit": "requests",
            "bar": None,
            "note": "due and not answered, the largest of all rounds",
        },
        {
            "name": f"traffic, {name}: answers 429 or 503",
            "value": refused,
            "unit": "",
            "bar": None,
            "note": note,
        },
    ]


if __name__ == "__main__":
    from tests.benchmarks.__main__ import line

    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    for row in main(parser.parse_args().seconds):
        print(line(row), flush=True)
