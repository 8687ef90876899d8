"""Times as the console writes them: by the clock of the reader, with the exact time on hover, in UTC too. The template
library `times`.

Browsers say their zone in a cookie (`theme.js`), or UTC where that was chosen in the menu; everything that pages write
or ask for as a time goes by it. Without the cookie it is UTC. Not Django's current time zone: serializers would answer
in it, and the API speaks UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from incidents.domain.values import rfc3339

# The clock of the reader
# ----------------------------------------------------------------------------------------------------------
COOKIE = "zone"
_UTC = ZoneInfo("UTC")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{1,29}(/[A-Za-z0-9_+-]{1,29}){0,2}")
_READ_IN: ContextVar[ZoneInfo] = ContextVar("read_in", default=_UTC)


def zone_called(name: str | None) -> ZoneInfo:
    """The IANA zone of that name; UTC for what is none."""
    if not name or not _NAME.fullmatch(name):
        return _UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _UTC


@contextmanager
def read_in(zone: ZoneInfo) -> Iterator[None]:
    """Write times inside for a reader whose clock shows the time of `zone`."""
    token = _READ_IN.set(zone)
    try:
        yield
    finally:
        _READ_IN.reset(token)


_SHOWN_AT: ContextVar[datetime | None] = ContextVar("shown_at", default=None)


@contextmanager
def shown_at(moment: datetime | None) -> Iterator[None]:
    """Relative times written inside count from `moment`, that of a page about the past; None: from now."""
    token = _SHOWN_AT.set(moment)
    try:
        yield
    finally:
        _SHOWN_AT.reset(token)


def past_moment() -> datetime | None:
    """The moment from which relative times count; None where it is now."""
    return _SHOWN_AT.get()


def here() -> ZoneInfo:
    """The zone of whoever reads."""
    return _READ_IN.get()


def local(moment: datetime) -> datetime:
    """As their clock shows it; in UTC within a day of the first and last times that there are."""
    try:
        return moment.astimezone(here())
    except OverflowError:
        return moment.astimezone(UTC)


def offset(moment: datetime) -> str:
    """Offset of their clock from UTC then: `UTC`, `UTC+1`, `UTC-3:30`. Unlike CST or IST it means one thing only."""
    ahead = local(moment).utcoffset() or timedelta(0)
    if not (minutes := round(abs(ahead) / timedelta(minutes=1))):
        return "UTC"
    hours, rest = divmod(minutes, 60)
    return f"UTC{'-' if ahead < timedelta(0) else '+'}{hours}{f':{rest:02}' if rest else ''}"


# Words
# ----------------------------------------------------------------------------------------------------------
register = template.Library()
Moment = datetime | str | None


def as_time(moment: Moment) -> datetime | None:
    """A time, also from RFC 3339 text; None stays None."""
    return datetime.fromisoformat(moment) if isinstance(moment, str) else moment


def words(span: timedelta) -> str:
    """`4 s`, `7 min`, `3 h`, `12 d`: the same words as times.js."""
    seconds = abs(int(span.total_seconds()))
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86400} d"


def _time(moment: Moment, kind: str, suffix: str) -> SafeString | str:
    when = as_time(moment)
    if when is None:
        return "–"
    if (then := past_moment()) is not None:
        return _element(when, _seen_from(then, when, kind))
    span = timezone.now() - when
    text = "now" if kind == "ago" and _is_now(span) else words(span) + suffix
    return _element(when, text, mark_safe(f' data-ago="{kind}"'))


def _seen_from(then: datetime, when: datetime, kind: str) -> str:
    """`9 min earlier`: relative to the moment of the page, which stands still."""
    text = words(then - when)
    if kind == "age":
        return text
    return "just then" if _is_now(then - when) else f"{text} {'earlier' if when <= then else 'later'}"


def _is_now(span: timedelta) -> bool:
    return abs(span) < timedelta(seconds=5)


def _element(when: datetime, words: str, more: SafeString | str = "") -> SafeString:
    """Words for a time, with the exact one on hover: by the reader's clock and in UTC."""
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>',
        when.astimezone(UTC).isoformat(timespec="seconds"),
        hover(when),
        more,
        words,
    )


@register.filter
def ago(moment: Moment) -> SafeString | str:
    """`5 min ago`, kept current by the page, with the exact time as its title."""
    return _time(moment, "ago", " ago")


@register.filter
def age(moment: Moment) -> SafeString | str:
    """`5 min`: how old something is."""
    return _time(moment, "age", "")


