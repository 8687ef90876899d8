"""What is like a ticket: past ones, and the team that resolved such. Fetched beside its page, which does not wait.

Learning brings a hundred megabytes and takes its time, so that only what is fetched beside a page asks for it.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from incidents import queries
from incidents.correlation.ownership import views_of_teams
from incidents.domain.ownership import Learned


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


@page
@require_safe
def teams(request: HttpRequest, number: int) -> HttpResponse:
    """The teams that a ticket could be handed to, with what analyzers say of each and what past tickets teach."""
    from incidents.correlation.similar import suggested_team

    incident = queries.get(str(number)).incident
    suggestion = suggested_team(incident)
    views = views_of_teams(incident, Learned(suggestion.team, suggestion.probability))
    context = {
        "i": incident,
        "team_views": [one for one in views if one.team != incident.team],
        "own_view": next((one for one in views if one.team == incident.team), None),
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    return show(request, "frontend/teams_likely.html", context, section="inbox")
