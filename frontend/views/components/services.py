"""Services: which components are their parts, who has them, what they depend on; and what fails with a component."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from frontend.rights import configurers_only, own_teams, rights
from frontend.views.pages import context_of, page, show
from frontend.views.paging import listed
from frontend.views.restore import removed
from incidents.api.components.views import blast_radius
from incidents.api.incident.views import ConflictError
from incidents.api.routing.serializers import ServiceSerializer
from incidents.api.routing.services import ServicesView
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import InvalidValueError, check_component, check_line
from incidents.teams.models import Service
from ingest.queries import StreamVersionError, regions

FORBIDDEN = "Only staff, and managers for their own team, can change services."
MOST = 30
"""Components of a blast radius that the page lists."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def services(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        configurers_only(request, FORBIDDEN)
        return _posted(request)
    if edited := request.GET.get("edit"):
        row = _found(edited)
        return _shown(request, row.slug, _typed_from(row), {})
    return _shown(request, "", {}, {})


def _posted(request: HttpRequest) -> HttpResponse:
    edited, typed = request.POST.get("edited", ""), _typed_in(request.POST)
    row = _found(edited) if edited else None
    patterns = [line.strip() for line in typed["patterns"].splitlines() if line.strip()]
    given = {**typed, "team": typed["team"] or None, "patterns": patterns}
    serializer = ServiceSerializer(row, data=given)
    if not serializer.is_valid():
        return _shown(request, edited, typed, {name: _text(why) for name, why in serializer.errors.items()})
    try:
        ServicesView.acting_for(context_of(request)).put(serializer)
    except ForbiddenError as refused:
        return _shown(request, edited, typed, {"team": refused.reason})
    except (IntegrityError, StreamVersionError, ConflictError):
        changed = {"slug": "changed by someone else in the meantime; reload and try again"}
        return _shown(request, edited, typed, changed)
    messages.success(request, f"{typed['name']} saved. Open incidents are unchanged.")
    return HttpResponseRedirect(reverse("services"))


def _typed_from(row: Service) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "name": row.name,
        "description": row.description,
        "team": "" if row.team is None else row.team.slug,
        "patterns": "\n".join(row.patterns),
        "depends_on": [one.slug for one in row.depends_on.all()],
    }


def _typed_in(post: QueryDict) -> dict[str, Any]:
    names = ("slug", "name", "description", "team", "patterns")
    return {**{name: post.get(name, "").strip() for name in names}, "depends_on": post.getlist("depends_on")}


def _text(why: Any) -> str:
    """The texts of an error, however it is nested."""
    if isinstance(why, dict):
        return " ".join(map(_text, why.values()))
    return " ".join(map(_text, why)) if isinstance(why, list) else str(why)


def _shown(request: HttpRequest, edited: str, typed: dict[str, Any], errors: dict[str, str]) -> HttpResponse:
    requested = {name: request.GET.get(name, "").strip() for name in ("component", "region")}
    radius, problem = _radius(requested)
    allowed = rights(request)
    every = list(Service.objects.select_related("team").prefetch_related("depends_on", "routes"))
    context = {
        "services": every,
        "list": listed(request, every, _words, lambda row: (row.slug,)),
        "teams": own_teams(allowed),
        "rights": allowed,
        "regions": regions(),
        "edited": edited,
        "typed": typed,
        "errors": errors,
        "requested": requested,
        "radius": radius,
        "problem": problem,
    }
    status = 400 if errors or problem else 200
    return show(request, "frontend/components/services.html", context, section="settings", status=status)


def _words(row: Service) -> str:
    team = "" if row.team is None else row.team.name
    return " ".join((row.name, row.slug, row.description, team, *row.patterns))


def _radius(requested: dict[str, str]) -> tuple[dict[str, Any] | None, str]:
    """Components that fail with the one in the address, or the reason why that is unknown."""
    if not requested["component"]:
        return None, ""
    try:
        component = check_component("component", requested["component"])
        region = check_line("region", requested["region"] or "default")
    except InvalidValueError as error:
        return None, error.reason
    radius = blast_radius(component, region, datetime.now(UTC))
    return {**radius, "components": radius["components"][:MOST]}, ""


@page
@require_POST
def service_act(request: HttpRequest, slug: str, verb: str) -> HttpResponse:
    configurers_only(request, FORBIDDEN)
    row = _found(slug)
    if verb != "remove":
        raise Http404("no such verb")
    try:
        ServicesView.acting_for(context_of(request)).perform_destroy(row)
        removed(request, "service", slug, f"{row.name} removed. Incidents keep its name.")
    except ConflictError as error:
        messages.error(request, str(error.detail))
    except StreamVersionError:
        messages.error(request, "Not saved: changed by someone else in the meantime. Reload and try again.")
    return HttpResponseRedirect(reverse("services"))


def _found(slug: str) -> Service:
    row = Service.objects.filter(slug=slug[:100]).first() if "\0" not in slug else None
    if row is None:
        raise Http404("no such service")
    return row
