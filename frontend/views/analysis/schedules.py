"""Schedules: when an analyzer runs by itself. Everybody reads, staff change."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.serializers import BaseSerializer

from analyzers import queries as analyzers
from analyzers.api import schedules as keeping
from analyzers.api.serializers import ScheduleSerializer
from analyzers.commands import span_text
from analyzers.contract import Analyzer
from analyzers.queries import Schedule
from frontend import param_form
from frontend.templatetags.dossier import duration
from frontend.time_input import parse_span
from frontend.views.pages import context_of, page, show, staff_only, typed_in
from frontend.views.restore import removed
from frontend.views.serializer_forms import Read, edited, named
from ingest.queries import regions

STAFF = "Only staff can change schedules."
_SPANS = ("length", "every", "grace")
_USUAL = {"every": timedelta(minutes=5), "grace": timedelta(seconds=30)}


@page
@require_http_methods(["GET", "HEAD", "POST"])
def schedules(request: HttpRequest) -> HttpResponse:
    problem: dict[str, str] = {}
    if request.method == "POST":
        problem = _edit(request)
        if not problem:
            messages.success(request, f"Saved {request.POST.get('name')}")
            return HttpResponseRedirect(reverse("schedules"))
    found = list(Schedule.objects.order_by("analyzer", "length", "name"))
    context = {"schedules": found, "problem": problem, "typed": request.POST}
    return show(
        request,
        "frontend/analysis/schedules.html",
        context,
        section="analyzers",
        status=400 if problem else 200,
    )


def _edit(request: HttpRequest) -> dict[str, str]:
    """Change one schedule; the reason by field when it cannot be."""
    staff_only(request)
    schedule = _found(request.POST.get("name", "").replace("\0", ""))
    spans: dict[str, timedelta] = {}
    for field in ("every", "length", "grace"):
        try:
            spans[field] = parse_span(request.POST.get(field, ""))
        except ValueError as error:
            return {"name": schedule.name, "reason": f"{field.capitalize()} {error}."}
    for field, span in spans.items():
        setattr(schedule, field, span)
    schedule.enabled = request.POST.get("enabled") == "on"
    try:
        schedule.full_clean()
    except ValidationError as error:
        return {"name": schedule.name, "reason": " ".join(error.messages)}
    keeping.save(schedule, context_of(request), *_SPANS, "enabled")
    return {}


@page
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str | None = None) -> HttpResponse:
    """One schedule with its parameters: a new one, of the analyzer that the address names, without `name`."""
    staff_only(request, STAFF)
    if name is None and not request.GET.get("analyzer"):
        messages.info(request, "Choose the analyzer for the new schedule.")
        return HttpResponseRedirect(reverse("analyzers"))
    row = None if name is None else _found(name)
    analyzer = _analyzer(row.analyzer if row else request.GET.get("analyzer", ""))

    def read() -> tuple[Mapping[str, str], Read]:
        typed = typed_in(request)
        return typed, _read(analyzer, typed)

    def keep(serializer: BaseSerializer[Any]) -> str:
        assert isinstance(serializer, ScheduleSerializer)
        messages.success(request, f"Saved {keeping.put(serializer, context_of(request)).name}")
        return reverse("analyzer", args=[analyzer.name]) + "#schedules"

    return edited(
        request,
        lambda: _begun(row, analyzer),
        read,
        lambda data: ScheduleSerializer(row, data=data, partial=row is not None),
        keep,
        lambda typed, problems: _form(request, row, analyzer, typed, problems),
    )


@page
@require_POST
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Switch a schedule off, or on again."""
    staff_only(request, STAFF)
    row = _found(name)
    row.enabled = "resume" in request.POST
    keeping.save(row, context_of(request), "enabled")
    result = "resumes with the next window" if row.enabled else "is paused"
    messages.success(request, f"{row.name} {result}")
    return HttpResponseRedirect(reverse("analyzer", args=[row.analyzer]) + "#schedules")


@page
@require_POST
def remove(request: HttpRequest, name: str) -> HttpResponse:
    staff_only(request, STAFF)
    row = _found(name)
    keeping.remove(row, context_of(request))
    removed(request, keeping.KIND, name, f"Removed {name}. Its runs are kept.")
    return HttpResponseRedirect(reverse("analyzer", args=[row.analyzer]) + "#schedules")


def _found(name: str) -> Schedule:
    return named(Schedule.objects.all(), name, "schedule")


def _analyzer(name: str) -> Analyzer:
    found = analyzers.analyzers().get(name)
    if found is None:
        raise Http404(f"no analyzer {name[:60]} is installed")
    return found


def _begun(row: Schedule | None, analyzer: Analyzer) -> dict[str, str]:
    """The form before anybody typed."""
    if row is None:
        spans = {**_USUAL, "length": analyzer.length}
        if analyzer.length >= timedelta(days=1):
            spans["every"] = timedelta(days=1)
        usual = {name: duration(span) for name, span in spans.items()}
        return {"name": analyzer.name.replace("_", "-"), "enabled": "on", **usual}
    return {
        "name": row.name,
        "region": row.region,
        "input": row.input,
        "enabled": "on" if row.enabled else "",
        **{name: duration(getattr(row, name)) for name in _SPANS},
        **{f"{param_form.PREFIX}{name}": param_form.text(value) for name, value in row.params.items()},
    }


def _read(analyzer: Analyzer, form: Mapping[str, str]) -> Read:
    params, wrong = param_form.read(analyzer, form)
    problems = {f"{param_form.PREFIX}{name}": reason for name, reason in wrong.items()}
    data: dict[str, Any] = {
        "name": form.get("name", "").strip(),
        "analyzer": analyzer.name,
        "region": form.get("region", "").strip(),
        "input": form.get("input", ""),
        "params": params,
        "enabled": form.get("enabled") == "on",
    }
    for name in _SPANS:
        try:
            data[name] = span_text(parse_span(form.get(name, "")))
        except ValueError as error:
            problems[name] = str(error)
    return Read(data, problems)


def _form(
    request: HttpRequest,
    row: Schedule | None,
    analyzer: Analyzer,
    form: Mapping[str, str],
    problems: Mapping[str, str],
) -> HttpResponse:
    typed = param_form.typed(analyzer, form)
    wrong = {key.removeprefix(param_form.PREFIX): why for key, why in problems.items()}
    context = {
        "schedule": row,
        "analyzer": analyzer,
        "typed": form,
        "problems": problems,
        "params": param_form.fields(analyzer, typed, wrong),
        "regions": regions(),
    }
    status = 400 if problems else 200
    return show(request, "frontend/analysis/schedule.html", context, section="analyzers", status=status)
