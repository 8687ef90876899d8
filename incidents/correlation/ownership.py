"""Whose ticket it probably is: what analyzers claim, and the teams that routes give the claimed components to."""

from __future__ import annotations

from incidents.catalog.models import Team, routing_table
from incidents.domain.conditions import Subject
from incidents.domain.incident import Incident
from incidents.domain.ownership import Learned, TeamView, claims_about, team_views
from incidents.domain.routing import team_of


def views_of_teams(incident: Incident, learned: Learned | None = None) -> list[TeamView]:
    """Every team, the likeliest first. What was learned from past tickets the caller brings: it takes time to load."""
    claims = claims_about(incident)
    table = routing_table()
    named = {name for claim in claims for name in claim.components}
    owners = {name: team_of(Subject(name), table).slug for name in sorted(named)}
    slugs = Team.objects.order_by("name").values_list("slug", flat=True)
    return team_views(claims, owners, slugs, learned)
