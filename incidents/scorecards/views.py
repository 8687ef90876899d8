"""Score-cards over HTTP. Reading needs `incidents:read`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analyzers.queries import analyzers
from incidents.domain.values import InvalidValueError, check_line, parse_rfc3339
from incidents.scorecards import queries
from ingest.api.authentication import HasScope


class ShareShape(s.Serializer[Any]):
    """A share with its 95 % interval (Wilson)."""

    value = s.FloatField(allow_null=True, help_text="null: nothing to count yet")
    low = s.FloatField()
    high = s.FloatField()
    trials = s.IntegerField()


class CardShape(s.Serializer[Any]):
    """Accuracy of an analyzer on incidents that people resolved, by the latest resolutions."""

    analyzer = s.CharField()
    version = s.CharField(allow_null=True, help_text="null: all versions")
    resolved = s.IntegerField(help_text="resolved incidents that it blamed: right + wrong")
    right = s.IntegerField(
        help_text="its last blame names the confirmed cause, alone or in its ambiguous group"
    )
    wrong = s.IntegerField(help_text="something else was confirmed, or `none`")
    missed = s.IntegerField(help_text="it judged windows over the confirmed component and named it in none")
    matched = s.IntegerField(help_text="right, and a person or an alert reported the incident too")
    found_first = s.IntegerField(help_text="right, before any person or alert")
    found_alone = s.IntegerField(help_text="right, and no person or alert ever reported it")
    waiting = s.IntegerField(help_text="incidents that it blamed and nobody has resolved yet")
    median_lead_seconds = s.FloatField(
        allow_null=True, help_text="of the matched: how long before the first report; below zero: after it"
    )
    precision = ShareShape(help_text="right / (right + wrong)")
    recall = ShareShape(help_text="right / (right + missed)")
    sentence = s.CharField(help_text="the record in words")


class CardWithVersionsShape(CardShape):
    versions = CardShape(many=True, help_text="the same for each version that has a record")


class CardListShape(s.Serializer[Any]):
    results = CardShape(many=True)


SPAN = [
    OpenApiParameter("since", str, description="only incidents resolved from this RFC 3339 time on"),
    OpenApiParameter("until", str, description="only incidents resolved before this RFC 3339 time"),
    OpenApiParameter("team", str, description="only incidents of the team with this slug"),
]


class Readable(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]


class ScorecardsView(Readable):
    @extend_schema(operation_id="scorecards_list", parameters=SPAN, responses={200: CardListShape})
    def get(self, request: Request) -> Response:
        """A card for every analyzer that is installed or has a record, by name."""
        query = _query_of(request, "since", "until", "team")
        cards = queries.scorecards(list(analyzers()), **query)
        return Response({"results": [card.as_json() for card in cards.values()]})


class ScorecardView(Readable):
    @extend_schema(
        operation_id="scorecards_get",
        responses={200: CardWithVersionsShape, 404: OpenApiResponse(description="No such analyzer.")},
    )
    def get(self, request: Request, name: str) -> Response:
        """The card of one analyzer, of all its versions together and of each."""
        _query_of(request)
        versions = queries.by_version(name)
        card = queries.scorecard(name)
        if name not in analyzers() and not versions and not card.waiting:
            raise NotFound(f"There is no analyzer {name[:60]}, and there never was one with a record.")
        return Response({**card.as_json(), "versions": [one.as_json() for one in versions]})


def _query_of(request: Request, *known: str) -> dict[str, Any]:
    given: Mapping[str, str] = {name: request.query_params[name] for name in request.query_params}
    if unknown := sorted(set(given) - set(known)):
        raise ValidationError({unknown[0][:100]: ["is not a parameter here"]})
    return {
        name: _line(name, value) if name == "team" else _time(name, value) for name, value in given.items()
    }


def _line(name: str, text: str) -> str:
    try:
        return check_line(name, text)
    except InvalidValueError as invalid:
        raise ValidationError({name: [invalid.reason]}) from None


def _time(name: str, text: str) -> datetime:
    try:
        return parse_rfc3339(text.replace(" ", "+"))  # an offset's plus that was not percent-encoded
    except (ValueError, OverflowError):
        reason = "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z"
        raise ValidationError({name: [reason]}) from None
