"""On-call load of a period, out of the log: rotas as they were configured then, messages, acknowledgements.

Layers, teams and time zones of schedules and the accounts of people are those of the time, by the recorded changes;
overrides are rows that nothing changes once they have begun. Absences and holidays are those of the calendars now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, IncidentAPI, parameters
from incidents.api.inputs import time_of
from incidents.audit.models import Change
from incidents.domain.oncall import rotations
from incidents.domain.oncall.layers import read_layers
from incidents.domain.oncall.load import (
    READ,
    WEEK,
    WEEKS,
    Acknowledgement,
    Call,
    Changed,
    Duty,
    Load,
    PersonLoad,
    Recorded,
    TeamLoad,
    calls_of,
    load_of,
    team_after,
    versions,
)
from incidents.domain.oncall.spans import Span
from incidents.domain.values import UNREADABLE, InvalidValueError, rfc3339
from incidents.notifications.models import Preferences
from incidents.oncall import queries
from incidents.oncall.models import OnCallSchedule
from incidents.people.commands import USER
from incidents.teams.models import Team
from ingest.queries import Event, Position, now_utc, position_at, read_all, read_streams

Json = dict[str, Any]
LATE: Final = timedelta(hours=1)
"""An event is recorded at most so long after it happened."""
PART: Final = 5_000
MOST_EVENTS: Final = 200_000
SCHEDULE: Final = "schedule"
DAYS: Final = 28
MOST_DAYS: Final = 92


@dataclass(frozen=True, slots=True)
class OnCallLoad:
    """`complete` is false where MOST_EVENTS ended the reading: messages after `read_until` are not counted."""

    load: Load
    read_until: datetime

    @property
    def complete(self) -> bool:
        return self.read_until >= self.load.end


def on_call_load(
    start: datetime, end: datetime, team: str | None = None, upto: Position | None = None
) -> OnCallLoad:
    """Of every person in every team, or in one, from `start` to `end`, from what the log held at `upto`."""
    since = min(start, end - WEEKS * WEEK)
    rotas = _Rotas((since, end), start)
    calls, acknowledgements, read_until = _calls(since, end, upto)
    people = {one.person for one in rotas.duties} | {one.person for one in calls}
    recorded = Recorded(
        rotas.duties, calls, acknowledgements, rotas.members, _chosen_zones(people), rotas.cycles
    )
    return OnCallLoad(load_of(recorded, start, end, team), read_until)


def people_zones(people: Iterable[str]) -> dict[str, ZoneInfo]:
    """Clocks of people: of their quiet hours, else of a schedule that has them; others are left out."""
    names = set(people)
    found: dict[str, ZoneInfo] = {}
    for row in OnCallSchedule.objects.order_by("-slug"):
        with suppress(*UNREADABLE):
            layers = read_layers(row.layers, ZoneInfo(row.time_zone))
            found |= {person: layer.zone for layer in layers for person in layer.people if person in names}
    return {**found, **_chosen_zones(names)}


def _chosen_zones(people: Collection[str]) -> dict[str, ZoneInfo]:
    """The clocks that people have given with their quiet hours."""
    users = get_user_model()
    name = f"user__{users.USERNAME_FIELD}"
    found = (
        Preferences.objects.filter(**{f"{name}__in": people}).exclude(quiet=None).values_list(name, "quiet")
    )
    zones = {}
    for person, quiet in found:
        try:
            zones[person] = ZoneInfo(quiet["zone"])
        except UNREADABLE:  # a zone that is no more: that of the rotation counts
            continue
    return zones


# Rotas
# ----------------------------------------------------------------------------------------------------------
class _Rotas:
    """Turns in a span, the people in rotations since `counted`, and the longest rotation of each team."""

    def __init__(self, span: Span, counted: datetime) -> None:
        self.duties: list[Duty] = []
        self.members: dict[str, set[str]] = defaultdict(set)
        self.cycles: dict[str, timedelta] = {}
        self._accounts = _Accounts()
        rows = {
            row.slug: row
            for row in OnCallSchedule.objects.select_related("team").prefetch_related("holidays")
        }
        changes = _changes(SCHEDULE)
        for slug in sorted({*rows, *changes}):
            row = rows.get(slug)
            now = None if row is None else _as_written(row)
            for part, written in versions(changes.get(slug, ()), now, span):
                if written is not None:
                    self._read(row, written, part, counted)

    def _read(
        self, row: OnCallSchedule | None, written: Mapping[str, Any], span: Span, counted: datetime
    ) -> None:
        team, zone = written["team"] or "", written["time_zone"]
        try:
            known = queries.past_rota(row, written["layers"], zone, *span)
        except UNREADABLE:  # it called nobody either
            return
        zones = {layer.name: layer.zone for layer in known.layers}
        people = rotations.people_of(known) | {one.person for one in known.overrides}
        for (start, end), gone in self._accounts.gone(people, span):
            found = rotations.shifts(replace(known, gone=gone), start, end)
            self.duties += [
                Duty(one.person, team, one.start, one.end, zones.get(one.layer) or ZoneInfo(zone))
                for one in found
            ]
            if end > counted:
                self.members[team] |= rotations.people_of(known) - gone
        if span[1] > counted:
            longest = max((len(layer.people) * layer.turn for layer in known.layers), default=timedelta())
            self.cycles[team] = max(longest, self.cycles.get(team, timedelta()))


class _Accounts:
    """Times in which accounts could not sign in, so that they were not on call."""

    def __init__(self) -> None:
        self._changes = _changes(USER)
        self._active: dict[str, bool] = {}

    def gone(self, people: Iterable[str], span: Span) -> Iterator[tuple[Span, frozenset[str]]]:
        """People who could not, in each part of `span`."""
        names = sorted(people)
        if new := set(names) - self._active.keys():
            active = queries.active(new)
            self._active |= {name: name in active for name in new}
        parts = {
            name: [
                (part, value is not None and bool(value.get("is_active", True)))
                for part, value in versions(
                    self._changes.get(name, ()), {"is_active": self._active[name]}, span
                )
            ]
            for name in names
        }
        edges = sorted({*span, *(part[0] for found in parts.values() for part, _ in found)})
        for start, end in pairwise(edges):
            gone = {
                name
                for name, found in parts.items()
                if not any(part[0] <= start < part[1] and active for part, active in found)
            }
            yield (start, end), frozenset(gone)


def _as_written(row: OnCallSchedule) -> Json:
    """Fields of a schedule that its recorded changes have, too."""
    return {"team": row.team.slug if row.team else None, "time_zone": row.time_zone, "layers": row.layers}


def _changes(kind: str) -> dict[str, list[Changed[Json]]]:
    """The recorded changes of each object of a kind, in order."""
    found: dict[str, list[Changed[Json]]] = defaultdict(list)
    for row in Change.objects.filter(kind=kind).order_by("position"):
        found[row.key].append(Changed(row.at, row.before, row.after))
    return found


# Calls
# ----------------------------------------------------------------------------------------------------------
def _calls(
    since: datetime, end: datetime, upto: Position | None
) -> tuple[list[Call], list[Acknowledgement], datetime]:
    """Messages to people and acknowledgements, and until when the log was read."""
    begin, last = position_at(since), position_at(end + LATE)
    last = last if upto is None else min(last, upto)
    events: list[Event] = []
    read_until, after = end, begin
    while part := read_all(after, min(PART, MOST_EVENTS - len(events)), READ, upto=last):
        events += part
        after = part[-1].position
        if len(events) >= MOST_EVENTS:
            read_until = min(end, part[-1].occurred_at)
            break
    calls, acknowledgements = calls_of(events, _teams_before(events, begin))
    return calls, acknowledgements, read_until


def _teams_before(events: Sequence[Event], position: Position) -> dict[str, str]:
    """The teams of incidents that were opened before the first of these events."""
    first: dict[str, str] = {}
    for event in events:
        first.setdefault(event.stream, event.type)
    old = sorted(stream for stream, kind in first.items() if kind != "incident.opened")
    teams = {}
    for place in range(0, len(old), 500):
        for stream, before in read_streams(old[place : place + 500], position).items():
            team = ""
            for event in before:
                team = team_after(team, event)
            teams[stream] = team
    return teams


# As JSON
# ----------------------------------------------------------------------------------------------------------
def load_json(found: OnCallLoad) -> Json:
    """The load as answers and reports have it. Hours to a tenth, seconds whole."""
    load = found.load
    return {
        "start": rfc3339(load.start),
        "end": rfc3339(load.end),
        "complete": found.complete,
        "teams": [_team_json(one, load.end - load.start) for one in load.teams],
        "people": [_person_json(one) for one in load.people],
    }


def _team_json(one: TeamLoad, span: timedelta) -> Json:
    most = one.most
    return {
        "team": one.team or None,
        "people": one.people,
        "hours": round(one.hours, 1),
        "night_hours": round(one.night_hours, 1),
        "interruptions": one.interruptions,
        "night_interruptions": one.night_interruptions,
        "gini": {
            "hours": _rounded(one.gini_hours),
            "night_hours": _rounded(one.gini_nights),
            "interruptions": _rounded(one.gini_interruptions),
        },
        "most": None
        if most is None
        else {"person": most.person, "share": _rounded(most.share), "ratio": _rounded(most.ratio)},
        "cycle_days": None if one.cycle is None else round(one.cycle / timedelta(days=1), 1),
        "shorter_than_cycle": one.is_partial(span),
    }


def _person_json(one: PersonLoad) -> Json:
    return {
        "person": one.person,
        "team": one.team or None,
        "time_zone": one.zone,
        "hours": round(one.hours, 1),
        "night_hours": round(one.night_hours, 1),
        "weekend_hours": round(one.weekend_hours, 1),
        "messages": one.calls,
        "interruptions": one.interruptions,
        "night_interruptions": one.night_interruptions,
        "acknowledged": one.acknowledged,
        "acknowledge_seconds": None if one.acknowledge_seconds is None else round(one.acknowledge_seconds),
        "share": _rounded(one.share),
        "ratio": _rounded(one.ratio),
        "weeks": [
            {"start": rfc3339(week.start), "hours": round(week.hours, 1), "interruptions": week.interruptions}
            for week in one.weeks
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


# Over HTTP
# ----------------------------------------------------------------------------------------------------------
class GiniShape(s.Serializer[Any]):
    """0 is an equal load of all who take turns, (n - 1) / n is all of it on one of n; null where nothing is shared."""

    hours = s.FloatField(allow_null=True)
    night_hours = s.FloatField(allow_null=True)
    interruptions = s.FloatField(allow_null=True)


class MostShape(s.Serializer[Any]):
    person = s.CharField()
    share = s.FloatField(help_text="share of the hours of the team")
    ratio = s.FloatField(help_text="ratio to an equal share; 1: equal")


class TeamLoadShape(s.Serializer[Any]):
    team = s.CharField(allow_null=True, help_text="slug of the team; null: schedules without a team")
    people = s.IntegerField(help_text="people in the rotation")
    hours = s.FloatField()
    night_hours = s.FloatField()
    interruptions = s.IntegerField()
    night_interruptions = s.IntegerField()
    gini = GiniShape()
    most = MostShape(allow_null=True)
    cycle_days = s.FloatField(
        allow_null=True, help_text="days until everyone in the longest rotation has had a turn"
    )
    shorter_than_cycle = s.BooleanField(
        help_text="true: the period is shorter than a rotation, so shares cannot be equal"
    )


class WeekShape(s.Serializer[Any]):
    start = s.DateTimeField()
    hours = s.FloatField()
    interruptions = s.IntegerField()


class PersonLoadShape(s.Serializer[Any]):
    person = s.CharField()
    team = s.CharField(allow_null=True)
    time_zone = s.CharField(help_text="time zone of the person's quiet hours, else of the rotation, else UTC")
    hours = s.FloatField()
    night_hours = s.FloatField(help_text="hours between 22:00 and 07:00 in this zone")
    weekend_hours = s.FloatField()
    messages = s.IntegerField(help_text="number of messages that reached the person, one per page")
    interruptions = s.IntegerField(help_text="number of interruptions; messages within 5 minutes count once")
    night_interruptions = s.IntegerField()
    acknowledged = s.IntegerField(help_text="number of incidents")
    acknowledge_seconds = s.IntegerField(
        allow_null=True, help_text="median seconds from the first message to this person"
    )
    share = s.FloatField(allow_null=True, help_text="share of the hours of the team")
    ratio = s.FloatField(allow_null=True, help_text="ratio to an equal share; 1: equal")
    weeks = WeekShape(many=True, help_text=f"the last {WEEKS} weeks up to the end, oldest first")


class OnCallLoadShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField()
    complete = s.BooleanField(help_text=f"false: only the first {MOST_EVENTS:,} events were read")
    teams = TeamLoadShape(many=True)
    people = PersonLoadShape(many=True, help_text="one entry per person and team")


class OnCallLoadView(IncidentAPI):
    @extend_schema(
        operation_id="on_call_load",
        parameters=[
            OpenApiParameter("team", str, description="default: all teams"),
            OpenApiParameter("end", str, description="end of the period, RFC 3339; default: now"),
            OpenApiParameter("days", int, description=f"1 to {MOST_DAYS}; default: {DAYS}"),
        ],
        responses={200: OnCallLoadShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Hours, nights and interruptions of each person on call, and how evenly each team shares them."""
        query = parameters(request, "team", "end", "days")
        end = time_of("end", query.get("end")) or now_utc()
        days = days_from(query, DAYS, MOST_DAYS)
        found = on_call_load(end - timedelta(days=days), end, checked_team(query.get("team")))
        return Response(load_json(found))


def days_from(query: Mapping[str, str], usual: int, most: int) -> int:
    """The parameter `days`. Raises InvalidValueError."""
    text = query.get("days") or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= most):
        raise InvalidValueError("days", f"must be a whole number from 1 to {most}")
    return int(text)


def checked_team(slug: str | None) -> str | None:
    """None for no team. Raises InvalidValueError."""
    if slug and not Team.objects.filter(slug=slug).exists():
        raise InvalidValueError("team", f"there is no team {slug[:60]!r}")
    return slug or None
