"""Spans and log lines of microservice applications, for `trace_blame`.

Topology: `call_graphs` (streaming, payments, search, and a random mesh), one of them by seed. Windows of five minutes:
an hour of history, then six judged windows; a fault begins in the first minute of the third and ends with the fifth.

Noise: own times are log-normal with a sigma of .2 to .9 by operation (the recordings of Nezha, FSE 2023, have .2 to
1.0), .4 % of the spans meet a pause (collector, scheduling) of some 30 ms, services slow down with load as a single
queue does, load is diurnal with AR(1) noise, and every operation has an error rate of its own (gamma). Sampling: the
requests that are simulated are the sample; where `sampled` is below 1 the others leave log lines only, as in
production (Dapper, 2010, sampled 1 in 1024; 1 to 10 % is usual). Async consumers begin after their parent ended.

Faults are those of Nezha (CPU contention, network delay, exception, changed return) and a slow database, on a service
or on one pod of many. A changed return skips what the operation would have done next, and makes its caller skip what
depends on it. An exception may carry no error flag. `TOUCHED`: a target is one that gets at least this many requests a
window; `notes` say how often each fault was met.

`logs(seed, case)` are log lines of the same world: plain dicts of time, service, instance, severity, message and, in
most of them, trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import numpy as np

from tests.worlds import Fault, World
from tests.worlds.call_graphs import GRAPHS, Call, Graph, Operation, mesh

START = datetime(2026, 4, 14, 8, tzinfo=UTC)
EVERY = timedelta(minutes=5)
HISTORY = 12
JUDGED = 6
WINDOWS = HISTORY + JUDGED
EVERY_WINDOW = range(WINDOWS)
WINDOW_US = 300e6
FAULT_FROM, FAULT_UNTIL = HISTORY + 2, HISTORY + 5
SURGE = 4.0
SPANS = 1_700
TOUCHED = 15
BASE_NS = int(START.timestamp()) * 10**9
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True)
class Plan:
    """`faults` are kinds, each on a service of its own; `benign` is a harmless event in the same windows."""

    says: str
    faults: tuple[str, ...] = ()
    benign: str = ""
    graph: str = ""
    strength: float = 5.0
    share: float = 0.6
    flagged: float = 0.5
    volume: float = 1.0
    sampled: float = 1.0
    missing: float = 0.0
    skew_us: float = 0.0
    blind: bool = False
    tail_sampled: bool = False
    lasting: bool = False
    sick_history: bool = False


PLANS = {
    "healthy": Plan("nothing happens"),
    "healthy_sparse": Plan("nothing happens; 3 % of the requests are sampled", volume=0.2, sampled=0.25),
    "healthy_skewed": Plan(
        "nothing happens; clocks differ by 40 ms, 5 % of the spans are lost", missing=0.05, skew_us=4e4
    ),
    "load_peak": Plan("load rises by 2.2 for a quarter of an hour", benign="load_peak"),
    "group_load": Plan(
        "one group of clients asks four times as often for a quarter of an hour", benign="group_load"
    ),
    "deploy": Plan("a service is deployed pod by pod, with a few refused connections", benign="deploy"),
    "cache_flush": Plan("all caches are emptied and fill again within ten minutes", benign="cache_flush"),
    "noisy_neighbour": Plan("one pod is 15 % slower than before", benign="noisy_neighbour"),
    "autoscale": Plan("load rises by 2.2 and pods are added, slow in their first minute", benign="autoscale"),
    "canary": Plan("one pod of each of two services runs a new version that is 5 % slower", benign="canary"),
    "batch": Plan(
        "a batch job begins that runs once in ten minutes otherwise", benign="batch", graph="ledger"
    ),
    "sick_history_healthy": Plan(
        "different faults in half of the history, none afterwards", sick_history=True
    ),
    "cpu": Plan("CPU contention: a service takes 5 times as long", ("cpu",)),
    "cpu_faint": Plan("CPU contention: a service takes 1.8 times as long", ("cpu",), strength=1.8),
    "cpu_in_peak": Plan("CPU contention while load is 2.2 times as high", ("cpu",), benign="load_peak"),
    "cpu_lossy": Plan(
        "CPU contention; 10 % of the spans lost, one service sends none", ("cpu",), missing=0.1, blind=True
    ),
    "network": Plan("network delay of 80 ms to and from a service", ("network",), graph="streaming"),
    "network_search": Plan("network delay of 80 ms in the search graph", ("network",), graph="search"),
    "network_one_sided": Plan(
        "network delay of 80 ms where only servers record spans", ("network",), graph="ledger"
    ),
    "exception": Plan("60 % of a service's requests throw, half of them flagged", ("exception",)),
    "exception_flagged": Plan(
        "60 % of a service's requests throw and are flagged", ("exception",), flagged=1.0
    ),
    "exception_silent": Plan(
        "60 % of a service's requests throw, no span is flagged", ("exception",), flagged=0.0
    ),
    "exception_rare": Plan(
        "8 % of a service's requests throw, half of them flagged", ("exception",), share=0.08
    ),
    "exception_sparse": Plan(
        "as `exception`, 3 % of the requests sampled", ("exception",), volume=0.25, sampled=0.25
    ),
    "exception_tail_sampled": Plan(
        "as `exception`; flagged and slow traces are all kept, of others a tenth",
        ("exception",),
        tail_sampled=True,
    ),
    "return": Plan("a service returns something else for 60 % of its requests", ("return",)),
    "return_all": Plan("a service returns something else for all of its requests", ("return",), share=1.0),
    "database": Plan("a database that sends spans takes 5 times as long", ("database",), graph="streaming"),
    "database_inside": Plan(
        "a database seen only by its clients takes 5 times as long", ("database",), graph="ledger"
    ),
    "bad_pod": Plan("one pod of four or more takes 5 times as long", ("bad_pod",)),
    "bad_canary": Plan("one pod of four or more throws for 60 % of its requests", ("bad_canary",)),
    "two_faults": Plan("CPU contention and exceptions on two services at once", ("cpu", "exception")),
    "lasting": Plan("CPU contention that began in the history and lasts", ("cpu",), lasting=True),
    "sick_history": Plan(
        "different faults in half of the history, then CPU contention", ("cpu",), sick_history=True
    ),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass
class Effect:
    """Effect on pods of a service between two times (microseconds since the start); `hits` counts what it reached."""

    kind: str
    service: str
    pods: frozenset[str]
    start: float
    end: float
    strength: float = 1.0
    share: float = 1.0
    flagged: float = 1.0
    hits: int = 0


@dataclass(frozen=True)
class Reply:
    end: float
    failed: bool = False
    flagged: bool = False
    changed: bool = False


@dataclass
class Pod:
    name: str
    start: float = 0.0
    end: float = np.inf


@dataclass
class Application:
    """A running application: draws requests and keeps their spans and log lines."""

    plan: Plan
    graph: Graph
    rng: np.random.Generator
    pods: dict[str, list[Pod]] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    group: str = ""
    surge: dict[str, float] = field(default_factory=dict)
    """Multiple of the load of a service while one group of clients asks for `SURGE` times as much."""
    cold: set[str] = field(default_factory=set)
    spans: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    visits: dict[str, int] = field(default_factory=dict)
    blind: str = ""
    trace: str = ""
    _uniform: list[float] = field(default_factory=list)
    _normal: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self.rng
        for service, count in self.graph.pods.items():
            revision = self.letters(9)
            self.pods[service] = [Pod(f"{service}-{revision}-{self.letters(5)}") for _ in range(count)]
        level, log = [], 0.0
        for window in range(WINDOWS):
            log = 0.8 * log + 0.6 * float(rng.normal(0, 0.12))
            level.append(float(np.exp(log) * (1 + 0.25 * np.sin(2 * np.pi * window / 60))))
        self.load = level
        self.busy = {one: float(rng.uniform(0.1, 0.45)) for one in self.graph.pods}
        self.errors = {one: float(rng.gamma(0.5, 0.004)) for one in self.graph.operations}
        self.skew = {
            pod.name: float(rng.normal(0, self.plan.skew_us)) for one in self.pods.values() for pod in one
        }
        self.chatty = {one: float(rng.uniform(0.2, 0.9)) for one in self.graph.operations}

    def letters(self, count: int) -> str:
        return "".join(_LETTERS[i] for i in self.rng.integers(0, len(_LETTERS), count))

    def chance(self) -> float:
        if not self._uniform:
            self._uniform = self.rng.random(1 << 14).tolist()
        return self._uniform.pop()

    def spread(self, sigma: float) -> float:
        """A log-normal factor with median 1."""
        if not self._normal:
            self._normal = self.rng.standard_normal(1 << 14).tolist()
        return float(2.718281828 ** (sigma * self._normal.pop()))

    def slower(self, service: str, at: float) -> float:
        """Factor by which things take longer because of load: a single queue, relative to a load of 1."""
        usual, window = self.busy[service], min(WINDOWS - 1, int(at / WINDOW_US))
        more = self.surge.get(service, 1.0) if FAULT_FROM <= window < FAULT_UNTIL else 1.0
        return (1 - usual) / (1 - min(0.9, usual * self.load[window] * more))

    def pod(self, service: str, at: float) -> Pod:
        found = self.pods[service]
        alive = [one for one in found if one.start <= at < one.end] if len(found) > 1 else found
        return alive[int(self.chance() * len(alive))]

    def active(self, service: str, pod: str, at: float) -> list[Effect]:
        return [
            one
            for one in self.effects
            if one.service == service and one.start <= at < one.end and pod in one.pods
        ]

    def span(
        self, name: tuple[str, str, str], own: str, parent: str, at: float, end: float, error: bool = False
    ) -> None:
        """Keeps a span; `name` is service, pod and operation."""
        service, pod, op = name
        row = {
            "time": BASE_NS + int((at + self.skew.get(pod, 0.0)) * 1000),
            "trace": self.trace,
            "span": own,
            "service": service,
            "instance": pod,
            "operation": op,
            "duration_us": round(end - at, 1),
            "error": error,
        }
        self.spans.append({**row, "parent": parent} if parent else row)

    def fresh(self) -> str:
        return f"{int(self.chance() * 2**52):013x}{int(self.chance() * 4096):03x}"

    def log(self, service: str, pod: str, at: float, severity: str, message: str) -> None:
        moment = (START + timedelta(microseconds=int(at))).isoformat()
        row = {"time": moment, "service": service, "instance": pod, "severity": severity, "message": message}
        self.lines.append({**row, "trace": self.trace} if self.trace and self.chance() < 0.8 else row)

    def visit(self, op: Operation, at: float, parent: str, pod: Pod) -> Reply:
        """Does an operation on a pod and all that it calls."""
        self.visits[op.service] = self.visits.get(op.service, 0) + 1
        span = parent if op.service == self.blind else self.fresh()
        own = op.own_us * self.spread(op.sigma) * self.slower(op.service, at)
        if self.chance() < 0.004:
            own += 30_000 * self.spread(0.8)
        if pod.name in self.cold and at - pod.start < 60e6:
            own *= 2.5
        failed = flagged = self.chance() < self.errors[op.key]
        changed = False
        for one in self.active(op.service, pod.name, at):
            if one.kind == "slow":
                one.hits += 1
                own *= one.strength * self.spread(0.4)
            elif one.kind in ("exception", "return") and self.chance() < one.share:
                one.hits += 1
                changed = one.kind == "return"
                failed = failed or not changed
                flagged = flagged or (not changed and self.chance() < one.flagged)
        talks = self.chance() < self.chatty[op.key]
        if talks:
            self.log(
                op.service,
                pod.name,
                at,
                "INFO",
                f"{op.name} accepted request={self.trace[:8]} tenant={int(own) % 97}",
            )
        reply = self._finish(op, at, own, span, pod, Reply(0.0, failed, flagged, changed), talks)
        if op.service != self.blind:
            self.span((op.service, pod.name, op.name), span, parent, at, reply.end, reply.flagged)
        return reply

    def _finish(
        self, op: Operation, at: float, own: float, span: str, pod: Pod, so_far: Reply, talks: bool
    ) -> Reply:
        if so_far.failed:
            end = at + own * 0.4
            self.log(op.service, pod.name, end, "ERROR", _stack(op, int(own)))
            return replace(so_far, end=end)
        if so_far.changed:
            return replace(so_far, end=at + own * 0.5)
        inner = self._calls(op, at + own / 2, span, pod)
        end = inner.end + own / 2
        if talks and not inner.failed:
            message = f"{op.name} done items={1 + int(own) % 13} took={(end - at) / 1000:.1f}ms"
            self.log(op.service, pod.name, end, "INFO", message)
        return replace(inner, end=end)

    def _calls(self, op: Operation, clock: float, span: str, pod: Pod) -> Reply:
        """Makes the calls of an operation; a critical one that fails ends it."""
        skips = False
        warm = self._warm(clock)
        for call in op.calls:
            if self.chance() >= call.chance or (call.hit and self.chance() < call.hit * warm):
                continue
            if skips and call.mode != "later" and self.chance() < 0.85:
                continue
            ends = []
            for _ in range(1 if call.count == 1 else max(1, int(self.rng.poisson(call.count)))):
                delay = -50_000 * float(np.log(1 - self.chance())) if call.mode == "later" else 0.0
                reply = self._call(op, call, clock + delay, span, pod)
                ends.append(reply.end)
                if call.mode == "later":
                    continue
                if call.mode == "seq":
                    clock = reply.end
                skips = skips or reply.changed
                if reply.failed and call.critical:
                    return Reply(max(ends), True, reply.flagged and self.chance() < 0.9)
            if call.mode == "par":
                clock = max(ends)
        return Reply(clock)

    def _call(self, op: Operation, call: Call, clock: float, span: str, pod: Pod) -> Reply:
        """One call with its retries, recorded on the side of the client where that is instrumented."""
        target = self.graph.operations[call.target]
        if target.inside:
            return self._inside(op, target, clock, span, pod)
        reply = Reply(clock)
        for attempt in range(call.tries):
            other = self.pod(target.service, clock)
            out, back = (125 * self.spread(0.5) + self._delay(op, pod, target, other, clock) for _ in "ab")
            client = self.fresh() if self.graph.client_spans and op.service != self.blind else span
            reply = self.visit(target, clock + out, client, other)
            end = reply.end + back
            if client != span:
                name = op.service, pod.name, f"{target.service}/{target.name}"
                self.span(name, client, span, clock, end, reply.flagged)
            reply = replace(reply, end=end)
            if not reply.failed:
                break
            if self.chance() < 0.5:
                message = f"call to {target.service} failed attempt={attempt + 1} status={500 + attempt}"
                self.log(op.service, pod.name, end, "WARN", message)
            clock = end + 20_000
        if reply.changed and self.chance() < 0.3:
            self.log(
                op.service, pod.name, reply.end, "WARN", f"unexpected reply from {target.service}: 0 entries"
            )
        return reply

    def _inside(self, op: Operation, target: Operation, clock: float, span: str, pod: Pod) -> Reply:
        """Work of a database that only its client records."""
        own = target.own_us * self.spread(target.sigma) * self.slower(target.service, clock)
        for one in self.active(target.service, self.pods[target.service][0].name, clock):
            one.hits += 1
            own *= one.strength * self.spread(0.4)
            if self.chance() < 0.3:
                self.log(
                    op.service,
                    pod.name,
                    clock + own,
                    "WARN",
                    f"slow statement {target.name} took={own / 1000:.0f}ms",
                )
        self.span((op.service, pod.name, target.name), self.fresh(), span, clock, clock + own)
        return Reply(clock + own)

    def _delay(self, op: Operation, pod: Pod, target: Operation, other: Pod, at: float) -> float:
        """Extra time of one way between two pods; a delay sits on what leaves a pod."""
        found = 0.0
        for service, name in ((op.service, pod.name), (target.service, other.name)):
            for one in self.active(service, name, at):
                if one.kind == "network":
                    one.hits += 1
                    found += one.strength / 2 * self.spread(0.2)
        return found

    def _warm(self, at: float) -> float:
        """Share to which the caches are filled."""
        if self.plan.benign != "cache_flush":
            return 1.0
        since = at - FAULT_FROM * WINDOW_US
        return 1.0 if since < 0 else min(1.0, since / 600e6)


def _stack(op: Operation, number: int) -> str:
    kind = ("IllegalStateException", "TimeoutException", "NullPointerException", "KeyError")[number % 4]
    where, method = op.service.title().replace("-", ""), op.name.split()[0].lower()
    return f"unhandled {kind} in {op.name}\n  at app.{where}.{method}({where}.java:{40 + number % 5})"


def make(seed: int, case: str, within: range = EVERY_WINDOW) -> World:
    """The world of a case, of its windows `within`. Raises KeyError for a case that is not in `CASES`."""
    return make_logged(seed, case, within)[0]


def logs(seed: int, case: str, within: range = EVERY_WINDOW) -> list[dict[str, Any]]:
    """The log lines of the same world in the order of time."""
    return make_logged(seed, case, within)[1]


def make_logged(seed: int, case: str, within: range = EVERY_WINDOW) -> tuple[World, list[dict[str, Any]]]:
    """The world and its log lines, of one simulation."""
    app, requests, faults, notes = prepare(seed, case)
    for window in within:
        _requests(app, window, requests)
        _background(app, window)
    notes += [f"{one.kind} of {one.service} reached {one.hits} times" for one in app.effects]
    rows = {"span": _kept(app)}
    world = World(case, seed, rows, EVERY, START + HISTORY * EVERY, tuple(faults), tuple(notes))
    return world, sorted(app.lines, key=lambda line: str(line["time"]))


def prepare(seed: int, case: str) -> tuple[Application, int, list[Fault], list[str]]:
    """The application before its first request, the requests a window, and what is going to happen."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    names = [*GRAPHS, "mesh"]
    chosen = plan.graph or names[seed % len(names)]
    graph = GRAPHS[chosen] if chosen in GRAPHS else mesh(rng)
    app = Application(plan, graph, rng)
    per_request, visits = _rehearse(app)
    requests = max(12, int(SPANS * plan.volume / plan.sampled / per_request))
    app.load = _peak(plan, app.load)
    often = {one: visits.get(one, 0.0) * requests * plan.sampled for one in graph.pods}
    notes = [f"{chosen} graph, about {requests} requests a window"]
    _benign(app, often, notes)
    faults = _faults(app, often)
    if plan.blind:
        app.blind = str(
            rng.choice(sorted({*graph.pods} - {one.service for one in app.effects} - _roots(graph)))
        )
        notes.append(f"{app.blind} sends no spans")
    return app, requests, faults, notes


