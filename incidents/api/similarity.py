"""GET /api/v1/incidents/{id}/similar: past incidents that say the same, and the team that resolved such ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone
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
    from incidents.similarity.time_to_mitigate import TimeEstimate

MOST = 50
"""Incidents that one request gets."""


class SimilarShape(s.Serializer[Any]):
    """A resolved incident, with its similarity."""

    number = s.IntegerField()
    title = s.CharField()
    similarity = s.FloatField(help_text="cosine of TF-IDF over title, component, labels and cause, 0 to 1")
    team = s.CharField(help_text="slug of the team that resolved it")
    confirmed_cause = s.CharField(
        allow_null=True,
        help_text="confirmed cause; none: nothing was at fault; null: resolved with its alerts",
    )
    resolved_at = s.DateTimeField()
    seconds_to_resolve = s.FloatField()
    url = s.CharField()


class RecordShape(s.Serializer[Any]):
    """Share of right suggestions on the latest incidents, none of which were learned from."""

    judged = s.IntegerField(help_text="number of latest resolved incidents judged")
    suggested = s.IntegerField(help_text="number of these with a suggestion")
    right = s.IntegerField(help_text="number of suggestions that match the resolving team")


class SuggestedTeamShape(s.Serializer[Any]):
    team = s.CharField(allow_null=True, help_text="slug of the suggested team; null: no suggestion")
    probability = s.FloatField(allow_null=True, help_text="calibrated probability of the likeliest team")
    record = RecordShape()
    why = s.CharField()


class TimeRecordShape(s.Serializer[Any]):
    """Coverage of the quantiles on the latest incidents, each predicted from those resolved before it
    opened."""

    judged = s.IntegerField()
    coverage = s.FloatField(
        allow_null=True, help_text="share of times between the quantiles .1 and .9; ideal: 0.8"
    )
    pinball_loss = s.FloatField(help_text="mean loss over the three levels, seconds")
    pinball_loss_of_median = s.FloatField(help_text="loss of the past median at all levels, for comparison")
    pinball_loss_of_quantiles = s.FloatField(
        help_text="loss of the past quantiles, equal for all incidents, for comparison"
    )


class TimeToMitigateShape(s.Serializer[Any]):
    """Quantiles of the time from opening to resolution, given that the incident is still open; learned
    from resolved incidents."""

    seconds = s.DictField(
        child=s.FloatField(),
        allow_null=True,
        help_text="seconds by level: 0.1, 0.5, 0.9; null: no prediction",
    )
    learned = s.IntegerField(help_text="number of resolved incidents learned from")
    record = TimeRecordShape()
    why = s.CharField(help_text="reason for a missing prediction; else empty")


class SimilarListShape(s.Serializer[Any]):
    results = SimilarShape(many=True)
    time_to_mitigate = TimeToMitigateShape(
        allow_null=True, help_text="null with `as_of` and after the resolution"
    )
    suggested_team = SuggestedTeamShape(
        allow_null=True, help_text="null with `as_of`: the model also learned from later incidents"
    )


class SimilarView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_similar",
        parameters=[OpenApiParameter("limit", int, description="1 to 50, default 5"), AS_OF],
        responses={200: SimilarListShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Most similar resolved incidents, predicted duration, and the team that resolved similar ones.
        Only a route with `follow_suggestion` acts on the suggested team."""
        # Learning brings a hundred megabytes, which a process that is never asked should not carry.
        from incidents.similarity.similar import similar_to, suggested_team, time_to_mitigate

        query = parameters(request, "limit", "as_of")
        limit, as_of = _limit(query.get("limit", "5")), as_of_in(query)
        incident = queries.get(reference, as_of).incident
        found = [_as_json(one) for one in similar_to(incident, limit, as_of)]
        suggestion = None if as_of else _suggested(suggested_team(incident))
        past = as_of is not None or incident.state == "resolved"
        times = None if past else _times(time_to_mitigate(incident, timezone.now()))
        return Response({"results": found, "time_to_mitigate": times, "suggested_team": suggestion})


def _times(found: TimeEstimate) -> dict[str, Any]:
    from incidents.similarity.time_to_mitigate import LEVELS

    record = {
        "judged": found.record.judged,
        "coverage": found.record.coverage,
        "pinball_loss": found.record.loss,
        "pinball_loss_of_median": found.record.loss_of_median,
        "pinball_loss_of_quantiles": found.record.loss_of_quantiles,
    }
    levels = [f"{level:g}" for level in LEVELS]
    seconds = dict(zip(levels, found.seconds, strict=True)) if found.seconds else None
    return {"seconds": seconds, "learned": found.learned, "record": record, "why": found.why}


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
