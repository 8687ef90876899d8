"""Schedules and calendars as staff edits them, and managers those of their team; everybody may look."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from rest_framework.serializers import ModelSerializer

from frontend import schedule_form, times
from frontend.rights import configurers_only, own_teams, rights
from frontend.views.oncall.context import active_people
from frontend.views.pages import context_of, page, show, staff_only
from frontend.views.restore import removed
from incidents.api.editable import Catalog
from incidents.api.incident.views import ConflictError
from incidents.api.oncall.schedules import CalendarsView, SchedulesView
from incidents.api.oncall.serializers import CalendarSerializer, OnCallScheduleSerializer
from incidents.domain.permissions import ForbiddenError
from incidents.oncall import calendars as files
from incidents.oncall.models import Calendar, OnCallSchedule
from ingest.queries import StreamVersionError

FORBIDDEN = "Only staff, and managers for their own team, can change schedules."
OVERTAKEN = "Not saved: changed by someone else in the meantime. Reload and try again."


@page
@require_safe
def schedules(request: HttpRequest) -> HttpResponse:
    return _listed(request)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str = "") -> HttpResponse:
    """The form of a schedule; without a slug, of a new one."""
    configurers_only(request, FORBIDDEN)
    row = OnCallSchedule.objects.filter(slug=slug).first()
    if slug and row is None:
        raise Http404("no such schedule")
    if request.method != "POST":
        layers = (
            schedule_form.as_fields(row.layers) if row else [schedule_form.first_layer(timezone.localdate())]
        )
        return _form(request, row, layers, {})
    typed, problems = schedule_form.typed(request.POST.dict()), dict[str, list[str]]()
    read = []
    for place, fields in enumerate(typed):
        try:
            read.append(schedule_form.read(fields))
        except ValueError as error:
            problems[f"layers[{place}].times"] = [str(error)]
    if not problems:
        problems = _save(request, row, read)
    if problems:
        return _form(request, row, [*typed, schedule_form.as_fields([])[0]], problems)
    messages.success(request, "Saved.")
    return HttpResponseRedirect(reverse("on_call_schedule", args=[row.slug if row else request.POST["slug"]]))


def _save(
    request: HttpRequest, row: OnCallSchedule | None, read: list[dict[str, Any]]
) -> dict[str, list[str]]:
    """Errors by field; none if it was saved."""
    form = request.POST
    fields = {
        "slug": row.slug if row else form.get("slug", ""),
        "name": form.get("name", ""),
        "team": form.get("team") or None,
        "time_zone": form.get("time_zone", ""),
        "layers": read,
        "holidays": form.getlist("holidays"),
    }
    return _saved(request, SchedulesView, OnCallScheduleSerializer(row, data=fields))


def _saved(
    request: HttpRequest, catalog: type[Catalog], serializer: ModelSerializer[Any]
) -> dict[str, list[str]]:
    if not serializer.is_valid():
        return {name: [str(one) for one in _flat(found)] for name, found in serializer.errors.items()}
    try:
        catalog.acting_for(context_of(request)).put(serializer)
    except ForbiddenError as refused:
        return {"team": [refused.reason]}
    except (ConflictError, IntegrityError, StreamVersionError):
        return {"slug": [OVERTAKEN]}
    return {}


def _flat(found: Any) -> list[Any]:
    return [one for part in found for one in _flat(part)] if isinstance(found, list) else [found]


@page
@require_POST
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    configurers_only(request, FORBIDDEN)
    row = OnCallSchedule.objects.filter(slug=slug).first()
    if row is None:
        raise Http404("no such schedule")
    return _removed(request, SchedulesView, row)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def calendar(request: HttpRequest) -> HttpResponse:
    """Upload a calendar, or a newer file of a known one. GET leads to the page with the form, as after a reload."""
    if request.method != "POST":
        return HttpResponseRedirect(f"{reverse('on_call_schedules')}#calendars")
    staff_only(request)
    form, file = request.POST, request.FILES.get("file")
    row = Calendar.objects.filter(slug=form.get("slug", "").replace("\0", "")).first()
    text = form.get("text", "")
    if file is not None:
        text = file.read(4 * files.MOST_TEXT + 1).decode(errors="replace")
    fields = {
        "slug": form.get("slug", ""),
        "name": form.get("name", ""),
        "person": form.get("person") or None,
        "text": text,
    }
    errors = _saved(request, CalendarsView, CalendarSerializer(row, data=fields))
    if errors:
        return _listed(request, errors)
    messages.success(request, f"Saved {form.get('name', '')}.")
    return HttpResponseRedirect(reverse("on_call_schedules") + "#calendars")


@page
@require_POST
def remove_calendar(request: HttpRequest, slug: str) -> HttpResponse:
    staff_only(request)
    row = Calendar.objects.filter(slug=slug).first()
    if row is None:
        raise Http404("no such calendar")
    return _removed(request, CalendarsView, row)


def _removed(request: HttpRequest, catalog: type[Catalog], row: OnCallSchedule | Calendar) -> HttpResponse:
    try:
        catalog.acting_for(context_of(request)).perform_destroy(row)
        if isinstance(row, OnCallSchedule):
            removed(request, "schedule", row.slug, f"{row.name} and its overrides removed.")
        else:
            messages.success(request, f"{row.name} removed.")
    except ConflictError as refused:
        messages.error(request, f"{row.name} not removed. {refused.detail}")
    except StreamVersionError:
        messages.error(request, OVERTAKEN)
    return HttpResponseRedirect(reverse("on_call_schedules"))


def _listed(request: HttpRequest, errors: dict[str, list[str]] | None = None) -> HttpResponse:
    context = {
        "rights": rights(request),
        "schedules": OnCallSchedule.objects.select_related("team"),
        "calendars": Calendar.objects.select_related("person").defer("text"),
        "people": active_people(),
        "errors": errors or {},
        "typed": request.POST if errors else {},
    }
    status = 400 if errors else 200
    return show(request, "frontend/oncall/schedules.html", context, section="settings", status=status)


def _form(
    request: HttpRequest,
    row: OnCallSchedule | None,
    fields: list[dict[str, str]],
    problems: dict[str, list[str]],
) -> HttpResponse:
    form = request.POST
    shown = [
        {**one, "problems": [(name, message) for name, message in _of_layer(problems, place)]}
        for place, one in enumerate(fields)
    ]
    typed = {
        "slug": form.get("slug", ""),
        "name": form.get("name", row.name if row else ""),
        "team": form.get("team", row.team.slug if row and row.team else ""),
        "time_zone": form.get("time_zone", row.time_zone if row else times.here().key),
        "holidays": form.getlist("holidays")
        if form
        else [one.slug for one in row.holidays.all()]
        if row
        else [],
    }
    allowed = rights(request)
    context = {
        "it": row,
        "typed": typed,
        "layers": shown,
        "errors": problems,
        "units": schedule_form.UNITS,
        "teams": own_teams(allowed),
        "rights": allowed,
        "people": active_people(),
        "public": Calendar.objects.filter(person=None).defer("text"),
    }
    status = 400 if problems else 200
    return show(request, "frontend/oncall/schedule_form.html", context, section="settings", status=status)


def _of_layer(problems: dict[str, list[str]], place: int) -> list[tuple[str, str]]:
    prefix = f"layers[{place}]"
    return [
        (name.removeprefix(prefix).lstrip("."), message)
        for name, found in problems.items()
        if name.startswith(prefix)
        for message in found
    ]
