"""Metrics of services and hosts, a sample a minute and an hour a window, for `changepoint`.

Services report requests per second (every third as a counter), the 99th percentile of latency, the share of errors,
resident memory and the length of their queue; hosts report load and used memory. Metric names are those of
node_exporter and of the Prometheus client libraries, or of recording rules over them, whose samples are means of the
step before.

Load follows the hour with two harmonics, weekends and a phase of each service's own, as in production traces of web
services (Urdaneta et al., "Wikipedia workload analysis", Computer Networks 2009); a batch service runs at night.
Noise is AR(1) with another correlation for each series, log-normal latency whose spread differs by service, negative
binomial queues, beta-mixed binomial errors, memory that climbs and is collected. Benign: rare spikes, gaps of rows or
of senders, late starts, restarts that reset counters and memory, deploys, peaks of all, drifts, improvements.

A fault adds `size` usual deviations, measured within the hour (1.4826 times the median distance from the hour's
median), to metrics of one component from its onset on, at once or over the minutes of `ramp`. A fault that moved no
metric by `VISIBLE` deviations in the median is not in the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.worlds import Fault, World

EPOCH = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday."""
HOUR = 3_600
EVERY = timedelta(seconds=HOUR)
HISTORY, JUDGED = 26, 2
LENGTH = (HISTORY + JUDGED) * HOUR
LAST = (HISTORY + JUDGED - 1) * HOUR
VISIBLE = 1.5

