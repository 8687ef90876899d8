"""Calculators: typed-in figures through the functions of the analyzers, with an address for every answer."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from analyzers.queries import CALCULATORS, Calculator, what_if_answer, what_if_inputs
from frontend.views.pages import page, show

SLIDER = 1000
"""Steps of a slider; what lies between them can be typed."""


@page
@require_safe
def what_if(request: HttpRequest, slug: str) -> HttpResponse:
    calculator = CALCULATORS.get(slug)
    if calculator is None:
        raise Http404(f"no calculator {slug}")
    values, wrong = what_if_inputs(calculator, request.GET)
    found, together = None, ""
    if not wrong:
        try:
            found = what_if_answer(calculator, values)
        except ValueError as error:
            together = str(error)
    context = {
        "calculators": CALCULATORS.values(),
        "calculator": calculator,
        "fields": _fields(calculator, values, wrong, request),
        "answer": found,
        "wrong": wrong,
        "together": together,
        "share": request.build_absolute_uri(f"{request.path}?{_query(values)}"),
    }
    # What is typed beside the page is answered in the page: an answer that says what is wrong is none that failed.
    aside = "HX-Request" in request.headers
    status = 200 if found is not None or aside else 400
    return show(request, "frontend/analysis/what_if.html", context, section="reports", status=status)


def _query(values: dict[str, float]) -> str:
    return urlencode({name: _typed(value) for name, value in values.items()})


def _fields(
    calculator: Calculator, values: dict[str, float], wrong: dict[str, str], request: HttpRequest
) -> list[dict[str, Any]]:
    """Fields of the form: as typed where that was wrong, else the number in its shortest spelling."""
    return [
        {
            "it": one,
            "value": request.GET.get(one.name, "")[:40] if one.name in wrong else _typed(values[one.name]),
            "default": _typed(one.default),
            "low": _typed(one.low),
            "high": _typed(one.high),
            "problem": wrong.get(one.name),
            "place": round(SLIDER * _place(one.least, one.most, values[one.name], log=one.log)),
            "steps": SLIDER,
        }
        for one in calculator.inputs
    ]


def _place(least: float, most: float, value: float, *, log: bool) -> float:
    value = min(max(value, least), most)
    return math.log(value / least) / math.log(most / least) if log else (value - least) / (most - least)


def _typed(value: float) -> str:
    return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.0f}"
