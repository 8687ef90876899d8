"""Queries about who is on call: the tables as the domain's schedules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model

from incidents.domain.oncall import rotations
from incidents.domain.oncall.layers import read_layers
from incidents.domain.oncall.rotations import Shift, StandIn, Turn
from incidents.domain.oncall.spans import Span, instant, merged
from incidents.domain.values import parse_rfc3339
from incidents.oncall.models import Calendar, OnCallSchedule, Override

WATCHED: Final = timedelta(days=14)
"""Gaps within it are warned about."""
LISTED: Final = 5
"""Schedules that the refusal of an unknown one names."""


class ScheduleNotFoundError(Exception):
    """There is no schedule of that name; the message lists the first few that exist."""

    def __init__(self, slug: str) -> None:
        known = list(OnCallSchedule.objects.order_by("slug").values_list("slug", flat=True)[: LISTED + 1])
        more = [] if len(known) <= LISTED else ["more"]
        existing = ", ".join([*known[:LISTED], *more])
        super().__init__(f"There is no schedule {slug[:60]}{f'; there are {existing}' if known else ''}.")


@dataclass(frozen=True, slots=True)
class OnCallStatus:
    """A schedule as it stands at a moment, for whoever has to know now."""

    person: str | None
    until: datetime | None
    """Time of the next hand-over; None: not within 400 days."""
    then: str | None
    gaps: list[Span]
    """Times without a person on call in the next two weeks."""
    gone: list[str]
    """People whom a layer names and who cannot sign in any more."""
    stand_in: StandIn | None = None
    """Of an override that applies now."""


def on_call(schedule: str, at: datetime) -> tuple[str, ...]:
    """The user names of those on call at that instant; empty in a gap. Raises ScheduleNotFoundError."""
    person = rotations.person_on_call(rota(find_schedule(schedule), at, at + timedelta(minutes=1)), at)
    return () if person is None else (person,)


def shifts(schedule: str, start: datetime, end: datetime) -> list[Shift]:
    """Shifts from `start` to `end`, cut to that span. Raises ScheduleNotFoundError."""
    return rotations.shifts(rota(find_schedule(schedule), start, end), start, end)


def gaps(schedule: str, start: datetime, end: datetime) -> list[Span]:
    """Times without a person on call between two instants. Raises ScheduleNotFoundError."""
    return rotations.gaps(rota(find_schedule(schedule), start, end), start, end)


def find_schedule(slug: str) -> OnCallSchedule:
    """Raises ScheduleNotFoundError."""
    row = OnCallSchedule.objects.filter(slug=slug).first() if "\0" not in slug else None
    if row is None:
        raise ScheduleNotFoundError(slug)
    return row


def people_in(row: OnCallSchedule, at: datetime) -> set[str]:
    """Everybody in the layers of a schedule, and in its overrides that are not over at `at`."""
    over = row.overrides.filter(ends_at__gt=at)
    overriding = over.values_list(f"person__{get_user_model().USERNAME_FIELD}", flat=True)
    return {person for layer in row.layers for person in layer["people"]} | set(overriding)


def turn_of(row: OnCallSchedule, person: str, at: datetime, within: timedelta) -> Turn | None:
    """The turn of a person at `at`, else their next one that begins `within` that time; None: neither."""
    ahead = rotations.shifts(rota(row, at, at + within), at, at + within)
    first = next((one for one in ahead if one.person == person), None)
    if first is None:
        return None
    reach = rotations.LOOK_AHEAD[-1]
    return rotations.turn_at(rota(row, first.start - reach, first.start + reach), first.start)


def on_call_status(row: OnCallSchedule, at: datetime) -> OnCallStatus:
    known = rota(row, at, at + rotations.LOOK_AHEAD[-1])
    handover = rotations.next_handover(known, at)
    return OnCallStatus(
        rotations.person_on_call(known, at),
        None if handover is None else handover.at,
        None if handover is None else handover.person,
        rotations.gaps(known, at, at + WATCHED),
        sorted(known.gone & rotations.people_of(known)),
        rotations.stand_in_at(known, at),
    )


def uncovered(at: datetime) -> dict[str, timedelta]:
    """Duration without a person on call in the next two weeks, by schedule."""
    end = at + WATCHED
    found = {}
    for row in OnCallSchedule.objects.prefetch_related("holidays"):
        spans = rotations.gaps(rota(row, at, end), at, end)
        found[row.slug] = sum((ends - begins for begins, ends in spans), timedelta())
    return found


def rota(row: OnCallSchedule, start: datetime, end: datetime) -> rotations.Schedule:
    """The schedule with all that bears on the time from `start` to `end`. Raises UNREADABLE."""
    known = _rota(row, row.layers, row.time_zone, start, end)
    people = rotations.people_of(known) | {one.person for one in known.overrides}
    return replace(known, gone=frozenset(people - active(people)))


def past_rota(
    row: OnCallSchedule | None, layers: Any, time_zone: str, start: datetime, end: datetime
) -> rotations.Schedule:
    """As `rota` of a schedule that had these layers then; `row` is None where it was removed since, with its overrides.
    People who have left since are in it."""
    return _rota(row, layers, time_zone, start, end)


def _rota(
    row: OnCallSchedule | None, written: Any, time_zone: str, start: datetime, end: datetime
) -> rotations.Schedule:
    zone = ZoneInfo(time_zone)
    layers = read_layers(written, zone)
    made, holidays = list[rotations.Override](), list[Calendar]()
    if row is not None:
        overrides = row.overrides.filter(starts_at__lt=end, ends_at__gt=start).select_related("person")
        made, holidays = [_override(one) for one in overrides], list(row.holidays.all())
    people = {name for layer in layers for name in layer.people} | {one.person for one in made}
    return rotations.Schedule(
        layers,
        tuple(made),
        merged(span for calendar in holidays for span in spans_of(calendar, zone)),
        _away(people, zone),
    )


def active(names: Iterable[str]) -> set[str]:
    """Those of the user names that are of people who may sign in."""
    users = get_user_model()
    key = users.USERNAME_FIELD
    found = users.objects.filter(**{f"{key}__in": list(names), "is_active": True})
    return set(found.values_list(key, flat=True))


def spans_of(calendar: Calendar, zone: ZoneInfo) -> list[Span]:
    """Spans of its entries; days and times without a zone of their own are those of `zone`."""
    return [(_edge(start, zone), _edge(end, zone)) for start, end, *_ in calendar.spans]


def _edge(text: str, zone: ZoneInfo) -> datetime:
    if len(text) == len("2026-12-24"):
        return instant(datetime.combine(date.fromisoformat(text), datetime.min.time()), zone)
    return parse_rfc3339(text) if text.endswith("Z") else instant(datetime.fromisoformat(text), zone)


def _override(row: Override) -> rotations.Override:
    return rotations.Override(row.person.get_username(), row.starts_at, row.ends_at, str(row.pk))


def _away(people: Iterable[str], zone: ZoneInfo) -> dict[str, Sequence[Span]]:
    key = f"person__{get_user_model().USERNAME_FIELD}__in"
    spans: dict[str, list[Any]] = defaultdict(list)
    for calendar in Calendar.objects.filter(**{key: list(people)}).select_related("person").defer("text"):
        assert calendar.person is not None
        spans[calendar.person.get_username()] += spans_of(calendar, zone)
    return {person: merged(away) for person, away in spans.items()}


def named_days(row: OnCallSchedule, start: datetime, end: datetime) -> list[tuple[Span, str]]:
    """The schedule's holidays between two instants, and whose names of absence touch it: when and what."""
    zone = ZoneInfo(row.time_zone)
    people = {name for layer in read_layers(row.layers, zone) for name in layer.people}
    key = f"person__{get_user_model().USERNAME_FIELD}__in"
    away = Calendar.objects.filter(**{key: list(people)}).select_related("person").defer("text")
    found = []
    for calendar in [*row.holidays.all(), *away]:
        owner = "" if calendar.person is None else f"{calendar.person.get_username()} is away: "
        spans = zip(spans_of(calendar, zone), calendar.spans, strict=True)
        found += [(span, owner + entry[2]) for span, entry in spans if span[0] < end and start < span[1]]
    return sorted(found)
