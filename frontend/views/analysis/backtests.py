"""Backtests: would an analyzer have been right? Asked for here, done by workers, kept with an address."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analyzers import queries as analyzers
from analyzers.contract import Analyzer
from frontend import param_form
from frontend.strips import strip
from frontend.templatetags.dossier import duration
from frontend.time_input import field_value, parse_moment, parse_span
from frontend.views.pages import context_of, page, show, typed_in
from frontend.views.paging import page_of_rows
from incidents.commands import InvalidValueError
from incidents.people.permissions import allow
from incidents.scorecards import requests
from incidents.scorecards.compare import WindowVerdict, compare, differing, lines
from incidents.scorecards.models import BacktestRow, BacktestWindow
from incidents.scorecards.queries import incidents_of, unresolved_incidents
from incidents.scorecards.requests import BacktestRequest, InvalidBacktestError

NEWEST = (("created_at", True), ("id", True))
MOST_DIFFERENCES = 200
_SPANS = ("length", "every")


@page
@require_safe
def backtests(request: HttpRequest) -> HttpResponse:
    found = BacktestRow.objects.all()
    if name := request.GET.get("analyzer", "").replace("\0", ""):
        found = found.filter(analyzer=name)
    rows, pager = page_of_rows(request, found, NEWEST)
    context = {
        "rows": rows,
        "list": pager,
        "analyzers": analyzers.analyzers(),
        "requested": name,
        "busy": any(not one.is_over for one in rows),
    }
    return show(request, "frontend/analysis/backtests/backtests.html", context, section="analyzers")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def start_backtest(request: HttpRequest, name: str) -> HttpResponse:
    """A new backtest of an analyzer. `?against=ID`: of the windows of that one, to be compared with it."""
    analyzer = analyzers.analyzers().get(name)
    if analyzer is None:
        raise Http404(f"no analyzer {name} is installed")
    against = _named(request, "against") if request.GET.get("against") else None
    if request.method != "POST":
        return _form(request, analyzer, against, _begun(analyzer, against), {})
    context = context_of(request)
    allow("analyze", context)
    form = typed_in(request)
    requested, problems = _backtest_request(analyzer, against, form)
    if requested is not None:
        try:
            row = requests.request_backtest(requested, context.actor, timezone.now())
        except InvalidBacktestError as error:
            problems[error.field] = str(error)
        else:
            where = reverse("backtest", args=[row.pk])
            if against is not None:
                where = f"{reverse('backtest_compare')}?a={against.pk}&b={row.pk}"
            return HttpResponseRedirect(where)
    return _form(request, analyzer, against, form, problems)


@page
@require_safe
def backtest(request: HttpRequest, id: UUID) -> HttpResponse:
    row = _found(id)
    if (wanted := request.GET.get("format")) in ("json", "csv"):
        return _file(row, wanted)
    counts = dict(row.windows.exclude(status="").values_list("status").annotate(Count("id")).order_by())
    status = request.GET.get("status", "")
    windows = row.windows.exclude(status="")
    if status in counts:
        windows = windows.filter(status=status)
    shown, pager = page_of_rows(request, windows, (("number", False),))
    context = {
        "row": row,
        "result": row.result,
        "counts": counts,
        "status": status,
        "windows": shown,
        "list": pager,
        "analyzer": analyzers.analyzers().get(row.analyzer),
        "params": _params(row),
        "others": row.followed_by.all(),
        "lead": row.result and row.result["median_lead_seconds"],
        "incidents": incidents_of(_blamed([row])),
        "judged": _judged(row.result),
        "unresolved": unresolved_incidents(_unconfirmed(row.result)),
        "strip": strip(row.windows.exclude(status="")) if row.is_over else None,
    }
    return show(request, "frontend/analysis/backtests/backtest.html", context, section="analyzers")


@page
@require_POST
def cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    allow("analyze", context_of(request))
    row = _found(id)
    if requests.cancel(row.pk, timezone.now()):
        messages.success(request, "Cancelled. Finished windows are listed below.")
    else:
        messages.error(request, "Already finished.")
    return HttpResponseRedirect(reverse("backtest", args=[id]))


@page
@require_safe
def comparison(request: HttpRequest) -> HttpResponse:
    """Two backtests, `?a=ID&b=ID`, side by side."""
    first, second = _named(request, "a"), _named(request, "b")
    done = first.result is not None and second.result is not None
    names = sorted({*first.params, *second.params})
    context: dict[str, Any] = {
        "first": first,
        "second": second,
        "done": done,
        "params": [(name, first.params.get(name), second.params.get(name)) for name in names],
        "busy": not (first.is_over and second.is_over),
    }
    if first.result is not None and second.result is not None:
        differences = differing(_seen(first), _seen(second))
        context |= {
            "lines": lines(first.result, second.result),
            "compared": compare(first.result["blames"], second.result["blames"]),
            "differences": differences[:MOST_DIFFERENCES],
            "many": len(differences),
            "incidents": incidents_of(_blamed([first, second])),
        }
    return show(request, "frontend/analysis/backtests/compare.html", context, section="analyzers")


def _named(request: HttpRequest, name: str) -> BacktestRow:
    try:
        return _found(UUID(request.GET.get(name, "")))
    except ValueError as error:
        raise InvalidValueError(name, "is not the id of a backtest") from error


def _found(id: UUID) -> BacktestRow:
    row = BacktestRow.objects.select_related("against").filter(pk=id).first()
    if row is None:
        raise Http404("no such backtest")
    return row


def _seen(row: BacktestRow) -> Iterable[WindowVerdict]:
    for one in row.windows.only("region", "end", "status", "suspects"):
        yield WindowVerdict(one.region, one.end, one.status, frozenset(of["names"][0] for of in one.suspects))


def _blamed(rows: Iterable[BacktestRow]) -> set[int]:
    """Numbers of the incidents that results name."""
    results = [row.result for row in rows if row.result is not None]
    found_values = {
        one["incident"] for result in results for one in (*result["blames"], *result["missed_incidents"])
    }
    return {number for number in found_values if number is not None}


def _judged(result: Mapping[str, Any] | None) -> int:
    """Number of findings and confirmed causes behind the score."""
    return 0 if result is None else result["right"] + result["wrong"] + result["missed"]


def _unconfirmed(result: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    blames = [] if result is None else result["blames"]
    return [one for one in blames if one["outcome"] == "unconfirmed"]


def _params(row: BacktestRow) -> list[tuple[str, Any, bool]]:
    """Each with whether it differs from the default of the analyzer that is installed."""
    installed = analyzers.analyzers().get(row.analyzer)
    usual = {one.name: one.default for one in installed.params} if installed else row.params
    return [(name, value, value != usual.get(name)) for name, value in sorted(row.params.items())]


def _begun(analyzer: Analyzer, against: BacktestRow | None) -> dict[str, str]:
    """The form before anybody typed: the last day of telemetry, or the last one before it of which an incident is
    resolved that says whether this analyzer is right; or what the other was asked for."""
    if against is not None:
        typed = {
            f"{param_form.PREFIX}{name}": param_form.text(value) for name, value in against.params.items()
        }
        return {"start": field_value(against.start), "end": field_value(against.end), **typed}
    length, every = requests.cadence(analyzer.name)
    spans = [
        span
        for region in analyzers.regions_of_analyzer(analyzer.name)
        if (span := analyzers.telemetry_span(analyzers.kinds_read(analyzer.name, ""), region))
    ]
    end = max((one.latest for one in spans), default=timezone.now()) + timedelta(minutes=1)
    first = min((one.first for one in spans), default=end - timedelta(days=1))
    failed = requests.last_resolved_failure(analyzer.name)
    if failed is not None and first < failed < end - timedelta(days=1):
        end = failed + length + timedelta(minutes=1)
    start = max(first.replace(second=0), end - timedelta(days=1))
    return {
        "start": field_value(start), "end": field_value(end), "length": duration(length), "every": duration(every)
    }  # fmt: skip


def _backtest_request(
    analyzer: Analyzer, against: BacktestRow | None, form: Mapping[str, str]
) -> tuple[BacktestRequest | None, dict[str, str]]:
    params, wrong = param_form.read(analyzer, form)
    problems = {f"{param_form.PREFIX}{name}": reason for name, reason in wrong.items()}
    if against is not None:
        requested = BacktestRequest(analyzer.name, against.start, against.end, params, against=against.pk)
        return (None, problems) if problems else (requested, {})
    read: dict[str, Any] = {}
    for name in ("start", "end", *_SPANS):
        try:
            if name not in _SPANS:
                read[name] = parse_moment(form.get(name, ""))
            elif text := form.get(name, "").strip():
                read[name] = parse_span(text)
        except ValueError as error:
            problems[name] = str(error)
    if problems:
        return None, problems
    region = form.get("region", "").strip()
    return BacktestRequest(analyzer.name, params=params, regions=(region,) if region else (), **read), {}


def _form(
    request: HttpRequest,
    analyzer: Analyzer,
    against: BacktestRow | None,
    form: Mapping[str, str],
    problems: Mapping[str, str],
) -> HttpResponse:
    wrong = {key.removeprefix(param_form.PREFIX): why for key, why in problems.items()}
    context = {
        "analyzer": analyzer,
        "against": against,
        "typed": form,
        "problems": problems,
        "params": param_form.fields(analyzer, param_form.typed(analyzer, form), wrong),
        "regions": analyzers.regions_of_analyzer(analyzer.name),
        "most": requests.MOST_WINDOWS,
    }
    status = 400 if problems else 200
    return show(request, "frontend/analysis/backtests/form.html", context, section="analyzers", status=status)


_COLUMNS = ("region", "start", "end", "status", "suspects", "scores", "held", "reason")


def _file(row: BacktestRow, wanted: str) -> HttpResponse:
    """The score and every window as JSON; the windows alone as CSV."""
    windows = row.windows.exclude(status="")
    name = f"backtest-{row.analyzer}-{row.start:%Y%m%d}-{row.pk.hex[:8]}.{wanted}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if wanted == "json":
        exported = {
            "id": str(row.pk),
            "state": row.state,
            "result": row.result,
            "windows": [_window_row(one) for one in windows],
        }
        return HttpResponse(json.dumps(exported, indent=2), content_type="application/json", headers=headers)
    text = StringIO()
    table = csv.writer(text)
    table.writerow(_COLUMNS)
    for one in windows.iterator():
        exported = _window_row(one)
        table.writerow([_cell(exported[column]) for column in _COLUMNS])
    return HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8", headers=headers)


def _window_row(one: BacktestWindow) -> dict[str, Any]:
    return {
        "region": one.region,
        "start": one.start.isoformat(),
        "end": one.end.isoformat(),
        "status": one.status,
        "suspects": [" = ".join(of["names"]) for of in one.suspects],
        "scores": [of["score"] for of in one.suspects],
        "held": one.held,
        "reason": one.reason,
    }


def _cell(value: Any) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = (
        "; ".join("" if one is None else str(one) for one in value) if isinstance(value, list) else str(value)
    )
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
