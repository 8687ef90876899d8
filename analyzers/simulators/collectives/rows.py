"""Simulated training jobs as windows, as telemetry rows and as scenarios; clocks of ranks differ by seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.contract import Sums, Window
from analyzers.simulators.collectives.jobs import NODE, Job, Simulation, Trouble, draw
from analyzers.simulators.truth import happened

Row = dict[str, Any]
Columns = dict[str, NDArray[Any]]

EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
SECONDS = 60.0
"""Length of a window."""
SKEW = 3.0
"""Seconds by which a clock is off at most."""
EVENTS = (
    "checkpoint",
    "evaluation",
    "resize",
    "time_shared",
    "slow_read",
    "experts",
    "missing_rows",
    "agent_crash",
    "clock_step",
)


def happening(job: Job, rng: np.random.Generator, event: str, start: float) -> tuple[Trouble, ...]:
    """A benign event as what happens in the simulation; what only the records show is none."""
    some = tuple(int(one) for one in rng.choice(job.ranks, max(1, job.ranks // 8), replace=False))
    return {
        "checkpoint": (Trouble("checkpoint", (), start, strength=float(rng.uniform(8, 25))),),
        "evaluation": (Trouble("evaluation", (), start, start + 15),),
        "resize": (Trouble("resize", (), start, strength=float(rng.uniform(15, 30))),),
        "time_shared": (Trouble("time_shared", some, start, strength=1.5),),
        "slow_read": (Trouble("slow_read", some[:1], start, strength=float(rng.uniform(2, 9))),),
    }.get(event, ())


def recorded(
    job: Job,
    rng: np.random.Generator,
    seconds: float,
    troubles: Sequence[Trouble] = (),
    skew: float = SKEW,
) -> Columns:
    """Records of a job's ranks until then, by their own clocks, off by at most `skew` seconds; `shown` is the true
    time."""
    simulation = Simulation(job, rng, troubles)
    columns: Columns = dict(simulation.run(seconds).columns())
    off = rng.uniform(-skew, skew, job.ranks)
    columns["shown"], columns["over"] = columns["start"].copy(), columns["end"].copy()
    columns["start"] = columns["start"] + off[columns["rank"]]
    columns["end"] = columns["end"] + off[columns["rank"]]
    columns["node"] = np.array([f"node/n{rank // NODE:03d}" for rank in columns["rank"]], dtype=object)
    return columns


def disturbed(
    columns: Columns, rng: np.random.Generator, event: str, start: float, share: float = 0.05
) -> Columns:
    """The same where an event of the records themselves happened: rows lost, an agent gone, a clock set. Of lost rows
    `unheard` is how many reports of a part in a row are lost, the first among them."""
    rank = columns["rank"]
    struck = rank == rng.choice(np.unique(rank))
    retained = np.ones(len(rank), dtype=np.bool_)
    changed = dict(columns)
    if event == "missing_rows":
        changed["unheard"] = rng.geometric(1 - share, len(rank)) - 1
    if event == "agent_crash":
        retained = ~struck | (columns["shown"] < start)
    if event == "clock_step":
        step = np.where(struck & (columns["shown"] >= start), -4.0, 0.0)
        changed |= {"start": columns["start"] + step, "end": columns["end"] + step}
    return {name: column[retained] for name, column in changed.items()}


def window(
    columns: Columns, start: float, end: float, history: tuple[Window, ...] = (), job: str = "train"
) -> Window:
    """The window `[start, end)` as its reduction gives it: parts launched in it, as they were at its end, and the
    reports of those that are open."""
    at, report = _reports(columns, start, end)
    some = {name: column[at] for name, column in columns.items()}
    done = some["over"] <= end
    micro = np.round((EPOCH.timestamp() + some["start"] + POLL * report) * 1e6).astype(np.int64)
    base = EPOCH.timestamp() * 1e9
    keys = [some["communicator"], some["seq"], some["op"], some["rank"], some["src"], some["dst"]]
    order = np.lexsort(
        [
            np.unique(key, return_inverse=True)[1] if key.dtype == object else key
            for key in reversed([*keys, micro])
        ]
    )
    communicator, seq, op, rank, src, dst = (key[order] for key in keys)
    done = done[order]
    sums = Sums(
        keys={
            "job": (job,) * len(order),
            "communicator": tuple(communicator.tolist()),
            "seq": seq.astype(np.int64),
            "op": tuple(op.tolist()),
            "rank": rank.astype(np.int64),
            "src": src.astype(np.int64),
            "dst": dst.astype(np.int64),
            "state": tuple("completed" if one else "started" for one in done.tolist()),
            "time": micro[order],
            "node": tuple(some["node"][order].tolist()),
        },
        values={
            "rows": np.ones(len(order), dtype=np.int64),
            "start_ns": base + np.round(some["start"][order] * 1e9),
            "end_ns": np.where(done, base + np.round(some["end"][order] * 1e9), 0.0),
            "bytes": some["bytes"][order].astype(np.float64),
            "ranks": np.zeros(len(order), dtype=np.float64),
        },
        rows=len(order),
    )
    moments = (EPOCH + timedelta(seconds=start), EPOCH + timedelta(seconds=end))
    return Window(*moments, "default", "collective", {"states": sums}, history)


def _reports(columns: Columns, start: float, end: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The parts that a window has rows of, and the number of the report: 0 at the launch and, in `POLL` seconds each,
    those of what is open at the window's end."""
    shown, over = columns["shown"], columns["over"]
    unheard = columns.get("unheard", np.zeros(len(shown), dtype=np.int64))
    launched = (shown >= start) & (shown < end) & (unheard == 0)
    parts, numbers = [np.flatnonzero(launched)], [np.zeros(int(launched.sum()), dtype=np.int64)]
    for at in np.flatnonzero((shown < end) & (over > end)).tolist():
        first = max(1, int(unheard[at]), int(np.ceil((start - shown[at]) / POLL)))
        polls = np.arange(first, int(np.ceil((end - shown[at]) / POLL)))
        parts.append(np.full(len(polls), at))
        numbers.append(polls)
    return np.concatenate(parts), np.concatenate(numbers)


