"""Mitigations for an incident of a node or a training job, fetched beside its page."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries
from incidents.alerts.correlate import DEFAULT_REGION
from incidents.commands import InvalidValueError
from incidents.domain.incident.nodes import can_be_mitigated
from incidents.domain.remediation.mitigation import NAMES
from incidents.remediation.mitigation import mitigation_of


@page
@require_safe
def mitigation(request: HttpRequest, number: int) -> HttpResponse:
    """The options with their expected cost. An input that cannot be read is named, and the defaults are shown."""
    state = queries.get(str(number)).incident
    if not can_be_mitigated(state):
        raise Http404(f"#{number} names no node, GPU, NIC or training job")
    given = {name: text for name, value in request.GET.items() if "\0" not in (text := str(value))}
    region, now = state.region or DEFAULT_REGION, timezone.now()
    problem = ""
    try:
        found = mitigation_of(state, given, region, now)
    except InvalidValueError as error:
        problem = f"{error.field.replace('_', ' ')}: {error.reason}"
        found = mitigation_of(state, {}, region, now)
    context = {
        "i": state,
        "found": found,
        "names": NAMES,
        "problem": problem,
        "changed": any(value.source == "given" for value in (*found.values, *found.network_values)),
    }
    return show(request, "frontend/incident/mitigation.html", context, section="inbox")