def _rehearse(app: Application) -> tuple[float, dict[str, float]]:
    """Spans and visits of each service that a request makes on average; nothing of it is kept."""
    number = 120
    for key in app.rng.choice(list(app.graph.roots), number, p=_weights(app.graph)):
        op = app.graph.operations[key]
        app.visit(op, 0.0, "", app.pod(op.service, 0.0))
    found = len(app.spans) / number, {one: count / number for one, count in app.visits.items()}
    app.spans, app.lines, app.visits = [], [], {}
    return found


def _weights(graph: Graph) -> list[float]:
    total = sum(graph.roots.values())
    return [one / total for one in graph.roots.values()]


def _roots(graph: Graph) -> set[str]:
    return {graph.operations[one].service for one in graph.roots}


def _peak(plan: Plan, load: list[float]) -> list[float]:
    if plan.benign not in ("load_peak", "autoscale"):
        return load
    return [one * (2.2 if FAULT_FROM <= i < FAULT_UNTIL else 1.0) for i, one in enumerate(load)]


def _requests(app: Application, window: int, usual: int) -> None:
    plan, rng = app.plan, app.rng
    number = int(rng.poisson(usual * app.load[window]))
    starts = np.sort(rng.uniform(window * WINDOW_US, (window + 1) * WINDOW_US, number)).tolist()
    keys = rng.choice(list(app.graph.roots), number, p=_weights(app.graph)).tolist()
    if app.graph.batch:
        jobs = 20 if plan.benign == "batch" and FAULT_FROM <= window < FAULT_UNTIL else 1 + (window % 2)
        keys += [app.graph.batch] * jobs
        starts += rng.uniform(window * WINDOW_US, (window + 1) * WINDOW_US, jobs).tolist()
    if app.group and FAULT_FROM <= window < FAULT_UNTIL:
        share = app.graph.roots[app.group] / sum(app.graph.roots.values())
        more = int(rng.poisson((SURGE - 1) * share * usual * app.load[window]))
        keys += [app.group] * more
        starts += rng.uniform(window * WINDOW_US, (window + 1) * WINDOW_US, more).tolist()
    for key, at in zip(keys, starts, strict=True):
        op = app.graph.operations[key]
        before = len(app.spans)
        app.trace = app.fresh() + app.fresh()
        reply = app.visit(op, at, "", app.pod(op.service, at))
        share = plan.sampled
        if plan.tail_sampled and not reply.flagged and reply.end - at < 1.5e6:
            share = 0.1
        if app.chance() >= share:
            del app.spans[before:]
    app.trace = ""


