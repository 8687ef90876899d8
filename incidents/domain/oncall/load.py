"""On-call load of people: hours, nights, interruptions, and how evenly a team shares them. Pure.

- Night is 22:00 to 07:00, the weekend Saturday and Sunday, on the clock of the person. A night in which clocks change
  is an hour longer or shorter.
- Messages to a person within INTERRUPTION are one interruption: a storm wakes somebody once.
- The time to acknowledge runs from the first message to the person who acknowledges.
- The Gini coefficient of a figure (half the mean difference of all pairs, divided by the mean) is 0 where all have the
  same, and (n - 1) / n where one of n people has all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, Final, Generic, Protocol, TypeVar
from zoneinfo import ZoneInfo

from incidents.domain.oncall.rotations import TimesOfWeek
from incidents.domain.oncall.spans import Span, common, instant, merged, wall

NIGHT: Final = TimesOfWeek(frozenset(range(7)), timedelta(hours=22), timedelta(hours=7))
WEEKEND: Final = TimesOfWeek(frozenset({5, 6}), timedelta(0), timedelta(0))
INTERRUPTION: Final = timedelta(minutes=5)
WEEK: Final = timedelta(days=7)
WEEKS: Final = 8
"""Weeks of the trend."""
_UTC: Final = ZoneInfo("UTC")
Key = tuple[str, str]
"""Team and person."""


@dataclass(frozen=True, slots=True)
class Duty:
    """A person on call for a team from `start` to `end` (UTC). `zone` is that of the rotation."""

    person: str
    team: str
    start: datetime
    end: datetime
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class Call:
    """A message that reached a person about an incident, which `team` had."""

    person: str
    team: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """`seconds` after the first message to that person; None where there was none."""

    person: str
    team: str
    at: datetime
    incident: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records that load is counted from. `members` are the people in the rotations of each team, also those without
    a turn; `zones` are the clocks that people have chosen, `cycles` the time until everybody in the longest rotation
    of a team has had a turn."""

    duties: Sequence[Duty]
    calls: Sequence[Call]
    acknowledgements: Sequence[Acknowledgement]
    members: Mapping[str, Collection[str]]
    zones: Mapping[str, ZoneInfo]
    cycles: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Week:
    start: datetime
    end: datetime
    hours: float
    interruptions: int


@dataclass(frozen=True, slots=True)
class PersonLoad:
    """Of one person in one team. `share` is the part of the team's hours, `ratio` that part over an equal one (1 is
    equal); None where the team has no hours, or the person is in none of its rotations. `acknowledge_seconds` is a
    median."""

    person: str
    team: str
    zone: str
    hours: float
    night_hours: float
    weekend_hours: float
    calls: int
    interruptions: int
    night_interruptions: int
    acknowledged: int
    acknowledge_seconds: float | None
    share: float | None
    ratio: float | None
    weeks: tuple[Week, ...]


@dataclass(frozen=True, slots=True)
class TeamLoad:
    """`people` take turns. The Gini coefficients are None for less than two of them, or where nothing is shared out.
    `most` has the largest share of the hours, of `people` people who would have 1 / `people` each."""

    team: str
    people: int
    hours: float
    night_hours: float
    interruptions: int
    night_interruptions: int
    gini_hours: float | None
    gini_nights: float | None
    gini_interruptions: float | None
    most: PersonLoad | None
    cycle: timedelta | None

    def is_partial(self, span: timedelta) -> bool:
        """Whether a period of that length is shorter than a cycle, so that shares cannot be equal."""
        return self.cycle is not None and span < self.cycle


@dataclass(frozen=True, slots=True)
class Load:
    start: datetime
    end: datetime
    people: tuple[PersonLoad, ...]
    teams: tuple[TeamLoad, ...]


def load_of(recorded: Recorded, start: datetime, end: datetime, team: str | None = None) -> Load:
    """The load of every person in every team (None: all teams) from `start` to `end`, by team and name."""
    duties, calls = _by_key(recorded.duties), _by_key(recorded.calls)
    answers = _by_key(recorded.acknowledgements)
    zones = _zones(recorded)
    known = {(slug, person) for slug, people in recorded.members.items() for person in people}
    keys = sorted(key for key in {*duties, *calls, *answers, *known} if team is None or key[0] == team)
    people = [
        _person(
            key,
            zones.get(key[1], _UTC),
            merged((one.start, one.end) for one in duties.get(key, ())),
            [one.at for one in calls.get(key, ())],
            answers.get(key, ()),
            (start, end),
        )
        for key in keys
    ]
    people = [one for one in people if _counts(one) or (one.team, one.person) in known]
    shared: list[PersonLoad] = []
    teams: list[TeamLoad] = []
    for slug in sorted({one.team for one in people}):
        of_team = _shared([one for one in people if one.team == slug], known)
        shared += of_team
        teams.append(_team(slug, of_team, known, recorded.cycles.get(slug)))
    return Load(start, end, tuple(shared), tuple(teams))


