"""Changes: the risk of those that go out, what was stated of those that did, and what became of them."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from analyzers.builtin.stats.intervals import moment
from frontend.views.incident.actions import safe_next
from frontend.views.pages import context_of, page, show, typed_in
from frontend.views.paging import listed
from incidents.changes.outcomes import HARMLESS, INCIDENT, ROLLED_BACK, caused, record_outcome
from incidents.changes.risk import DAYS, ListedChange, risks
from incidents.domain.values import CommandRefusedError, InvalidValueError
from ingest.queries import regions

IN_A_PAGE = 20
"""A change takes some 190 px of a phone."""
SHOWN = ("", "ahead", "undecided", "bad", "good")
WORDS = {INCIDENT: "caused an incident", ROLLED_BACK: "rolled back", HARMLESS: "harmless"}


@page
@require_safe
def changes(request: HttpRequest) -> HttpResponse:
    known = regions()
    region = request.GET.get("region") or (known[0] if known else "")
    if region and region not in known:
        raise InvalidValueError("region", f"no telemetry of {region[:100]}")
    which = request.GET.get("outcome", "")
    if which not in SHOWN:
        raise InvalidValueError("outcome", f"must be one of {', '.join(SHOWN[1:])}")
    now = timezone.now()
    found = risks(region, now) if region else None
    lines = [one for one in found.changes if _is(one, which)] if found else []
    rows = listed(
        request, lines, _words, lambda one: (one.change.name,), carried=("region", "outcome"), limit=IN_A_PAGE
    )
    causes = caused(region, now - timedelta(days=DAYS), now) if region else {}
    context = {
        "risks": found,
        "rows": [
            (one, moment(one.change.at), causes.get(one.change.name, ()) if one.change.is_bad else ())
            for one in rows.rows
        ],
        "list": rows,
        "regions": known,
        "region": region,
        "which": which,
        "days": DAYS,
    }
    return show(request, "frontend/analysis/changes.html", context, section="analyzers")


@page
@require_POST
def outcome(request: HttpRequest) -> HttpResponse:
    form = typed_in(request)
    change, answer = form.get("change", ""), form.get("outcome", "")
    try:
        record_outcome(change, answer, form.get("region", ""), context_of(request))
    except CommandRefusedError as error:
        messages.error(request, error.reason)
    else:
        messages.success(request, f"{change}: {WORDS[answer]}. Recorded.")
    return HttpResponseRedirect(safe_next(request, reverse("changes")))


def _is(one: ListedChange, which: str) -> bool:
    if which == "ahead":
        return one.ahead
    if which == "undecided":
        return not one.ahead and not one.change.outcome
    if which in ("bad", "good"):
        return bool(one.change.outcome) and one.change.is_bad == (which == "bad")
    return True


def _words(one: ListedChange) -> str:
    change = one.change
    return " ".join((change.name, change.kind, change.team, change.author, *change.targets, *change.settings))
