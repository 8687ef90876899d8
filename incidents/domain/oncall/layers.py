"""Layers of a schedule as they are configured: plain values to rotations. What is wrong is refused by name.

[{"name": "nights", "people": ["alice", "bob"], "start": "2026-01-05T09:00", "turn": "1w",
  "times": [{"days": ["mon", "tue"], "from": "18:00", "to": "09:00"}], "holidays": "include"}]
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, get_args
from zoneinfo import ZoneInfo

from incidents.domain.oncall.rotations import Holidays, Rotation, TimesOfWeek
from incidents.domain.values import InvalidValueError, check_line, check_list, check_object, read_zone

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_LAYERS: Final = 10
MOST_PEOPLE: Final = 100
MOST_TIMES: Final = 30
YEARS: Final = (2000, 2100)
"""Within which rotations begin and end."""
_TURN = re.compile(r"([1-9][0-9]{0,3})([hdw])", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
LONGEST_TURN: Final = timedelta(weeks=53)
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?", re.ASCII)
_FIELDS = ("name", "people", "start", "end", "turn", "times", "time_zone", "holidays")
_REQUIRED = ("name", "people", "start", "turn")


def read_layers(layers: object, zone: ZoneInfo) -> tuple[Rotation, ...]:
    """Rotations of a schedule whose zone is `zone`, the last one first in rank. Raises InvalidValueError."""
    given = check_list("layers", layers, MOST_LAYERS, 1)
    read = tuple(_layer(f"layers[{place}]", one, zone) for place, one in enumerate(given))
    names = [one.name for one in read]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidValueError(f"layers[{place}].name", f"two layers have the name {name!r}")
    return read


def _layer(field: str, value: object, zone: ZoneInfo) -> Rotation:
    given = check_object(field, value, _FIELDS, _REQUIRED)
    own = read_zone(f"{field}.time_zone", given["time_zone"]) if given.get("time_zone") is not None else zone
    start = _local(f"{field}.start", given["start"])
    end = None if given.get("end") is None else _local(f"{field}.end", given["end"])
    if end is not None and end <= start:
        raise InvalidValueError(f"{field}.end", "must be later than the start")
    holidays = given.get("holidays", "include")
    if holidays not in get_args(Holidays):
        raise InvalidValueError(f"{field}.holidays", f"must be one of {', '.join(get_args(Holidays))}")
    return Rotation(
        check_line(f"{field}.name", given["name"], 60),
        _people(f"{field}.people", given["people"]),
        start,
        own,
        _turn(f"{field}.turn", given["turn"]),
        _times(f"{field}.times", given.get("times", [])),
        holidays,
        end,
    )


def _people(field: str, value: object) -> tuple[str, ...]:
    given = check_list(field, value, MOST_PEOPLE, 1)
    return tuple(check_line(f"{field}[{place}]", one, 150) for place, one in enumerate(given))


def _local(field: str, value: object) -> datetime:
    text = check_line(field, value, 30)
    try:
        local = datetime.fromisoformat(text) if _LOCAL.fullmatch(text) else None
    except ValueError:
        local = None
    if local is None or not YEARS[0] <= local.year <= YEARS[1]:
        raise InvalidValueError(
            field,
            f"must be a local time from {YEARS[0]} to {YEARS[1]}, without an offset, such as 2026-01-05T09:00",
        )
    return local


def _turn(field: str, value: object) -> timedelta:
    found = _TURN.fullmatch(check_line(field, value, 10))
    turn = int(found[1]) * _UNITS[found[2]] if found else None
    if turn is None or turn > LONGEST_TURN:
        raise InvalidValueError(field, "must be hours, days or weeks, at most 53w, such as 12h, 1d or 1w")
    return turn


def _times(field: str, value: object) -> tuple[TimesOfWeek, ...]:
    given = check_list(field, value, MOST_TIMES)
    return tuple(_time(f"{field}[{place}]", one) for place, one in enumerate(given))


def _time(field: str, value: object) -> TimesOfWeek:
    given = check_object(field, value, ("days", "from", "to"), ("days", "from", "to"))
    days = given["days"]
    if not isinstance(days, list | tuple) or not days or not all(one in DAYS for one in days):
        raise InvalidValueError(f"{field}.days", f"must be a list of {', '.join(DAYS)}")
    return TimesOfWeek(
        frozenset(DAYS.index(one) for one in days),
        _clock(f"{field}.from", given["from"]),
        _clock(f"{field}.to", given["to"]),
    )


def _clock(field: str, value: object) -> timedelta:
    found = _CLOCK.fullmatch(check_line(field, value, 5))
    if not found:
        raise InvalidValueError(
            field, "must be a time of day such as 09:00; one that is not later ends on the next day"
        )
    return timedelta(hours=int(found[1]), minutes=int(found[2]))
