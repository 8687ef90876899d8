"""Times that come again: a span, and a rule of RFC 5545 by which it recurs in the local time of a zone. Pure.

A span from 22:00 to 06:00 is so by the clock on the wall on each of its nights, however long the night is: both ends
are local times. One that the clocks skip is taken as the zone's time before the change, one that comes twice as its
first, as RFC 5545 (3.3.5) has it; a span that this leaves nothing of keeps its length. Rules are of days, weeks, months
and years, and no span reaches into the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rrulestr

from incidents.domain.values import InvalidValueError, check_line, read_zone

LONGEST_RULE: Final = 200
LONGEST_SPAN: Final = timedelta(days=31)
MOST_INTERVAL: Final = 400
CYCLE_YEARS: Final = 28
CYCLE: Final = timedelta(weeks=1_461)
"""28 years, as long as no century without a leap day lies between: from 1901 to 2099."""
EXAMPLE: Final = "FREQ=WEEKLY;BYDAY=SA,SU"
# Each way of a rule to name days is allowed where it comes true again and again, so that no rule keeps a search going
# to the end of the calendar: what no year has is looked for in at most 8,000 years or 100,000 months.
_PARTS: Final = {
    "DAILY": frozenset({"INTERVAL", "COUNT", "UNTIL", "WKST"}),
    "WEEKLY": frozenset({"INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY"}),
    "MONTHLY": frozenset({"INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTHDAY", "BYSETPOS"}),
    "YEARLY": frozenset({"INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTHDAY", "BYSETPOS", "BYMONTH"}),
}
_NUMBERS: Final = re.compile(r"-?[0-9]{1,3}(,-?[0-9]{1,3}){0,60}", re.ASCII)
_DAYS: Final = re.compile(
    r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)(,([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)){0,60}", re.ASCII
)
_UNTIL: Final = re.compile(r"[0-9]{8}(T[0-9]{6}Z?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """From the first moment inside to the first one after."""

    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule of RFC 5545 in its canonical form, and the IANA zone whose local time it goes by."""

    rule: str
    time_zone: str


@dataclass(frozen=True, slots=True)
class Times:
    """A span, once or, with `recurrence`, again and again; the first one is the first of the rule's at or after it."""

    starts_at: datetime
    ends_at: datetime
    recurrence: Recurrence | None = None

    def at(self, moment: datetime) -> Span | None:
        """The span in which a moment lies, the latest begun of them."""
        if self.recurrence is None:
            return self._once if self.starts_at <= moment < self.ends_at else None
        near = [one for one in self._around(moment) if one.starts_at <= moment < one.ends_at]
        return max(near, key=lambda one: one.starts_at, default=None)

    def after(self, moment: datetime) -> Span | None:
        """The first span that begins after a moment."""
        if self.recurrence is None:
            return self._once if self.starts_at > moment else None
        zone = ZoneInfo(self.recurrence.time_zone)
        # A day early: where the clocks change, local times do not come in the order of moments.
        wall = _wall(moment, zone) - timedelta(days=1)
        while (wall := self._rule.after(wall)) is not None:
            if (span := self._span(wall, zone)).starts_at > moment:
                return span
        return None

    def over(self, moment: datetime) -> bool:
        """Whether there is no span in which a moment lies or that comes after."""
        return self.at(moment) is None and self.after(moment) is None

    @property
    def _once(self) -> Span:
        return Span(self.starts_at, self.ends_at)

    @property
    def _rule(self) -> Any:
        assert self.recurrence is not None
        zone = ZoneInfo(self.recurrence.time_zone)
        return _compiled(self.recurrence.rule, _wall(self.starts_at, zone), self.recurrence.time_zone)

    def _around(self, moment: datetime) -> list[Span]:
        assert self.recurrence is not None
        zone = ZoneInfo(self.recurrence.time_zone)
        wall, day = _wall(moment, zone), timedelta(days=1)
        length = _wall(self.ends_at, zone) - _wall(self.starts_at, zone)
        starts = self._rule.between(wall - length - day, wall + day, inc=True)
        return [self._span(start, zone) for start in starts]

    def _span(self, wall: datetime, zone: tzinfo) -> Span:
        length = _wall(self.ends_at, zone) - _wall(self.starts_at, zone)
        starts_at, ends_at = _moment(wall, zone), _moment(wall + length, zone)
        return Span(starts_at, ends_at if ends_at > starts_at else starts_at + length)


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _moment(wall: datetime, zone: tzinfo) -> datetime:
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


@lru_cache(maxsize=1_000)
def _compiled(rule: str, start: datetime, time_zone: str) -> Any:
    """Compiled rule, cached: it keeps its occurrences."""
    parts = dict(part.split("=", 1) for part in rule.split(";"))
    until = parts.pop("UNTIL", None)
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    read: rrule = rrulestr(text, dtstart=start, cache=True)
    return read if until is None else read.replace(until=_until(until, ZoneInfo(time_zone)))


def _until(text: str, zone: tzinfo) -> datetime:
    """In local time, where the rule is looked at."""
    if len(text) == 8:
        return datetime.strptime(text, "%Y%m%d") + timedelta(days=1, microseconds=-1)  # noqa: DTZ007  local
    at = datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007  local unless it says otherwise
    return _wall(at.replace(tzinfo=UTC), zone) if text.endswith("Z") else at


