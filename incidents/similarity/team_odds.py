"""Whose incident it probably is: what analyzers claim, and the teams that routes give the claimed components to."""

from __future__ import annotations

from incidents.domain.incident.state import Incident
from incidents.domain.routing.conditions import Subject
from incidents.domain.routing.rules import team_of
from incidents.domain.similarity.team_odds import Learned, TeamView, claims_about, team_views
from incidents.teams.models import Team, routing_table


def views_of_teams(incident: Incident, learned: Learned | None = None) -> list[TeamView]:
    """Every team, the likeliest first. What was learned from past incidents the caller brings: it takes time
    to load.
    """
    claims = claims_about(incident)
    table = routing_table()
    named = {name for claim in claims for name in claim.components}
    owners = {name: team_of(Subject(name), table).slug for name in sorted(named)}
    slugs = Team.objects.order_by("name").values_list("slug", flat=True)
    return team_views(claims, owners, slugs, learned)