def case(
    job: Job,
    seed: int,
    kind: str = "",
    event: str = "",
    onset: float = 70.0,
    at: float = 120.0,
    kinds: Sequence[str] = (),
) -> tuple[Window, tuple[Trouble, ...]]:
    """A window of a minute that ends at second `at`, with the minute before as history, and the faults in it."""
    rng = np.random.default_rng([seed, 19])
    faults = tuple(draw(job, rng, one, onset) for one in (*kinds, *([kind] if kind else [])))
    columns = recorded(job, rng, at, (*faults, *happening(job, rng, event, onset)))
    columns = disturbed(columns, rng, event, onset)
    return windows_at(columns, at), faults


def windows_at(columns: Columns, at: float) -> Window:
    """The window that ends at second `at`, with what came before it in windows of the same length as history."""
    ends = np.arange(at, 0, -SECONDS)[::-1][:-1]
    past = tuple(window(columns, end - SECONDS, end) for end in ends if end - SECONDS >= -1e-9)
    return window(columns, at - SECONDS, at, past)


POLL = 5.0
"""Seconds between two reports of what is open."""


def collective_rows(
    columns: Columns, job: str = "train", until: float | None = None, began: float = EPOCH.timestamp()
) -> list[Row]:
    """The same as telemetry rows at the record's end, in order of time. What is open is reported again and again, as
    by an agent that polls. `began`: second 0 of the record, in seconds since 1970."""
    last = float(columns["shown"].max()) if until is None else until
    rows = []
    unheard = columns.get("unheard", np.zeros(len(columns["start"]), dtype=np.int64))
    for at in np.argsort(columns["start"], kind="stable").tolist():
        done = bool(columns["over"][at] <= last)
        if done and unheard[at]:
            continue
        row: Row = {
            "time": _stamp(float(columns["start"][at]), began),
            "job": job,
            "communicator": columns["communicator"][at],
            "seq": int(columns["seq"][at]),
            "op": columns["op"][at],
            "rank": int(columns["rank"][at]),
            "bytes": float(columns["bytes"][at]),
            "start_ns": _nanoseconds(float(columns["start"][at]), began),
            "state": "completed" if done else "started",
            "node": columns["node"][at],
        }
        if columns["src"][at] >= 0:
            row |= {"src": int(columns["src"][at]), "dst": int(columns["dst"][at])}
        if done:
            row["end_ns"] = _nanoseconds(float(columns["end"][at]), began)
        reports = [float(columns["start"][at])]
        if not done:
            reports += np.arange(reports[0] + POLL, last, POLL).tolist()
        rows += [row | {"time": _stamp(moment, began)} for moment in reports[unheard[at] :]]
    return sorted(rows, key=lambda row: str(row["time"]))


def collective_scenario(
    name: str, seed: int, kind: str, event: str = ""
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """`collective` rows of two minutes of a job of 32 ranks and the truth; the fault begins in the second minute."""
    rng = np.random.default_rng([seed, 23])
    job = Job(tensor=2, pipeline=2, data=8, micro_batches=1, compute=0.5, experts=event == "experts")
    onset, seconds = 70.0, 120.0
    faults = (draw(job, rng, kind, onset),) if kind else ()
    columns = recorded(job, rng, seconds, (*faults, *happening(job, rng, event, onset)))
    columns = disturbed(columns, rng, event, onset)
    retained = columns["shown"] < seconds
    columns = {key: column[retained] for key, column in columns.items()}
    rows = collective_rows(columns, until=seconds)
    start, end = _stamp(-SKEW - 1), _stamp(seconds + SKEW + 1)
    truth: dict[str, Any] = {"scenario": name, "seed": seed, "start": start, "end": end}
    truth["faults"] = [
        {
            "component": fault.component,
            "kind": fault.kind,
            "severity": round(fault.strength, 6),
            "start": _stamp(onset),
            "end": end,
        }
        for fault in faults
    ]
    return {"collective": rows}, truth | {"benign": happened(event, _stamp(onset), end)}


def _stamp(seconds: float, began: float = EPOCH.timestamp()) -> str:
    return (
        (datetime.fromtimestamp(began, UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    )


def _nanoseconds(seconds: float, began: float = EPOCH.timestamp()) -> int:
    return int(began) * 1_000_000_000 + round(seconds * 1e9)
