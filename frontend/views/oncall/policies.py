"""Escalation policies: who is called for an incident that nobody answers; staff change them, managers their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from frontend.rights import configurers_only, own_teams, rights
from frontend.time_input import parse_span
from frontend.views.pages import context_of, page, show
from frontend.views.paging import listed
from frontend.views.restore import removed
from incidents.api.escalation import PoliciesView, PolicySerializer
from incidents.api.incident.views import ConflictError
from incidents.domain.escalation.policy import USUAL_WAIT, Policy, spoken
from incidents.domain.escalation.policy_text import read_steps, write_span, write_steps
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import InvalidValueError
from incidents.escalation.models import EscalationPolicy
from incidents.escalation.queries import people_called
from incidents.escalation.queries import policies as all_policies
from incidents.notifications.queries import unreachable
from ingest.queries import StreamVersionError

EXAMPLE = "at once: person alice\nafter 5 min: person bob\nafter 15 min: team storage, severity critical"
FORBIDDEN = "Only staff, and managers for their own team, can change policies."
_SPANS = ("repeat_after", "acknowledgement_timeout")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def policies(request: HttpRequest) -> HttpResponse:
    """The list, and the form for a new one or, with `?edit=`, for one that is there."""
    edited = _found(request.GET["edit"]) if request.GET.get("edit") else None
    if request.method != "POST":
        return _listed(request, edited, _typed(edited), {})
    configurers_only(request, FORBIDDEN)
    typed = {name: str(value) for name, value in request.POST.items()}
    errors = _saved(request, edited, typed)
    if errors:
        return _listed(request, edited, typed, errors)
    messages.success(request, f"Saved {typed['name']}. New incidents use it.")
    return HttpResponseRedirect(reverse("policies"))


@page
@require_POST
def remove_policy(request: HttpRequest, slug: str) -> HttpResponse:
    configurers_only(request, FORBIDDEN)
    row = _found(slug)
    try:
        PoliciesView.acting_for(context_of(request)).perform_destroy(row)
        words = f"{row.name} removed. Running escalations are unchanged."
        removed(request, "escalation_policy", slug, words)
    except ConflictError as error:
        messages.error(request, str(error.detail))
    return HttpResponseRedirect(reverse("policies"))


def _listed(
    request: HttpRequest, edited: EscalationPolicy | None, typed: Mapping[str, str], errors: dict[str, str]
) -> HttpResponse:
    allowed = rights(request)
    found = listed(request, list(all_policies()), _policy_summary, lambda row: (row.slug,))
    context = {
        "policies": [_shown(row) for row in found.rows],
        "list": found,
        "edited": edited,
        "typed": typed,
        "errors": errors,
        "teams": own_teams(allowed),
        "example": EXAMPLE,
        "rights": allowed,
    }
    return show(
        request, "frontend/oncall/policies.html", context, section="settings", status=400 if errors else 200
    )


def _policy_summary(row: EscalationPolicy) -> str:
    return f"{row.name} {row.slug} {'' if row.team is None else row.team.name}"


def _shown(row: EscalationPolicy) -> dict[str, Any]:
    try:
        policy = row.policy
    except InvalidValueError as error:
        return {"it": row, "problem": str(error)}
    return {
        "it": row,
        "steps": write_steps(policy.steps).splitlines(),
        "words": _words(policy),
        "unreachable": unreachable(people_called(row)),
    }


def _words(policy: Policy) -> list[str]:
    wait = spoken(policy.repeat_after)
    times = "once more" if policy.repeats == 1 else f"{policy.repeats} times more"
    entries = [
        f"Then all steps {times}, each time {wait} after the last step; then the escalation ends."
        if policy.repeats
        else f"{wait} after the last step the escalation ends."
    ]
    if policy.acknowledgement_timeout is not None:
        silence = spoken(policy.acknowledgement_timeout)
        entries.append(f"Restarts if an acknowledged incident is not resolved within {silence}.")
    if policy.restart_when_worse:
        entries.append("Restarts when the severity rises.")
    return entries


def _typed(row: EscalationPolicy | None) -> dict[str, str]:
    if row is None:
        return {"repeats": "1", "repeat_after": write_span(USUAL_WAIT)}
    policy = row.policy
    timeout = policy.acknowledgement_timeout
    return {
        "slug": row.slug,
        "name": row.name,
        "team": "" if row.team is None else row.team.slug,
        "steps": write_steps(policy.steps),
        "repeats": str(policy.repeats),
        "repeat_after": write_span(policy.repeat_after),
        "acknowledgement_timeout": "" if timeout is None else write_span(timeout),
        "restart_when_worse": "on" if policy.restart_when_worse else "",
    }


def _saved(request: HttpRequest, edited: EscalationPolicy | None, typed: Mapping[str, str]) -> dict[str, str]:
    """Make or change the policy that was typed; the reason by field where it cannot be."""
    given, errors = _given(typed)
    serializer = PolicySerializer(edited, data=given)
    if not serializer.is_valid():
        errors = {**{name: _text(why) for name, why in serializer.errors.items()}, **errors}
    if errors:
        return {name.partition("[")[0]: _placed(name, why) for name, why in reversed(errors.items())}
    try:
        PoliciesView.acting_for(context_of(request)).put(serializer)
    except ForbiddenError as refused:
        return {"team": refused.reason}
    except (ConflictError, IntegrityError, StreamVersionError):
        return {"slug": "changed by someone else in the meantime; reload and try again"}
    return {}


def _given(typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Data for the serializer, and errors by field that cannot be read."""
    given: dict[str, Any] = {
        "slug": typed.get("slug", "").strip(),
        "name": typed.get("name", ""),
        "team": typed.get("team") or None,
        "repeats": typed.get("repeats", "0").strip(),
        "restart_when_worse": bool(typed.get("restart_when_worse")),
        "acknowledgement_timeout": None,
    }
    errors: dict[str, str] = {}
    for name in _SPANS:
        if text := typed.get(name, "").strip():
            try:
                given[name] = int(parse_span(text).total_seconds())
            except ValueError as error:
                errors[name] = str(error)
    try:
        given["steps"] = read_steps(typed.get("steps", ""))
    except InvalidValueError as error:
        given["steps"], errors["steps"] = [], error.reason
    return given, errors


def _placed(name: str, why: str) -> str:
    """`steps[1].actions[0].person: …` as the line that it is on."""
    place = name.removeprefix("steps[").partition("]")[0]
    return f"step {int(place) + 1}: {name.rpartition('.')[2]} {why}" if place.isdecimal() else why


def _text(why: Any) -> str:
    return " ".join(str(one) for one in why) if isinstance(why, list) else str(why)


def _found(slug: str) -> EscalationPolicy:
    row = (
        EscalationPolicy.objects.select_related("team").filter(slug=slug).first()
        if "\0" not in slug
        else None
    )
    if row is None:
        raise Http404(f"no policy {slug[:60]}")
    return row
