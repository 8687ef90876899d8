"""Panels fetched beside an incident's page, which does not wait for them: similar past incidents, the team that
resolved such, blast radius.

Learning brings a hundred megabytes and takes its time, so that only what is fetched beside a page asks for it.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.components.impact_drawing import drawn
from frontend.views.pages import page, show
from incidents import queries
from incidents.alerts.correlate import DEFAULT_REGION, symptoms_of
from incidents.components.impact import blast_of
from incidents.domain.similarity.team_odds import Learned
from incidents.queries import views_of_teams
from ingest.queries import Position, moment_of


def moment_in(request: HttpRequest) -> Position | None:
    """The moment that an address asks for."""
    return queries.parse_moment(request.GET["as_of"]) if request.GET.get("as_of") else None


@page
@require_safe
def similar(request: HttpRequest, number: int) -> HttpResponse:
    from incidents.similarity.similar import similar_components, suggested_team, time_to_mitigate

    as_of = moment_in(request)
    incident = queries.get(str(number), as_of).incident
    found = similar_components(incident, as_of=as_of)
    context = {
        "i": incident,
        "as_of": as_of,
        "similar": found,
        "helped": _note(found[0].latest.incident.number) if found else "",
        "suggestion": None if as_of else suggested_team(incident),
        "times": None
        if as_of or incident.state == "resolved"
        else time_to_mitigate(incident, timezone.now()),
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    return show(request, "frontend/incident/similar.html", context, section="inbox")


def _note(number: int) -> str:
    """Last note about the fix, by the person who resolved an incident."""
    ends = [one for one in queries.timeline(str(number)) if one.type == "incident.resolved"]
    return str(ends[-1].body.get("note") or "") if ends else ""


@page
@require_safe
def teams(request: HttpRequest, number: int) -> HttpResponse:
    """The teams that an incident could be handed to, with what analyzers say of each and what past incidents teach."""
    from incidents.similarity.similar import suggested_team

    incident = queries.get(str(number)).incident
    suggestion = suggested_team(incident)
    views = views_of_teams(incident, Learned(suggestion.team, suggestion.probability))
    context = {
        "i": incident,
        "team_views": [one for one in views if one.team != incident.team],
        "own_view": next((one for one in views if one.team == incident.team), None),
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    return show(request, "frontend/incident/teams_likely.html", context, section="inbox")


@page
@require_safe
def blast(request: HttpRequest, number: int) -> HttpResponse:
    """Components that fail with the incident's one, as a drawing and as a list."""
    as_of = moment_in(request)
    incident = queries.get(str(number), as_of).incident
    graph = None
    if incident.component is not None:
        then = as_of and moment_of(as_of)
        at = incident.resolved_at or then or timezone.now()
        graph = blast_of(incident.component, incident.region or DEFAULT_REGION, at, as_of)
    # Symptoms can depend on another component that the finding covers, not on the incident's own.
    without_dependents = graph is not None and not graph.beneath and as_of is None
    symptoms = sum(one.hops > 0 for one in symptoms_of(incident.id)) if without_dependents else 0
    context = {
        "i": incident,
        "as_of": as_of,
        "graph": graph,
        "symptoms": symptoms,
        "drawing": None if graph is None else drawn(graph),
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    return show(request, "frontend/incident/impact.html", context, section="inbox")
