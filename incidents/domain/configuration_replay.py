"""Replay of recorded incidents under another configuration: calls, the right team, incidents missed. Pure.

Both configurations decide anew on what opened an incident, so that a difference is due to the configuration alone.
People are taken to answer as they did: an incident was answered so many seconds after it opened, whoever was called.

- A call is an action of a step that notifies a person, a schedule or a team, taken before the answer.
- A silence that only one of the configurations has is taken to hold all the time. It holds an incident all of whose
  opening alerts it fits.
- The right team is the one that resolved an incident with a confirmed cause. A route to it takes no time, a route to
  another one the recorded time to the right team, or, where it was found at once, the median of those that were not.

Intervals are 95 %, by 2,000 resamples of the incidents (seeded).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final

import numpy as np

from incidents.domain.escalation.policy import Policy
from incidents.domain.routing.rules import RoutingTable, Subject, route
from incidents.domain.suppression.rules import Silence

RESAMPLES: Final = 2_000
SEED: Final = 21
EXAMPLES: Final = 3
CALLING: Final = frozenset({"person", "schedule", "team"})
"""Actions that count as a call. A channel calls nobody, and at its opening an incident has no owner."""
LEFT_OUT: Final = (
    "inhibitions",
    "maintenance",
    "silences that were removed",
    "suggested teams",
    "overrides of rotas",
)
"""Parts that are not replayed."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration that decides who is called. `of_teams` has the policy of each team; `silences` those that the
    other has not."""

    table: RoutingTable
    policies: Mapping[str, Policy]
    of_teams: Mapping[str, str]
    silences: tuple[Silence, ...] = ()


@dataclass(frozen=True, slots=True)
class PastIncident:
    """`labels` are of the alerts that opened it, none for a finding or a report. `answered_after` is in seconds, None:
    never. `team` is the right one, None where it is not known; `seconds_to_team` how long it took."""

    number: int
    title: str
    opened_at: datetime
    subject: Subject
    labels: tuple[Mapping[str, str], ...]
    answered_after: float | None
    team: str | None
    seconds_to_team: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        return {"value": round(self.value, 3), "low": round(self.low, 3), "high": round(self.high, 3)}


@dataclass(slots=True)
class Compared:
    """`more` and `fewer` are calls of incidents that have more, and of those that have fewer. `missed` are incidents
    with a confirmed cause that called somebody and would call nobody, of `real` that did."""

    incidents: int = 0
    calls_before: int = 0
    calls_after: int = 0
    more: int = 0
    fewer: int = 0
    net: Estimate = field(default_factory=lambda: Estimate(0, 0, 0))
    known_team: int = 0
    earlier: int = 0
    later: int = 0
    minutes: Estimate = field(default_factory=lambda: Estimate(0, 0, 0))
    missed: int = 0
    real: int = 0
    examples: dict[str, list[PastIncident]] = field(default_factory=dict)

    def note(self, what: str, one: PastIncident) -> None:
        found = self.examples.setdefault(what, [])
        if len(found) < EXAMPLES:
            found.append(one)


def compare(incidents: Iterable[PastIncident], before: Configuration, after: Configuration) -> Compared:
    """The incidents under both configurations."""
    past = list(incidents)
    wrong = [one.seconds_to_team for one in past if one.seconds_to_team]
    usual = median(wrong) if wrong else 0.0
    result, calls, minutes = Compared(incidents=len(past)), [], []
    for one in past:
        team_before, called_before = outcome(one, before)
        team_after, called_after = outcome(one, after)
        calls.append(called_after - called_before)
        result.calls_before += called_before
        result.calls_after += called_after
        _count_calls(result, one, called_before, called_after)
        if one.team is not None:
            moved = _minutes(one, team_after, usual) - _minutes(one, team_before, usual)
            minutes.append(moved)
            result.earlier += moved < 0
            result.later += moved > 0
            if moved:
                result.note("later" if moved > 0 else "earlier", one)
    result.known_team = len(minutes)
    result.net = total(calls)
    result.minutes = mean(minutes)
    return result


def _count_calls(result: Compared, one: PastIncident, before: int, after: int) -> None:
    result.more += max(0, after - before)
    result.fewer += max(0, before - after)
    if after != before:
        result.note("more" if after > before else "fewer", one)
    if one.team is not None and before:
        result.real += 1
        if not after:
            result.missed += 1
            result.note("missed", one)


def outcome(one: PastIncident, configuration: Configuration) -> tuple[str, int]:
    """The team that an incident opens at, and how often people are called for it."""
    routing = route(one.subject, configuration.table)
    if one.labels and all(
        any(silence.fits(labels) for silence in configuration.silences) for labels in one.labels
    ):
        return routing.team, 0
    slug = routing.policy or configuration.of_teams.get(routing.team)
    policy = None if slug is None else configuration.policies.get(slug)
    return routing.team, 0 if policy is None else calls_of(policy, one.answered_after)


def calls_of(policy: Policy, answered_after: float | None) -> int:
    """Calls of a policy until an answer, in seconds after its start; the first step is taken in any case."""
    elapsed, calls, limit = 0.0, 0, math.inf if answered_after is None else answered_after
    for turn in range(policy.rounds):
        elapsed += policy.repeat_after if turn else 0
        for place, step in enumerate(policy.steps):
            elapsed += step.after
            if elapsed >= limit and (turn or place or step.after):
                return calls
            calls += sum(action.kind in CALLING for action in step.actions)
    return calls


def _minutes(one: PastIncident, team: str, usual: float) -> float:
    """Minutes until the right team has it."""
    return 0.0 if team == one.team else (one.seconds_to_team or usual) / 60


# Intervals
# ----------------------------------------------------------------------------------------------------------
def total(values: Sequence[float]) -> Estimate:
    """The sum, and how far it varies with the incidents that come."""
    found = mean(values)
    n = len(values)
    return Estimate(found.value * n, found.low * n, found.high * n)


def mean(values: Sequence[float]) -> Estimate:
    """The mean with its percentile bootstrap interval; of nothing it is 0."""
    if not values:
        return Estimate(0, 0, 0)
    counted = sorted(Counter(values).items())
    sizes = np.array([count for _, count in counted], float)
    heights = np.array([value for value, _ in counted], float)
    drawn = np.random.default_rng(SEED).multinomial(len(values), sizes / sizes.sum(), RESAMPLES)
    low, high = np.quantile(drawn @ heights / len(values), (0.025, 0.975))
    return Estimate(float(sizes @ heights) / len(values), float(low), float(high))


def estimate_json(one: Compared, missed_interval: tuple[float, float]) -> dict[str, Any]:
    """The figures as JSON; `missed_interval` is that of the share of missed incidents."""
    low, high = missed_interval
    return {
        "incidents": one.incidents,
        "calls": {
            "before": one.calls_before,
            "after": one.calls_after,
            "more": one.more,
            "fewer": one.fewer,
            "net": one.net.as_json(),
        },
        "right_team": {
            "incidents": one.known_team,
            "earlier": one.earlier,
            "later": one.later,
            "minutes": one.minutes.as_json(),
        },
        "missed": {
            "incidents": one.missed,
            "of": one.real,
            "share": round(one.missed / one.real, 4) if one.real else None,
            "low": round(low, 4),
            "high": round(high, 4),
        },
        "examples": {
            what: [{"number": past.number, "title": past.title} for past in found]
            for what, found in sorted(one.examples.items())
        },
        "left_out": list(LEFT_OUT),
    }
