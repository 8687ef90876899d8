"""Teams: who works on incidents. Everybody reads, staff make, change and remove them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from frontend.views.pages import context_of, page, show, staff_only
from frontend.views.paging import listed
from frontend.views.restore import removed
from incidents import queries
from incidents.api.incident.serializers import TeamSerializer
from incidents.api.incident.views import ConflictError
from incidents.api.teams.members import TeamsView
from incidents.teams.models import Team
from ingest.queries import StreamVersionError


@page
@require_http_methods(["GET", "HEAD", "POST"])
def teams(request: HttpRequest) -> HttpResponse:
    edited = request.POST.get("edited", "") if request.method == "POST" else request.GET.get("edit", "")
    row = _found(edited) if edited else None
    if request.method != "POST":
        return _shown(request, row, {} if row is None else _typed(row), {})
    staff_only(request, "Only staff can create and change teams.")
    typed: dict[str, Any] = {
        **{name: request.POST.get(name, "").strip() for name in ("name", "slug", "description")},
        "is_default": request.POST.get("is_default") == "on",
    }
    serializer = TeamSerializer(row, data=typed)
    if not serializer.is_valid():
        errors = {name: " ".join(map(str, why)).rstrip(".") for name, why in serializer.errors.items()}
        return _shown(request, row, typed, errors)
    try:
        TeamsView.acting_for(context_of(request)).put(serializer)
    except (ConflictError, IntegrityError, StreamVersionError):
        return _shown(
            request, row, typed, {"slug": "changed by someone else in the meantime; reload and try again"}
        )
    messages.success(request, f"{typed['name']} saved. Open incidents are not moved.")
    return HttpResponseRedirect(reverse("teams"))


@page
@require_POST
def remove_team(request: HttpRequest, slug: str) -> HttpResponse:
    staff_only(request, "Only staff can create and change teams.")
    row = _found(slug)
    try:
        TeamsView.acting_for(context_of(request)).perform_destroy(row)
        removed(request, "team", slug, f"{row.name} and its memberships removed.")
    except ConflictError as error:
        messages.error(request, str(error.detail))
    except StreamVersionError:
        messages.error(request, "Not saved: changed by someone else in the meantime. Reload and try again.")
    return HttpResponseRedirect(reverse("teams"))


def _shown(
    request: HttpRequest, edited: Team | None, typed: dict[str, Any], errors: dict[str, str]
) -> HttpResponse:
    unresolved = queries.unresolved_by_team()
    rows = Team.objects.annotate(people=Count("memberships")).order_by("name", "slug")
    found = listed(
        request, list(rows), lambda row: f"{row.name} {row.slug} {row.description}", lambda row: (row.slug,)
    )
    context = {
        "teams": [{"it": team, "unresolved": unresolved.get(team.slug, 0)} for team in found.rows],
        "list": found,
        "edited": edited,
        "typed": typed,
        "errors": errors,
    }
    return show(
        request, "frontend/settings/teams.html", context, section="settings", status=400 if errors else 200
    )


def _typed(row: Team) -> dict[str, Any]:
    names = ("name", "slug", "description", "is_default")
    return {name: getattr(row, name) for name in names}


def _found(slug: str) -> Team:
    row = Team.objects.filter(slug=slug[:60]).first() if "\0" not in slug else None
    if row is None:
        raise Http404("no such team")
    return row