def earlier(times: Times, moment: datetime) -> Times:
    """The same times, recurring since before a moment and without an end.

    By days and weeks they keep their phase. By months and years they do if their interval fits into 28 years, after
    which every date has its day of the week again; others are returned as they are.
    """
    if times.recurrence is None:
        return times
    parts = dict(part.split("=", 1) for part in times.recurrence.rule.split(";"))
    interval = int(parts.get("INTERVAL", "1"))
    step = timedelta(weeks=interval)
    if parts["FREQ"] in ("MONTHLY", "YEARLY"):
        if (12 * CYCLE_YEARS if parts["FREQ"] == "MONTHLY" else CYCLE_YEARS) % interval:
            return times
        step = CYCLE
    rule = ";".join(f"{name}={value}" for name, value in parts.items() if name not in ("COUNT", "UNTIL"))
    zone = ZoneInfo(times.recurrence.time_zone)
    back = max(0, -((moment - times.starts_at) // step)) * step
    starts_at, ends_at = (_moment(_wall(one, zone) - back, zone) for one in (times.starts_at, times.ends_at))
    return Times(starts_at, ends_at, Recurrence(rule, times.recurrence.time_zone))


# As it is configured
# ----------------------------------------------------------------------------------------------------------
def times_from(starts_at: datetime, ends_at: datetime, recurrence: Recurrence | None) -> Times:
    """Raises InvalidValueError for a rule that never comes true, and spans that run into one another."""
    times = Times(starts_at, ends_at, recurrence)
    if recurrence is None:
        return times
    if ends_at - starts_at > LONGEST_SPAN:
        raise InvalidValueError(
            "ends_at", f"must be at most {LONGEST_SPAN.days} days after the start of a recurrence"
        )
    first = times.after(starts_at - timedelta(microseconds=1))
    if first is None:
        raise InvalidValueError("recurrence.rule", "never occurs at or after the start")
    second = times.after(first.starts_at)
    if second is not None and second.starts_at < first.ends_at:
        raise InvalidValueError("ends_at", "must not be later than the next start")
    return times


def recurrence_from(field: str, rule: object, time_zone: object) -> Recurrence:
    """Reads a rule such as `FREQ=WEEKLY;BYDAY=SA,SU`, with or without `RRULE:` before it. Raises InvalidValueError."""
    text = check_line(f"{field}.rule", rule, LONGEST_RULE).upper().removeprefix("RRULE:").strip("; ")
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, sign, value = (one.strip() for one in part.partition("="))
        if not sign or not value or name in parts:
            raise InvalidValueError(
                f"{field}.rule", f"must be an RFC 5545 rule such as {EXAMPLE}, not {text[:60]!r}"
            )
        parts[name] = value
    frequency = parts.get("FREQ", "")
    if frequency not in _PARTS:
        raise InvalidValueError(
            f"{field}.rule", f"must have a FREQ of {', '.join(_PARTS)}, such as {EXAMPLE}"
        )
    for name, value in parts.items():
        if name != "FREQ":
            _check_part(f"{field}.rule", frequency, name, value)
    if "COUNT" in parts and "UNTIL" in parts:
        raise InvalidValueError(f"{field}.rule", "must not have both COUNT and UNTIL")
    zone = read_zone(f"{field}.time_zone", time_zone)
    made = Recurrence(";".join(f"{name}={value}" for name, value in parts.items()), zone.key)
    try:
        _compiled(made.rule, datetime(2026, 1, 1), made.time_zone)  # noqa: DTZ001  local
    except (ValueError, OverflowError) as error:
        raise InvalidValueError(f"{field}.rule", f"is not an RFC 5545 rule: {error}") from None
    return made


def _check_part(field: str, frequency: str, name: str, value: str) -> None:
    if name not in _PARTS[frequency]:
        allowed = ", ".join(sorted(_PARTS[frequency]))
        raise InvalidValueError(
            field, f"must not have {name[:20]} with FREQ={frequency}; it may have {allowed}"
        )
    if name in ("INTERVAL", "COUNT"):
        good = value.isascii() and value.isdigit() and 1 <= int(value[:5]) <= MOST_INTERVAL
        what = f"a number from 1 to {MOST_INTERVAL}"
    elif name == "BYDAY":
        good, what = bool(_DAYS.fullmatch(value)), "days such as MO,WE or, with a number before it, 1SU"
        good = good and (frequency != "WEEKLY" or not any(c.isdigit() for c in value))
    elif name == "WKST":
        good, what = value in {"MO", "SU", "SA"}, "MO, SA or SU"
    elif name == "UNTIL":
        good, what = bool(_UNTIL.fullmatch(value)), "a time such as 20261231T230000Z"
    else:
        most = {"BYMONTH": 12, "BYMONTHDAY": 31}.get(name, 366)
        good = bool(_NUMBERS.fullmatch(value)) and all(1 <= abs(int(n)) <= most for n in value.split(","))
        good, what = good and (name != "BYMONTH" or "-" not in value), f"numbers up to {most}"
    if not good:
        raise InvalidValueError(field, f"must have for {name} {what}, not {value[:40]!r}")
