"""A configuration file in the making: items by section, variables with secrets, and what could not be translated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from incidents.domain.config.secrets import reference
from incidents.domain.oncall.layers import DAYS, YEARS
from incidents.domain.values import InvalidValueError, read_zone

SECTIONS: Final = (
    "teams",
    "users",
    "members",
    "contact_methods",
    "channels",
    "schedules",
    "services",
    "escalation_policies",
    "routes",
    "inhibitions",
    "maintenance",
)
DAY, WEEK = 24 * 60, 7 * 24 * 60
"""Minutes."""
LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Left:
    """Untranslated part: its place in the input, the reason, and a remedy."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class InvalidImportError(ValueError):
    """The input cannot be read at all: where, and why."""


@dataclass(slots=True)
class Draft:
    """`variables` holds the value of each variable that an item names, empty where the input has none."""

    sections: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    _taken: dict[str, set[str]] = field(default_factory=dict)

    def add(self, section: str, item: Mapping[str, Any]) -> None:
        self.sections.setdefault(section, []).append(
            {name: value for name, value in item.items() if value is not None}
        )

    def leave(self, where: str, reason: str) -> None:
        self.left.append(Left(where, reason))

    def name(self, section: str, text: str) -> str:
        """A name that nothing else of the section has, made of letters, digits and dashes.

        >>> draft = Draft()
        >>> draft.name("teams", "Block storage (EU)"), draft.name("teams", "block-storage eu")
        ('block-storage-eu', 'block-storage-eu-2')
        """
        taken = self._taken.setdefault(section, set())
        base = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")[:LONGEST_NAME].strip("-") or section[:-1]
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base[: LONGEST_NAME - len(str(number)) - 1]}-{number}"
        taken.add(name)
        return name

    def secret(self, prefix: str, value: str, *names: str) -> str:
        """The reference that stands in the file; its value is kept for the environment."""
        named = reference(prefix, *names)
        self.variables[named[2:-1]] = value
        return named

    def file(self) -> dict[str, list[dict[str, Any]]]:
        """The sections in the order in which people read them."""
        return {name: self.sections[name] for name in SECTIONS if name in self.sections}


def moment(value: object, where: str) -> datetime:
    """An RFC 3339 time, in UTC where it has no offset. Raises InvalidImportError."""
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidImportError(
            f"{where}: must be a time such as 2026-01-05T09:00:00Z, not {value!r}"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def zone_of(name: str, where: str) -> ZoneInfo:
    """Raises InvalidImportError."""
    try:
        return read_zone("time_zone", name)
    except InvalidValueError as error:
        raise InvalidImportError(f"{where}: time_zone: {error.reason}") from None


def local(value: str, zone: ZoneInfo, where: str) -> str:
    """An RFC 3339 time as the local time of a zone, as layers have it. Raises InvalidImportError."""
    at = moment(value, where).astimezone(zone)
    if at.year < YEARS[0]:
        at = at.replace(year=YEARS[0], day=min(at.day, 28))
    return at.strftime("%Y-%m-%dT%H:%M")


def turn(seconds: int) -> str | None:
    """A length in weeks, days or hours; None where it is none of them.

    >>> turn(604800), turn(43200), turn(90)
    ('1w', '12h', None)
    """
    for unit, length in (("w", WEEK * 60), ("d", DAY * 60), ("h", 3600)):
        if seconds > 0 and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return None


def times(start: int, length: int) -> list[dict[str, Any]]:
    """Minutes of the week from `start` (Monday 00:00 is 0) on, as times of a layer: each within 24 hours.

    >>> times(4 * DAY + 18 * 60, 62 * 60)[-1]
    {'days': ['sun'], 'from': '18:00', 'to': '08:00'}
    """
    found = []
    for begin in range(start, start + min(length, WEEK), DAY):
        end = min(begin + DAY, start + length)
        found.append({"days": [DAYS[begin // DAY % 7]], "from": clock(begin), "to": clock(end)})
    return found


def clock(minute: int) -> str:
    return f"{minute % DAY // 60:02}:{minute % 60:02}"


def minutes(text: str, where: str) -> int:
    """Minutes of the day of `08:30` or `08:30:00`; 24:00 is the end of it. Raises InvalidImportError."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-4]):([0-5][0-9])(?::[0-5][0-9])?", str(text))
    if found is None or (total := int(found[1]) * 60 + int(found[2])) > DAY:
        raise InvalidImportError(f"{where}: must be a time of day such as 08:30, not {text!r}")
    return total
