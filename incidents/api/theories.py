"""Theories of an incident over HTTP: have one tested, read those that were."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.alerts.receipts import receipt_of
from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI, parameters
from incidents.api.inputs import context, fields
from incidents.api.permissions import MayPropose
from incidents.domain.theories import MOST_HOPS, hops_from
from incidents.domain.values import rfc3339
from incidents.theories.commands import check_theory
from incidents.theories.queries import theories_of
from ingest.api.authentication import HasScope

VERDICTS = ["supported", "contradicted", "cannot be tested"]


class HopShape(s.Serializer[Any]):
    """One component affects another."""

    cause = s.CharField(help_text="component, kind/name")
    effect = s.CharField(help_text="component, kind/name, with which the next hop begins")
    at = s.DateTimeField(
        required=False, allow_null=True, help_text="start of the failure of the cause, if known"
    )
    change = s.CharField(
        required=False, allow_null=True, help_text="id of a reported change that caused the failure"
    )


class TheoryShape(s.Serializer[Any]):
    hops = HopShape(many=True, help_text=f"hops from the cause to the symptom, at most {MOST_HOPS}")
    note = s.CharField(required=False, max_length=2000)


class GroundShape(s.Serializer[Any]):
    ground = s.ChoiceField(choices=["topology", "order", "control", "verdicts", "change"])
    verdict = s.ChoiceField(choices=VERDICTS)
    text = s.CharField(help_text="result, with figures")
    would_test = s.CharField(allow_null=True, help_text="missing data; null: decided")


class JudgedHopShape(HopShape):
    verdict = s.ChoiceField(choices=VERDICTS)
    grounds = GroundShape(many=True)


class CheckedTheoryShape(s.Serializer[Any]):
    theory = s.UUIDField()
    verdict = s.ChoiceField(
        choices=VERDICTS, help_text="contradicted if any hop is; supported if all hops are"
    )
    hops = JudgedHopShape(many=True)
    reaches_symptom = s.BooleanField(
        help_text="true: the last component is that of the incident or of one of its alerts"
    )
    note = s.CharField(allow_blank=True)
    run = s.CharField(allow_null=True, help_text="run of `changepoint` that provides the onsets; null: none")
    topology_at = s.DateTimeField(help_text="time of the topology: opening of the incident")
    measurement = s.DictField(
        allow_null=True, help_text="best question of the incident about a component of the theory"
    )
    by = s.CharField()
    at = s.DateTimeField()
    position = s.CharField(help_text="log position at the time of the test")
    event = s.CharField(help_text="id of the event, stream@version")


class TheoriesShape(s.Serializer[Any]):
    results = CheckedTheoryShape(many=True, help_text="newest first, at most 20")


class TheoriesView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read") if self.request.method in SAFE_METHODS else MayPropose()]

    @extend_schema(operation_id="incidents_theories", responses={200: TheoriesShape, **ERRORS, **MISSING})
    def get(self, request: Request, reference: str) -> Response:
        """Tested theories, with their results at the time."""
        parameters(request)
        return Response({"results": _shown(queries.get(reference).incident.id)})

    @extend_schema(
        operation_id="incidents_check_theory",
        request=TheoryShape,
        responses={201: OpenApiResponse(CheckedTheoryShape, "Tested and recorded."), **ERRORS, **MISSING},
    )
    def post(self, request: Request, reference: str) -> Response:
        """Test a theory hop by hop: supported, contradicted, or not testable, with the missing data.
        Changes nothing else."""
        incident_id = queries.get(reference).incident.id
        body = fields(request, TheoryShape)
        done = check_theory(incident_id, hops_from(body["hops"]), body.get("note", ""), context(request))
        response = Response(_shown(incident_id)[0], status=status.HTTP_201_CREATED)
        response["Dossier-Receipt"] = receipt_of(incident_id, done.events)
        return response


def _shown(incident_id: str) -> list[dict[str, Any]]:
    return [
        {
            **one.body,
            "by": one.actor.removeprefix("user:"),
            "at": rfc3339(one.at),
            "event": f"incident/{incident_id}@{one.version}",
        }
        for one in theories_of(incident_id)
    ]
