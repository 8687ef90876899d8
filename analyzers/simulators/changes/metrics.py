"""Simulated metrics of services: five series each, sampled every minute, with a change of level at a known minute.

Noise is an autoregression of the first order around a level of each series' own, log-normal for latencies and Poisson
for counts of errors; replicas are a gauge of few values, requests a counter. What is wrong with a component is one of
`FAULTS`, what looks like a change and is none is one of `EVENTS`. The numbers are our choice.

Seeds below `FIRST_REPORTING_SEED` are for choosing and calibrating; published figures use seeds from there on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.truth import happened

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

Floats = NDArray[np.float64]
Row = dict[str, Any]

METRICS = ("cpu_usage", "latency_seconds", "errors_per_minute", "replicas", "requests_total")
FAULTS = ("step", "small_step", "errors", "replica_lost", "traffic")
"""step: CPU and latency rise by 4 standard deviations. small_step: by 2. errors: from 0.2 a minute to 6. replica_lost:
one of some replicas is gone. traffic: requests of one service are halved."""
EVENTS = (
    "diurnal",
    "spikes",
    "missing_rows",
    "fleet_shift",
    "nightly_job",
    "earlier_fault",
    "late_start",
    "wander",
)
"""diurnal: load follows the hour. spikes: single minutes are ten times as high. missing_rows: a fifth of the minutes
and stretches of ten are lost. fleet_shift: requests of all services grow by half. nightly_job: CPU is up for half an
hour at this time of every day. earlier_fault: a service was slow for an hour, ten hours ago. late_start: a service
begins to send an hour before. wander: readings depend on the ones before (correlation 0.95)."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """`minutes` of metrics of `services`; the last `window` of them are judged. Values have shape (services, minutes),
    NaN where no row is. The fault of service `at` begins at minute `onset`."""

    values: dict[str, Floats]
    minutes: int
    window: int
    kind: str
    at: int
    onset: int

    def name(self, service: int) -> str:
        return f"s{service:02}"


def fleet(
    rng: np.random.Generator,
    kind: str = "",
    event: str = "",
    *,
    services: int = 12,
    hours: int = 27,
    window: int = 60,
) -> Fleet:
    minutes = 60 * hours
    at, onset = int(rng.integers(services)), minutes - window + int(rng.integers(5, max(6, window - 25)))
    rho = 0.95 if event == "wander" else 0.3
    load = np.ones((services, minutes))
    if event == "diurnal":
        clock = 2 * np.pi * np.arange(minutes) / 1440
        load *= 1 + 0.5 * np.sin(clock + rng.uniform(0, 2 * np.pi))
    if event == "fleet_shift":
        load[:, onset:] *= 1.5
    noise = {name: _wander(rng, services, minutes, rho) for name in METRICS[:2]}
    pushed = np.zeros((services, minutes))
    if kind in ("step", "small_step"):
        pushed[at, onset:] = 4 if kind == "step" else 2
    if event == "earlier_fault":
        pushed[(at + 1) % services, minutes - window - 600 : minutes - window - 540] += 4
    if event == "nightly_job":
        for day in range(0, minutes, 1440):
            pushed[:3, max(0, minutes - window + 10 - day) : max(0, minutes - window + 40 - day)] += 5
    level = rng.uniform(0.2, 0.5, (services, 1))
    errors = np.full((services, minutes), 0.2)
    replicas = np.repeat(rng.integers(2, 6, (services, 1)), minutes, axis=1).astype(float)
    rate = rng.uniform(50, 500, (services, 1)) * load
    if kind == "errors":
        errors[at, onset:] = 6
    if kind == "replica_lost":
        replicas[at, onset:] -= 1
    if kind == "traffic":
        rate[at, onset:] /= 2
    values = {
        "cpu_usage": level * load + 0.02 * (noise["cpu_usage"] + pushed),
        "latency_seconds": 0.05 * np.exp(0.15 * (noise["latency_seconds"] + pushed)) * load**0.3,
        "errors_per_minute": rng.poisson(errors).astype(float),
        "replicas": replicas,
        "requests_total": np.cumsum(rng.poisson(rate), axis=1).astype(float),
    }
    return _disturbed(rng, Fleet(values, minutes, window, kind, at, onset), event)


def _wander(rng: np.random.Generator, services: int, minutes: int, rho: float) -> Floats:
    pushed = rng.normal(size=(services, minutes))
    for minute in range(1, minutes):
        pushed[:, minute] = rho * pushed[:, minute - 1] + np.sqrt(1 - rho * rho) * pushed[:, minute]
    return pushed


def _disturbed(rng: np.random.Generator, made: Fleet, event: str) -> Fleet:
    for values in made.values.values():
        services = len(values)
        if event == "spikes" and values is not made.values["requests_total"]:
            values[rng.random(values.shape) < 0.005] *= 10
        if event == "missing_rows":
            values[rng.random(values.shape) < 0.2] = np.nan
            for service in range(services):
                start = int(rng.integers(made.minutes - 10))
                values[service, start : start + 10] = np.nan
        if event == "late_start":
            values[(made.at + 1) % services, : made.minutes - made.window - 60] = np.nan
    return made


def window_of(made: Fleet, end: int | None = None) -> Window:
    """The window of `made.window` minutes that ends at minute `end` (the last), with all before it as history."""
    last = made.minutes if end is None else end
    starts = range(last - (last // made.window) * made.window, last, made.window)
    windows = [_window(made, start) for start in starts]
    now = windows[-1]
    return Window(now.start, now.end, now.region, now.input, now.sums, tuple(windows[:-1]))


def _window(made: Fleet, start: int) -> Window:
    begin = EPOCH + start * MINUTE
    names: list[str] = []
    labels: list[str] = []
    slices, total = list[Any](), list[Any]()
    for name in sorted(made.values):
        for service, series in enumerate(made.values[name]):
            part = series[start : start + made.window]
            there = np.flatnonzero(np.isfinite(part))
            names += [name] * len(there)
            labels += [json.dumps({"service": made.name(service)}, separators=(",", ":"))] * len(there)
            slices.append(there)
            total.append(part[there])
    keys: dict[str, Any] = {
        "name": tuple(names),
        "labels": tuple(labels),
        "slice": np.concatenate(slices).astype(np.int64),
    }
    values = {"total": np.concatenate(total), "samples": np.ones(len(names), dtype=np.int64)}
    sums = Sums(keys, values, len(names))
    return Window(begin, begin + made.window * MINUTE, "simulated", "metric", {"series": sums})


def rows_of(made: Fleet, since: datetime = EPOCH, last: int | None = None) -> Iterator[Row]:
    """`metric` rows in order of time, of the `last` minutes (default: all), from `since` on."""
    first = 0 if last is None else made.minutes - last
    for minute in range(first, made.minutes):
        time = (since + (minute - first) * MINUTE).isoformat()
        for name in METRICS:
            for service, value in enumerate(made.values[name][:, minute]):
                if np.isfinite(value):
                    labels = {"service": made.name(service)}
                    yield {"time": time, "name": name, "labels": labels, "value": round(float(value), 6)}


def scenario(name: str, seed: int, kind: str, event: str = "") -> tuple[dict[str, list[Row]], Row]:
    """Rows by kind and the truth: six hours of six services, of which one changes in the last."""
    made = fleet(np.random.default_rng([seed, 41]), kind, event, services=6, hours=6)
    end = _stamp(made.minutes)
    fault = {
        "component": f"service/{made.name(made.at)}",
        "kind": kind,
        "start": _stamp(made.onset),
        "end": end,
    }
    truth = {
        "scenario": name,
        "seed": seed,
        "start": _stamp(0),
        "end": end,
        "faults": [fault] if kind else [],
        "benign": happened(event, _stamp(0), end),
    }
    return {"metric": list(rows_of(made))}, truth


def _stamp(minute: int) -> str:
    return (EPOCH + minute * MINUTE).isoformat().replace("+00:00", "Z")
