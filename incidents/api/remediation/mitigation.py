"""GET /api/v1/incidents/{id}/mitigation: what can be done, and the GPU-hours that each option is expected to lose."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.alerts.correlate import DEFAULT_REGION
from incidents.api.incident.views import ERRORS, MISSING, ConflictError, IncidentAPI, parameters
from incidents.domain.incident.nodes import can_be_mitigated
from incidents.domain.remediation.comparison import FIELDS, NETWORK
from incidents.remediation.mitigation import mitigation_of


class OptionShape(s.Serializer[Any]):
    name = s.ChoiceField(choices=("wait", "restart", "restart_at_checkpoint", "migrate"))
    gpu_hours = s.FloatField(
        allow_null=True, help_text="expected loss; null: not possible, with the reason in `reason`"
    )
    reason = s.CharField(allow_null=True)


class InputShape(s.Serializer[Any]):
    value = s.FloatField()
    origin = s.CharField(help_text="source of the value: `given`, `data: …`, `setting …` or `assumed`")


class NetworkShape(s.Serializer[Any]):
    exposed_seconds_now = s.FloatField()
    exposed_seconds_then = s.FloatField()
    saved_share = s.FloatField(help_text="time of an iteration")
    helps = s.BooleanField()


class MitigationShape(s.Serializer[Any]):
    """Options, cheapest first. Advice only: nothing is carried out."""

    recommended = s.CharField()
    options = OptionShape(many=True)
    inputs = s.DictField(child=InputShape())
    network = NetworkShape(allow_null=True, help_text="null: inputs missing")


class MitigationView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_mitigation",
        parameters=[
            OpenApiParameter(one.name, float, description=f"{one.label} ({one.unit})")
            for one in (*FIELDS, *NETWORK)
        ],
        responses={200: MitigationShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Expected cost of waiting, restarting or migrating, in GPU-hours. Missing inputs come from
        recorded data or settings. 409 if the incident is not about a node, GPU, NIC or training job."""
        given = parameters(request, *(one.name for one in (*FIELDS, *NETWORK)))
        state = queries.get(reference).incident
        if not can_be_mitigated(state):
            raise ConflictError("This incident is about no node, GPU, NIC or training job.")
        found = mitigation_of(state, given, state.region or DEFAULT_REGION, timezone.now())
        return Response(found.as_json())
