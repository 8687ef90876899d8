"""GET /api/v1/incidents/{id}/evidence-file: verdicts and what they were made of, signed; and the key that signs."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from analyzers.queries import EvidenceExportError, evidence_key
from incidents import queries
from incidents.api.incident.views import ERRORS, MISSING, PROBLEM, ConflictError, IncidentAPI
from incidents.queries import evidence_file
from ingest.queries import now_utc

NOTHING = {409: PROBLEM}


class SignatureShape(s.Serializer[Any]):
    keyid = s.CharField(help_text="public key, as `evidence-key` returns it")
    sig = s.CharField(help_text="Ed25519, base64")


class EvidenceFileShape(s.Serializer[Any]):
    """A DSSE envelope."""

    payload = s.CharField(help_text="evidence as JSON, base64; format in the documentation")
    payloadType = s.CharField()
    signatures = SignatureShape(many=True)


class EvidenceKeyShape(s.Serializer[Any]):
    key = s.CharField(help_text="`ed25519:BASE64`")


class EvidenceFileView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_evidence_file",
        responses={200: EvidenceFileShape, **ERRORS, **MISSING, **NOTHING},
    )
    def get(self, request: Request, reference: str) -> HttpResponse:  # noqa: ARG002
        """The verdicts on the incident as one signed file, which `manage.py verify_evidence` checks
        without a server. 409 if no analyzer has a verdict."""
        number = queries.get(reference).incident.number
        try:
            body = evidence_file(reference, now_utc())
        except EvidenceExportError as refused:
            raise ConflictError(str(refused)) from None
        headers = {"Content-Disposition": f'attachment; filename="incident-{number}-evidence.json"'}
        return HttpResponse(body, content_type="application/json", headers=headers)


class EvidenceKeyView(IncidentAPI):
    @extend_schema(
        operation_id="evidence_key", responses={200: EvidenceKeyShape, 401: ERRORS[401], **NOTHING}
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """Public key that verifies evidence files."""
        try:
            return Response({"key": evidence_key()})
        except EvidenceExportError as refused:
            raise ConflictError(str(refused)) from None
