"""Analyzers: what is installed, what each came to, and a run of one now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from analyzers import commands
from analyzers import queries as analyzers
from analyzers.contract import Analyzer
from analyzers.queries import Outcomes, Run, Schedule
from frontend import param_form
from frontend.documents import slugs
from frontend.time_input import field_value, parse_moment, parse_span
from frontend.times import clock_words
from frontend.views.pages import context_of, page, show, typed_in, user_name
from incidents.people.permissions import allow
from incidents.scorecards.models import BacktestRow
from incidents.scorecards.queries import by_version, scorecard, scorecards

SPANS = {
    "day": (timedelta(minutes=30), 48),
    "week": (timedelta(hours=3), 56),
    "month": (timedelta(hours=12), 60),
}
"""Spans of the outcomes shown: the step and the number of steps."""
SHOWN = ("named", "quiet", "inconclusive", "failed", "unfinished")
RECENT = 12


@dataclass(frozen=True, slots=True)
class Column:
    """Runs of one stretch as a stacked column: places from 0 to 1, and in words."""

    at: float
    width: float
    parts: Sequence[tuple[str, float, float]]
    words: str


@page
@require_safe
def analyzer_list(request: HttpRequest) -> HttpResponse:
    installed = analyzers.analyzers()
    cards = scorecards(list(installed), waiting=False)
    schedules: dict[str, list[Schedule]] = {}
    for one in Schedule.objects.order_by("length", "name"):
        schedules.setdefault(one.analyzer, []).append(one)
    shown = [
        (not schedules.get(one.name), one.name, one, cards[one.name], analyzers.newest_run(one.name))
        for one in installed.values()
    ]
    context = {
        "analyzers": [
            {"it": one, "card": card, "last": last, "schedules": schedules.get(name, [])}
            for _, name, one, card, last in sorted(shown, key=lambda one: one[:2])
        ],
        "problems": analyzers.analyzer_problems(),
    }
    return show(request, "frontend/analysis/analyzers.html", context, section="analyzers", watch="runs")


@page
@require_safe
def analyzer(request: HttpRequest, name: str) -> HttpResponse:
    found = _installed(name)
    span = request.GET.get("span", "day")
    step, parts = SPANS.get(span, SPANS["day"])
    now = timezone.now()
    until = now - (now - datetime.min.replace(tzinfo=now.tzinfo)) % step + step
    counted = analyzers.outcomes(name, until - parts * step, step, parts)
    context = {
        "analyzer": found,
        "params": param_form.fields(found),
        "card": scorecard(name),
        "versions": by_version(name),
        "schedules": Schedule.objects.filter(analyzer=name).order_by("length", "name"),
        "runs": analyzers.runs().filter(analyzer=name)[:RECENT],
        "backtests": BacktestRow.objects.filter(analyzer=name)[:5],
        "columns": columns(counted),
        "totals": [(one, sum(part.counts[one] for part in counted)) for one in SHOWN],
        "since": counted[0].start,
        "span": span if span in SPANS else "day",
        "spans": SPANS,
        "document": slug if (slug := f"analyzers/{name}") in slugs() else None,
    }
    return show(request, "frontend/analysis/analyzer.html", context, section="analyzers", watch="runs")


def columns(counted: Sequence[Outcomes]) -> list[Column]:
    """Stacked columns, the highest as high as the drawing."""
    most = max((one.total for one in counted), default=0) or 1
    width = 1 / len(counted)
    found = []
    for place, one in enumerate(counted):
        below, parts = 0.0, []
        for name in SHOWN:
            if height := one.counts[name] / most:
                parts.append((name, below + height, height))
                below += height
        text = ", ".join(f"{one.counts[name]} {name}" for name in SHOWN if one.counts[name]) or "no run"
        if parts:
            found.append(Column(place * width, width * 0.82, parts, f"{clock_words(one.start)}: {text}"))
    return found


@page
@require_http_methods(["GET", "HEAD", "POST"])
def run_now(request: HttpRequest, name: str) -> HttpResponse:
    """A run by hand. `?like=RUN` begins with what that run was asked for."""
    found = _installed(name)
    if request.method != "POST":
        return _form(request, found, _begun(found, request.GET.get("like", "")), {})
    context = context_of(request)
    allow("analyze", context)
    form = typed_in(request)
    wanted, problems = _wanted(found, form)
    if wanted is not None:
        try:
            run = commands.request_run(wanted, context.actor, timezone.now())
        except commands.InvalidRunError as error:
            problems[error.field] = str(error)
        else:
            messages.success(request, "Queued. The verdict appears on this page.")
            return HttpResponseRedirect(reverse("run", args=[run.pk]))
    return _form(request, found, form, problems)


def _installed(name: str) -> Analyzer:
    found = analyzers.analyzers().get(name)
    if found is None:
        raise Http404(f"no analyzer {name} is installed")
    return found


def _begun(analyzer: Analyzer, like: str) -> dict[str, str]:
    """The form before anybody typed: as its schedule has it, or as an earlier run was asked for."""
    length, _ = _usual(analyzer)
    try:
        earlier = Run.objects.filter(pk=UUID(like), analyzer=analyzer.name).first() if like else None
    except ValueError:
        earlier = None
    if earlier is None:
        return {"length": length, "report": ""}
    return {
        "region": earlier.region,
        "start": field_value(earlier.window_start),
        "end": field_value(earlier.window_end),
        "input": earlier.input,
        **{f"{param_form.PREFIX}{name}": param_form.text(value) for name, value in earlier.params.items()},
    }


def _usual(analyzer: Analyzer) -> tuple[str, Schedule | None]:
    schedule = Schedule.objects.filter(analyzer=analyzer.name).order_by("length").first()
    return commands.span_text(schedule.length if schedule else analyzer.length), schedule


def _wanted(analyzer: Analyzer, form: Mapping[str, str]) -> tuple[commands.RunRequest | None, dict[str, str]]:
    """The run that a form requests, or by field the reason why it makes no sense."""
    params, wrong = param_form.read(analyzer, form)
    problems = {f"{param_form.PREFIX}{name}": reason for name, reason in wrong.items()}
    moments: dict[str, datetime | None] = {"start": None, "end": None}
    for name in moments:
        if text := form.get(name, "").strip():
            try:
                moments[name] = parse_moment(text)
            except ValueError as error:
                problems[name] = str(error)
    length = None
    if moments["start"] is None and "start" not in problems:
        try:
            length = parse_span(form.get("length", ""))
        except ValueError as error:
            problems["length"] = str(error)
    if problems:
        return None, problems
    return commands.RunRequest(
        analyzer.name,
        region=form.get("region", "").strip() or "default",
        start=moments["start"],
        end=moments["end"],
        length=length,
        params=params,
        input=form.get("input", ""),
        report=form.get("report") == "on",
    ), {}


def _form(
    request: HttpRequest, analyzer: Analyzer, form: Mapping[str, str], problems: Mapping[str, str]
) -> HttpResponse:
    wrong = {key.removeprefix(param_form.PREFIX): why for key, why in problems.items()}
    regions = analyzers.regions_of_analyzer(analyzer.name)
    context: dict[str, Any] = {
        "analyzer": analyzer,
        "typed": form,
        "problems": problems,
        "params": param_form.fields(analyzer, param_form.typed(analyzer, form), wrong),
        "regions": regions,
        "spans": [
            (region, analyzers.telemetry_span(analyzers.kinds_read(analyzer.name, ""), region))
            for region in regions
        ],
        "who": user_name(request),
    }
    status = 400 if problems else 200
    return show(request, "frontend/analysis/run_now.html", context, section="analyzers", status=status)