@register.filter
def utc_time(moment: Moment) -> str:
    """`2026-11-21T04:15:20Z`, for an address."""
    when = as_time(moment)
    return "" if when is None else rfc3339(when)


@register.filter
def exact_words(moment: Moment) -> str:
    """`2026-11-21 04:15:20 UTC+1` by the reader's clock, for an attribute."""
    when = as_time(moment)
    return "–" if when is None else f"{local(when):%Y-%m-%d %H:%M:%S} {offset(when)}"


@register.filter
def exact(moment: Moment) -> SafeString | str:
    """The same to be seen, with UTC on hover."""
    when = as_time(moment)
    return "–" if when is None else _element(when, exact_words(when))


_INSTANT = re.compile(
    r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.\d{1,9})?(?:Z| UTC|\+00:00)(?![\w+:-])", re.ASCII
)
"""A moment as sentences of the log and of analyzers name it: in UTC, and they say so."""


def _by_the_clock(found: re.Match[str]) -> tuple[datetime, str] | None:
    date, minute, second = found.groups()
    try:
        when = datetime.fromisoformat(f"{date}T{minute}{second or ':00'}+00:00")
    except ValueError:
        return None  # 2026-13-40
    return when, f"{local(when):%Y-%m-%d %H:%M{':%S' if second else ''}} {offset(when)}"


@register.filter
def instants_words(text: str) -> str:
    """A text whose moments, said in UTC, are by the reader's clock."""

    def words_of(found: re.Match[str]) -> str:
        pair = _by_the_clock(found)
        return found[0] if pair is None else pair[1]

    return _INSTANT.sub(words_of, text)


@register.filter
def instants(text: str) -> SafeString:
    """The same to be seen, with UTC on hover. What is markup in the text stays text, unless it is known to be safe."""

    def element(found: re.Match[str]) -> str:
        pair = _by_the_clock(found)
        return found[0] if pair is None else _element(*pair)

    return mark_safe(_INSTANT.sub(element, conditional_escape(text)))


@register.filter
def hover(moment: Moment) -> str:
    """Tooltip of a time: the exact time, by the reader's clock and in UTC."""
    when = as_time(moment)
    if when is None:
        return "–"
    ours, theirs = f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", exact_words(when)
    return ours if ours == theirs else f"{theirs}\n{ours}"


@register.filter
def clock_words(moment: Moment) -> str:
    """`21 Nov 04:15` by the reader's clock, for an attribute."""
    when = as_time(moment)
    return "–" if when is None else f"{local(when):%-d %b %H:%M}"


@register.filter
def clock(moment: Moment) -> SafeString | str:
    """The same to be seen, with the exact time on hover."""
    when = as_time(moment)
    return "–" if when is None else _element(when, clock_words(when))


@register.filter
def day(moment: Moment) -> SafeString | str:
    """`21 Nov 2026` by the reader's clock, with the exact time on hover."""
    when = as_time(moment)
    return "–" if when is None else _element(when, f"{local(when):%-d %b %Y}")


@register.filter
def zone(moment: Moment) -> str:
    """`UTC+1`: how far the reader's clock is from UTC at that time."""
    when = as_time(moment)
    return "" if when is None else offset(when)


@register.simple_tag
def now_exact() -> str:
    """Time at which a page was made, for its print."""
    return exact_words(timezone.now())


@register.simple_tag
def zone_name() -> str:
    """`Europe/Berlin`: by which clock a page is written, and by which what is typed into it is read."""
    return here().key


@register.filter
def moment_words(text: str) -> SafeString | str:
    """The time in an `as_of` address as people write it; a log position is said to be one."""
    try:
        return exact(datetime.fromisoformat(text.replace(" ", "+")))
    except ValueError:
        return f"log position {text[-12:]}"


def is_one_minute(first: Moment, last: Moment) -> bool:
    """Whether a page writes both times alike."""
    return clock_words(first) == clock_words(last)


@register.filter
def span_to(start: Moment, end: Moment) -> SafeString | str:
    """`21 Nov 02:30 to 03:30` by the reader's clock; both dates where they differ, one time within one minute."""
    first, last = as_time(start), as_time(end)
    if first is None or last is None:
        return "–"
    same = local(first).date() == local(last).date()
    until = f"{local(last):%H:%M}" if same else clock_words(last)
    utc = f"{first.astimezone(UTC):%Y-%m-%d %H:%M:%S} to {last.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    seen = clock_words(first) if is_one_minute(first, last) else f"{clock_words(first)} to {until}"
    return format_html('<span title="{}">{}</span>', utc, seen)