class _OfPerson(Protocol):
    @property
    def person(self) -> str: ...

    @property
    def team(self) -> str: ...


T = TypeVar("T", bound=_OfPerson)


def _by_key(found: Iterable[T]) -> dict[Key, list[T]]:
    groups: dict[Key, list[T]] = {}
    for one in found:
        groups.setdefault((one.team, one.person), []).append(one)
    return groups


def _zones(recorded: Recorded) -> dict[str, ZoneInfo]:
    """The zone that somebody has chosen, else the one of most of their time on call."""
    time: dict[str, dict[ZoneInfo, timedelta]] = {}
    for one in recorded.duties:
        of_person = time.setdefault(one.person, {})
        of_person[one.zone] = of_person.get(one.zone, timedelta()) + (one.end - one.start)
    usual = {person: max(zones, key=lambda zone: (zones[zone], str(zone))) for person, zones in time.items()}
    return {**usual, **recorded.zones}


def _person(
    key: Key,
    zone: ZoneInfo,
    on_call: Sequence[Span],
    calls: Sequence[datetime],
    answers: Sequence[Acknowledgement],
    span: Span,
) -> PersonLoad:
    within = common(on_call, [span])
    nights = merged(NIGHT.spans(span, zone))
    moments = interruptions(calls)
    here = [at for at in moments if _inside(at, span)]
    answered = [one for one in answers if _inside(one.at, span)]
    seconds = [one.seconds for one in answered if one.seconds is not None]
    return PersonLoad(
        person=key[1],
        team=key[0],
        zone=zone.key,
        hours=_hours(within),
        night_hours=_hours(common(within, nights)),
        weekend_hours=_hours(common(within, merged(WEEKEND.spans(span, zone)))),
        calls=sum(_inside(at, span) for at in calls),
        interruptions=len(here),
        night_interruptions=sum(is_night(at, zone) for at in here),
        acknowledged=len({one.incident for one in answered}),
        acknowledge_seconds=median(seconds) if seconds else None,
        share=None,
        ratio=None,
        weeks=tuple(_week(on_call, moments, span[1] - (n + 1) * WEEK) for n in reversed(range(WEEKS))),
    )


def _week(on_call: Sequence[Span], moments: Sequence[datetime], start: datetime) -> Week:
    span = (start, start + WEEK)
    return Week(*span, _hours(common(on_call, [span])), sum(_inside(at, span) for at in moments))


def interruptions(calls: Iterable[datetime]) -> list[datetime]:
    """The first of the messages of each interruption; one begins INTERRUPTION after the one before began."""
    found: list[datetime] = []
    for at in sorted(calls):
        if not found or at - found[-1] >= INTERRUPTION:
            found.append(at)
    return found


def is_night(at: datetime, zone: ZoneInfo) -> bool:
    hour = at.astimezone(zone).hour
    return hour >= 22 or hour < 7


def morning_after(at: datetime, zone: ZoneInfo) -> datetime:
    """Morning after a night: 07:00 on that clock, on the same day or the next."""
    local = wall(at, zone)
    day = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return instant(day + timedelta(days=int(local.hour >= 22), hours=7), zone)


def _counts(one: PersonLoad) -> bool:
    return bool(one.hours or one.calls or one.acknowledged)


def _inside(at: datetime, span: Span) -> bool:
    return span[0] <= at < span[1]


def _hours(spans: Sequence[Span]) -> float:
    return sum(((end - start) for start, end in spans), timedelta()) / timedelta(hours=1)


# Fairness
# ----------------------------------------------------------------------------------------------------------
def gini(values: Sequence[float]) -> float | None:
    """Of figures that are not negative; None of less than two, or where all are 0."""
    total = sum(values)
    if len(values) < 2 or total <= 0:
        return None
    ranked = sum((2 * place - len(values) + 1) * value for place, value in enumerate(sorted(values)))
    return ranked / (len(values) * total)


