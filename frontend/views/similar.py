"""What is like a ticket: past ones, and the team that resolved such. Fetched beside its page, which does not wait."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries


@page
@require_safe
def similar(request: HttpRequest, number: int) -> HttpResponse:
    from incidents.correlation.similar import similar_to, suggested_team

    incident = queries.get(str(number)).incident
    context = {
        "i": incident,
        "similar": similar_to(incident),
        "suggestion": suggested_team(incident),
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    return show(request, "frontend/similar.html", context, section="inbox")
