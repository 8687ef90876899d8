"""Simulated fleet of GPU nodes whose failures are rare and mostly announced, for `failure_forecast`.

A row a day of three metrics for each node, Xid errors and attempts of jobs. A failure has one of four kinds: memory
(corrected errors rise for days, Xid 63), heat (temperature climbs), link (retransmissions, failing jobs), and sudden,
which nothing announces. All nodes share the load of the day; each has its own level. The rates are our choice.
Seeds below `FIRST_REPORTING_SEED` are for choosing; published figures use seeds from there on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
METRICS = ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_GPU_TEMP", "nic_retransmits")
KINDS = ("gpu_memory", "heat", "link", "sudden")
SHARES = (0.35, 0.25, 0.25, 0.15)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rates:
    """`rate` are failures of a node a day, `benign` symptoms of a node a day that no failure follows."""

    nodes: int = 200
    days: int = 70
    rate: float = 0.004
    benign: float = 0.003
    announced: bool = True


@dataclass(slots=True)
class Fleet:
    """`levels` by metric has shape (nodes, days)."""

    levels: dict[str, Any]
    errors: list[tuple[int, float, str]] = field(default_factory=list)
    attempts: list[tuple[int, float, bool]] = field(default_factory=list)
    incidents: list[tuple[int, float, str]] = field(default_factory=list)


def fleet(rates: Rates, rng: np.random.Generator, at_risk: int | None = None) -> Fleet:
    """The fleet; node `at_risk` shows memory errors at the end and has not failed yet."""
    shape = rates.nodes, rates.days
    load = 1 + 0.2 * np.sin(np.arange(rates.days) * 2 * np.pi / 7)
    made = Fleet(
        {
            METRICS[0]: rng.gamma(0.6, 1.5, shape),
            METRICS[1]: 55 + 8 * load + rng.normal(0, 2, (rates.nodes, 1)) + rng.normal(0, 1, shape),
            METRICS[2]: rng.gamma(2.0, 5.0, shape) * load,
        }
    )
    for node in range(rates.nodes):
        for day in np.flatnonzero(rng.random(rates.days) < 0.8).tolist():
            made.attempts.append((node, day + float(rng.uniform(0.2, 0.9)), bool(rng.random() < 0.03)))
        for day in np.flatnonzero(rng.random(rates.days) < rates.rate).tolist():
            kind = str(rng.choice(KINDS, p=SHARES))
            made.incidents.append((node, day + float(rng.uniform(0, 1)), kind))
            if rates.announced:
                _announce(made, rng, node, day, kind)
        for day in np.flatnonzero(rng.random(rates.days) < rates.benign).tolist():
            _announce(made, rng, node, day, str(rng.choice(KINDS[:3])), weak=True)
    if at_risk is not None:
        made.incidents = [one for one in made.incidents if one[0] != at_risk or one[1] < rates.days - 10]
        _announce(made, rng, at_risk, rates.days, KINDS[0])
    return made


def _announce(
    made: Fleet, rng: np.random.Generator, node: int, day: int, kind: str, weak: bool = False
) -> None:
    """The symptoms of the days before a failure on that day."""
    strength = 0.35 if weak else float(rng.uniform(0.8, 1.6))
    days = [one for one in range(day - int(rng.integers(2, 5)), day) if one >= 0]
    for rank, one in enumerate(days, start=1):
        if kind == KINDS[0]:
            made.levels[METRICS[0]][node, one] += strength * 6 * rank
            if rng.random() < 0.5 * strength:
                made.errors.append((node, one + float(rng.uniform(0, 1)), "xid_63"))
        elif kind == KINDS[1]:
            made.levels[METRICS[1]][node, one] += strength * 5 * rank
        elif kind == KINDS[2]:
            made.levels[METRICS[2]][node, one] += strength * 25 * rank
            made.attempts += [(node, one + 0.1 * n, bool(rng.random() < 0.6)) for n in range(1, 4)]


def rows_of(made: Fleet) -> dict[str, list[Row]]:
    """Rows by kind, in order of node and day."""
    return {
        "metric": [
            {
                "time": _stamp(day + 0.5),
                "name": name,
                "labels": {"node": f"gpu-{node}"},
                "value": round(float(value), 3),
            }
            for name, levels in made.levels.items()
            for (node, day), value in np.ndenumerate(levels)
        ],
        "unit_failure": [
            {"time": _stamp(at), "unit": f"node/gpu-{node}", "symptom": symptom}
            for node, at, symptom in made.errors
        ],
        "job_attempt": [
            {
                "start": _stamp(at - 0.05),
                "end": _stamp(at),
                "job": f"j{number}",
                "nodes": [f"node/gpu-{node}"],
                "outcome": "failed" if failed else "completed",
            }
            for number, (node, at, failed) in enumerate(made.attempts)
        ],
        "node_incident": [
            {"time": _stamp(at), "node": f"node/gpu-{node}", "kind": kind}
            for node, at, kind in made.incidents
        ],
    }


AT_RISK = 7


def scenario(name: str, seed: int, announced: bool) -> tuple[dict[str, list[Row]], Row]:
    """Rows by kind and the truth: one node is about to fail, or no failure is announced."""
    rates = Rates(announced=announced)
    rng = np.random.default_rng([seed, 47])
    made = fleet(rates, rng, AT_RISK if announced else None)
    start, last, end = _stamp(0), _stamp(rates.days - 1), _stamp(rates.days)
    fault = {"component": f"node/gpu-{AT_RISK}", "kind": KINDS[0], "start": last, "end": end}
    truth = {
        "scenario": name,
        "seed": seed,
        "start": start,
        "end": end,
        "faults": [fault] if announced else [],
    }
    return rows_of(made), truth


def _stamp(day: float) -> str:
    return (EPOCH + timedelta(days=day)).isoformat(timespec="seconds").replace("+00:00", "Z")
