"""Silences: which alerts call nobody, for how long and why; and the alerts that they hold back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend import times
from frontend.time_input import parse_span
from frontend.times import exact_words
from frontend.views.incident.actions import safe_next
from frontend.views.pages import context_of, page, show, user_name
from frontend.views.paging import listed
from incidents import queries
from incidents.commands import InvalidValueError
from incidents.domain.routing.rules import read_matchers
from incidents.domain.suppression.recurrence import recurrence_from
from incidents.domain.values import read_zone
from incidents.suppression import silences as writing
from incidents.teams.models import Silence

SPANS = ("30 min", "1 h", "2 h", "4 h", "1 d", "7 d")
AGAIN = (
    ("every day", "FREQ=DAILY"),
    ("Monday to Friday", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ("every week", "FREQ=WEEKLY"),
    ("every month", "FREQ=MONTHLY"),
)
MOST = 2_000
MOST_OVER = 50
"""Silences that are over that the page lists, the latest first."""
WORDS = {"unreadable": "Invalid", "active": "Active", "pending": "Scheduled", "expired": "Ended"}


@page
@require_http_methods(["GET", "HEAD", "POST"])
def silences(request: HttpRequest) -> HttpResponse:
    errors: dict[str, str] = {}
    typed = {name: str(value) for name, value in request.POST.items()}
    if request.method == "POST":
        made, errors = _create(request)
        if made is not None:
            return _created(request, made)
    elif number := request.GET.get("incident", ""):
        typed = {"matchers": writing.matchers_in_common(number), "incident": number}
    elif matchers := request.GET.get("matchers", "").replace("\0", ""):
        typed = {"matchers": matchers}
    suppressed, total = writing.suppressed_alerts()
    found = listed(request, _in_order(), _words, lambda row: (str(row[1].pk),))
    context = {
        "groups": _groups(found.rows),
        "list": found,
        "suppressed": suppressed,
        "suppressed_total": total,
        "spans": SPANS,
        "again": [words for words, _ in AGAIN],
        "typed": typed,
        "errors": errors,
        "incident": typed.get("incident", ""),
        "nothing_shared": request.method != "POST" and bool(typed.get("incident")) and not typed["matchers"],
    }
    return show(
        request,
        "frontend/suppression/silences.html",
        context,
        section="settings",
        status=400 if errors else 200,
    )


MOST_PREVIEWED = 5
"""Incidents of a selection whose silences are previewed; all of them are silenced."""


@page
@require_safe
def preview(request: HttpRequest) -> HttpResponse:
    """Alerts that a silence would match now: of `matchers` as typed, or of the incidents `number`."""
    numbers = [
        one for one in request.GET.getlist("number") if one.isascii() and one.isdecimal() and len(one) < 16
    ]
    shown, problem = list[tuple[str, writing.SilencePreview | None, str]](), ""
    try:
        if request.GET.get("matchers", "").strip():
            shown.append(("", writing.preview(read_matchers(request.GET["matchers"])), ""))
        for number in numbers[:MOST_PREVIEWED]:
            if text := writing.matchers_in_common(number):
                shown.append((number, writing.preview(read_matchers(text)), ""))
            else:
                shown.append((number, None, writing.nothing_in_common(number)))
    except InvalidValueError as error:
        problem = f"{error.reason[:1].upper()}{error.reason[1:]}."
    context = {
        "previews": shown,
        "more": max(0, len(numbers) - MOST_PREVIEWED),
        "problem": problem,
    }
    return render(request, "frontend/suppression/preview.html", context)


def _in_order() -> list[tuple[str, Silence]]:
    """Silences with their states: those that hold, those to come, and the latest of those that are over."""
    groups = writing.by_state(Silence.objects.select_related("recurrence")[:MOST])
    return [
        (state, row)
        for state, rows in groups.items()
        for row in (rows[:MOST_OVER] if state == "expired" else rows)
    ]


def _words(line: tuple[str, Silence]) -> str:
    state, row = line
    return " ".join((WORDS[state], row.comment, row.created_by, *map(str, writing.matchers_shown(row))))


def _groups(lines: Sequence[tuple[str, Silence]]) -> list[dict[str, object]]:
    suppressed, now = writing.suppressed_counts(), timezone.now()
    return [
        {
            "state": state,
            "words": WORDS[state],
            "silences": [
                {
                    "it": row,
                    "matchers": [str(matcher) for matcher in writing.matchers_shown(row)],
                    "suppressed": suppressed.get(str(row.pk), 0),
                    "again": getattr(row, "recurrence", None),
                    "problem": writing.problem_of(row, now),
                    "span": writing.span_of(row, now),
                }
                for _, row in rows
            ],
        }
        for state, rows in groupby(lines, key=lambda line: line[0])
    ]


def _created(request: HttpRequest, made: Silence) -> HttpResponse:
    """Says what the silence does, with an undo; back to the incident that it was made from."""
    view = _incident(request.POST.get("incident", ""))
    back = f"silence {made.pk}"
    if view is None:
        messages.success(request, "Silenced. Matching open incidents notify no one.", extra_tags=back)
        return HttpResponseRedirect(reverse("silences"))
    one, until = view.incident, exact_words(made.ends_at)
    if one.silence is not None:
        text = f"Silenced #{one.number} until {until}. It pages no one until then."
    elif made.starts_at > timezone.now():
        text = f"#{one.number} will be silenced from {exact_words(made.starts_at)}."
    else:
        text = (
            f"Silenced until {until}, but #{one.number} still pages: it has firing alerts or findings that the "
            "silence does not match."
        )
    messages.success(request, text, extra_tags=back)
    return HttpResponseRedirect(reverse("incident", args=[one.number]))


def _incident(number: str) -> queries.View | None:
    try:
        return queries.get(number) if number else None
    except queries.IncidentNotFoundError:
        return None


def _create(request: HttpRequest) -> tuple[Silence | None, dict[str, str]]:
    """The silence that was typed; None with the reasons by field where it cannot be made."""
    form, errors = request.POST, dict[str, str]()
    span = timedelta(0)
    try:
        span = parse_span(form.get("other") or form.get("span", ""))
    except ValueError as error:
        errors["span"] = str(error)
    if not form.get("comment", "").strip():
        errors["comment"] = "must not be empty: people on call need the reason"
    try:
        matchers = read_matchers(form.get("matchers", ""))
        again = typed_again(form)
        starts = typed_start(form) if again is not None else None
        if not errors:
            ends = (starts or timezone.now()) + span
            context, why = context_of(request), form.get("comment", "")
            view = _incident(form.get("incident", ""))
            of = () if view is None else (view.incident.id,)
            made = writing.create_silence(matchers, starts, ends, user_name(request), why, context, again, of)
            return made, {}
    except InvalidValueError as error:
        field = {"ends_at": "span"}.get(error.field, re.split(r"[.\[]", error.field)[0])
        errors[field] = error.reason
    return None, errors


def typed_again(form: QueryDict) -> writing.SilenceRepeat | None:
    """Typed recurrence. Raises InvalidValueError."""
    rule = form.get("rule", "").strip() or dict(AGAIN).get(form.get("again", ""), "")
    if not rule:
        return None
    return writing.SilenceRepeat(
        recurrence_from("recurrence", rule, form.get("time_zone", "").strip() or times.here().key)
    )


def typed_start(form: QueryDict) -> datetime | None:
    """The first start as typed, in the zone that was typed; None where it is now. Raises InvalidValueError."""
    text = form.get("starts", "").strip()
    if not text:
        return None
    zone = read_zone("recurrence", form.get("time_zone", "").strip() or times.here().key)
    try:
        return datetime.fromisoformat(text[:40]).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidValueError("recurrence", "must start at a time such as 2026-01-31 22:00") from None


@page
@require_POST
def end_silence(request: HttpRequest, id: UUID) -> HttpResponse:
    row = writing.find_silence(str(id))
    if row is None:
        raise Http404("no such silence")
    if writing.end_silence(row, context_of(request)):
        messages.success(request, "Silence ended. Alerts still firing page again.")
    else:
        messages.error(request, "The silence had already ended.")
    return HttpResponseRedirect(safe_next(request, reverse("silences")))