RATE, REQUESTS = "http_requests_per_second", "http_requests_total"
LATENCY, ERRORS = "http_request_duration_p99_seconds", "http_requests_error_ratio"
MEMORY, QUEUE = "process_resident_memory_bytes", "queue_length"
LOAD, USED = "node_load1", "node_memory_used_bytes"
BETTER_UP = (RATE,)
NAMES = ("cart", "checkout", "search", "billing", "profile", "reports", "media", "mail", "stock", "login")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A case. `metrics` are what each fault moves, one tuple a fault; `size` in usual deviations; `ramp` and `lasts` in
    seconds (0: at once; until the end); `history` is how many faults came and went before the judged windows."""

    says: str
    metrics: tuple[tuple[str, ...], ...] = ()
    size: tuple[float, float] = (5.0, 9.0)
    ramp: int = 0
    lasts: int = 0
    first: bool = False
    history: int = 0
    again: bool = False
    benign: str = ""
    services: int = 6
    traffic: float = 1.0
    correlation: tuple[float, float] = (0.0, 0.5)
    season: float = 0.35
    spikes: float = 0.0005
    missing: float = 0.0
    late: int = 0
    step: int = 60


_LATENCY, _ALL = ((LATENCY,),), ((RATE, LATENCY, ERRORS, QUEUE),)
PLANS = {
    "healthy": Plan("six services on three hosts"),
    "healthy_ten": Plan("ten services", services=10),
    "healthy_sparse": Plan("little traffic: errors and queues of few values", traffic=0.03),
    "healthy_correlated": Plan("readings correlated by .5 to .9 a minute", correlation=(0.5, 0.9)),
    "healthy_missing": Plan("a fifth of the rows lost, senders silent for minutes", missing=0.2),
    "healthy_late": Plan("three components known for hours only", late=3),
    "healthy_spikes": Plan("one reading in a hundred is a spike", spikes=0.01),
    "healthy_fast": Plan("a sample every 20 s", services=4, step=20),
    "healthy_slow": Plan("a sample every 5 min", step=300),
    "healthy_after_faults": Plan("three faults came and went in the day before", history=3),
    "restarts": Plan("every service restarts: counters and memory begin anew", benign="restarts"),
    "deploy": Plan("a deploy restarts one service and changes nothing", benign="deploy"),
    "load_peak": Plan("all services have 1.8 times the load for forty minutes", benign="peak"),
    "daily_peak": Plan("a strong daily season at its steepest hour", season=0.9, benign="steep"),
    "monday": Plan("the first hours of Monday after a Sunday", benign="monday"),
    "drift": Plan("latency and memory drift by six deviations a day", benign="drift"),
    "spike_passes": Plan("three minutes of twelve deviations, then as before", benign="spike"),
    "improvement": Plan("one service becomes faster and uses less memory", benign="better"),
    "fleet_shift": Plan("latency of all services rises by five deviations at once", benign="fleet"),
    "latency": Plan("latency of a service steps up", _LATENCY),
    "errors": Plan("the share of errors steps up", ((ERRORS,),)),
    "memory": Plan("memory of a service steps up", ((MEMORY,),)),
    "queue": Plan("a queue grows at once", ((QUEUE,),)),
    "rate": Plan("requests of a service fall", ((RATE, REQUESTS),)),
    "host_load": Plan("load of a host steps up", ((LOAD,),)),
    "all_metrics": Plan("four metrics of a service change", _ALL),
    "faint": Plan("a step of 2.5 to 3.5 deviations", _LATENCY, (2.5, 3.5)),
    "large": Plan("a step of 15 to 40 deviations", _LATENCY, (15, 40)),
    "ramp": Plan("a ramp of ten minutes", _LATENCY, ramp=600),
    "leak": Plan("memory climbs for the rest of the hour", ((USED,),), (8, 14), ramp=2_400),
    "two_at_once": Plan("latency of one service and errors of another", ((LATENCY,), (ERRORS,))),
    "in_fleet_shift": Plan(
        "one service changes ten deviations more, in other metrics too, in a shift of all",
        ((LATENCY, ERRORS, QUEUE),),
        (9, 12),
        benign="fleet",
    ),
    "after_faults": Plan("a step after three faults of others", _LATENCY, history=3),
    "again": Plan("a step of what was faulty twice the day before", _LATENCY, history=2, again=True),
    "lasting": Plan("begins in the hour before the last one, and lasts", _LATENCY, first=True),
    "short": Plan("lasts for twelve minutes", _LATENCY, lasts=720),
    "sparse": Plan("errors of a service with little traffic", ((ERRORS, QUEUE),), traffic=0.03),
    "correlated": Plan("a step among correlated readings", _LATENCY, correlation=(0.5, 0.9)),
    "missing": Plan("a step with a fifth of the rows lost", _LATENCY, missing=0.2),
    "late": Plan("a step of a service known for hours only", _LATENCY, late=3),
    "spiky": Plan("a step among spikes", _LATENCY, spikes=0.01),
    "steepest": Plan("a step at the steepest hour of the day", _LATENCY, season=0.9, benign="steep"),
    "propagated": Plan("callers become slower with what they call", _LATENCY, benign="callers"),
    "fast": Plan("a sample every 20 s", _LATENCY, services=4, step=20),
    "slow": Plan("a sample every 5 min", _LATENCY, step=300),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Series:
    """Values of a metric of a component on the grid; `usual` is its deviation within an hour."""

    component: str
    name: str
    values: Floats
    count: bool = False
    usual: float = field(init=False, default=0.0)

    def learn(self, step: int) -> None:
        hours = self.values[: HISTORY * HOUR // step].reshape(HISTORY, -1)
        away = np.abs(hours - np.median(hours, axis=1, keepdims=True))
        spread = 1.4826 * float(np.median(away))
        # A count that is mostly nought has no median distance.
        self.usual = spread if spread > 0 else max(float(hours.std()), 1e-9)


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    start = _start(plan, rng)
    times = np.arange(plan.step, LENGTH + 1, plan.step, dtype=np.float64) - 1
    series = _fleet(plan, rng, start, times)
    for one in series:
        one.learn(plan.step)
    notes = _benign(plan, rng, series, times)
    faults = _faults(plan, rng, series, times, start, notes)
    rows = _rows(plan, rng, series, times, start, tuple(fault.component for fault in faults))
    return World(case, seed, {"metric": rows}, EVERY, start + HISTORY * EVERY, tuple(faults), tuple(notes))


def _start(plan: Plan, rng: np.random.Generator) -> datetime:
    """Such that the judged windows come at any hour of a weekday, or when the case says so."""
    judged = timedelta(days=int(rng.integers(1, 5)), hours=int(rng.integers(24)))
    if plan.benign == "steep":
        judged = timedelta(days=int(rng.integers(1, 5)), hours=int(rng.integers(6, 9)))
    elif plan.benign == "monday":
        judged = timedelta(days=7, hours=int(rng.integers(6, 10)))
    return EPOCH + judged - HISTORY * EVERY


def _fleet(plan: Plan, rng: np.random.Generator, start: datetime, times: Floats) -> list[Series]:
    series: list[Series] = []
    loads = []
    for number, name in enumerate(NAMES[: plan.services]):
        load = _season(plan, rng, start, times, night=name == "reports")
        loads.append(load)
        series += _service(plan, rng, number, f"service/{name}", load)
    for number in range(max(2, plan.services // 2)):
        on_it = np.mean(loads[number::3], axis=0)
        host, size = f"node/host-{number + 1}", len(times)
        busy = float(rng.uniform(1, 6)) * on_it * np.exp(_wander(plan, rng, size, rng.uniform(0.08, 0.25)))
        used = float(rng.uniform(8e9, 5e10)) * (1 + 0.03 * on_it + _wander(plan, rng, size, 0.006))
        series += [Series(host, LOAD, busy), Series(host, USED, used)]
    return series


def _season(plan: Plan, rng: np.random.Generator, start: datetime, times: Floats, *, night: bool) -> Floats:
    """Load over the day and the week, about 1."""
    if plan.benign == "peak":
        begin, until = LAST + 300, LAST + 2_700
    else:
        begin, until = LENGTH + 1, LENGTH + 1
    hours = ((start - EPOCH).total_seconds() + times) / HOUR
    phase = 2 * np.pi * (hours - 9 + float(rng.normal(0, 0.7)) + 12 * night) / 24
    width = plan.season * float(rng.uniform(0.6, 1.3))
    log = width * (np.sin(phase) + 0.25 * np.sin(2 * phase + 0.6))
    weekend = (hours % 168) >= 120
    return np.exp(log - 0.35 * weekend) * np.where((times >= begin) & (times < until), 1.8, 1.0)


def _wander(plan: Plan, rng: np.random.Generator, size: int, width: float) -> Floats:
    """AR(1) whose correlation is told per minute, with the standard deviation `width`."""
    keep = float(rng.uniform(*plan.correlation)) ** (plan.step / 60)
    told = rng.standard_normal(size + 100)
    out, now = np.empty(size + 100), 0.0
    for at, one in enumerate((width * np.sqrt(1 - keep**2) * told).tolist()):
        now = keep * now + one
        out[at] = now
    return out[100:]


def _service(plan: Plan, rng: np.random.Generator, number: int, name: str, load: Floats) -> list[Series]:
    size = len(load)
    usual = float(np.exp(rng.uniform(np.log(20), np.log(800)))) * plan.traffic
    mean = usual * load * np.exp(_wander(plan, rng, size, float(rng.uniform(0.03, 0.12))))
    served = rng.poisson(mean * plan.step)
    latency = float(np.exp(rng.normal(np.log(0.25), 0.8))) * load ** float(rng.uniform(0.05, 0.5))
    latency *= np.exp(_wander(plan, rng, size, float(rng.uniform(0.06, 0.3))))
    latency *= np.where(rng.random(size) < plan.spikes, rng.uniform(2, 8, size), 1.0)
    often = float(np.exp(rng.uniform(np.log(8e-4), np.log(1.5e-2))))
    failed = rng.binomial(served, rng.beta(often * 600, (1 - often) * 600, size))
    waiting = float(np.exp(rng.uniform(np.log(0.4), np.log(25)))) * plan.traffic**0.5 * load
    queue = rng.poisson(rng.gamma(float(rng.uniform(1.5, 6)), 1.0, size) / 3 * waiting)
    period = int(rng.integers(20, 90)) * 60 // plan.step + 1
    collected = 0.06 * ((np.arange(size) + int(rng.integers(period))) % period) / period * (number % 2)
    memory = float(rng.uniform(2e8, 4e9)) * (1 + collected + _wander(plan, rng, size, 0.01))
    told = REQUESTS if number % 3 == 2 else RATE
    return [
        Series(name, told, served / plan.step),
        Series(name, LATENCY, latency),
        Series(name, ERRORS, failed / np.maximum(served, 1)),
        Series(name, MEMORY, memory),
        Series(name, QUEUE, queue.astype(np.float64), count=True),
    ]


def _shift(
    rng: np.random.Generator,
    one: Series,
    times: Floats,
    begin: float,
    end: float,
    size: float,
    ramp: int,
    step: int,
) -> None:
    """Adds `size` deviations; a sample is the mean of the step that ends at its time."""
    reach = (times - begin) / max(ramp, step)
    weight = np.clip(reach, 0, 1) * np.clip((end - times) / step + 1, 0, 1)
    more = size * one.usual * weight * np.exp(0.1 * rng.standard_normal(len(times)))
    if one.count:
        one.values += rng.poisson(more)
    elif one.name in (RATE, REQUESTS):
        one.values = np.maximum(one.values - more, 0.05 * one.values)
    elif one.name == ERRORS:
        one.values = np.minimum(one.values + more, 1.0)
    else:
        one.values = np.maximum(one.values + more, 0.05 * one.values)


def _benign(plan: Plan, rng: np.random.Generator, series: list[Series], times: Floats) -> list[str]:
    """Events that are no fault of a component."""
    names = sorted({one.component for one in series if one.component.startswith("service/")})
    one_of = str(rng.choice(names))
    begin = LAST + float(rng.uniform(300, 1_800))
    if plan.benign in ("restarts", "deploy"):
        for number, name in enumerate(names if plan.benign == "restarts" else [one_of]):
            at = begin if plan.benign == "deploy" else float(rng.uniform(HOUR, LENGTH - HOUR)) + number
            _restart([one for one in series if one.component == name], times, at)
    elif plan.benign == "drift":
        for one in series:
            if one.name in (LATENCY, MEMORY):
                one.values += 6 * one.usual * times / 86_400
    elif plan.benign == "spike":
        for one in series:
            if one.component == one_of and one.name == LATENCY:
                _shift(rng, one, times, begin, begin + 180, 12, 0, plan.step)
    elif plan.benign == "better":
        for one in series:
            if one.component == one_of and one.name in (LATENCY, MEMORY):
                _shift(rng, one, times, begin, LENGTH, -6, 0, plan.step)
    elif plan.benign == "fleet":
        for one in series:
            if one.name == LATENCY:
                _shift(rng, one, times, begin, LENGTH, 5, 0, plan.step)
    return [f"benign: {plan.benign}"] if plan.benign else []


def _restart(series: Sequence[Series], times: Floats, at: float) -> None:
    """Memory begins low and is back in twenty minutes; two minutes are slow; `_rows` begins counters anew."""
    since = (times - at) / 60
    for one in series:
        if one.name == MEMORY:
            one.values *= np.where(since >= 0, 1 - 0.25 * np.exp(-np.maximum(since, 0) / 7), 1.0)
        elif one.name == LATENCY:
            one.values *= np.where((since >= 0) & (since < 2), 2.5, 1.0)
        elif one.name == REQUESTS:
            one.values[int(np.searchsorted(times, at))] = -1.0


def _faults(
    plan: Plan,
    rng: np.random.Generator,
    series: list[Series],
    times: Floats,
    start: datetime,
    notes: list[str],
) -> list[Fault]:
    faults: list[Fault] = []
    free = [str(name) for name in rng.permutation(sorted({one.component for one in series}))]
    asked = [(metrics, True) for metrics in plan.metrics] + [((LATENCY,), False)] * plan.history
    chosen = ""
    for number, (metrics, now) in enumerate(asked):
        able = [name for name in free if any(one.component == name and one.name in metrics for one in series)]
        component = chosen if plan.again and not now else able[0]
        if component in free:
            free.remove(component)
        if now:
            chosen = component
            begin = LAST + float(rng.uniform(300, max(400, 2_400 - plan.ramp))) - HOUR * plan.first
            end = begin + plan.lasts if plan.lasts else float(LENGTH)
        else:
            begin = (3 + 7 * (number - len(plan.metrics))) * HOUR + float(rng.uniform(0, HOUR))
            end = begin + float(rng.uniform(1_200, 2 * HOUR))
        size = float(rng.uniform(*plan.size))
        seen = 0.0
        for one in series:
            if one.component == component and one.name in metrics:
                before = one.values.copy()
                _shift(rng, one, times, begin, end, size, plan.ramp, plan.step)
                during = (times >= begin + min(plan.ramp, (end - begin) / 2)) & (times < end)
                seen = max(seen, abs(float(np.median((one.values - before)[during]))) / one.usual)
        callers = _callers(rng, series, times, component, begin, size) if plan.benign == "callers" else ()
        notes.append(f"{component} {'+'.join(metrics)}: {seen:.1f} deviations")
        if seen >= VISIBLE:
            kind = "ramp" if plan.ramp else "step"
            since, until = (start + timedelta(seconds=one) for one in (begin, end))
            faults.append(Fault(component, kind, since, until, callers))
    return faults


def _callers(
    rng: np.random.Generator, series: list[Series], times: Floats, called: str, begin: float, size: float
) -> tuple[str, ...]:
    """Two services slow down with it; their metrics did change, and naming them is no mistake."""
    others = sorted({one.component for one in series if one.name == LATENCY and one.component != called})
    chosen = tuple(str(name) for name in rng.choice(others, 2, replace=False))
    for one in series:
        if one.component in chosen and one.name == LATENCY:
            _shift(rng, one, times, begin, LENGTH, 0.7 * size, 0, 60)
    return chosen


def _rows(
    plan: Plan,
    rng: np.random.Generator,
    series: list[Series],
    times: Floats,
    start: datetime,
    faulty: Sequence[str],
) -> list[dict[str, Any]]:
    names = sorted({one.component for one in series})
    first = dict.fromkeys(names, 0.0)
    late = [name for name in names if name not in faulty]
    for name in [*faulty, *late][: plan.late]:
        first[name] = LAST - float(rng.uniform(2.5, 8)) * HOUR
    silent = {name: rng.random(LENGTH // 300 + 1) < plan.missing / 2 for name in names}
    zero = round(start.timestamp()) * 10**9
    rows: list[dict[str, Any]] = []
    for one in series:
        kind, _, name = one.component.partition("/")
        labels = {kind: name}
        values = _counted(one.values, plan.step) if one.name == REQUESTS else one.values
        kept = (times >= first[one.component]) & ~silent[one.component][(times // 300).astype(int)]
        kept &= rng.random(len(times)) >= plan.missing / 2
        at = (times * 1e9).astype(np.int64) + zero
        told = np.where(np.abs(values) >= 1e6, np.round(values), np.round(values, 6))
        rows += [
            {"time": when, "name": one.name, "labels": labels, "value": value}
            for when, value in zip(at[kept].tolist(), told[kept].tolist(), strict=True)
        ]
    rows.sort(key=lambda row: row["time"])
    return rows


def _counted(rates: Floats, step: int) -> Floats:
    """A counter of these rates, which begins anew where a rate is negative."""
    out, now = np.empty(len(rates)), 1e6
    for at, rate in enumerate(rates.tolist()):
        now = 0.0 if rate < 0 else now + rate * step
        out[at] = now
    return np.round(out)
