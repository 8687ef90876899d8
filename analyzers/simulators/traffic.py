"""Arrivals of requests composed per client, as production traffic arrives: few heavy clients, many idle ones, bursts.

The composition is that of ServeGen (Xiang et al., "ServeGen: Workload characterization and generation of large
language model serving in production", arXiv 2505.09999): each client has, for each window of ten minutes, a rate, a
coefficient of variation of the time between arrivals (a Gamma renewal process) and sizes of its own; the workload is
their sum. Rates of clients are Zipf, follow the hour with a phase of their own and wander between windows; burstiness
and sizes are log-normal among clients. The numbers are our choice, not fitted to a recording.

`poisson` has the same mean rate, sizes and clients, without windows, phases and bursts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WINDOW = 600.0
"""Seconds for which a client has one rate and one burstiness."""
MOST_ARRIVALS = 5_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """`rate` is the mean of arrivals per second of all `clients` over `seconds`; `zipf` the exponent of their shares;
    `cv` the median coefficient of variation of a client's times between arrivals, `cv_spread` its log-normal spread;
    `wander` that of rates between windows; `size` the median number of rows or alerts of an arrival."""

    clients: int = 200
    seconds: float = 3_600.0
    rate: float = 20.0
    zipf: float = 1.1
    cv: float = 2.0
    cv_spread: float = 0.5
    wander: float = 0.6
    daily: float = 0.5
    size: float = 4.0
    size_spread: float = 0.9

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.clients, self.seconds, self.rate, self.cv, self.size))):
            raise ValueError("clients, seconds, rate, cv and size are finite numbers")
        if self.clients < 1 or self.seconds <= 0 or self.rate <= 0 or self.cv <= 0 or self.size < 1:
            raise ValueError("clients and size are at least 1; seconds, rate and cv are above 0")
        if self.rate * self.seconds > MOST_ARRIVALS:
            raise ValueError(f"rate times seconds is at most {MOST_ARRIVALS:,} arrivals")


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """In order of time, all of shape (arrivals,): seconds from the start, the number of the client, the size."""

    at: Floats
    client: Ints
    size: Ints

    def dispersion(self, seconds: float = 1.0) -> float:
        """Variance over mean of arrivals in windows of so many seconds: 1 for Poisson."""
        if not len(self.at):
            return 0.0
        counts = np.bincount((self.at // seconds).astype(np.int64))
        return float(counts.var() / counts.mean())

    def top_share(self, clients: int) -> float:
        """The share of arrivals of the heaviest clients."""
        counts = np.sort(np.bincount(self.client))[::-1]
        return float(counts[:clients].sum() / max(1, counts.sum()))


def composed(plan: Plan, rng: np.random.Generator) -> Arrivals:
    """The sum of the clients."""
    windows = max(1, int(np.ceil(plan.seconds / WINDOW)))
    edges = np.minimum(np.arange(windows + 1) * WINDOW, plan.seconds)
    rates = _rates(plan, rng, edges)
    cvs = plan.cv * np.exp(plan.cv_spread * rng.standard_normal((plan.clients, 1)))
    cvs = np.clip(cvs * np.exp(0.2 * rng.standard_normal((plan.clients, windows))), 0.3, 12)
    at, client = list[Floats](), list[Ints]()
    for number in range(plan.clients):
        times = _renewals(rng, rates[number], cvs[number], edges)
        at.append(times)
        client.append(np.full(len(times), number))
    times, sender = np.concatenate(at), np.concatenate(client)
    order = np.argsort(times, kind="stable")
    return Arrivals(times[order], sender[order], _sizes(plan, rng, sender[order]))


def poisson(plan: Plan, rng: np.random.Generator, like: Arrivals) -> Arrivals:
    """As many arrivals as `like` has, with its clients and sizes in any order, at times without memory."""
    order = rng.permutation(len(like.at))
    return Arrivals(np.sort(rng.uniform(0, plan.seconds, len(order))), like.client[order], like.size[order])


def _rates(plan: Plan, rng: np.random.Generator, edges: Floats) -> Floats:
    """Of each client in each window; their mean over time adds up to the plan's rate."""
    shares = np.arange(1, plan.clients + 1) ** -plan.zipf
    hours = (edges[:-1] + edges[1:])[None, :] / 7_200
    phase = rng.uniform(0, 2 * np.pi, (plan.clients, 1))
    rates = shares[:, None] * (1 + plan.daily * np.sin(2 * np.pi * hours / 24 + phase))
    rates = rates * np.exp(plan.wander * rng.standard_normal(rates.shape))
    expected = float((rates * np.diff(edges)[None, :]).sum())
    return np.asarray(rates * plan.rate * plan.seconds / expected)


def _renewals(rng: np.random.Generator, rates: Floats, cvs: Floats, edges: Floats) -> Floats:
    """Times of one client: in each window a Gamma renewal process, from a random place within its first interval."""
    found = []
    for window, (rate, cv) in enumerate(zip(rates.tolist(), cvs.tolist(), strict=True)):
        begin, length = edges[window], edges[window + 1] - edges[window]
        shape = 1 / cv**2
        times = np.empty(0)
        last, many = 0.0, int(rate * length * 1.2 + 8 * cv + 8)
        # Of a stationary process the interval that holds the start is longer (inspection paradox), and cut anywhere.
        first = rng.gamma(shape + 1, cv**2 / rate) * rng.uniform()
        while last < length:
            steps = rng.gamma(shape, cv**2 / rate, many)
            if not len(times):
                steps[0] = first
            times = np.concatenate([times, last + np.cumsum(steps)])
            last = float(times[-1])
        found.append(begin + times[times < length])
    return np.concatenate(found)


def _sizes(plan: Plan, rng: np.random.Generator, client: Ints) -> Ints:
    medians = plan.size * np.exp(0.7 * rng.standard_normal(plan.clients))
    sizes = medians[client] * np.exp(plan.size_spread * rng.standard_normal(len(client)))
    return np.clip(np.round(sizes), 1, 1_000).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Queued:
    """Queue of one server that takes `seconds` for each row: waiting times in seconds and the largest number of rows
    that wait; `refused` arrivals found the queue full."""

    waits: Floats
    peak: int
    refused: int


def queued(arrivals: Arrivals, per_row: float, per_arrival: float, most: int) -> Queued:
    """First in, first out; an arrival that would make more than `most` rows wait is refused."""
    waits, done = list[float](), 0.0
    backlog: list[tuple[float, int]] = []
    head = waiting = peak = refused = 0
    for at, size in zip(arrivals.at.tolist(), arrivals.size.tolist(), strict=True):
        while head < len(backlog) and backlog[head][0] <= at:
            waiting -= backlog[head][1]
            head += 1
        if waiting + size > most:
            refused += 1
            continue
        began = max(at, done)
        waits.append(began - at)
        done = began + per_arrival + per_row * size
        backlog.append((done, size))
        waiting += size
        peak = max(peak, waiting)
    return Queued(np.array(waits), peak, refused)


def rows_of(arrivals: Arrivals) -> list[dict[str, Any]]:
    """As `manage.py simulate traffic` writes them."""
    return [
        {"at": round(at, 4), "client": f"client-{client:03}", "size": size}
        for at, client, size in zip(
            arrivals.at.tolist(), arrivals.client.tolist(), arrivals.size.tolist(), strict=True
        )
    ]
