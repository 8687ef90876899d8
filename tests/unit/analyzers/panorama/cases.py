"""Small systems for Panorama, written by hand: who reported what about whom in which second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from analyzers.builtin.panorama import ANALYZER
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.observations import window_of
from analyzers.simulators.observers import Fault, Reports, Shape, build, observe

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
TINY = Shape(processes=8, degree=(3, 4), contexts=(3, 3), used=(2, 3), rate=(4.0, 10.0), watchers=2)

Report = tuple[str, str, str, str, int]
"""Observer, subject, context, status, second."""


def window(reports: Iterable[Report], seconds: int = 20) -> Window:
    counted: dict[Report, int] = {}
    for one in reports:
        counted[one] = counted.get(one, 0) + 1
    rows = sorted(counted)
    columns = list(zip(*rows, strict=True)) or [()] * 5
    keys: dict[str, Any] = dict(zip(("observer", "subject", "context", "status"), columns[:4], strict=True))
    keys["slice"] = np.array(columns[4], dtype=np.int64)
    sums = Sums(
        keys=keys, values={"times": np.array([counted[row] for row in rows], dtype=np.int64)}, rows=len(rows)
    )
    return Window(START, START + timedelta(seconds=seconds), "north", "observation", {"seen": sums})


def calls(
    observers: Sequence[str],
    subject: str,
    context: str,
    seconds: Iterable[int],
    bad: Iterable[int] = (),
    each: int = 4,
    status: str = "unhealthy",
) -> list[Report]:
    """So many reports a second of each observer; those of the bad seconds have another status."""
    wrong = set(bad)
    return [
        (observer, subject, context, status if second in wrong else "healthy", second)
        for observer in observers
        for second in seconds
        for _ in range(each)
    ]


def mesh(seconds: int = 20, size: int = 6, contexts: Sequence[str] = ("read", "write")) -> list[Report]:
    """Everyone calls everyone in every context, and all is well."""
    names = [f"proc/p{i}" for i in range(size)]
    return [
        report
        for subject in names
        for context in contexts
        for report in calls([one for one in names if one != subject], subject, context, range(seconds))
    ]


def spoilt(
    reports: Iterable[Report], *, since: int, until: int = 10_000, share: float = 1.0, **match: str
) -> list[Report]:
    """The same reports, those that match (observer, subject, context) unhealthy between two seconds."""
    fields = ("observer", "subject", "context")
    out, turn = [], 0.0
    for report in reports:
        hit = since <= report[4] < until and all(
            report[fields.index(name)] == value for name, value in match.items()
        )
        if hit:
            turn += share
        if hit and turn >= 1:
            turn -= 1
            report = (*report[:3], "unhealthy", report[4])
        out.append(report)
    return out


def verdict(reports: Iterable[Report], seconds: int = 20, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window(reports, seconds), params)


def named(found: dict[str, Any]) -> list[str]:
    return [suspect["component"] for suspect in found["suspects"]]


def simulated(seed: int, faults: Sequence[Fault], shape: Shape = TINY, seconds: float = 24.0) -> Reports:
    rng = np.random.default_rng(seed)
    return observe(build(shape, rng), rng, seconds, faults)


def end_of(reports: Reports, length: float = 12.0, seconds: float = 24.0) -> Window:
    return window_of(reports, seconds - length, seconds)
