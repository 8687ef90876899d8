"""Simulated history of changes with planted rules: which sorts of change end in an incident or a rollback.

Teams make changes of several sorts over half a year, by office hours and on a few evenings. A change is bad with a
small usual probability, and with a much larger one where a rule holds: a wide rollout of network settings, or an
evening change without a reviewer. An author who makes most of the network changes is a confounder: other changes of
that author are as good as anybody's. The rates are our choice.
Seeds below `FIRST_REPORTING_SEED` are for choosing; published figures use seeds from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

FIRST_REPORTING_SEED = 2_000_000
EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
TEAMS = ("shop", "search", "network", "storage", "identity")
KINDS = ("config", "deploy", "firmware", "maintenance")
KEYS = {
    "config": ("cache.ttl", "cache.size", "log.level", "pool.max", "feature.flag"),
    "deploy": ("image.tag", "replicas"),
    "firmware": ("firmware.version",),
    "maintenance": (),
}
NETWORK_KEYS = ("network.hold_time", "network.export_policy", "network.acl")
DAYS = 180
HORIZON_HOURS = 48

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rates:
    """`usual` is the probability of a bad outcome, `wide` and `evening` what it is where a rule holds; `noise` is the
    share of bad outcomes that nobody tied to their change."""

    changes: int = 1500
    usual: float = 0.03
    wide: float = 0.4
    evening: float = 0.3
    noise: float = 0.1


@dataclass(frozen=True, slots=True)
class Made:
    """A change, its probability of a bad outcome and what became of it."""

    row: Row
    at: datetime
    probability: float
    is_bad: bool
    known_at: datetime
    rolled_back: bool


def draw(rates: Rates, rng: np.random.Generator, days: int = DAYS) -> list[Made]:
    """Changes in order of time."""
    hours = np.sort(rng.uniform(0, 24 * days, rates.changes))
    made = [
        _change(rates, rng, number, EPOCH + timedelta(days=h // 24))
        for number, h in enumerate(hours.tolist())
    ]
    return sorted(made, key=lambda one: one.at)


def _change(rates: Rates, rng: np.random.Generator, number: int, day: datetime) -> Made:
    team = str(rng.choice(TEAMS, p=(0.3, 0.25, 0.2, 0.15, 0.1)))
    kind = str(rng.choice(KINDS, p=(0.5, 0.35, 0.05, 0.1)))
    evening = rng.random() < 0.15
    hour = rng.uniform(19, 23) if evening else rng.uniform(7, 18)
    author = f"{team}-{rng.integers(4)}"
    keys = list(rng.choice(KEYS[kind], min(len(KEYS[kind]), int(rng.integers(1, 3))), replace=False))
    if kind == "config" and (team == "network" or rng.random() < 0.1):
        keys = list(rng.choice(NETWORK_KEYS, int(rng.integers(1, 3)), replace=False))
        author = "network-0" if rng.random() < 0.7 else author
    rollout = float(rng.choice([0.01, 0.1, 0.25, 1.0], p=(0.25, 0.3, 0.2, 0.25)))
    reviewers = int(rng.choice([0, 1, 2], p=(0.2, 0.5, 0.3)))
    network = any(key in NETWORK_KEYS for key in keys)
    p = max(
        rates.usual,
        rates.wide if network and rollout > 0.5 else 0.0,
        rates.evening if evening and not reviewers else 0.0,
    )
    at = day + timedelta(hours=float(hour))
    bad = bool(rng.random() < p)
    row = {
        "time": _stamp(at),
        "change": f"CHG-{1000 + number}",
        "kind": kind,
        "targets": sorted({f"service/{team}-{rng.integers(6)}" for _ in range(int(rng.integers(1, 4)))}),
        "author": author,
        "team": team,
        "settings": {str(key): str(rng.integers(5)) for key in keys},
        "measures": {
            "lines": float(np.round(rng.lognormal(3, 1.2))),
            "rollout": rollout,
            "reviewers": float(reviewers),
        },
    }
    visible = bad and rng.random() >= rates.noise
    known = at + timedelta(hours=float(rng.exponential(6)))
    return Made(row, at, p, visible, known, bool(rng.random() < 0.4))


def outcomes_of(made: list[Made], until: datetime) -> Iterator[Row]:
    """`change_outcome` rows of bad changes that were known by then."""
    for one in made:
        if one.is_bad and one.known_at < until:
            outcome = "rolled_back" if one.rolled_back else "incident"
            yield {"time": _stamp(one.known_at), "change": one.row["change"], "outcome": outcome}


PLANNED = "CHG-planned"


def planned(at: datetime, risky: bool) -> Row:
    """A change that goes out next: a wide rollout of network settings, or a careful one of the cache."""
    return {
        "time": _stamp(at),
        "change": PLANNED,
        "kind": "config",
        "targets": ["service/network-1"],
        "author": "network-1",
        "team": "network" if risky else "shop",
        "settings": {"network.acl": "4"} if risky else {"cache.ttl": "3"},
        "measures": {"lines": 12.0, "rollout": 1.0 if risky else 0.1, "reviewers": 1.0},
    }


def history(seed: int, risky: bool, rates: Rates | None = None) -> tuple[dict[str, list[Row]], list[Made]]:
    """Rows by kind of half a year of changes, the last of which is planned, and the changes behind them. There
    is none in the two days before the planned one."""
    made = draw(rates or Rates(), np.random.default_rng([seed, 43]))
    at = EPOCH + timedelta(days=DAYS, hours=HORIZON_HOURS + 34)
    rows = [*(one.row for one in made), planned(at, risky)]
    return {"change": rows, "change_outcome": list(outcomes_of(made, at))}, made


def scenario(name: str, seed: int, risky: bool) -> tuple[dict[str, list[Row]], Row]:
    """Rows by kind and the truth: the planned change is a fault where it is risky."""
    rows, _ = history(seed, risky)
    start, out = rows["change"][0]["time"], rows["change"][-1]["time"]
    end = _stamp(datetime.fromisoformat(out) + timedelta(hours=1))
    fault = {"component": f"change/{PLANNED}", "kind": "risky_change", "start": out, "end": end}
    return rows, {
        "scenario": name,
        "seed": seed,
        "start": start,
        "end": end,
        "faults": [fault] if risky else [],
    }


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
