"""Nodes at risk over HTTP: the newest forecast of a region, or what it says of one node."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analyzers.runs.node_forecasts import node_forecast
from ingest.api.authentication import HasScope
from ingest.queries import regions

FILTERS = {
    "region": "default: the only region with telemetry",
    "component": "only this node, such as `node/gpu-17`",
}


class SpanShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField(help_text="start of the horizon of the probabilities")


class NodeAtRiskShape(s.Serializer[Any]):
    component = s.CharField()
    probability = s.FloatField(help_text="probability of an incident within the horizon")
    reasons = s.CharField(allow_blank=True, help_text="deviations from other nodes")
    kind = s.CharField(allow_null=True, help_text="probable kind of the incident")
    kind_probability = s.FloatField(allow_null=True, help_text="probability of that kind, given an incident")
    named = s.BooleanField(help_text="true: an alarm within the budget")


class NodeForecastShape(s.Serializer[Any]):
    region = s.CharField()
    run = s.UUIDField(allow_null=True, help_text="latest run; null: no run of `failure_forecast` has ended")
    window = SpanShape(allow_null=True)
    status = s.ChoiceField(choices=["named", "quiet", "inconclusive"], allow_null=True)
    reason = s.CharField(allow_null=True, help_text="reason for a missing forecast")
    horizon_hours = s.FloatField(allow_null=True)
    usual = s.FloatField(allow_null=True, help_text="share of node-days before an incident")
    precision = s.FloatField(allow_null=True, help_text="share of held-out alarms that were right")
    judged = s.IntegerField(help_text="number of nodes judged")
    results = NodeAtRiskShape(many=True, help_text="likeliest first: the 100 likeliest and all named ones")


class NodesAtRiskView(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]

    @extend_schema(
        operation_id="nodes_at_risk",
        parameters=[OpenApiParameter(name, str, description=words) for name, words in FILTERS.items()],
        responses={200: NodeForecastShape},
    )
    def get(self, request: Request) -> Response:
        """Nodes likely to fail soon, with their deviations and the probable kind of incident, from the
        latest forecast."""
        query = request.query_params
        if unknown := sorted(set(query) - {*FILTERS, "format"}):
            raise ValidationError({unknown[0][:100]: ["is not a filter of forecasts"]})
        region = _region(query.get("region", ""))
        found = node_forecast(region)
        if found is None:
            none = dict.fromkeys(("run", "window", "status", "horizon_hours", "usual", "precision"))
            reason = "No run of failure_forecast over this region has ended."
            return Response({"region": region, **none, "reason": reason, "judged": 0, "results": []})
        wanted = query.get("component")
        nodes = [one.as_json() for one in found.nodes if wanted in (None, one.component)]
        return Response({"region": region, **found.as_json(), "results": nodes})


def _region(requested: str) -> str:
    known = regions()
    if requested and requested not in known:
        raise ValidationError({"region": [f"no telemetry of {requested[:100]}"]})
    if not requested and len(known) > 1:
        raise ValidationError({"region": [f"must be one of {', '.join(known[:10])}"]})
    return requested or (known[0] if known else "default")
