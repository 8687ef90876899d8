"""Who is on call: for everybody, with what they can take over, swap and subscribe to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from frontend import rota
from frontend.durations import parse_span
from frontend.rights import rights
from frontend.views.pages import context_of, page, show, user_name
from incidents.commands import Invalid, Refused
from incidents.domain import rotations
from incidents.domain.overriding import Stretch
from incidents.domain.spans import instant, wall
from incidents.domain.times import parse_rfc3339, rfc3339
from incidents.oncall import commands, queries
from incidents.oncall.calendars import MOST_TEXT
from incidents.oncall.models import Schedule

SPANS = ("1 h", "4 h", "12 h", "1 d")
MOST_GAPS = 5
WEEKS = 4


@page
@require_safe
def on_call(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    cards = [
        _standing(row, now) for row in Schedule.objects.select_related("team").prefetch_related("holidays")
    ]
    context = {"cards": cards, "rights": rights(request)}
    return show(request, "frontend/on_call.html", context, section="on_call")


@page
@require_safe
def schedule(request: HttpRequest, slug: str) -> HttpResponse:
    return _shown(request, _row(slug))


@page
@require_POST
def take_over(request: HttpRequest, slug: str) -> HttpResponse:
    """Somebody, mostly oneself, is on call for a time."""
    row, form, errors = _row(slug), request.POST, {}
    span, zone = timedelta(0), ZoneInfo(row.time_zone)
    try:
        span = parse_span(form.get("other") or form.get("span", ""))
    except ValueError as error:
        errors["span"] = str(error)
    now = timezone.now()
    try:
        start = max(now, _local(form["starts"], zone)) if form.get("starts") else now
        if not errors:
            person, why = form.get("person", ""), form.get("reason", "")
            commands.override(slug, person, start, start + span, why, now, context_of(request))
    except Invalid as error:
        errors[{"ends_at": "span", "starts_at": "starts"}.get(error.field, error.field)] = error.reason
    except Refused as refused:
        errors["span"] = refused.reason
    if errors:
        return _shown(request, row, errors, status=400)
    messages.success(request, f"{person} is on call for {rota.lasting((start, start + span))}.")
    return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))


@page
@require_POST
def swap(request: HttpRequest, slug: str) -> HttpResponse:
    """Two shifts change hands."""
    row, now = _row(slug), timezone.now()
    try:
        first, second = (_stretch(name, request.POST.get(name, "")) for name in ("first", "second"))
        commands.swap(slug, first, second, request.POST.get("reason", ""), now, context_of(request))
    except Invalid as error:
        field = "swap_reason" if error.field == "reason" else error.field.partition(".")[0]
        return _shown(request, row, {field: error.reason}, status=400)
    except Refused as refused:
        return _shown(request, row, {"second": refused.reason}, status=400)
    messages.success(request, f"{first.person} and {second.person} have swapped.")
    return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))


@page
@require_POST
def end_override(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    return _taken_back(
        request, slug, lambda: commands.end_override(slug, str(id), timezone.now(), context_of(request))
    )


@page
@require_POST
def take_back_swap(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    return _taken_back(
        request, slug, lambda: commands.take_back_swap(slug, str(id), timezone.now(), context_of(request))
    )


@page
@require_POST
def feed(request: HttpRequest, slug: str) -> HttpResponse:
    """A secret address for a calendar program: it is in the answer to this request and nowhere else."""
    row = _row(slug)
    assert isinstance(request.user, AbstractBaseUser)
    try:
        _, secret = commands.make_feed(
            slug, request.user, request.POST.get("mine") == "on", context_of(request)
        )
    except Refused as refused:
        messages.error(request, refused.reason)
        return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))
    return _shown(request, row, made=f"{settings.BASE_URL}/api/v1/on_call/feeds/{secret}.ics")


@page
@require_POST
def remove_feed(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    assert isinstance(request.user, AbstractBaseUser)
    whose: AbstractBaseUser = request.user
    return _taken_back(request, slug, lambda: commands.remove_feed(slug, str(id), whose, context_of(request)))


def _taken_back(request: HttpRequest, slug: str, command: Callable[[], None]) -> HttpResponse:
    try:
        command()
        messages.success(request, "Taken back.")
    except (queries.NoSuchSchedule, commands.NoSuchOverride) as error:
        raise Http404(str(error)) from error
    except Refused as refused:
        messages.error(request, refused.reason)
    return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))


# What the pages show
# ----------------------------------------------------------------------------------------------------------
def _row(slug: str) -> Schedule:
    try:
        return queries.find_schedule(slug)
    except queries.NoSuchSchedule as error:
        raise Http404(str(error)) from error


def _standing(row: Schedule, now: datetime) -> dict[str, Any]:
    zone, standing = ZoneInfo(row.time_zone), queries.standing(row, now)
    gaps = standing.gaps
    return {
        "it": row,
        "standing": standing,
        "until": standing.until and rota.written(standing.until, zone),
        "gaps": [
            {
                "from": "now" if start <= now else rota.written(start, zone),
                "to": rota.written(end, zone),
                "lasts": rota.lasting((start, end)),
            }
            for start, end in gaps[:MOST_GAPS]
        ],
        "more_gaps": max(0, len(gaps) - MOST_GAPS),
    }


def _shown(
    request: HttpRequest,
    row: Schedule,
    errors: dict[str, str] | None = None,
    made: str = "",
    status: int = 200,
) -> HttpResponse:
    now, zone = timezone.now(), ZoneInfo(row.time_zone)
    today = wall(now, zone).date()
    monday = today - timedelta(days=today.weekday())
    first = max(min(_date(request.GET.get("from", "")) or monday, date(2099, 1, 1)), date(2000, 1, 3))
    start, end = rota.edges(first, zone)[0], rota.edges(first + timedelta(weeks=WEEKS), zone)[0]
    shifts, gaps = queries.shifts(row.slug, start, end), queries.gaps(row.slug, start, end)
    coming = queries.shifts(row.slug, now, now + timedelta(weeks=WEEKS))
    overrides = row.overrides.filter(ends_at__gt=now).select_related("person").order_by("starts_at")
    context = {
        "it": row,
        "now_card": _standing(row, now),
        "weeks": rota.weeks(shifts, gaps, queries.named_days(row, start, end), zone, first, today, WEEKS),
        "earlier": first - timedelta(weeks=WEEKS),
        "later": first + timedelta(weeks=WEEKS),
        "first": first,
        "overrides": [
            {
                "it": one,
                "from": rota.written(one.starts_at, zone),
                "to": rota.written(one.ends_at, zone),
                "by": one.made_by.partition(":")[2],
            }
            for one in overrides
        ],
        "coming": [_choice(one, zone) for one in coming[:60]],
        "loads": _loads(coming),
        "editable": rights(request).over(None if row.team is None else row.team.slug),
        "people": active_people(),
        "me": user_name(request),
        "spans": SPANS,
        "typed": request.POST if errors else {},
        "errors": errors or {},
        "feeds": row.feeds.filter(user__pk=request.user.pk or 0),
        "made": made,
    }
    return show(request, "frontend/on_call_schedule.html", context, section="on_call", status=status)


def active_people() -> list[str]:
    users = get_user_model()
    key = users.USERNAME_FIELD
    return list(users.objects.filter(is_active=True).order_by(key).values_list(key, flat=True)[:1_000])


def _loads(shifts: list[rotations.Shift]) -> list[tuple[str, str]]:
    hours: dict[str, float] = {}
    for one in shifts:
        hours[one.person] = hours.get(one.person, 0) + (one.end - one.start) / timedelta(hours=1)
    return [(person, f"{hours[person]:.0f} h") for person in sorted(hours, key=lambda one: -hours[one])]


def _choice(one: rotations.Shift, zone: ZoneInfo) -> dict[str, str]:
    words = f"{one.person}: {rota.written(one.start, zone)} – {rota.written(one.end, zone)}"
    return {"value": f"{rfc3339(one.start)} {rfc3339(one.end)} {one.person}", "words": words}


def _stretch(name: str, value: str) -> Stretch:
    start, _, rest = value.partition(" ")
    end, _, person = rest.partition(" ")
    try:
        return Stretch(person, parse_rfc3339(start), parse_rfc3339(end))
    except (ValueError, OverflowError):
        raise Invalid(name, "choose a shift") from None


def _local(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is not None or not 2000 <= moment.year < 2100:
        raise Invalid("starts_at", "must be a date and a time of day")
    return instant(moment, zone)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


EXAMPLE = """{"slug": "storage", "name": "Storage on call", "time_zone": "Europe/Berlin", "layers": [
  {"name": "days", "people": ["alice", "bob"], "start": "2026-01-05T09:00", "turn": "1w"},
  {"name": "nights", "people": ["charlie"], "start": "2026-01-05T18:00", "turn": "1d",
   "times": [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "18:00", "to": "09:00"}]}]}"""


@page
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    address = request.build_absolute_uri("/").rstrip("/")
    told = {"example": EXAMPLE, "address": address, "largest": MOST_TEXT // 1024}
    return show(request, "frontend/docs_on_call.html", told, section="docs")
