"""Shifts as a calendar: what stands in each day of a table of weeks, on the clock of the schedule. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from incidents.domain.oncall.rotations import Shift
from incidents.domain.oncall.spans import Span, instant, wall

HUES = 6
"""Colours of people, beside their names."""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ShiftRow = tuple[datetime, datetime, str | None, bool]
"""From when until when who is on call, and whether by an override."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a shift within a day; no person: nobody is on call."""

    person: str | None
    words: str
    hue: int
    override: bool = False


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    pieces: tuple[Piece, ...]
    holidays: tuple[str, ...]
    clock: str
    """Change of the clock on that day; mostly none."""
    today: bool

    @property
    def at(self) -> str:
        """Its beginning as a form takes local times."""
        return f"{self.day}T00:00"

    @property
    def until(self) -> str:
        return f"{self.day + DAY}T00:00"

    @property
    def words(self) -> tuple[str, str]:
        """Begin and end, in words."""
        return _local_words(self.at), _local_words(self.until)


def weeks(
    shifts: Sequence[Shift],
    gaps: Sequence[Span],
    holidays: Iterable[tuple[Span, str]],
    zone: ZoneInfo,
    first: date,
    today: date,
    count: int = 4,
) -> list[list[Day]]:
    """`count` weeks of seven days from `first` on."""
    named, hues, rows = list(holidays), _hues(shifts), _shift_rows(shifts, gaps)
    days = [_day(rows, named, hues, zone, first + n * DAY, today) for n in range(7 * count)]
    return [days[n : n + 7] for n in range(0, len(days), 7)]


def _hues(shifts: Iterable[Shift]) -> dict[str, int]:
    return {person: n % HUES for n, person in enumerate(sorted({one.person for one in shifts}))}


def _shift_rows(shifts: Iterable[Shift], gaps: Iterable[Span]) -> list[ShiftRow]:
    rows: list[ShiftRow] = [(one.start, one.end, one.person, bool(one.override)) for one in shifts]
    rows += [(start, end, None, False) for start, end in gaps]
    return _joined(sorted(rows, key=lambda one: one[0]))


def _joined(rows: Iterable[ShiftRow]) -> list[ShiftRow]:
    """Rows with each person's shifts joined where they go on by another layer."""
    joined: list[ShiftRow] = []
    for one in rows:
        if joined and joined[-1][1] == one[0] and joined[-1][2:] == one[2:]:
            joined[-1] = (joined[-1][0], *one[1:])
        else:
            joined.append(one)
    return joined


def _day(
    rows: Sequence[ShiftRow],
    holidays: Sequence[tuple[Span, str]],
    hues: dict[str, int],
    zone: ZoneInfo,
    day: date,
    today: date,
) -> Day:
    start, end = edges(day, zone)
    pieces = [
        Piece(
            person,
            _words(None if begins <= start else begins, None if ends >= end else ends, zone),
            0 if person is None else hues[person],
            override,
        )
        for begins, ends, person, override in rows
        if begins < end and start < ends and start < end
    ]
    names = [name for span, name in holidays if span[0] < end and start < span[1]]
    return Day(day, tuple(pieces), tuple(dict.fromkeys(names)), _clock(end - start), day == today)


def edges(day: date, zone: ZoneInfo) -> Span:
    """Begin and end of a day of a zone. A day that the zone skipped is empty."""
    midnight = datetime.combine(day, time())
    return instant(midnight, zone), instant(midnight + DAY, zone)


@dataclass(frozen=True, slots=True)
class Hour:
    """A cell of a week by the hour. `at` and `until` are local times as a form takes them, `label` says all of it."""

    at: str
    until: str
    label: str
    name: str
    """Name of the person, at the begin of a turn or of the day; empty where it goes on."""
    person: str | None
    hue: int
    override: bool
    now: bool
    changes: str
    """Within the hour: who it is from when on."""
    exists: bool
    """Whether the clock shows this hour on that day."""

    @property
    def words(self) -> tuple[str, str]:
        """Begin and end, in words."""
        return _local_words(self.at), _local_words(self.until)


def hours(
    shifts: Sequence[Shift], gaps: Sequence[Span], zone: ZoneInfo, first: date, now: datetime
) -> list[list[Hour]]:
    """Seven days from `first` on, as 24 rows of seven cells on the clock of the zone."""
    hues, rows = _hues(shifts), _shift_rows(shifts, gaps)
    columns = [_hours_of(first + n * DAY, rows, hues, zone, now) for n in range(7)]
    return [[column[hour] for column in columns] for hour in range(24)]


def _hours_of(
    day: date, rows: Sequence[ShiftRow], hues: Mapping[str, int], zone: ZoneInfo, now: datetime
) -> list[Hour]:
    cells, before = [], object()
    for hour in range(24):
        at = datetime.combine(day, time(hour))
        start, end = instant(at, zone), instant(at + HOUR, zone)
        within = [one for one in rows if one[0] < end and start < one[1]]
        person, override = (within[0][2], within[0][3]) if within else (None, False)
        exists = start < end and wall(start, zone) == at
        name = (person or "no one") if exists and (person, override) != before else ""
        later = within[1] if len(within) > 1 else None
        cells.append(
            Hour(
                at=f"{at:%Y-%m-%dT%H:%M}",
                until=f"{at + HOUR:%Y-%m-%dT%H:%M}",
                label=f"{_local_words(at.isoformat())}, {_person_name(person, override, exists)}",
                name=name,
                person=person,
                hue=hues.get(person or "", 0),
                override=override,
                now=start <= now < end,
                changes="" if later is None else f"{wall(later[0], zone):%H:%M} {later[2] or 'no one'}",
                exists=exists,
            )
        )
        last = within[-1] if within else None
        before = (last[2], last[3]) if last else object()
    return cells


def _local_words(text: str) -> str:
    moment = datetime.fromisoformat(text)
    return f"{moment:%a} {moment.day} {moment:%b %H:%M}"


def _person_name(person: str | None, override: bool, exists: bool) -> str:
    if not exists:
        return "skipped hour (clock change)"
    return f"{person or 'no one'}{' by an override' if override else ''}"


def _words(begins: datetime | None, ends: datetime | None, zone: ZoneInfo) -> str:
    start = "" if begins is None else f"{wall(begins, zone):%H:%M}"
    end = "" if ends is None else f"{wall(ends, zone):%H:%M}"
    if start and end:
        return f"{start}–{end}"
    return f"from {start}" if start else f"until {end}" if end else "all day"


def _clock(length: timedelta) -> str:
    if length == DAY:
        return ""
    if length <= timedelta(0):
        return "skipped by the calendar"
    jump = abs(length - DAY)
    minutes = int(jump.total_seconds() // 60)
    words = f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"
    return f"clocks go {'forward' if length < DAY else 'back'} {words}"


def written(moment: datetime, zone: ZoneInfo) -> str:
    """`Mon 9 Mar 09:00`, on the clock of the zone; with the year where it is far from now."""
    local = wall(moment, zone)
    return f"{local:%a} {local.day} {local:%b %H:%M}"


def lasting(span: Span) -> str:
    """`2 d 3 h`, `45 min`."""
    minutes = int((span[1] - span[0]).total_seconds() // 60)
    parts = ((minutes // 1440, "d"), (minutes % 1440 // 60, "h"), (minutes % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "under a minute"
