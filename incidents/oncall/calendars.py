"""iCalendar in and out: who is away and what is a holiday from files, shifts for calendar programs."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from incidents.domain.oncall.rotations import Shift
from incidents.domain.oncall.spans import Span
from incidents.domain.values import InvalidValueError
from incidents.oncall import ical_expand
from incidents.oncall.models import Calendar, OnCallSchedule

if TYPE_CHECKING:
    import icalendar

log = logging.getLogger(__name__)

MOST_TEXT: Final = 256 * 1024
"""Characters of a calendar's file."""
BEFORE, AHEAD = timedelta(days=31), timedelta(days=730)
"""Span of recurrences, from the day on which a calendar is read."""
READ_AGAIN: Final = timedelta(days=600)
"""A calendar that was followed less far than this from now is read again."""
_WAIT: Final = 30.0


def expand(text: object, now: datetime) -> list[list[str]]:
    """Entries, from a month ago to two years ahead, as `ical_expand` writes them. Raises InvalidValueError."""
    if not isinstance(text, str):
        raise InvalidValueError("text", "must be a text")
    if len(text) > MOST_TEXT:
        raise InvalidValueError("text", f"must have at most {MOST_TEXT} characters, has {len(text)}")
    command = [sys.executable, "-m", ical_expand.__name__]
    span = [moment.isoformat() for moment in (now - BEFORE, now + AHEAD)]
    try:
        given = text.encode()
        done = subprocess.run([*command, *span], input=given, capture_output=True, timeout=_WAIT, check=False)
    except UnicodeEncodeError:
        raise InvalidValueError("text", "must be valid Unicode (it has a lone surrogate)") from None
    except subprocess.TimeoutExpired:
        raise InvalidValueError(
            "text", "took too long to read; look for a recurrence rule (RRULE) that never matches"
        ) from None
    if done.returncode == ical_expand.REFUSED:
        raise InvalidValueError("text", done.stdout.decode().strip())
    if done.returncode < 0:
        raise InvalidValueError(
            "text", "took too long to read; look for a recurrence rule (RRULE) that never matches"
        )
    if done.returncode:
        raise InvalidValueError("text", "must be an iCalendar file (.ics, RFC 5545)")
    read: list[list[str]] = json.loads(done.stdout)
    return read


def read_again(now: datetime) -> int:
    """Follow the recurrences of calendars that were read long ago; how many there were. What fails stays as it was."""
    followed = 0
    for row in Calendar.objects.filter(read_until__lt=now + READ_AGAIN):
        try:
            spans = expand(row.text, now)
        except InvalidValueError as invalid:
            log.warning("the calendar %s was not read again: %s", row.slug, invalid.reason)
            continue
        # Not where somebody brings another file at this moment.
        same = Calendar.objects.filter(pk=row.pk, text=row.text)
        followed += same.update(spans=spans, read_until=now + AHEAD)
    return followed


def written(row: OnCallSchedule, shifts: Iterable[Shift], gaps: Iterable[Span], now: datetime) -> bytes:
    """Shifts as iCalendar. What nobody takes is in it too, so that it is seen."""
    import icalendar  # takes a tenth of a second to load: only where a calendar is asked for

    calendar = icalendar.Calendar()
    calendar.add("prodid", "-//Dossier//On call//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", f"On call: {row.name}")
    calendar.add("x-wr-timezone", row.time_zone)
    for shift in shifts:
        summary = f"{shift.person} on call: {row.name}"
        calendar.add_component(_event(row, summary, (shift.start, shift.end), now))
    for gap in gaps:
        calendar.add_component(_event(row, f"No one on call: {row.name}", gap, now))
    ics: bytes = calendar.to_ical()
    return ics


def _event(row: OnCallSchedule, summary: str, span: Span, now: datetime) -> icalendar.Event:
    import icalendar

    event = icalendar.Event()
    named = hashlib.sha256(f"{row.slug} {span[0].isoformat()}".encode()).hexdigest()[:32]
    event.add("uid", f"{named}@dossier")
    event.add("dtstamp", now)
    event.add("dtstart", span[0])
    event.add("dtend", span[1])
    event.add("summary", summary)
    event.add("transp", "TRANSPARENT")
    return event
