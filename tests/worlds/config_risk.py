"""Changes to production and their outcomes, for `config_risk`.

As published: a configuration fails by the value of one key, by two keys that do not go together, or by what the
repository is (VeriCI, OOPSLA 2018); large changes and changes of code that changed lately fail more (Kamei et al.,
"A large-scale empirical study of just-in-time quality assurance", TSE 2013); most outages at a hyperscaler follow a
change, of software or configuration (Govindan et al., "Evolve or die", SIGCOMM 2016). Probabilities are additive in
log-odds but for the planted combinations.

Changes arrive in bursts on weekdays (a Gamma-mixed Poisson process), services and authors are Zipf, sizes log-normal,
keys come from services' own trees of names. Reality: outcomes are told hours to days later, a share never; a bad change
is followed by its revert; changes are announced twice when rescheduled; fields are missing for whole teams; a
reorganisation renames a team; an author and a service are confounded with what is bad and are not why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from tests.worlds import World

START = datetime(2026, 2, 2, tzinfo=UTC)
"""A Monday."""


@dataclass(frozen=True)
class Plan:
    """A case. `base` are log-odds of an ordinary change; `value`, `pair` and `size` are added by a value of a key, by
    two keys together, and by each factor of e in lines; `from_day` is when the value begins to be bad, `until` when it
    ends; `untold` is the share of bad outcomes that nobody reports; `fields` the share of teams that state figures."""

    says: str
    days: int = 200
    rate: float = 8.0
    base: float = -4.0
    value: float = 0.0
    pair: float = 0.0
    size: float = 0.0
    from_day: int = 0
    until: int = 9_999
    untold: float = 0.1
    fields: float = 0.8
    services: int = 30


PLANS = {
    "value": Plan("a value of one key is bad", value=3.5),
    "pair": Plan("two keys changed together are bad", pair=3.8),
    "size": Plan("larger changes are worse, without a rule", size=0.9, base=-4.5),
    "mixed": Plan("a value, a pair and the size", value=3.2, pair=3.2, size=0.6),
    "begins_late": Plan("a value is bad in the second half only", value=3.8, from_day=100),
    "mended": Plan("a value was bad in the first half only", value=3.8, until=100),
    "untold": Plan("half of the bad outcomes are never told", value=3.8, pair=3.2, untold=0.5),
    "sparse": Plan("two changes a day", value=3.8, rate=2.0, base=-3.6),
    "no_rule": Plan("every change is as risky as any other", base=-3.2),
    "healthy": Plan("one change in two hundred is bad, for no reason", base=-5.3),
}
CASES = {name: plan.says for name, plan in PLANS.items()}

TREES = {
    "envoy": ("timeout_ms", "retries", "circuit_breaker", "outlier_ejection"),
    "jvm": ("heap_mb", "gc", "threads"),
    "db": ("pool", "isolation", "failover", "replicas"),
    "edge": ("ttl_s", "origin", "waf_mode"),
    "flags": ("checkout_v2", "ranker_b", "dark_mode", "lazy_load"),
}
VALUES = ("a", "b", "c", "d")
BAD_VALUE = ("jvm.gc", "c")
BAD_PAIR = ("envoy.retries", "db.pool")


def make(seed: int, case: str) -> World:
    plan, rng = PLANS[case], np.random.default_rng([seed, 7_001, *case.encode()])
    changes, outcomes = _drawn(plan, rng)
    return World(
        case,
        seed,
        {"change": changes, "change_outcome": outcomes},
        timedelta(days=plan.days + 30),
        START,
        notes=(f"{len(outcomes)} outcomes told of {len(changes)} rows of changes",),
    )


def _drawn(plan: Plan, rng: np.random.Generator) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    teams = [f"t{i}" for i in range(7)]
    owner = {s: teams[int(rng.integers(len(teams)))] for s in range(plan.services)}
    silent = {team for team in teams if rng.random() > plan.fields}
    weights = 1 / np.arange(1, plan.services + 1) ** 0.9
    trees = {s: [str(t) for t in rng.choice(list(TREES), 3, replace=False)] for s in range(plan.services)}
    changes: list[dict[str, Any]] = []
    outcomes: list[dict[str, Any]] = []
    for number, at in enumerate(_times(plan, rng)):
        service = int(rng.choice(plan.services, p=weights / weights.sum()))
        day = (at - START).days
        team = owner[service] if day < 130 or owner[service] != "t3" else "platform"
        keys = _keys(rng, trees[service])
        settings = {key: str(rng.choice(VALUES)) for key in keys}
        lines = float(np.ceil(rng.lognormal(2.5, 1.3)))
        odds = plan.base + plan.size * (np.log(lines) - 2.5)
        odds += plan.value * (
            settings.get(BAD_VALUE[0]) == BAD_VALUE[1] and plan.from_day <= day < plan.until
        )
        odds += plan.pair * all(key in settings for key in BAD_PAIR)
        row: dict[str, Any] = {
            "time": _stamp(at),
            "change": f"c{number}",
            "kind": "config" if settings else "deploy",
            "targets": [f"service/s{service}"],
            "author": "dev-0"
            if BAD_VALUE[0] in settings and rng.random() < 0.6
            else f"dev-{rng.zipf(1.7) % 25}",
            "team": team,
            "settings": settings,
        }
        if owner[service] not in silent:
            row["measures"] = {"lines": lines, "reviewers": float(rng.integers(0, 3))}
        if rng.random() < 0.05:  # announced for another day, then rescheduled
            changes.append({**row, "time": _stamp(at - timedelta(hours=float(rng.uniform(5, 40))))})
        changes.append(row)
        if rng.random() < 1 / (1 + np.exp(-odds)) and rng.random() >= plan.untold:
            known = at + timedelta(hours=float(rng.lognormal(1.0, 1.0)))
            told = "rolled_back" if rng.random() < 0.5 else "incident"
            outcomes.append({"time": _stamp(known), "change": f"c{number}", "outcome": told})
            if told == "rolled_back":
                changes.append(
                    {**row, "time": _stamp(known), "change": f"r{number}", "settings": {}, "kind": "revert"}
                )
    changes.sort(key=lambda one: str(one["time"]))
    return changes, sorted(outcomes, key=lambda one: str(one["time"]))


def _times(plan: Plan, rng: np.random.Generator) -> Iterator[datetime]:
    for day in range(plan.days):
        begin = START + timedelta(days=day)
        many = rng.poisson(plan.rate * rng.gamma(4, 0.25) * (0.15 if begin.weekday() > 4 else 1.25))
        for hour in np.sort(rng.normal(14, 3, many).clip(0, 23.9)).tolist():
            yield begin + timedelta(hours=hour)


def _keys(rng: np.random.Generator, trees: list[str]) -> list[str]:
    if rng.random() < 0.3:
        return []
    names = [f"{tree}.{leaf}" for tree in trees for leaf in TREES[tree]]
    return [
        str(name) for name in rng.choice(names, min(len(names), 1 + int(rng.poisson(1.2))), replace=False)
    ]


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
