"""Metrics of an online shop over three hours, ten minutes a window, for `metric_blame`, with `topology`.

Written from the descriptions of RCAEval (Pham et al., WWW 2025) and PRISM (Pham, arXiv 2601.21359) alone. A fixed
shop of twelve services and three databases, as the demonstration shops of the literature have; every service has a
pool of workers, and its latency is that of a queue (service time / (1 - utilisation)), so that a fault grows more than
in proportion. Faults are those of RCAEval: CPU, memory and disk stress, network delay and loss, and a wrong release
whose answers fail. Metrics have names and units of their own: milliseconds in quantiles, utilisation in per cent,
counters that grow (requests, errors by status), resident memory; readings of 15 or 60 seconds. Noise: gamma service
times, Student t errors, sawtooth memory of garbage collection, cron jobs each ten minutes, readings that are lost.

Truth: the service that was injected, for the whole of the last two windows. A database and the only service that calls
it may be told for each other where the database reports no latency of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

START = datetime(2026, 6, 1, 9, tzinfo=UTC)
EVERY = timedelta(minutes=10)
HISTORY, JUDGED = 14, 2
SECONDS = (HISTORY + JUDGED) * 600

Floats = NDArray[np.float64]

CALLS: dict[str, tuple[tuple[str, float], ...]] = {
    "web": (("catalogue", 2.0), ("basket", 0.6), ("login", 0.2), ("adverts", 1.0), ("order", 0.1)),
    "mobile": (("catalogue", 1.5), ("basket", 0.5), ("order", 0.15)),
    "catalogue": (("search", 0.5), ("catalogue-db", 1.2)),
    "search": (("catalogue-db", 1.0),),
    "basket": (("basket-cache", 1.0), ("price", 1.0)),
    "price": (("currency", 1.0),),
    "currency": (),
    "login": (("user-db", 2.0),),
    "adverts": (),
    "order": (("payment", 1.0), ("shipping", 1.0), ("price", 2.0), ("user-db", 1.0)),
    "payment": (),
    "shipping": (("currency", 0.5),),
    "catalogue-db": (),
    "basket-cache": (),
    "user-db": (),
}
NAMES = tuple(CALLS)
STRESS = ("cpu", "memory", "disk", "delay", "loss", "release")


@dataclass(frozen=True)
class Plan:
    """A case: the fault, what else happens, seconds between readings, the share lost, and whether calls are known."""

    fault: str = ""
    benign: str = ""
    step: int = 15
    lost: float = 0.0
    calls: bool = True
    earlier: bool = False


PLANS: dict[str, Plan] = {
    **{one: Plan(one) for one in STRESS},
    "cpu_minute": Plan("cpu", step=60),
    "delay_lost": Plan("delay", lost=0.15),
    "delay_no_calls": Plan("delay", calls=False),
    "release_busy": Plan("release", "busy"),
    "cpu_after_earlier": Plan("cpu", earlier=True),
    "calm": Plan(),
    "calm_minute": Plan(step=60),
    "calm_lost": Plan(lost=0.15),
    "calm_busy": Plan(benign="busy"),
    "calm_cron": Plan(benign="cron"),
    "calm_restart": Plan(benign="restart"),
    "calm_earlier": Plan(earlier=True),
}
CASES = tuple(PLANS)


def make(seed: int, case: str) -> World:
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    time = np.arange(0, SECONDS, plan.step, dtype=np.float64)
    first = HISTORY * 600.0
    faults: list[tuple[str, str, float, float]] = []
    if plan.fault:
        faults.append((str(rng.choice(NAMES[2:])), plan.fault, first + float(rng.uniform(20, 150)), SECONDS))
    if plan.earlier:
        begin = float(rng.uniform(1200, 4800))
        faults.append((str(rng.choice(NAMES[2:])), "delay", begin, begin + 480))
    state = _shop(plan, rng, time, faults, first)
    rows: dict[str, list[dict[str, Any]]] = {"metric": list(_rows(plan, rng, time, state))}
    if plan.calls:
        rows["topology"] = [
            {
                "time": _stamp(0),
                "component": f"service/{name}",
                "depends_on": [f"service/{to}" for to, _ in called],
            }
            for name, called in CALLS.items()
        ]
    told = tuple(Fault(f"service/{name}", kind, _at(start), _at(end)) for name, kind, start, end in faults)
    return World(case, seed, rows, EVERY, _at(first), told, (plan.benign,) if plan.benign else ())


def _shop(
    plan: Plan,
    rng: np.random.Generator,
    time: Floats,
    faults: list[tuple[str, str, float, float]],
    first: float,
) -> dict[str, dict[str, Floats]]:
    arrivals = {"web": rng.uniform(30, 120), "mobile": rng.uniform(10, 60)}
    wave = 1 + 0.15 * np.sin(2 * np.pi * (time / 86_400 + rng.uniform(0, 1)))
    if plan.benign == "busy":
        wave = wave * np.where(time >= first + 60, rng.uniform(1.3, 1.7), 1.0)
    rate = {name: np.zeros(len(time)) for name in NAMES}
    for name in NAMES:  # callers stand before those that they call, but for shared ones, which add up
        rate[name] += arrivals.get(name, 0.0) * wave * rng.gamma(400, 1 / 400, len(time))
    for name in _order():
        for to, often in CALLS[name]:
            rate[to] += often * rate[name]
    found: dict[str, dict[str, Floats]] = {}
    for name in reversed(_order()):
        found[name] = _service(plan, rng, time, rate[name], [one for one in faults if one[0] == name], first)
        own = found[name]
        answer, bad = own["own"].copy(), own["bad"].copy()
        for to, often in CALLS[name]:
            answer += often * found[to]["answer"]
            bad = 1 - (1 - bad) * (1 - min(often, 1.0) * found[to]["bad"] * 0.8)
        own["answer"], own["bad"] = answer, bad
    return found


def _order() -> list[str]:
    """Services so that each stands after all that call it."""
    order: list[str] = []
    left = list(NAMES)
    while left:
        free = [one for one in left if not any(to == one for name in left for to, _ in CALLS[name])]
        order += free
        left = [one for one in left if one not in free]
    return order


def _service(
    plan: Plan,
    rng: np.random.Generator,
    time: Floats,
    rate: Floats,
    faults: list[tuple[str, str, float, float]],
    first: float,
) -> dict[str, Floats]:
    seconds = rng.uniform(0.002, 0.02) * rng.gamma(200, 1 / 200, len(time))
    used = rng.uniform(0.2, 0.45) * rate / rate.mean()
    memory = rng.uniform(2e8, 9e8) * (1 + 0.1 * ((time / rng.uniform(200, 900) + rng.uniform(0, 1)) % 1))
    writes = rng.uniform(1e4, 5e5) * (1 + 0.2 * np.abs(rng.standard_t(4, len(time))))
    bad, added = np.full(len(time), rng.uniform(0, 5e-4)), np.zeros(len(time))
    if plan.benign == "cron" and rng.random() < 0.2:
        writes = np.where((time % 600) < 90, writes * 8, writes)
        used = np.where((time % 600) < 90, used + 0.1, used)
    if plan.benign == "restart" and rng.random() < 0.15:
        memory = np.where(time >= first + 120, memory * rng.uniform(0.5, 0.8), memory)
    for _, kind, start, end in faults:
        on = (time >= start) & (time < end)
        if kind == "cpu":
            used = np.where(on, np.minimum(used + rng.uniform(0.35, 0.6), 0.97), used)
        elif kind == "memory":
            memory = np.where(on, memory * rng.uniform(1.6, 3), memory)
            seconds = np.where(on, seconds * rng.uniform(1.6, 3), seconds)
        elif kind == "disk":
            writes = np.where(on, writes * rng.uniform(8, 40), writes)
            added = np.where(on, rng.uniform(0.01, 0.06), added)
        elif kind == "delay":
            added = np.where(on, rng.uniform(0.03, 0.3), added)
        elif kind == "loss":
            added = np.where(on, rng.uniform(0.02, 0.2) * rng.gamma(9, 1 / 9, len(time)), added)
            bad = np.where(on, bad + rng.uniform(0.005, 0.05), bad)
        else:
            bad = np.where(on, bad + rng.uniform(0.05, 0.5), bad)
    own = seconds / (1 - np.clip(used, 0, 0.97)) + added
    return {"rate": rate, "used": used, "memory": memory, "writes": writes, "own": own, "bad": bad}


def _rows(
    plan: Plan, rng: np.random.Generator, time: Floats, state: dict[str, dict[str, Floats]]
) -> Iterator[dict[str, Any]]:
    for name in NAMES:
        one = state[name]
        calls = rng.poisson(one["rate"] * plan.step)
        failed = rng.binomial(calls, np.clip(one["bad"], 0, 1))
        jitter = 1 + 0.03 * rng.standard_t(5, len(time))
        series = [
            ("response_time_ms", {"quantile": "0.5"}, 1000 * one["answer"] * jitter),
            (
                "response_time_ms",
                {"quantile": "0.95"},
                2600 * one["answer"] * rng.gamma(60, 1 / 60, len(time)),
            ),
            ("http_requests_total", {"status": "200"}, np.cumsum(calls - failed)),
            ("http_requests_total", {"status": "500"}, np.cumsum(failed)),
            ("cpu_utilisation_percent", {}, 100 * one["used"] * rng.gamma(300, 1 / 300, len(time))),
            ("resident_memory_bytes", {}, one["memory"] * rng.gamma(4000, 1 / 4000, len(time))),
            ("disk_written_bytes", {}, one["writes"]),
        ]
        for metric, labels, values in series:
            there = rng.random(len(time)) >= plan.lost
            for at in np.flatnonzero(there).tolist():
                yield {
                    "time": _stamp(float(time[at])),
                    "name": metric,
                    "labels": {"app": name, **labels},
                    "value": float(f"{values[at]:.6g}")
                    if metric != "http_requests_total"
                    else float(values[at]),
                }


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _stamp(seconds: float) -> int:
    return round((START.timestamp() + seconds) * 10**9)
