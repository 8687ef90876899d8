"""Chrome traces of PyTorch's profiler (Kineto) to rows of `function_profile`: one for each function of a worker. Pure.

A trace is read as a stream: of each event that counts 28 bytes are kept (start, end, use, function, thread), never its
text, so that memory follows the number of kernels and calls (at most `MOST_EVENTS`) and not the size of the file. The
critical path is found in stretches of time of about `AT_ONCE` events, so that it takes no more memory in long traces.

After EROICA (first PerfTracker; arXiv 2506.08528): at each instant the class of highest priority that is active is on
the critical path, of computing kernels, memory operations, collectives and Python. `beta` is the time of a function on
that path as a share of the profile. A CPU event counts while it is the innermost of its thread, on threads that launch
kernels. `mu` and `sigma` are mean and standard deviation over the executions of a function, weighted by time, of what
the trace tells of its resource:

| class | events | resource |
| --- | --- | --- |
| `compute` | `kernel` | estimated occupancy, as a share |
| `memory` | `gpu_memcpy`, `gpu_memset` | bandwidth in GB/s |
| `collective` | `kernel` named nccl… or rccl… | bytes sent over duration, in GB/s |
| `python` | `python_function`, `cpu_op` | none: 0 |

An execution of which the trace tells nothing counts in `beta` alone; with none that tells, both are 0.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, Any

import ijson
import numpy as np
from numpy.typing import NDArray

MOST_EVENTS = 20_000_000
"""Kernels and calls in a trace; more are refused."""
AT_ONCE = 250_000
MOST_FUNCTIONS = 200
"""Rows of a worker: the functions with the largest shares of the critical path."""
LONGEST_NAME = 480
ABSOLUTE_US = 1e15
"""Times from here on are microseconds since 1970, earlier ones need `baseTimeNanoseconds`."""
LAUNCHING = 0.1
"""Least share of all launches by a thread whose calls count."""
CLASSES = ("compute", "memory", "collective", "python")
COMPUTE, MEMORY, COLLECTIVE, PYTHON = range(4)
ELEMENT = {"Double": 8, "Long": 8, "Float": 4, "Int": 4, "Half": 2, "BFloat16": 2, "Short": 2}
"""Bytes of an element by dtype; all others have one."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class InvalidTraceError(ValueError):
    """The trace cannot be read; the message says what is wrong where."""


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a trace before its events: nanoseconds since 1970 that its times are relative to, and the rank."""

    base_ns: int
    rank: int | None


@dataclass(slots=True)
class Profile:
    """Rows of `function_profile` of one worker, largest share first, and how many functions were left out."""

    rows: list[dict[str, Any]]
    left_out: int
    events: int


@dataclass(slots=True)
class _Events:
    """Columns of the events: microseconds, function, class, thread, use of its resource (NaN: not told)."""

    start: array[float] = field(default_factory=lambda: array("d"))
    end: array[float] = field(default_factory=lambda: array("d"))
    use: array[float] = field(default_factory=lambda: array("f"))
    function: array[int] = field(default_factory=lambda: array("i"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    functions: dict[tuple[int, str], int] = field(default_factory=dict)
    threads: dict[object, int] = field(default_factory=dict)
    launches: Counter[int] = field(default_factory=Counter)


def head(stream: IO[bytes]) -> Head:
    """Head of a trace, before the events. Raises InvalidTraceError."""
    base, rank = 0, None
    for prefix, event, value in _tokens(ijson.parse(stream, use_float=True), 0):
        if prefix == "baseTimeNanoseconds":
            base = int(value)
        elif prefix == "distributedInfo.rank":
            rank = int(value)
        elif prefix == "traceEvents" and event == "start_array":
            return Head(base, rank)
    raise InvalidTraceError("has no list traceEvents: it is no Chrome trace of the PyTorch profiler")


def convert(
    opened: Callable[[], AbstractContextManager[IO[bytes]]], job: str, worker: str, role: str
) -> Profile:
    """The rows of a trace that is read twice, each time from what `opened` gives; without a `worker` it is
    `worker/RANK`. Raises InvalidTraceError."""
    with opened() as stream:
        header = head(stream)
    if not worker and header.rank is None:
        raise InvalidTraceError("has no distributedInfo.rank; name the worker")
    with opened() as stream:
        return profile(stream, header, job, worker or f"worker/{header.rank}", role)


def profile(stream: IO[bytes], header: Head, job: str, worker: str, role: str) -> Profile:
    """The rows of a trace, `stream` at its beginning. Raises InvalidTraceError."""
    collected = _read(stream)
    if not collected.start:
        raise InvalidTraceError("has no kernel and no call: the profiler recorded no activity")
    start, end = np.frombuffer(collected.start), np.frombuffer(collected.end)
    first, length = float(start.min()), float(end.max() - start.min())
    if not header.base_ns and first < ABSOLUTE_US:
        raise InvalidTraceError(
            "has no baseTimeNanoseconds and its times are not since 1970: when it was is not known"
        )
    names = list(collected.functions)
    on_path = _on_path(start, end, np.array([class_ for class_, _ in names], np.int8), collected)
    beta = np.minimum(1.0, on_path / max(length, 1e-9))
    mu, sigma = _use(collected, start, end)
    order = [int(one) for one in np.argsort(-beta, kind="stable") if beta[one] > 0]
    at = header.base_ns + round(first * 1000)
    rows = [
        {
            "time": at,
            "job": job,
            "worker": worker,
            "role": role,
            "function": names[one][1],
            "cls": CLASSES[names[one][0]],
            "beta": round(float(beta[one]), 6),
            "mu": round(float(mu[one]), 6),
            "sigma": round(float(sigma[one]), 6),
            "window_s": round(length / 1e6, 6),
        }
        for one in order[:MOST_FUNCTIONS]
    ]
    return Profile(rows, max(0, len(order) - MOST_FUNCTIONS), len(start))


# Reading
# ----------------------------------------------------------------------------------------------------------
def _tokens(stream: Iterator[Any], done: int) -> Iterator[Any]:
    try:
        for one in stream:
            yield one
            done += 1
    except ijson.IncompleteJSONError as error:
        where = f" after item {done}" if done else ", as export_chrome_trace writes it"
        if not {"premature", "incomplete"} & set(str(error).lower().split()):
            raise InvalidTraceError(f"is not JSON{where}: {_line(error)}") from error
        raise InvalidTraceError(f"ends in the middle{where if done else ''}: {_line(error)}") from error
    except (ijson.JSONError, UnicodeDecodeError, ValueError) as error:
        raise InvalidTraceError(f"is not JSON: {_line(error)}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidTraceError(f"cannot be read: {_line(error)}") from error


def _line(error: Exception) -> str:
    """The message without the excerpt and the arrow that the parser draws below it; some are bytes."""
    text = error.args[0] if error.args and isinstance(error.args[0], bytes) else str(error).encode()
    return " ".join(text.decode(errors="replace").strip().partition("\n")[0].split())[:200].rstrip(".")


def _read(stream: IO[bytes]) -> _Events:
    collected = _Events()
    events = ijson.items(stream, "traceEvents.item", use_float=True)
    for number, event in enumerate(_tokens(events, 0), start=1):
        if not isinstance(event, dict):
            raise InvalidTraceError(f"event {number}: is no object")
        if event.get("ph") != "X":
            continue
        category = event.get("cat")
        if category in ("cuda_runtime", "cuda_driver", "hip_runtime"):
            collected.launches[_thread(collected, event)] += 1
        elif (found := _class(category, event.get("name"))) is not None:
            _keep(collected, number, found, event)
        if len(collected.start) > MOST_EVENTS:
            raise InvalidTraceError(
                f"has more than {MOST_EVENTS} kernels and calls: profile fewer steps, or without stacks"
            )
    return collected


def _class(category: object, name: object) -> int | None:
    if category == "kernel":
        return COLLECTIVE if isinstance(name, str) and name[:4].lower() in ("nccl", "rccl") else COMPUTE
    if category in ("gpu_memcpy", "gpu_memset"):
        return MEMORY
    return PYTHON if category in ("python_function", "cpu_op") else None


def _keep(collected: _Events, number: int, class_: int, event: Mapping[str, Any]) -> None:
    start, took, name = event.get("ts"), event.get("dur", 0), event.get("name")
    if (
        not isinstance(start, int | float)
        or not isinstance(took, int | float)
        or not isinstance(name, str)
        or not name
    ):
        raise InvalidTraceError(f"event {number}: lacks a name, or ts or dur is not a number")
    if took < 0 or not math.isfinite(start + took):
        raise InvalidTraceError(f"event {number}, {name[:60]!r}: ends before it begins (dur {took})")
    key = class_, _short(name)
    collected.start.append(start)
    collected.end.append(start + took)
    collected.use.append(_resource_use(class_, took, event.get("args")))
    collected.function.append(collected.functions.setdefault(key, len(collected.functions)))
    collected.thread.append(_thread(collected, event))


def _thread(collected: _Events, event: Mapping[str, Any]) -> int:
    return collected.threads.setdefault(
        (str(event.get("pid")), str(event.get("tid"))), len(collected.threads)
    )


def _short(name: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in name)
    if len(plain) <= LONGEST_NAME:
        return plain
    return (
        f"{plain[:LONGEST_NAME]}~{hashlib.blake2b(name.encode(errors='replace'), digest_size=4).hexdigest()}"
    )


def _resource_use(class_: int, took: float, args: object) -> float:
    """The use of the resource that the event tells, NaN if none."""
    if not isinstance(args, Mapping):
        return math.nan
    if class_ == COMPUTE:
        return _number(args.get("est. achieved occupancy %")) / 100
    if class_ == MEMORY:
        return _number(args.get("memory bandwidth (GB/s)"))
    if class_ == COLLECTIVE and took > 0:
        elements = _number(args.get("In msg nelems"))
        return elements * ELEMENT.get(str(args.get("dtype")), 1) / (took * 1000)
    return math.nan


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e30 else math.nan


# Critical path
# ----------------------------------------------------------------------------------------------------------
def _launching(collected: _Events) -> Ints:
    """Threads whose calls count: those that launch, or all where the trace has no launches."""
    total = sum(collected.launches.values())
    if not total:
        return np.arange(len(collected.threads))
    return np.array([one for one, count in collected.launches.items() if count >= LAUNCHING * total])


def _on_path(start: Floats, end: Floats, classes: NDArray[np.int8], collected: _Events) -> Floats:
    """Microseconds of each function on the critical path; shape (functions,). `classes` are theirs."""
    function, thread = np.frombuffer(collected.function, np.int32), np.frombuffer(collected.thread, np.int32)
    launching, found = _launching(collected), np.zeros(len(classes))
    for begin, stop in pairwise(_stretches(start)):
        mine = np.flatnonzero((start < stop) & (end > begin))
        mine = mine[np.lexsort((-end[mine], start[mine]))]
        of, clipped = function[mine], (np.maximum(start[mine], begin), np.minimum(end[mine], stop))
        took = _between(*clipped, classes[of], thread[mine], launching)
        found += np.bincount(of, took, len(classes))
    return found


def _stretches(start: Floats) -> list[float]:
    """Moments between which about `AT_ONCE` events begin."""
    parts = -(-len(start) // AT_ONCE)
    if parts == 1:
        return [-math.inf, math.inf]
    some = start[:: max(1, len(start) // (1000 * parts))]
    inner = np.unique(np.quantile(some, np.arange(1, parts) / parts)).tolist()
    return [-math.inf, *inner, math.inf]


def _between(
    start: Floats, end: Floats, kind: NDArray[np.int8], thread: NDArray[np.int32], launching: Ints
) -> Floats:
    """Microseconds of each event on the critical path, of events by start, the longer first; shape (events,)."""
    found = np.zeros(len(start))
    above_start, above_end = np.zeros(0), np.zeros(0)
    for class_ in range(len(CLASSES)):
        mine = np.flatnonzero(kind == class_)
        if class_ == PYTHON:
            mine = mine[np.isin(thread[mine], launching)]
            for one in np.unique(thread[mine]):
                calls = mine[thread[mine] == one]
                owner, begin, stop = _innermost(start[calls], end[calls])
                free = (stop - begin) - _covered(above_start, above_end, begin, stop)
                np.add.at(found, calls[owner], free)
            break
        found[mine] = (end[mine] - start[mine]) - _covered(above_start, above_end, start[mine], end[mine])
        above_start, above_end = _union(
            np.concatenate((above_start, start[mine])), np.concatenate((above_end, end[mine]))
        )
    return np.maximum(found, 0.0)


def _union(start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The disjoint intervals, ascending, that these cover."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    new = np.concatenate(([True], start[1:] > reach[:-1]))
    return start[new], reach[np.concatenate((np.flatnonzero(new)[1:] - 1, [len(start) - 1]))]


def _covered(start: Floats, end: Floats, begin: Floats, stop: Floats) -> Floats:
    """Length of each [begin, stop) that the disjoint ascending intervals cover."""
    if not len(start):
        return np.zeros(len(begin))
    points = np.stack((start, end), axis=1).ravel()
    before = np.concatenate(([0.0], np.cumsum(end - start)))
    totals = np.stack((before[:-1], before[1:]), axis=1).ravel()
    return np.asarray(np.interp(stop, points, totals) - np.interp(begin, points, totals))


def _innermost(start: Floats, end: Floats) -> tuple[Ints, Floats, Floats]:
    """The stretches in which each nested call of one thread is the innermost: call, begin and end of the stretch. Calls
    are by their start, the outer first."""
    ends = end.tolist()
    owner, begin, stop = array("q"), array("d"), array("d")
    open_: list[int] = []
    now = -math.inf

    def run(until: float) -> None:
        """The innermost open call runs until then, and so do those that end earlier."""
        nonlocal now
        while open_ and now < until:
            call = open_[-1]
            stretch = min(until, ends[call])
            if stretch > now:
                owner.append(call)
                begin.append(now)
                stop.append(stretch)
                now = stretch
            if ends[call] <= now:
                open_.pop()
        now = until

    for call, first in enumerate(start.tolist()):
        run(first)
        open_.append(call)
    run(max(ends, default=0.0))
    return np.frombuffer(owner, np.int64), np.frombuffer(begin), np.frombuffer(stop)


def _use(collected: _Events, start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the use over the executions of each function, weighted by time."""
    functions = len(collected.functions)
    function, uses = np.frombuffer(collected.function, np.int32), np.frombuffer(collected.use, np.float32)

    def summed(values: Callable[[Ints, Floats], Floats]) -> Floats:
        """The sum over executions with a known use of their time multiplied with `values(function, use)`."""
        total = np.zeros(functions)
        for at in range(0, len(uses), AT_ONCE):
            part = slice(at, at + AT_ONCE)
            took, use = end[part] - start[part], uses[part].astype(np.float64)
            known = np.isfinite(use) & (took > 0)
            of = function[part][known].astype(np.int64)
            total += np.bincount(of, took[known] * values(of, use[known]), functions)
        return total

    divisor = np.maximum(summed(lambda _, use: np.ones(len(use))), 1e-12)
    mean = summed(lambda _, use: use) / divisor
    return mean, np.sqrt(summed(lambda of, use: (use - mean[of]) ** 2) / divisor)
