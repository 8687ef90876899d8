"""Silences: which alerts call nobody, for how long and why; and the alerts that they hold back."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from frontend.durations import parse_span
from frontend.views.pages import page, show, user_name
from incidents import silences as writing
from incidents.catalog.models import Silence
from incidents.commands import Invalid
from incidents.domain.matching_text import read_matchers, write_matchers
from incidents.domain.silencing import Matcher

SPANS = ("30 min", "1 h", "4 h", "1 d", "7 d")
MOST_OVER = 50
"""Silences that are over that the page lists, the latest first."""
WORDS = {"active": "Active", "pending": "Not begun yet", "expired": "Over"}


@page
@require_http_methods(["GET", "HEAD", "POST"])
def silences(request: HttpRequest) -> HttpResponse:
    errors: dict[str, str] = {}
    typed = {name: str(value) for name, value in request.POST.items()}
    if request.method == "POST":
        errors = _create(request)
        if not errors:
            messages.success(request, "Silenced. Tickets that are open stay open.")
            return HttpResponseRedirect(reverse("silences"))
    elif number := request.GET.get("ticket", ""):
        typed = {"matchers": _suggested(number), "ticket": number}
    held, total = writing.held_alerts()
    context = {
        "groups": _groups(),
        "held": held,
        "held_total": total,
        "spans": SPANS,
        "typed": typed,
        "errors": errors,
        "ticket": typed.get("ticket", ""),
    }
    return show(request, "frontend/silences.html", context, section="silences", status=400 if errors else 200)


def _groups() -> list[dict[str, object]]:
    holding = writing.holding()
    groups = writing.by_state(Silence.objects.all()[:1_000])
    return [
        {
            "state": state,
            "words": WORDS[state],
            "silences": [
                {
                    "it": row,
                    "matchers": [str(matcher) for matcher in row.rule.matchers],
                    "holds": holding.get(str(row.pk), 0),
                }
                for row in rows[:MOST_OVER]
            ],
        }
        for state, rows in groups.items()
        if rows
    ]


def _suggested(number: str) -> str:
    """What the alerts of a ticket have in common, as matchers."""
    common = writing.labels_in_common(number)
    return write_matchers(Matcher(name, value) for name, value in common.items())


def _create(request: HttpRequest) -> dict[str, str]:
    """Make the silence that was typed; the reason by field where it cannot be."""
    form, errors = request.POST, {}
    span = timedelta(0)
    try:
        span = parse_span(form.get("other") or form.get("span", ""))
    except ValueError as error:
        errors["span"] = str(error)
    if not form.get("comment", "").strip():
        errors["comment"] = "must say why: those on call read it"
    try:
        matchers = read_matchers(form.get("matchers", ""))
        if not errors:
            ends = timezone.now() + span
            writing.create_silence(matchers, None, ends, user_name(request), form.get("comment", ""))
    except Invalid as error:
        field = {"ends_at": "span"}.get(error.field, error.field.partition("[")[0])
        errors[field] = error.reason
    return errors


@page
@require_POST
def end_silence(request: HttpRequest, id: UUID) -> HttpResponse:
    row = writing.find_silence(str(id))
    if row is None:
        raise Http404("no such silence")
    if writing.end_silence(row):
        messages.success(request, "Ended. What still fires gets its ticket within a minute.")
    else:
        messages.error(request, "That silence was over already.")
    return HttpResponseRedirect(reverse("silences"))
