"""The way of a node over HTTP: hand an incident to the cluster, record the answers, read how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.alerts.receipts import receipt_of
from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import AS_OF, ERRORS, IF_MATCH, MISSING, IncidentAPI, as_of_in, parameters
from incidents.api.inputs import context, fields, time_of
from incidents.domain.incident.nodes import blamed_nodes
from incidents.domain.incident.remediation import left_open
from incidents.domain.remediation.state import ANSWERS
from incidents.domain.values import InvalidValueError
from incidents.incident.repository import CommandResult
from incidents.people.permissions import allow
from incidents.remediation import commands
from incidents.remediation.queries import delivery_of, order_of, targets_for
from ingest.api.authentication import HasScope

REQUEST_SCOPE, ANSWER_SCOPE = "remediation:request", "remediation:answer"


class HandToClusterShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, help_text="shown to the cluster's operators and on the timeline")
    component = s.CharField(
        required=False,
        help_text="suspect of the incident, a node or a part of one; default: the leading suspect",
    )
    node = s.CharField(
        required=False,
        max_length=253,
        help_text="name of the node, if neither placement nor topology has it",
    )
    target = s.CharField(
        required=False,
        allow_blank=True,
        help_text="webhook that carries the request; default: the only target; empty: none, the commands"
        " are run by hand",
    )
    proof_required = s.BooleanField(
        required=False,
        help_text="true: the incident is resolved only with proof of repair; default:"
        " DOSSIER_REPAIR_PROOF_REQUIRED",
    )


class RemediationAnswerShape(s.Serializer[Any]):
    request = s.CharField(max_length=64, help_text="id of the request, from the webhook")
    answer = s.ChoiceField(choices=ANSWERS)
    by = s.CharField(max_length=255, help_text="person or system that did the work")
    note = s.CharField(required=False, max_length=2000)
    at = s.DateTimeField(required=False, help_text="time of the work; default: now")
    part = s.CharField(
        required=False,
        max_length=255,
        help_text="with `replaced`: installed part, such as gpu/1652821001234, or its serial number alone",
    )


class CommandLineShape(s.Serializer[Any]):
    cluster = s.ChoiceField(choices=["kubernetes", "slurm"])
    does = s.CharField()
    command = s.CharField(help_text="command, quoted for a POSIX shell")


class DeliveryShape(s.Serializer[Any]):
    state = s.ChoiceField(choices=["waiting", "delivered", "failing", "given_up"])
    at = s.DateTimeField(allow_null=True)
    answer = s.CharField(help_text="answer of the target, or the reason for its absence")


class RemediationPageShape(s.Serializer[Any]):
    """Progress of the repair of a node."""

    incident = s.IntegerField()
    candidates = s.ListField(child=s.CharField(), help_text="components that can be handed to a cluster")
    targets = s.ListField(child=s.CharField(), help_text="webhooks that can carry the request")
    remediation = shapes.RemediationShape(allow_null=True)
    kubernetes = s.DictField(allow_null=True, help_text="ExternalRemediationRequest of NVSentinel")
    slurm = s.DictField(allow_null=True)
    commands = CommandLineShape(many=True)
    delivery = DeliveryShape(allow_null=True, help_text="delivery of the request to its target")
    left_open = s.CharField(
        allow_null=True,
        help_text="reason why the incident is open although the repair is proved; null: does not apply",
    )


ANSWERED = {
    409: OpenApiResponse(
        shapes.ConflictShape, "Not possible in the state of the incident; `detail` has the reason."
    ),
    **ERRORS,
    **MISSING,
}


class RemediationView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else REQUEST_SCOPE)]

    @extend_schema(
        operation_id="incidents_remediation",
        parameters=[AS_OF],
        responses={200: RemediationPageShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Progress of the repair (handed over, drained, replaced, returned, proved), with the request sent
        and commands to copy."""
        return Response(_shown(queries.get(reference, as_of_in(parameters(request, "as_of")))))

    @extend_schema(
        operation_id="incidents_hand_to_cluster",
        parameters=[IF_MATCH],
        request=HandToClusterShape,
        responses={201: OpenApiResponse(RemediationPageShape, "Handed over."), **ANSWERED},
    )
    def post(self, request: Request, reference: str) -> Response:
        """Hand the node of an incident to the cluster. Dossier executes nothing: the webhook `target` gets the signed
        event `incident.remediation_requested`, and the answer holds commands to copy."""
        incident_id = queries.get(reference).incident.id
        allow("hand_to_cluster", context(request), incident_id)
        body = fields(request, HandToClusterShape)
        proof = body.get("proof_required")
        if proof is not None and not isinstance(proof, bool):
            raise InvalidValueError("proof_required", "must be true or false")
        done = commands.hand_to_cluster(
            incident_id,
            body["reason"],
            context(request),
            component=body.get("component"),
            node=_text(body, "node"),
            target=_text(body, "target"),
            proof_required=proof,
        )
        return _answer(done, status.HTTP_201_CREATED)


class RemediationAnswersView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope(ANSWER_SCOPE)]

    @extend_schema(
        operation_id="incidents_answer_remediation",
        request=RemediationAnswerShape,
        responses={
            200: OpenApiResponse(RemediationPageShape, "Recorded, or already recorded (no receipt)."),
            **ANSWERED,
        },
    )
    def post(self, request: Request, reference: str) -> Response:
        """Record an answer of the cluster about the node. Repeating an answer has no effect; an answer
        that does not follow the stage, or belongs to another request, is rejected."""
        incident_id = queries.get(reference).incident.id
        allow("answer_remediation", context(request), incident_id)
        body = fields(request, RemediationAnswerShape)
        done = commands.answer(
            incident_id,
            body["request"],
            body["answer"],
            body["by"],
            context(request),
            note=body.get("note", ""),
            at=time_of("at", body.get("at")),
            part=body.get("part"),
        )
        return _answer(done, status.HTTP_200_OK)


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidValueError(name, "must be a text")
    return value


def _answer(done: CommandResult, code: int) -> Response:
    response = Response(_shown(queries.get(done.incident.id)), status=code)
    if done.events:
        response["Dossier-Receipt"] = receipt_of(done.incident.id, done.events)
    return response


def _shown(view: queries.View) -> dict[str, Any]:
    state = view.incident
    order = order_of(state) or {"kubernetes": None, "slurm": None, "commands": []}
    delivery = delivery_of(state)
    return {
        "incident": state.number,
        "candidates": blamed_nodes(state),
        "targets": targets_for(state),
        "remediation": None if state.remediation is None else state.remediation.as_json(),
        **order,
        "delivery": None if delivery is None else delivery.as_json(),
        "left_open": left_open(state),
    }
