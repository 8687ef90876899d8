"""The noisiest sources: what fired most, with a silence to begin from and a change of its rule, tried on the past."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents.reports.alert_rules import sentence
from incidents.reports.noise import days_from, noise

SPANS = ((1, "1 day"), (7, "7 days"), (31, "31 days"))


@page
@require_safe
def noisiest(request: HttpRequest) -> HttpResponse:
    days, now = days_from(request.GET.dict()), timezone.now()
    found = noise(now - timedelta(days=days), now)
    rows = [
        (
            one,
            "\n".join(str(matcher) for matcher in one.matchers),
            one.replayed.calls_before - one.replayed.calls_after,
            "" if one.rule is None else sentence(one.rule.proposal),
        )
        for one in found.alerts
    ]
    context = {"noise": found, "rows": rows, "days": days, "spans": SPANS}
    return show(request, "frontend/suppression/noisiest.html", context, section="settings")
