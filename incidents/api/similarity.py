"""GET /api/v1/incidents/{id}/similar: past incidents that say the same, and the team that resolved such ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.api.incident.views import AS_OF, ERRORS, MISSING, IncidentAPI, as_of_in, parameters
from incidents.commands import InvalidValueError
from incidents.domain.values import optional_rfc3339

if TYPE_CHECKING:
    from incidents.similarity.similar import SimilarIncident
    from incidents.similarity.team_prediction import Suggestion

MOST = 50
"""Incidents that one request gets."""


class SimilarShape(s.Serializer[Any]):
    """A resolved incident, and how alike it is."""

    number = s.IntegerField()
    title = s.CharField()
    similarity = s.FloatField(help_text="cosine of TF-IDF over title, component, labels and cause, 0 to 1")
    team = s.CharField(help_text="that resolved it")
    confirmed_cause = s.CharField(
        allow_null=True, help_text="none: nothing was at fault; null: its alerts were over"
    )
    resolved_at = s.DateTimeField()
    seconds_to_resolve = s.FloatField()
    url = s.CharField()


class RecordShape(s.Serializer[Any]):
    """How often it was right about the latest incidents that it had not learned from."""

    judged = s.IntegerField(help_text="the latest so many resolved incidents")
    suggested = s.IntegerField(help_text="for so many of them it would have suggested a team")
    right = s.IntegerField(help_text="of those, so many were resolved by that team")


class SuggestedTeamShape(s.Serializer[Any]):
    team = s.CharField(allow_null=True, help_text="null where nothing is suggested")
    probability = s.FloatField(allow_null=True, help_text="of the likeliest team, calibrated")
    record = RecordShape()
    why = s.CharField()


class SimilarListShape(s.Serializer[Any]):
    results = SimilarShape(many=True)
    suggested_team = SuggestedTeamShape(
        allow_null=True, help_text="null with `as_of`: it was learned from what came later, too"
    )


class SimilarView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_similar",
        parameters=[OpenApiParameter("limit", int, description="1 to 50, default 5"), AS_OF],
        responses={200: SimilarListShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Resolved incidents that are most like this one, and which team resolved such ones. It is acted on only
        where a route says so (`follow_suggestion`)."""
        # Learning brings a hundred megabytes, which a process that is never asked should not carry.
        from incidents.similarity.similar import similar_to, suggested_team

        asked = parameters(request, "limit", "as_of")
        limit, as_of = _limit(asked.get("limit", "5")), as_of_in(asked)
        incident = queries.get(reference, as_of).incident
        found = [_as_json(one) for one in similar_to(incident, limit, as_of)]
        suggestion = None if as_of else _suggested(suggested_team(incident))
        return Response({"results": found, "suggested_team": suggestion})


def _suggested(found: Suggestion) -> dict[str, Any]:
    record = {"judged": found.record.judged, "suggested": found.record.suggested, "right": found.record.right}
    return {"team": found.team, "probability": found.probability, "record": record, "why": found.why}


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST):
        raise InvalidValueError("limit", f"must be 1 to {MOST}")
    return int(text)


def _as_json(one: SimilarIncident) -> dict[str, Any]:
    past = one.incident
    return {
        "number": past.number,
        "title": past.title,
        "similarity": one.similarity,
        "team": past.team,
        "confirmed_cause": past.confirmed_cause,
        "resolved_at": optional_rfc3339(past.resolved_at),
        "seconds_to_resolve": one.seconds_to_resolve,
        "url": f"{settings.PUBLIC_URL}/incidents/{past.number}",
    }
