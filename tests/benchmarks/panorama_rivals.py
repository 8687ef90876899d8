"""Answers of simpler detectors on the same reports: last value, any negative, heartbeat, phi-accrual.

Each takes what was known at a moment and gives the subjects that it holds unhealthy, as indices of processes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from analyzers.simulators.observers import HEALTHY, PENDING, UNHEALTHY, Reports

Rows = NDArray[np.intp]


def last_value(reports: Reports, rows: Rows, now: float) -> set[int]:
    """The newest answer about a subject decides."""
    answers = rows[(reports.status[rows] != PENDING) & (reports.time[rows] > now - 10)]
    subject = reports.system.subject[reports.cell[answers]]
    newest = np.full(len(reports.system.processes), -1)
    np.maximum.at(newest, subject, answers)
    return {one for one, row in enumerate(newest.tolist()) if row >= 0 and reports.status[row] == UNHEALTHY}


def any_negative(reports: Reports, rows: Rows, now: float) -> set[int]:
    """One negative report within six seconds is enough."""
    bad = rows[(reports.status[rows] == UNHEALTHY) & (reports.time[rows] > now - 6)]
    return set(reports.system.subject[reports.cell[bad]].tolist())


def _beats(reports: Reports, rows: Rows) -> Rows:
    system = reports.system
    return np.asarray(rows[system.is_heartbeat[reports.cell[rows]] & (reports.status[rows] == HEALTHY)])


def heartbeat(reports: Reports, rows: Rows, now: float) -> set[int]:
    """No watcher has had a heartbeat for three seconds."""
    system = reports.system
    newest = np.full(len(system.processes), -np.inf)
    beats = _beats(reports, rows)
    np.maximum.at(newest, system.subject[reports.cell[beats]], reports.time[beats])
    watched = set(system.subject[system.is_heartbeat].tolist())
    return {one for one in watched if newest[one] < now - 3}


def phi_accrual(reports: Reports, rows: Rows, now: float) -> set[int]:
    """Most watchers have waited for longer than their intervals allow: phi above 8 (Hayashibara et al., 2004)."""
    system, beats = reports.system, _beats(reports, rows)
    order = beats[np.lexsort((reports.time[beats], reports.cell[beats]))]
    votes: dict[int, list[bool]] = {}
    for mine in np.split(order, np.flatnonzero(np.diff(reports.cell[order])) + 1):
        if len(mine) >= 4:
            times = reports.time[mine]
            intervals = np.diff(times)
            score = (now - times[-1] - intervals.mean()) / max(0.05, float(intervals.std()))
            phi = -float(log_ndtr(-score)) / np.log(10)
            votes.setdefault(int(system.subject[reports.cell[mine[0]]]), []).append(phi > 8)
    return {subject for subject, cast in votes.items() if 2 * sum(cast) > len(cast)}


RIVALS: dict[str, Callable[[Reports, Rows, float], set[int]]] = {
    "last value": last_value,
    "any negative": any_negative,
    "heartbeat": heartbeat,
    "phi accrual": phi_accrual,
}
