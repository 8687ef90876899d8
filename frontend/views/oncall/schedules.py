"""On-call schedules: for everybody, with shifts to take over, swap and subscribe to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from frontend import rota
from frontend.rights import rights
from frontend.time_input import parse_span
from frontend.views.oncall.context import schedule_context, shown
from frontend.views.pages import context_of, page, show, user_name
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.oncall.overrides import Stretch
from incidents.domain.oncall.spans import instant
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import parse_rfc3339
from incidents.oncall import commands, queries
from incidents.oncall.models import OnCallSchedule


@page
@require_safe
def on_call(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    rows = OnCallSchedule.objects.select_related("team").prefetch_related("holidays")
    cards = [schedule_context(row, now, user_name(request)) for row in rows]
    mine = sorted((one for one in cards if one["mine"]), key=lambda one: one["mine"]["at"])
    context = {"cards": cards, "mine": mine, "rights": rights(request)}
    return show(request, "frontend/oncall/now.html", context, section="on_call")


@page
@require_safe
def schedule(request: HttpRequest, slug: str) -> HttpResponse:
    return shown(request, _row(slug))


@page
@require_POST
def take_over(request: HttpRequest, slug: str) -> HttpResponse:
    """Somebody, mostly oneself, is on call for a time: until a time that was typed, or for so long."""
    row, form, now = _row(slug), request.POST, timezone.now()
    person, until = form.get("person", ""), "ends" if form.get("ends") else "span"
    try:
        start, end = _typed_times(form, ZoneInfo(row.time_zone), now)
        commands.override(slug, person, start, end, form.get("reason", ""), now, context_of(request))
    except InvalidValueError as error:
        field = {"ends_at": until, "starts_at": "starts"}.get(error.field, error.field)
        return shown(request, row, {field: error.reason}, status=400)
    except ForbiddenError:
        raise  # the page around it says who may
    except CommandRefusedError as refused:
        return shown(request, row, {until: refused.reason}, status=400)
    messages.success(request, f"{person} is on call for {rota.lasting((start, end))}.")
    return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))


@page
@require_POST
def swap(request: HttpRequest, slug: str) -> HttpResponse:
    """Two shifts change hands."""
    row, now = _row(slug), timezone.now()
    try:
        first, second = (_stretch(name, request.POST.get(name, "")) for name in ("first", "second"))
        commands.swap(slug, first, second, request.POST.get("reason", ""), now, context_of(request))
    except InvalidValueError as error:
        field = "swap_reason" if error.field == "reason" else error.field.partition(".")[0]
        return shown(request, row, {field: error.reason}, status=400)
    except ForbiddenError:
        raise  # the page around it says who may
    except CommandRefusedError as refused:
        return shown(request, row, {"second": refused.reason}, status=400)
    messages.success(request, f"{first.person} and {second.person} swapped shifts.")
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
    except CommandRefusedError as refused:
        messages.error(request, refused.reason)
        return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))
    return shown(request, row, made=f"{settings.PUBLIC_URL}/api/v1/on_call/feeds/{secret}.ics")


@page
@require_POST
def remove_feed(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    assert isinstance(request.user, AbstractBaseUser)
    owner: AbstractBaseUser = request.user
    return _taken_back(request, slug, lambda: commands.remove_feed(slug, str(id), owner, context_of(request)))


def _taken_back(request: HttpRequest, slug: str, command: Callable[[], None]) -> HttpResponse:
    try:
        command()
        messages.success(request, "Override removed.")
    except (queries.ScheduleNotFoundError, commands.OverrideNotFoundError) as error:
        raise Http404(str(error)) from error
    except ForbiddenError:
        raise  # the page around it says who may
    except CommandRefusedError as refused:
        messages.error(request, refused.reason)
    return HttpResponseRedirect(reverse("on_call_schedule", args=[slug]))


# What was typed
# ----------------------------------------------------------------------------------------------------------
def _row(slug: str) -> OnCallSchedule:
    try:
        return queries.find_schedule(slug)
    except queries.ScheduleNotFoundError as error:
        raise Http404(str(error)) from error


def _stretch(name: str, value: str) -> Stretch:
    start, _, rest = value.partition(" ")
    end, _, person = rest.partition(" ")
    try:
        return Stretch(person, parse_rfc3339(start), parse_rfc3339(end))
    except (ValueError, OverflowError):
        raise InvalidValueError(name, "choose a shift") from None


def _typed_times(form: QueryDict, zone: ZoneInfo, now: datetime) -> tuple[datetime, datetime]:
    """From when until when, on the clock of the zone; what has begun begins now. Raises InvalidValueError."""
    starts, ends = form.get("starts", ""), form.get("ends", "")
    start = max(now, _local("starts_at", starts, zone)) if starts else now
    if ends:
        return start, _local("ends_at", ends, zone)
    try:
        return start, start + parse_span(form.get("other") or form.get("span", ""))
    except ValueError as error:
        raise InvalidValueError("ends_at", str(error)) from None


def _local(field: str, text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is not None or not 2000 <= moment.year < 2100:
        raise InvalidValueError(field, "must be a date and a time of day")
    return instant(moment, zone)
