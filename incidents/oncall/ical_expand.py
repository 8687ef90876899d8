"""Entries of an iCalendar file, in a process of its own: `python -m incidents.oncall.ical_expand FROM TO < FILE`.

A calendar is somebody else's program: a rule of recurrence can run for ever, or come to nothing for eight thousand
years. So it is read where it can only cost itself: a few seconds of one processor, half a gigabyte. Prints a JSON list
of [start, end, summary]; a day is `2026-12-24`, a time without a zone `2026-12-24T12:00:00`, with one it has a `Z`.
Exit 3 with a sentence for what is refused; anything else than 0 and 3: it cannot be read.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import icalendar

SECONDS: Final = 3
MEMORY: Final = 512 * 2**20
MOST_EVENTS: Final = 2_000
MOST_SPANS: Final = 2_000
REFUSED: Final = 3
_TOO_OFTEN = {"SECONDLY", "MINUTELY", "HOURLY"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_FIRST, _LAST = datetime(2000, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 on any wall


def main() -> int:
    import recurring_ical_events  # noqa: F401  # before the limits, which are for reading

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    start, end = (datetime.fromisoformat(text) for text in sys.argv[1:3])
    try:
        print(json.dumps(expanded(sys.stdin.read(), start, end)))  # noqa: T201
    except InvalidCalendarError as refusal:
        print(refusal)  # noqa: T201
        return REFUSED
    return 0


class InvalidCalendarError(Exception):
    """A sentence's end: what a calendar must or must not."""


def expanded(text: str, start: datetime, end: datetime) -> list[list[str]]:
    """Raises InvalidCalendarError; whatever the libraries raise for what they cannot read."""
    import icalendar
    import recurring_ical_events

    calendars = icalendar.Calendar.from_ical(text, multiple=True)
    if not calendars:
        raise InvalidCalendarError("must contain a VCALENDAR")
    events = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    if len(events) > MOST_EVENTS:
        raise InvalidCalendarError(f"must have at most {MOST_EVENTS} events, has {len(events)}")
    for event in events:
        _check_rule(event)
    found = [
        _span(one)
        for calendar in calendars
        for one in recurring_ical_events.of(calendar, components=["VEVENT"]).between(start, end)
        if str(one.get("STATUS", "")).upper() != "CANCELLED"
    ]
    if len(found) > MOST_SPANS:
        raise InvalidCalendarError(
            f"must have at most {MOST_SPANS} entries within two years, has {len(found)}"
        )
    return sorted(found)


def _check_rule(event: icalendar.Component) -> None:
    rules = event.get("RRULE", [])
    for rule in rules if isinstance(rules, list) else [rules]:
        if _TOO_OFTEN & {str(one).upper() for one in rule.get("FREQ", [])}:
            raise InvalidCalendarError("must not have events that recur more often than daily")


def _span(event: Any) -> list[str]:
    start = event["DTSTART"].dt
    end = event["DTEND"].dt if "DTEND" in event else start
    if not isinstance(start, datetime) and end <= start:
        end = start + timedelta(days=1)
    summary = _CONTROL.sub(" ", str(event.get("SUMMARY", ""))).strip()[:120]
    return [_written(start), _written(end), summary]


def _written(moment: date | datetime) -> str:
    """Kept within years that every clock can show."""
    if not isinstance(moment, datetime):
        return min(max(moment, _FIRST.date()), _LAST.date()).isoformat()
    if moment.tzinfo is None:
        return min(max(moment, _FIRST), _LAST).replace(microsecond=0).isoformat()
    if not _FIRST.year < moment.year < _LAST.year:
        moment = (_FIRST if moment.year <= _FIRST.year else _LAST).replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


if __name__ == "__main__":
    sys.exit(main())
