"""Onset, changes and records of analyzers, fetched beside the page of an incident."""

from __future__ import annotations

from dataclasses import fields

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.incident_details import IncidentDetails, incident_details
from frontend.views.incident.similar import moment_in
from frontend.views.pages import page, show
from incidents import queries


@page
@require_safe
def details(request: HttpRequest, number: int) -> HttpResponse:
    as_of = moment_in(request)
    found = incident_details(number, as_of)
    context = {
        **{field.name: getattr(found, field.name) for field in fields(IncidentDetails)},
        "i": found.incident,
        "as_of": as_of,
        "supported": found.supported,
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    return show(request, "frontend/incident/details.html", context, section="inbox")
