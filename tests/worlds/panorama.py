"""Observations that processes make of each other, for `panorama`.

Topology, by seed: a quorum store (5 servers that watch each other, 25 clients), a distributed file system (2 name
nodes, 14 data nodes, 20 clients) and a mesh of 26 services with unequal fan-out: the kinds of system that Panorama
(Huang et al., OSDI 2018) was fitted to. Contexts are operations; heartbeats are contexts of their own, because a gray
failure is one that heartbeats do not see (Huang et al., "Gray Failure", HotOS 2017).

Noise: the rate of each (observer, subject, context) is log-normal, so a few observers say most; the load has AR(1)
noise; each (subject, context) has a share of failing calls of its own (beta, .3 % on average) unless a case says
otherwise; a fifth of the contexts is asynchronous: `pending` when asked, the outcome when answered.

Windows of a minute, ten of history and eight judged; faults last from the third judged minute to the sixth. `SEEN`: a
subject is made faulty only if it gets this many calls a minute in the contexts that fail; `notes` say how many
unhealthy observations a fault left. An observer that is overloaded or lies is a `Fault` whose kind begins with
`observer_`: naming it is right, naming nobody is a miss, naming those that it slanders is false. A partition and all
other benign events have no faults: no component of the rows is to blame.
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

START = datetime(2026, 5, 4, 13, tzinfo=UTC)
EVERY = timedelta(minutes=1)
MINUTE = 60.0
HISTORY = 10
JUDGED = 8
WINDOWS = HISTORY + JUDGED
FROM, UNTIL = (HISTORY + 2) * MINUTE, (HISTORY + 6) * MINUTE
SEEN = 20.0
BASE_NS = int(START.timestamp()) * 10**9

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """`errors` is the usual share of failing calls, `rate` the median of observations a pair and minute."""

    says: str
    fault: str = ""
    benign: str = ""
    share: float = 0.6
    errors: float = 0.003
    rate: float = 4.0
    observers: int = 0
    count: int = 1
    silent: float = 0.0
    lasting: bool = False
    sick_history: bool = False


PLANS = {
    "healthy": Plan("nothing happens, .3 % of the calls fail"),
    "healthy_errors_2": Plan("nothing happens, 2 % of the calls fail, from 0 to 8 % by subject", errors=0.02),
    "healthy_errors_5": Plan(
        "nothing happens, 5 % of the calls fail, from 0 to 20 % by subject", errors=0.05
    ),
    "healthy_sparse": Plan("nothing happens, few observations", rate=0.3, errors=0.01),
    "healthy_few": Plan("nothing happens, one or two observers a subject", observers=2, errors=0.01),
    "healthy_silent": Plan("a third of the observers stops sending", silent=0.33, errors=0.01),
    "sick_history_healthy": Plan(
        "another subject fails in every second minute of history, none later", sick_history=True
    ),
    "restart": Plan("a process restarts within 10 s", benign="restart"),
    "rolling_deploy": Plan(
        "half of the subjects restart one after the other, 8 s each", benign="rolling_deploy"
    ),
    "load_peak": Plan("load triples, replies come up to 20 s late, 1 % fails", benign="load_peak"),
    "partition": Plan("two halves do not reach each other for four minutes", benign="partition"),
    "new_members": Plan("a fifth of the subjects appears in the judged minutes", benign="new_members"),
    "crash": Plan("a process dies: all calls fail or stay pending, it says nothing more", "crash"),
    "gray": Plan("60 % of the calls of a process fail, heartbeats are well", "gray"),
    "gray_25": Plan("25 % of the calls of a process fail, heartbeats are well", "gray", share=0.25),
    "gray_10": Plan("10 % of the calls of a process fail where .3 % usually do", "gray", share=0.1),
    "gray_errors_5": Plan("60 % of the calls of a process fail where 5 % usually do", "gray", errors=0.05),
    "gray_one_context": Plan("one operation of a process fails for everybody", "one_context", share=0.95),
    "gray_some": Plan("all calls of a process fail for a third of its observers", "some", share=0.95),
    "gray_sparse": Plan("90 % of the calls of a process fail, few observations", "gray", share=0.9, rate=0.6),
    "gray_few": Plan("60 % of the calls of a process fail, two observers a subject", "gray", observers=2),
    "gray_one_observer": Plan(
        "60 % of the calls of a process fail, one observer a subject", "gray", observers=1
    ),
    "gray_silent": Plan(
        "60 % of the calls of a process fail while a third of the observers is silent", "gray", silent=0.33
    ),
    "gray_lasting": Plan(
        "60 % of the calls of a process fail, since minutes before the judged ones", "gray", lasting=True
    ),
    "hang": Plan("calls of a process stay pending, heartbeats are well", "hang"),
    "flapping": Plan("a process fails for 20 s of every minute", "flapping", share=0.95),
    "three_gray": Plan("three processes fail 60 % of their calls at once", "gray", count=3),
    "cascade": Plan("a process fails, and a third of the calls of those that call it", "cascade", share=0.7),
    "overloaded_observer": Plan(
        "an overloaded observer sees half of all calls fail", "observer_overloaded", share=0.5
    ),
    "lying_observers": Plan(
        "three observers call everybody unhealthy", "observer_lying", share=0.95, count=3
    ),
    "many_overloaded": Plan(
        "40 % of the observers see a third of all calls fail", "observer_overloaded", share=0.33, count=-1
    ),
    "gray_and_liar": Plan(
        "60 % of the calls of a process fail, an observer calls everybody unhealthy", "gray+liar"
    ),
    "sick_history": Plan(
        "another subject fails in every second minute of history, then one is gray", "gray", sick_history=True
    ),
}
CASES = {name: plan.says for name, plan in PLANS.items()}


@dataclass(frozen=True)
class Effect:
    """Calls of some (None: all) subjects, observers and contexts fail with chance `share` between two seconds.

    `hangs`: what fails stays pending. `across`: only calls between different sides. `mutes`: the observers say nothing.
    """

    start: float
    end: float
    share: float = 1.0
    subjects: frozenset[int] | None = None
    observers: frozenset[int] | None = None
    contexts: frozenset[int] | None = None
    hangs: bool = False
    across: bool = False
    mutes: bool = False


@dataclass
class System:
    """Components, and the pairs that watch each other: arrays of one length, contexts as numbers of `contexts`."""

    names: list[str]
    contexts: list[str]
    observer: Ints
    subject: Ints
    context: Ints
    rate: Floats
    usual: Floats
    effects: list[Effect] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    load: Floats = field(default_factory=lambda: np.ones(WINDOWS))
    late: float = 0.0
    since: Floats = field(default_factory=lambda: np.zeros(0))

    def beats(self) -> NDArray[np.bool_]:
        """Flags of the pairs that are heartbeats."""
        return np.asarray([self.contexts[i].startswith("heartbeat") for i in self.context])

    def calls(self) -> Floats:
        """Calls a minute of each component that are not heartbeats."""
        found = np.bincount(self.subject, self.rate * ~self.beats(), len(self.names))
        return np.asarray(found, dtype=np.float64)


def make(seed: int, case: str) -> World:
    """The world of a case. Raises KeyError for a case that is not in `CASES`."""
    plan = PLANS[case]
    rng = np.random.default_rng([seed, crc32(case.encode())])
    system = _system(plan, rng, seed % 3)
    _benign(plan, system, rng)
    _faults(plan, system, rng)
    rows = [row for window in range(WINDOWS) for row in _rows(system, rng, window)]
    for fault in system.faults:
        key = "observer" if fault.kind.startswith("observer_") else "subject"
        left = sum(row[key] == fault.component and row["status"] != "healthy" for row in rows)
        system.notes.append(f"{fault.component} {fault.kind}: {left} observations that are not healthy")
    rows = [rows[i] for i in rng.permutation(len(rows))]
    start = START + HISTORY * EVERY
    return World(case, seed, {"observation": rows}, EVERY, start, tuple(system.faults), tuple(system.notes))


def _system(plan: Plan, rng: np.random.Generator, number: int) -> System:
    names, pairs = (_quorum, _file_system, _mesh)[number](rng)
    if plan.observers:
        pairs = _few(pairs, plan.observers, rng)
    contexts = sorted({context for _, _, context in pairs})
    observer = np.asarray([one for one, _, _ in pairs])
    subject = np.asarray([one for _, one, _ in pairs])
    context = np.asarray([contexts.index(one) for _, _, one in pairs])
    scale = plan.rate * (3.0 if plan.observers else 1.0)
    rate = scale * np.exp(0.8 * rng.standard_normal(len(pairs)))
    rate[[contexts[i].startswith("heartbeat") for i in context]] = max(1.0, scale)
    usual = rng.beta(0.8, 0.8 / plan.errors - 0.8, (len(names), len(contexts)))
    usual = np.minimum(usual, 4 * plan.errors)[subject, context]
    system = System(names, contexts, observer, subject, context, rate, usual)
    log = np.zeros(WINDOWS)
    for window in range(1, WINDOWS):
        log[window] = 0.8 * log[window - 1] + 0.1 * rng.standard_normal()
    system.load = np.exp(log)
    system.since = np.zeros(len(names))
    return system


Pairs = list[tuple[int, int, str]]


def _quorum(rng: np.random.Generator) -> tuple[list[str], Pairs]:
    names = [f"process/quorum-{i}" for i in range(5)] + [f"process/client-{i:02d}" for i in range(25)]
    pairs = [(a, b, c) for a in range(5) for b in range(5) if a != b for c in ("heartbeat", "append", "sync")]
    for client in range(5, 30):
        for server in rng.choice(5, 2, replace=False).tolist():
            pairs += [(client, server, context) for context in ("heartbeat_session", "read", "write")]
    return names, pairs


def _file_system(rng: np.random.Generator) -> tuple[list[str], Pairs]:
    names = [f"process/namenode-{i}" for i in range(2)] + [f"process/datanode-{i:02d}" for i in range(14)]
    names += [f"process/job-{i:02d}" for i in range(20)]
    pairs: Pairs = [(name, data, "heartbeat") for name in range(2) for data in range(2, 16)]
    pairs += [(data, 0, "block_report") for data in range(2, 16)]
    for data in range(2, 16):
        others = rng.choice([i for i in range(2, 16) if i != data], 3, replace=False).tolist()
        pairs += [(data, other, "replicate") for other in others]
    for job in range(16, 36):
        pairs += [(job, 0, "lookup")]
        for data in rng.choice(np.arange(2, 16), int(rng.integers(2, 7)), replace=False).tolist():
            pairs += [(job, data, context) for context in ("block_read", "block_write")]
    return names, pairs


def _mesh(rng: np.random.Generator) -> tuple[list[str], Pairs]:
    names = [f"process/svc-{i:02d}-{rng.integers(100, 999)}" for i in range(26)]
    weight = 1 / np.arange(1, 27)
    pairs: Pairs = [(25, i, "heartbeat") for i in range(25)] + [(24, i, "heartbeat") for i in range(24)]
    for caller in range(24):
        fan = 1 + int(rng.geometric(0.25))
        others = [i for i in range(24) if i != caller]
        chances = weight[: len(others)] / weight[: len(others)].sum()
        for other in rng.choice(others, min(fan, 12), replace=False, p=chances).tolist():
            pairs += [
                (caller, other, context) for context in ("get", "put", "list")[: int(rng.integers(1, 4))]
            ]
    return names, pairs


def _few(pairs: Pairs, most: int, rng: np.random.Generator) -> Pairs:
    """The pairs of at most `most` observers of each subject."""
    found: Pairs = []
    for subject in sorted({one for _, one, _ in pairs}):
        observers = sorted({a for a, b, _ in pairs if b == subject})
        kept = set(rng.choice(observers, min(most, len(observers)), replace=False).tolist())
        found += [pair for pair in pairs if pair[1] == subject and pair[0] in kept]
    return found


def _some(system: System, rng: np.random.Generator, count: int, least: float = SEEN) -> list[int]:
    """Components with enough calls, drawn without those that are faulty now; the most called ones if too few."""
    calls = system.calls()
    taken = {fault.component for fault in system.faults if fault.end > _when(FROM)}
    order = [int(i) for i in np.argsort(-calls) if system.names[i] not in taken and calls[i] > 0]
    enough = [i for i in order if calls[i] >= least]
    pool = enough if len(enough) >= count else order[:count]
    return [int(i) for i in rng.choice(pool, count, replace=False)]


def _benign(plan: Plan, system: System, rng: np.random.Generator) -> None:
    size = len(system.names)
    if plan.silent:
        observers = np.unique(system.observer)
        mute = rng.choice(observers, int(plan.silent * len(observers)), replace=False)
        system.effects.append(Effect(FROM, WINDOWS * MINUTE, observers=frozenset(mute.tolist()), mutes=True))
    if plan.benign in ("restart", "rolling_deploy"):
        one_by_one = plan.benign == "rolling_deploy"
        which = _some(system, rng, max(2, len(np.unique(system.subject)) // 2) if one_by_one else 1, 0.0)
        for i, subject in enumerate(which):
            start = FROM + 10 + i * 12.0
            _restart(system, subject, start, 8.0 if one_by_one else 10.0)
        system.notes.append(f"benign: {len(which)} restarted, the first is {system.names[which[0]]}")
    elif plan.benign == "load_peak":
        system.load[HISTORY + 2 : HISTORY + 6] *= 3
        system.late = 20.0
        system.effects.append(Effect(FROM, UNTIL, 0.01))
    elif plan.benign == "partition":
        system.effects.append(Effect(FROM, UNTIL, 0.97, across=True))
        system.notes.append("a partition: no component of the rows is at fault")
    elif plan.benign == "new_members":
        system.since[rng.choice(size, size // 5, replace=False)] = FROM


def _restart(system: System, subject: int, start: float, lasts: float) -> None:
    one = frozenset({subject})
    system.effects.append(Effect(start, start + lasts, 0.97, subjects=one))
    system.effects.append(Effect(start, start + lasts, observers=one, mutes=True))


def _faults(plan: Plan, system: System, rng: np.random.Generator) -> None:
    if plan.sick_history:
        for window in range(1, HISTORY, 2):
            (subject,) = _some(system, rng, 1)
            _break(plan, system, rng, subject, "gray", window * MINUTE, (window + 1) * MINUTE)
    if plan.fault.startswith("observer_"):
        _slander(plan, system, rng, plan.fault, plan.share)
    elif plan.fault:
        kind, _, more = plan.fault.partition("+")
        until = WINDOWS * MINUTE if plan.lasting else UNTIL
        for subject in _some(system, rng, plan.count):
            start = 5 * MINUTE if plan.lasting else FROM + float(rng.uniform(0, 15))
            _break(plan, system, rng, subject, kind, start, until)
        if more:
            _slander(Plan("", share=0.9), system, rng, "observer_lying", 0.9)


def _slander(plan: Plan, system: System, rng: np.random.Generator, kind: str, share: float) -> None:
    said = np.bincount(system.observer, system.rate, len(system.names))
    faulty = {fault.component for fault in system.faults}
    talks = [int(i) for i in np.argsort(-said) if said[i] >= SEEN / 2 and system.names[i] not in faulty]
    number = plan.count if plan.count > 0 else int(0.4 * len(np.unique(system.observer)))
    for observer in rng.choice(talks, min(number, len(talks)), replace=False).tolist():
        system.effects.append(Effect(FROM, UNTIL, share, observers=frozenset({observer})))
        system.faults.append(Fault(system.names[observer], kind, _when(FROM), _when(UNTIL)))


def _break(
    plan: Plan, system: System, rng: np.random.Generator, subject: int, kind: str, start: float, end: float
) -> None:
    one = frozenset({subject})
    mine = system.subject == subject
    calls = frozenset(system.context[mine & ~system.beats()].tolist())
    acceptable: tuple[str, ...] = ()
    if kind == "crash":
        system.effects.append(Effect(start, end, 0.98, one, hangs=False))
        system.effects.append(Effect(start, end, observers=one, mutes=True))
    elif kind == "flapping":
        for minute in range(int(start // MINUTE), int(end // MINUTE)):
            begin = minute * MINUTE + float(rng.uniform(0, 40))
            system.effects.append(Effect(begin, begin + 20, plan.share, one))
    elif kind == "one_context":
        rates = np.bincount(system.context[mine & ~system.beats()], system.rate[mine & ~system.beats()])
        system.effects.append(
            Effect(start, end, plan.share, one, contexts=frozenset({int(np.argmax(rates))}))
        )
    elif kind == "some":
        observers = rng.permutation(np.unique(system.observer[mine]))
        third = observers[: max(1, len(observers) // 3)]
        system.effects.append(Effect(start, end, plan.share, one, frozenset(third.tolist()), calls))
    else:
        system.effects.append(Effect(start, end, plan.share, one, contexts=calls, hangs=kind == "hang"))
    if kind == "cascade":
        callers = sorted({int(i) for i in system.observer[mine & ~system.beats()]} - {subject})
        system.effects.append(Effect(start, end, 0.33, frozenset(callers), contexts=_not_beats(system)))
        acceptable = tuple(system.names[i] for i in callers)
    watchers = np.unique(system.observer[mine & ~system.beats()])
    if len(watchers) == 1:
        acceptable = (*acceptable, system.names[int(watchers[0])])
    system.faults.append(Fault(system.names[subject], kind, _when(start), _when(end), acceptable))


def _not_beats(system: System) -> frozenset[int]:
    return frozenset(i for i, one in enumerate(system.contexts) if not one.startswith("heartbeat"))


def _when(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _rows(system: System, rng: np.random.Generator, window: int) -> list[dict[str, Any]]:
    beats = system.beats()
    rate = np.where(beats, system.rate, system.rate * system.load[window])
    pair = np.repeat(np.arange(len(rate)), rng.poisson(rate))
    at = np.sort(rng.uniform(window * MINUTE, (window + 1) * MINUTE, len(pair)))
    pair = rng.permutation(pair)
    fine = np.log1p(-system.usual[pair])
    muted, hangs = np.zeros(len(pair), bool), np.zeros(len(pair), bool)
    for one in system.effects:
        met = _met(system, one, pair, at)
        if one.mutes:
            muted |= met
        else:
            fine[met] += np.log1p(-min(one.share, 0.999))
            hangs |= met & one.hangs
    muted |= (at < system.since[system.subject[pair]]) | (at < system.since[system.observer[pair]])
    fails = rng.random(len(pair)) > np.exp(fine)
    sure = np.where(rng.random(len(pair)) < 0.1, np.round(rng.uniform(0.5, 1.0, len(pair)), 2), 1.0)
    waits = rng.exponential(0.2, len(pair)) + rng.uniform(0, 1, len(pair)) * system.late * (
        FROM <= window * MINUTE < UNTIL
    )
    rows: list[dict[str, Any]] = []
    for i in np.flatnonzero(~muted).tolist():
        asynchronous = system.context[pair[i]] % 5 == 1 and not beats[pair[i]]
        kept = {"score": float(sure[i])} if sure[i] < 1 else {}
        if asynchronous or (hangs[i] and fails[i]):
            rows.append(_row(system, int(pair[i]), float(at[i]), "pending") | kept)
        if not (hangs[i] and fails[i]):
            later = float(at[i] + (waits[i] if asynchronous else 0.0))
            rows.append(_row(system, int(pair[i]), later, "unhealthy" if fails[i] else "healthy") | kept)
    return rows


def _met(system: System, one: Effect, pair: Ints, at: Floats) -> NDArray[np.bool_]:
    met = (at >= one.start) & (at < one.end)
    chosen: Sequence[tuple[frozenset[int] | None, Ints]] = (
        (one.subjects, system.subject),
        (one.observers, system.observer),
        (one.contexts, system.context),
    )
    for members, column in chosen:
        if members is not None:
            met &= np.isin(column[pair], np.fromiter(members, np.int64, len(members)))
    if one.across:
        met &= system.subject[pair] % 2 != system.observer[pair] % 2
    return met


def _row(system: System, pair: int, at: float, status: str) -> dict[str, Any]:
    return {
        "time": BASE_NS + int(at * 1e6) * 1000,
        "observer": system.names[system.observer[pair]],
        "subject": system.names[system.subject[pair]],
        "context": system.contexts[system.context[pair]],
        "status": status,
    }
