"""Contents of the on-call pages: states of schedules, one of them as a calendar, the reader's turns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from frontend import rota
from frontend.rights import rights
from frontend.views.pages import show, user_name
from incidents.domain.oncall import rotations
from incidents.domain.oncall.spans import Span, wall
from incidents.domain.values import rfc3339
from incidents.notifications.queries import unreachable
from incidents.oncall import queries
from incidents.oncall.models import OnCallSchedule

SPANS = ("1 h", "4 h", "12 h", "1 d")
MOST_GAPS = 3
WEEKS = 4
VIEWS = {"days": timedelta(weeks=WEEKS), "hours": timedelta(weeks=1)}
"""Extents of a calendar: four weeks by the day, one by the hour."""
FIRST, LAST = date(2000, 1, 3), date(2099, 1, 1)


def schedule_context(row: OnCallSchedule, now: datetime, me: str) -> dict[str, Any]:
    """State of a schedule, and the next turn of `me`."""
    zone, known = ZoneInfo(row.time_zone), queries.on_call_status(row, now)
    mine = queries.turn_of(row, me, now, timedelta(weeks=WEEKS))
    return {
        "it": row,
        "status": known,
        "until": known.until and rota.written(known.until, zone),
        "override_until": known.stand_in and rota.written(known.stand_in.until, zone),
        "mine": mine and _mine(mine, now, zone),
        "gaps": [
            {
                "from": "now" if start <= now else rota.written(start, zone),
                "to": rota.written(end, zone),
                "lasts": rota.lasting((start, end)),
            }
            for start, end in known.gaps[:MOST_GAPS]
        ],
        "unreachable": unreachable(queries.people_in(row, now)),
        "more_gaps": max(0, len(known.gaps) - MOST_GAPS),
    }


def shown(
    request: HttpRequest,
    row: OnCallSchedule,
    errors: dict[str, str] | None = None,
    made: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page of one schedule; `made` is a secret address, shown this once."""
    now, zone, me = timezone.now(), ZoneInfo(row.time_zone), user_name(request)
    coming = queries.shifts(row.slug, now, now + timedelta(weeks=WEEKS))
    overrides = row.overrides.filter(ends_at__gt=now).select_related("person").order_by("starts_at")
    context = {
        "it": row,
        "now_card": schedule_context(row, now, me),
        **_calendar(request, row, zone, now),
        "overrides": [
            {
                "it": one,
                "from": rota.written(one.starts_at, zone),
                "to": rota.written(one.ends_at, zone),
                "by": one.made_by.partition(":")[2],
            }
            for one in overrides
        ],
        "coming": [_choice(one, zone, now) for one in coming[:60]],
        "loads": _loads(coming),
        "editable": rights(request).over(None if row.team is None else row.team.slug),
        "people": active_people(),
        "me": me,
        "spans": SPANS,
        "typed": request.POST if errors else {},
        "errors": errors or {},
        "feeds": row.feeds.filter(user__pk=request.user.pk or 0),
        "made": made,
    }
    return show(request, "frontend/oncall/schedule.html", context, section="on_call", status=status)


def _calendar(request: HttpRequest, row: OnCallSchedule, zone: ZoneInfo, now: datetime) -> dict[str, Any]:
    """The days or hours that the address asks for, and where it leads on to."""
    view = request.GET.get("view", "")
    view = view if view in VIEWS else "days"
    span, today = VIEWS[view], wall(now, zone).date()
    monday = today - timedelta(days=today.weekday())
    first = max(min(_date(request.GET.get("from", "")) or monday, LAST), FIRST)
    start, end = rota.edges(first, zone)[0], rota.edges(first + span, zone)[0]
    shifts, gaps = queries.shifts(row.slug, start, end), queries.gaps(row.slug, start, end)
    named = queries.named_days(row, start, end)
    count = 1 if view == "hours" else WEEKS
    return {
        "view": view,
        "weeks": rota.weeks(shifts, gaps, named, zone, first, today, count),
        "hours": rota.hours(shifts, gaps, zone, first, now) if view == "hours" else [],
        "uncovered": [
            f"{rota.written(start, zone)} – {rota.written(end, zone)} ({rota.lasting((start, end))})"
            for start, end in _from_now(gaps, now)[:MOST_GAPS]
        ],
        "earlier": first - span,
        "later": first + span,
        "first": first,
        "last": first + span - timedelta(days=1),
        "away": not start <= now < end,
    }


def _from_now(gaps: Sequence[Span], now: datetime) -> list[Span]:
    """Without what is past: nobody can be called then any more."""
    return [(max(start, now), end) for start, end in gaps if end > now]


def active_people() -> list[str]:
    users = get_user_model()
    key = users.USERNAME_FIELD
    return list(users.objects.filter(is_active=True).order_by(key).values_list(key, flat=True)[:1_000])


def _loads(shifts: list[rotations.Shift]) -> list[tuple[str, str]]:
    hours: dict[str, float] = {}
    for one in shifts:
        hours[one.person] = hours.get(one.person, 0) + (one.end - one.start) / timedelta(hours=1)
    return [(person, f"{hours[person]:.0f} h") for person in sorted(hours, key=lambda one: -hours[one])]


def _mine(turn: rotations.Turn, now: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """A turn in words: `Mon 16 Nov 09:00 – Mon 23 Nov 09:00`, `since Mon 16 Nov 09:00, until further notice`."""
    at = turn.start or now
    begun = "" if turn.start is None else f"since {rota.written(turn.start, zone)}"
    if turn.end is not None and turn.start is not None:
        words = _span(rotations.Shift(turn.start, turn.end, turn.person), zone)
    elif turn.end is not None:
        words = f"until {rota.written(turn.end, zone)}"
    elif at <= now:
        words = ", ".join(filter(None, (begun, "until further notice")))
    else:
        words = f"from {rota.written(at, zone)} until further notice"
    return {"at": at, "now": at <= now, "words": words}


def _span(one: rotations.Shift, zone: ZoneInfo) -> str:
    same = wall(one.start, zone).date() == wall(one.end, zone).date()
    end = f"{wall(one.end, zone):%H:%M}" if same else rota.written(one.end, zone)
    return f"{rota.written(one.start, zone)} – {end}"


def _choice(one: rotations.Shift, zone: ZoneInfo, now: datetime) -> dict[str, str]:
    """Rest of a shift; the present one is swapped from now on."""
    span = f"now – {rota.written(one.end, zone)}" if one.start <= now else _span(one, zone)
    words = f"{one.person}: {span}"
    return {"value": f"{rfc3339(one.start)} {rfc3339(one.end)} {one.person}", "words": words}


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
