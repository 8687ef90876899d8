"""Proposals of an incident over HTTP: make one, read what became of them. People decide on them in the console."""

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
from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI, parameters
from incidents.api.inputs import context, fields, sequence
from incidents.api.permissions import MayPropose
from incidents.domain.incident.state import Incident
from incidents.domain.values import InvalidValueError, rfc3339
from incidents.proposals import commands as proposals
from incidents.proposals.queries import decided_proposals
from ingest.api.authentication import HasScope


class ProposeShape(s.Serializer[Any]):
    """A hand-over with `team`, or a silence with `minutes` and optionally `matchers`."""

    action = s.ChoiceField(choices=["hand_over", "silence"])
    reason = s.CharField(max_length=2000, help_text="shown to the person who decides")
    team = s.CharField(required=False, help_text="hand-over: slug of the target team")
    matchers = s.JSONField(
        required=False,
        help_text='silence: matchers as text such as `disk=~"d.*"` or as a list in the format of'
        " Alertmanager; default: the labels that the firing alerts share",
    )
    minutes = s.IntegerField(required=False, help_text="silence: length in minutes, from the acceptance")
    cites = s.ListField(
        child=s.CharField(),
        required=False,
        help_text="runs and log positions cited as evidence; at most 20",
    )


class DecidedShape(s.Serializer[Any]):
    proposal = s.UUIDField()
    decision = s.ChoiceField(choices=["accepted", "declined"])
    text = s.CharField()
    proposed_by = s.CharField()
    by = s.CharField()
    at = s.DateTimeField()
    position = s.CharField()


class ProposalsShape(s.Serializer[Any]):
    open = shapes.ProposalShape(many=True)
    decided = DecidedShape(many=True, help_text="oldest first")


class ProposalsView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read") if self.request.method in SAFE_METHODS else MayPropose()]

    @extend_schema(operation_id="incidents_proposals", responses={200: ProposalsShape, **ERRORS, **MISSING})
    def get(self, request: Request, reference: str) -> Response:
        """Proposed actions that await a decision, and past decisions."""
        parameters(request)
        return Response(_shown(queries.get(reference).incident))

    @extend_schema(
        operation_id="incidents_propose",
        request=ProposeShape,
        responses={
            201: OpenApiResponse(ProposalsShape, "Proposed; awaits a decision."),
            200: OpenApiResponse(
                ProposalsShape, "The same proposal already awaits a decision; nothing was stored."
            ),
            409: OpenApiResponse(
                shapes.ConflictShape, "Not possible in the state of the incident; `detail` has the reason."
            ),
            **ERRORS,
            **MISSING,
        },
    )
    def post(self, request: Request, reference: str) -> Response:
        """Propose a hand-over or a silence. It takes effect only when a person accepts it in the console."""
        incident_id = queries.get(reference).incident.id
        body, by = fields(request, ProposeShape), context(request)
        cites = sequence("cites", body.get("cites", []))
        match body["action"]:
            case "hand_over":
                _without(body, "matchers", "minutes")
                made = proposals.propose_hand_over(incident_id, body.get("team"), body["reason"], by, cites)
            case "silence":
                _without(body, "team")
                made = proposals.propose_silence(
                    incident_id, body.get("matchers"), body.get("minutes"), body["reason"], by, cites
                )
            case _:
                raise InvalidValueError("action", "must be hand_over or silence")
        response = Response(
            _shown(made.incident), status=status.HTTP_201_CREATED if made.events else status.HTTP_200_OK
        )
        if made.events:
            response["Dossier-Receipt"] = receipt_of(incident_id, made.events)
        return response


def _without(body: dict[str, Any], *names: str) -> None:
    for name in names:
        if name in body:
            raise InvalidValueError(name, f"is not a field of a {body['action']}")


def _shown(state: Incident) -> dict[str, Any]:
    return {
        "open": [one.as_json() for one in state.proposals],
        "decided": [
            {
                **{name: one.body[name] for name in ("proposal", "text", "proposed_by")},
                "decision": one.type.rpartition("_")[2],
                "by": one.actor.removeprefix("user:"),
                "at": rfc3339(one.at),
                "position": one.position,
            }
            for one in decided_proposals(state.id)
        ],
    }
