"""Replay of recorded incidents under another configuration: calls, the right team, incidents missed. Pure.

Both configurations decide anew on what opened an incident, so that a difference is due to the configuration alone.
People are taken to answer as they did: an incident was answered so many seconds after it opened, whoever was called.

- A call is a person reached by an action of a step that was taken before the answer: by name, as a member of a team,
  or because the rota of a schedule has their turn. In a gap nobody is called. Rotations are taken to turn since before
  the past that is looked at.
- An alert comes to an incident when nothing suppresses it (`incidents.domain.suppression.past`). Calls and the right
  team wait for that; an alert that is over by then opens nothing. Each configuration groups the alerts anew, storms too
  (`incidents.domain.past_placement`); so it does those that were suppressed and that one of the two lets through.
- An incident that opens belongs to the recorded one of its first alert, whose delay of the answer it has.
- The right team is the one that resolved an incident with a confirmed cause. A route to it takes no time, a route to
  another one the recorded time to the right team, or, where it was found at once, the median of those that were not.

Intervals are 95 %, by 2,000 resamples of the incidents (seeded).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

import numpy as np

from incidents.domain.escalation.policy import Action, Policy
from incidents.domain.oncall import rotations
from incidents.domain.past_placement import PastAlert, Placed, PlacedIncident, Routings, placed
from incidents.domain.routing.rules import Routing, RoutingTable, Subject, route
from incidents.domain.suppression.past import BEGIN, EVER, Firing, PastSuppression, Suppressions
from incidents.domain.suppression.rules import Silence

RESAMPLES: Final = 2_000
SEED: Final = 21
EXAMPLES: Final = 3
LEFT_OUT: Final = ("suggested teams",)
"""Parts that are not replayed."""
Reach = Callable[[Action, float], Sequence[str]]
"""The people whom an action reaches so many seconds after the opening."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration that decides who is called. `of_teams` has the policy of each team, `members` its people who are
    called, `rotas` the schedules. `people` can sign in; None: everybody."""

    table: RoutingTable
    policies: Mapping[str, Policy]
    of_teams: Mapping[str, str]
    suppressions: Suppressions = field(default_factory=Suppressions)
    rotas: Mapping[str, rotations.Schedule] = field(default_factory=dict)
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)
    people: frozenset[str] | None = None


def with_silence(configuration: Configuration, silence: Silence) -> Configuration:
    """The configuration with one silence more, which holds all the time."""
    known, always = configuration.suppressions, replace(silence, starts_at=BEGIN, ends_at=EVER)
    return replace(configuration, suppressions=replace(known, silences=(*known.silences, always)))


@dataclass(frozen=True, slots=True)
class PastIncident:
    """`alerts` are its own, none for a finding or a report. `answered_after` is in seconds, None: never. `team` is the
    right one, None where it is not known; `seconds_to_team` how long it took. `number` is None of one that a suppressed
    alert would have opened. `closed_at` is None while it is open."""

    number: int | None
    title: str
    opened_at: datetime
    subject: Subject
    alerts: Sequence[PastAlert]
    answered_after: float | None
    team: str | None
    seconds_to_team: float | None
    closed_at: datetime | None = None
    since: datetime | None = None
    """Beginning of the past that is looked at, where it was opened before that: alerts of before call nobody."""

    @property
    def over_at(self) -> datetime | None:
        """EVER while it is open; None where it was no incident."""
        return None if self.number is None else self.closed_at or EVER

    def counts(self, alert: PastAlert) -> bool:
        """Whether an incident that it opens is one of the past that is looked at."""
        return self.since is None or alert.firing.start >= self.since


@dataclass(slots=True)
class RecordedPast:
    """Incidents, firings that came to none, and all firings of that time, which may inhibit others."""

    incidents: Sequence[PastIncident]
    unplaced: Sequence[PastAlert] = ()
    firings: Sequence[Firing] = ()
    _routings: Routings | None = None

    def routings(self, table: RoutingTable) -> Routings:
        """Kept for the next configuration with the same table."""
        if self._routings is None or self._routings.table is not table:
            self._routings = Routings(table)
        return self._routings


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
    with a confirmed cause that called somebody and would call nobody, of `real` that did. `people` has the calls of
    each person before and after; `never` and `anew` count openings that one configuration has more of."""

    incidents: int = 0
    never: int = 0
    anew: int = 0
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
    people: dict[str, tuple[int, int]] = field(default_factory=dict)
    examples: dict[str, list[PastIncident]] = field(default_factory=dict)

    def note(self, what: str, one: PastIncident) -> None:
        found = self.examples.setdefault(what, [])
        if len(found) < EXAMPLES:
            found.append(one)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Team and time of an incident, None: none of its alerts came to one; the openings that belong to it and their
    calls of each person. `paged`: an incident that has alerts of it called somebody."""

    team: str | None
    opened_at: datetime | None
    openings: int
    calls: Counter[str]
    paged: bool


def compare(
    past: RecordedPast, before: Configuration, after: Configuration, only: Collection[int] | None = None
) -> Compared:
    """The incidents under both configurations, and the alerts that were suppressed. `only`: numbers of the incidents
    that are counted."""
    old, new = _Side(before, past), _Side(after, past)
    units = [*past.incidents, *_let_through(past, old, new)]
    wrong = [one.seconds_to_team for one in units if one.seconds_to_team]
    usual = median(wrong) if wrong else 0.0
    result, calls, minutes = Compared(), [], []
    by_person: dict[str, list[int]] = {}
    for one, was, would in zip(units, old.outcomes(units), new.outcomes(units), strict=True):
        if only is not None and one.number not in only:
            continue
        recorded = one.number is not None and one.since is None
        if not recorded and not was.openings and not would.openings:
            continue
        result.incidents += 1
        called_before, called_after = was.calls.total(), would.calls.total()
        calls.append(called_after - called_before)
        result.calls_before += called_before
        result.calls_after += called_after
        for place, side in enumerate((was, would)):
            for person, count in side.calls.items():
                by_person.setdefault(person, [0, 0])[place] += count
        _count_openings(result, one, was, would)
        _count_calls(result, one, called_before, called_after)
        if one.team is None or not recorded:
            continue
        _count_missed(result, one, was, would)
        if was.opened_at is not None and would.opened_at is not None:
            moved = _minutes(one, would, usual) - _minutes(one, was, usual)
            minutes.append(moved)
            result.earlier += moved < 0
            result.later += moved > 0
            if moved:
                result.note("later" if moved > 0 else "earlier", one)
    result.known_team = len(minutes)
    result.net = total(calls)
    result.minutes = mean(minutes)
    result.people = {person: (was, would) for person, (was, would) in sorted(by_person.items())}
    return result


def _count_openings(result: Compared, one: PastIncident, was: Outcome, would: Outcome) -> None:
    result.never += max(0, was.openings - would.openings)
    result.anew += max(0, would.openings - was.openings)
    if was.openings != would.openings:
        result.note("never_opened" if was.openings > would.openings else "opened_anew", one)


def _count_calls(result: Compared, one: PastIncident, before: int, after: int) -> None:
    result.more += max(0, after - before)
    result.fewer += max(0, before - after)
    if after != before:
        result.note("more" if after > before else "fewer", one)


def _count_missed(result: Compared, one: PastIncident, was: Outcome, would: Outcome) -> None:
    if was.paged:
        result.real += 1
        if not would.paged:
            result.missed += 1
            result.note("missed", one)


def _minutes(one: PastIncident, side: Outcome, usual: float) -> float:
    """Minutes until the right team has it, from its first alert on, else from its opening."""
    assert side.opened_at is not None
    began = min((alert.firing.start for alert in one.alerts), default=side.opened_at)
    routed = 0.0 if side.team == one.team else one.seconds_to_team or usual
    return ((side.opened_at - began).total_seconds() + routed) / 60


# One configuration
# ----------------------------------------------------------------------------------------------------------
class _Side:
    """A configuration over the past."""

    def __init__(self, configuration: Configuration, past: RecordedPast) -> None:
        self._it = configuration
        self._suppression = PastSuppression(configuration.suppressions, past.firings)
        self._routings = past.routings(configuration.table)
        self._turns: dict[tuple[str, datetime], str | None] = {}

    def free_at(self, firing: Firing) -> datetime | None:
        return self._suppression.free_at(firing)

    def outcomes(self, units: Sequence[PastIncident]) -> list[Outcome]:
        """Outcome of each recorded incident."""
        alerts, closed = [one.alerts for one in units], [one.over_at for one in units]
        found = placed(alerts, closed, self.free_at, self._routings)
        calls = {
            incident: self.calls(incident.routing, incident.opened_at, one.answered_after)
            for one, of_it in zip(units, found, strict=True)
            for incident in of_it.opened
            if one.counts(incident.first)
        }
        return [
            self._outcome(of_it, calls) if one.alerts else self._of_no_alert(one)
            for one, of_it in zip(units, found, strict=True)
        ]

    def _outcome(self, placed: Placed, calls: Mapping[PlacedIncident, Counter[str]]) -> Outcome:
        own = [calls[incident] for incident in placed.opened if incident in calls]
        of_people = Counter[str]()
        for one in own:
            of_people.update(one)
        return Outcome(
            None if placed.home is None else placed.home.routing.team,
            placed.at,
            len(own),
            of_people,
            any(calls.get(incident) for incident in placed.homes),
        )

    def _of_no_alert(self, one: PastIncident) -> Outcome:
        routing = route(one.subject, self._it.table)
        calls = self.calls(routing, one.opened_at, one.answered_after)
        return Outcome(routing.team, one.opened_at, int(one.since is None), calls, bool(calls))

    def calls(self, routing: Routing, opened_at: datetime, answered_after: float | None) -> Counter[str]:
        """Calls of an incident with that routing."""
        slug = routing.policy or self._it.of_teams.get(routing.team)
        policy = None if slug is None else self._it.policies.get(slug)
        if policy is None:
            return Counter()

        def reached(action: Action, seconds: float) -> Sequence[str]:
            return self._reached(action, opened_at + timedelta(seconds=seconds))

        return calls_of(policy, answered_after, reached)

    def _reached(self, action: Action, at: datetime) -> Sequence[str]:
        """A channel calls nobody, and at its opening an incident has no owner."""
        if action.kind == "person":
            known = self._it.people is None or action.value in self._it.people
            return (action.value,) if known else ()
        if action.kind == "team":
            return self._it.members.get(action.value, ())
        if action.kind == "schedule" and action.value in self._it.rotas:
            person = self._on_call(action.value, at.replace(second=0, microsecond=0))
            return () if person is None else (person,)
        return ()

    def _on_call(self, schedule: str, at: datetime) -> str | None:
        if (schedule, at) not in self._turns:
            self._turns[schedule, at] = rotations.person_on_call(self._it.rotas[schedule], at)
        return self._turns[schedule, at]


def usual_answer(past: Iterable[PastIncident]) -> float | None:
    """Median seconds until the answer of those that were answered."""
    answered = [one.answered_after for one in past if one.answered_after is not None]
    return median(answered) if answered else None


def calls_of_findings(
    configuration: Configuration, answered_after: float | None
) -> Callable[[Subject, datetime], int]:
    """Calls of an incident that a finding opens at a moment."""
    side = _Side(configuration, RecordedPast(()))

    def calls(subject: Subject, at: datetime) -> int:
        return side.calls(route(subject, configuration.table), at, answered_after).total()

    return calls


def calls_of(policy: Policy, answered_after: float | None, reached: Reach) -> Counter[str]:
    """Calls of a policy by person until an answer, in seconds after its start; the first step is taken in any case."""
    elapsed, calls, limit = 0.0, Counter[str](), math.inf if answered_after is None else answered_after
    for turn in range(policy.rounds):
        elapsed += policy.repeat_after if turn else 0
        for place, step in enumerate(policy.steps):
            elapsed += step.after
            if elapsed >= limit and (turn or place or step.after):
                return calls
            calls.update({person for action in step.actions for person in reached(action, elapsed)})
    return calls


def _let_through(past: RecordedPast, old: _Side, new: _Side) -> Iterator[PastIncident]:
    """Suppressed alerts that would have come to an incident by one of the configurations and not by the other."""
    usual = usual_answer(past.incidents)
    for one in past.unplaced:
        firing = one.firing
        if (old.free_at(firing) is None) == (new.free_at(firing) is None):
            continue
        lasted = None if firing.end is None else (firing.end - firing.start).total_seconds()
        ends = [seconds for seconds in (usual, lasted) if seconds is not None]
        answer = min(ends, default=None)
        yield PastIncident(None, one.reported.title, firing.start, one.subject, [one], answer, None, None)


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
        "never_opened": one.never,
        "opened_anew": one.anew,
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
        "people": [
            {"person": person, "before": was, "after": would} for person, (was, would) in one.people.items()
        ],
        "examples": {
            what: [{"number": past.number, "title": past.title} for past in found]
            for what, found in sorted(one.examples.items())
        },
        "left_out": list(LEFT_OUT),
    }