def _background(app: Application, window: int) -> None:
    """Warnings and errors that every service writes at a rate of its own, now and then in bursts."""
    rng = app.rng
    says = (
        ("WARN", "connection pool at {} % of its size"),
        ("WARN", "deprecated header x-tenant-{} in request"),
        ("ERROR", "client closed the request after {} ms"),
        ("INFO", "configuration reloaded, generation {}"),
    )
    for number, service in enumerate(app.graph.pods):
        severity, text = says[number % len(says)]
        rate = 1.5 * (number % 5) * (8.0 if rng.random() < 0.03 else 1.0)
        for at in rng.uniform(window * WINDOW_US, (window + 1) * WINDOW_US, int(rng.poisson(rate))):
            app.log(service, app.pod(service, at).name, at, severity, text.format(int(rng.integers(100))))


def _kept(app: Application) -> list[dict[str, Any]]:
    """The spans that arrive, a few of them twice where some are lost."""
    if not app.plan.missing:
        return app.spans
    lost = app.rng.random(len(app.spans))
    kept = [one for one, chance in zip(app.spans, lost, strict=True) if chance >= app.plan.missing]
    return kept + [kept[i] for i in app.rng.integers(0, len(kept), len(kept) // 500)]


def _benign(app: Application, often: Mapping[str, float], notes: list[str]) -> None:
    plan, rng = app.plan, app.rng
    start, end = FAULT_FROM * WINDOW_US, FAULT_UNTIL * WINDOW_US
    many = [one for one in _busy(app, often) if len(app.pods[one]) > 1]
    if plan.benign == "autoscale":
        for pods in app.pods.values():
            if len(pods) > 1:
                added = [Pod(f"{pods[0].name[:-5]}{app.letters(5)}", start + 30e6, end) for _ in pods]
                app.cold |= {one.name for one in added}
                pods += added
    elif plan.benign == "deploy":
        service = str(rng.choice(many))
        revision = app.letters(9)
        for i, pod in enumerate(list(app.pods[service])):
            pod.end = start + (i + 1) * 40e6
            new = Pod(f"{service}-{revision}-{app.letters(5)}", pod.end - 5e6)
            app.pods[service].append(new)
            app.cold.add(new.name)
            app.effects.append(
                Effect("exception", service, frozenset({new.name}), new.start, new.start + 10e6, share=0.1)
            )
        notes.append(f"benign: {service} was deployed")
    elif plan.benign == "group_load":
        _surge(app, notes)
    elif plan.benign in ("noisy_neighbour", "canary"):
        for service in rng.choice(
            many, min(len(many), 1 + (plan.benign == "canary")), replace=False
        ).tolist():
            pod = app.pods[service][0]
            slower = 1.15 if plan.benign == "noisy_neighbour" else 1.05
            app.effects.append(Effect("slow", service, frozenset({pod.name}), start, end, slower))
            notes.append(f"benign: {pod.name} is {slower - 1:.0%} slower")


def _surge(app: Application, notes: list[str]) -> None:
    """Picks the root whose clients ask for more, and what each service then gets more; nothing is kept of it."""
    app.group = str(app.rng.choice(list(app.graph.roots), p=_weights(app.graph)))
    usual = dict.fromkeys(app.graph.pods, 0.0)
    for key, weight in app.graph.roots.items():
        op, app.visits = app.graph.operations[key], {}
        for _ in range(40):
            app.visit(op, 0.0, "", app.pod(op.service, 0.0))
        for service, count in app.visits.items():
            usual[service] += weight * count
            more = (SURGE - 1) * weight * count if key == app.group else 0.0
            app.surge[service] = app.surge.get(service, 0.0) + more
    app.surge = {one: 1 + more / usual[one] for one, more in app.surge.items()}
    app.spans, app.lines, app.visits = [], [], {}
    slow = {one: app.slower(one, FAULT_FROM * WINDOW_US) for one in app.surge}
    lead = max(slow, key=lambda one: slow[one])
    notes.append(
        f"benign: {app.group} is asked for {SURGE:g} times as often; {lead} takes {slow[lead]:.1f} times as long"
    )


def _busy(app: Application, often: Mapping[str, float]) -> list[str]:
    """Services with enough requests a window, the root ones left out, since everything hurts them."""
    roots = _roots(app.graph)
    return sorted(one for one, count in often.items() if count >= TOUCHED and one not in roots)


def _faults(app: Application, often: Mapping[str, float]) -> list[Fault]:
    plan, rng = app.plan, app.rng
    faults: list[Fault] = []
    taken: set[str] = set()
    for kind in plan.faults:
        first = HISTORY // 2 if plan.lasting else FAULT_FROM
        start = first * WINDOW_US + float(rng.uniform(0, 60e6))
        until = WINDOWS if plan.lasting else FAULT_UNTIL
        faults.append(_fault(app, kind, often, taken, start, until * WINDOW_US))
    if plan.sick_history:
        for window in range(1, HISTORY, 2):
            kind = str(rng.choice(["cpu", "exception", "return"]))
            begin, end = window * WINDOW_US, (window + 1) * WINDOW_US
            faults.append(_fault(app, kind, often, set(), begin, end))
    return faults


def _fault(
    app: Application, kind: str, often: Mapping[str, float], taken: set[str], start: float, end: float
) -> Fault:
    plan = app.plan
    candidates = [one for one in _candidates(app, kind, often) if one not in taken]
    service = str(app.rng.choice(candidates))
    taken.add(service)
    pods = [one.name for one in app.pods[service]]
    one_pod = kind in ("bad_pod", "bad_canary")
    hit = frozenset(pods[:1] if one_pod else pods)
    what = {"cpu": "slow", "database": "slow", "bad_pod": "slow", "bad_canary": "exception"}.get(kind, kind)
    strength = 80_000.0 if kind == "network" else plan.strength
    app.effects.append(Effect(what, service, hit, start, end, strength, plan.share, plan.flagged))
    times = START + timedelta(microseconds=start), START + timedelta(microseconds=end)
    if one_pod:
        return Fault(f"instance/{pods[0]}", kind, *times, (f"service/{service}",))
    same = [f"instance/{one}" for one in pods]
    return Fault(f"service/{service}", kind, *times, (*same, *_inseparable(app, kind, service)))


def _candidates(app: Application, kind: str, often: Mapping[str, float]) -> list[str]:
    """The services where a fault of this kind leaves enough traces."""
    graph, plan = app.graph, app.plan
    inside = {one.service for one in graph.operations.values() if one.inside}
    busy = _busy(app, often)
    if kind == "database":
        return sorted(inside) or [one for one in busy if one.endswith("-db")]
    if kind in ("bad_pod", "bad_canary"):
        return [one for one in busy if len(app.pods[one]) >= 4 and often[one] >= TOUCHED * len(app.pods[one])]
    if kind == "exception":
        least = max(5.0, min(TOUCHED, 20 * plan.share))
        return [one for one in busy if often[one] * plan.share >= least] or [
            max(busy, key=lambda one: often[one])
        ]
    if kind == "return":
        calls = {one.service for one in graph.operations.values() if one.calls}
        return [one for one in busy if one in calls] or busy
    return busy


def _inseparable(app: Application, kind: str, service: str) -> tuple[str, ...]:
    """Callers that the rows cannot tell from a service without spans, or whose calls only the server records."""
    graph = app.graph
    silent = any(one.service == service and one.inside for one in graph.operations.values())
    if not silent and not (kind == "network" and not graph.client_spans):
        return ()
    callers = {
        one.service
        for one in graph.operations.values()
        if any(graph.operations[call.target].service == service for call in one.calls)
    }
    pods = [f"instance/{pod.name}" for one in sorted(callers) for pod in app.pods[one]]
    return (*(f"service/{one}" for one in sorted(callers)), *pods)