def _shared(people: Sequence[PersonLoad], known: Collection[Key]) -> list[PersonLoad]:
    """People of one team with their shares."""
    turns = [one for one in people if _takes_turns(one, known)]
    total = sum(one.hours for one in turns)
    if not total:
        return list(people)
    return [
        replace(one, share=one.hours / total, ratio=one.hours / total * len(turns)) if one in turns else one
        for one in people
    ]


def _team(
    slug: str, people: Sequence[PersonLoad], known: Collection[Key], cycle: timedelta | None
) -> TeamLoad:
    turns = [one for one in people if _takes_turns(one, known)]
    shares = [one for one in turns if one.share is not None]
    return TeamLoad(
        team=slug,
        people=len(turns),
        hours=sum(one.hours for one in people),
        night_hours=sum(one.night_hours for one in people),
        interruptions=sum(one.interruptions for one in people),
        night_interruptions=sum(one.night_interruptions for one in people),
        gini_hours=gini([one.hours for one in turns]),
        gini_nights=gini([one.night_hours for one in turns]),
        gini_interruptions=gini([one.interruptions for one in turns]),
        most=max(shares, key=lambda one: (one.share or 0.0, one.person), default=None),
        cycle=cycle,
    )


def _takes_turns(one: PersonLoad, known: Collection[Key]) -> bool:
    return one.hours > 0 or (one.team, one.person) in known


# From the log
# ----------------------------------------------------------------------------------------------------------
MOVES: Final = ("incident.reassigned", "incident.reassignment_rejected", "incident.reassignment_undone")
READ: Final = ("incident.opened", "incident.notified", "incident.acknowledged", *MOVES)
"""Types of the events that load is counted from."""


class IncidentEvent(Protocol):
    @property
    def stream(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def body(self) -> Mapping[str, Any]: ...

    @property
    def actor(self) -> str: ...

    @property
    def occurred_at(self) -> datetime: ...


def team_after(team: str, event: IncidentEvent) -> str:
    """The team that has an incident after one of its events."""
    if event.type == "incident.opened":
        return str(event.body["routing"]["team"])
    return str(event.body["to"]) if event.type in MOVES else team


def calls_of(
    events: Iterable[IncidentEvent], teams: Mapping[str, str]
) -> tuple[list[Call], list[Acknowledgement]]:
    """Messages that reached people and what they acknowledged, of events in order. `teams` has the team of each
    incident (its stream) before the first of them. A message by several contact methods counts once; that an incident
    is over calls nobody."""
    of_incidents, called, seen = dict(teams), dict[tuple[str, str], datetime](), set[tuple[str, str]]()
    calls: list[Call] = []
    acknowledgements: list[Acknowledgement] = []
    for event in events:
        stream, at = event.stream, event.occurred_at
        team = of_incidents[stream] = team_after(of_incidents.get(stream, ""), event)
        if event.type == "incident.notified" and _is_call(event.body):
            person, notification = str(event.body["person"]), str(event.body["notification"])
            if (stream, notification) not in seen:
                seen.add((stream, notification))
                calls.append(Call(person, team, at))
                called.setdefault((stream, person), at)
        elif event.type == "incident.acknowledged":
            kind, _, person = event.actor.partition(":")
            if kind == "user":
                first = called.get((stream, person))
                seconds = None if first is None else (at - first).total_seconds()
                acknowledgements.append(Acknowledgement(person, team, at, stream, seconds))
            called = {key: first for key, first in called.items() if key[0] != stream}
    return calls, acknowledgements


def _is_call(body: Mapping[str, Any]) -> bool:
    return (
        body["person"] is not None
        and body["outcome"] == "sent"
        and not str(body["notification"]).startswith("over:")
    )


# Past configuration
# ----------------------------------------------------------------------------------------------------------
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Changed(Generic[Value]):
    """Values before and after a change of the configuration; None: nothing."""

    at: datetime
    before: Value | None
    after: Value | None


def versions(
    changes: Sequence[Changed[Value]], now: Value | None, span: Span
) -> list[tuple[Span, Value | None]]:
    """Values in each part of `span`, by changes in order. `now` holds where there is no change."""
    if not changes:
        return [(span, now)]
    edges = [span[0], *(min(max(one.at, span[0]), span[1]) for one in changes), span[1]]
    values = [changes[0].before, *(one.after for one in changes)]
    parts = zip(pairwise(edges), values, strict=True)
    return [((start, end), value) for (start, end), value in parts if start < end]
