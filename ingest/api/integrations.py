"""Integrations over HTTP, under /api/v1/integrations: made, listed, rotated, revoked, and their mappings tried."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import IO, Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound, ParseError, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingest.api import keys
from ingest.api.authentication import HasScope
from ingest.api.models import IntegrationKey
from ingest.api.pagination import PAGE_PARAMETERS, Pages, PageShape
from ingest.integrations import recognition
from ingest.integrations.generic import apply
from ingest.integrations.generic.schema import InvalidMappingError
from ingest.integrations.json_body import LARGEST_REQUEST, read
from ingest.integrations.normalized import InvalidPayloadError
from ingest.log.types import Context

OVERLAP, LONGEST = 86_400, 31 * 86_400
"""Seconds for which the key before stays good."""


class IntegrationShape(s.Serializer[Any]):
    name = s.CharField(max_length=100)
    scopes = s.ListField(child=s.ChoiceField(choices=keys.SCOPES), allow_empty=False)
    endpoints = s.ListField(child=s.CharField(), required=False, help_text="alert endpoints; empty: all")
    region = s.CharField(required=False, allow_blank=True, max_length=100)
    mapping = s.JSONField(required=False, allow_null=True, help_text="mapping of its generic endpoint")
    kinds = s.ListField(child=s.CharField(), read_only=True, help_text="telemetry kinds; empty: all")
    mail_address = s.SerializerMethodField(
        help_text="mail address for alerts; null: the endpoint for mail is closed"
    )
    expires_at = s.DateTimeField(required=False, allow_null=True, help_text="expiry of the key; null: never")
    created_at = s.DateTimeField(read_only=True)
    last_used_at = s.DateTimeField(read_only=True, allow_null=True)
    previous_until = s.DateTimeField(
        read_only=True,
        allow_null=True,
        help_text="until then the previous key is valid too; null: no overlap",
    )

    def get_mail_address(self, row: IntegrationKey) -> str | None:
        return keys.mail_address(row)

    def validate_expires_at(self, moment: datetime | None) -> datetime | None:
        if moment is not None and moment <= timezone.now():
            raise s.ValidationError("must be in the future")
        return moment


class MadeShape(s.Serializer[Any]):
    name = s.CharField()
    key = s.CharField(help_text="shown only once")


class RotateShape(s.Serializer[Any]):
    overlap_seconds = s.IntegerField(default=OVERLAP, min_value=0, max_value=LONGEST)


class TryShape(s.Serializer[Any]):
    payload = s.JSONField(help_text="payload, unchanged")
    mapping = s.JSONField(
        required=False, allow_null=True, help_text="mapping to try; default: that of the integration"
    )


class IntegrationListShape(PageShape):
    results = IntegrationShape(many=True)


ERRORS = {
    400: OpenApiResponse(description="Invalid; `errors` has field and reason."),
    403: OpenApiResponse(description="The key lacks the scope `admin`, or the person is not staff."),
}
MISSING = {404: OpenApiResponse(description="Integration not found.")}


class _StrictJSON(BaseParser):
    """JSON of bounded size and depth, as at the endpoints of alerts."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        del media_type, parser_context
        try:
            return read(stream.read(LARGEST_REQUEST + 1), LARGEST_REQUEST)
        except InvalidPayloadError as error:
            raise ParseError(f"Nothing was done: the body {error}.") from None


class _Admin(APIView):
    """For keys with the scope `admin`, and for staff."""

    parser_classes = (_StrictJSON,)

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope(keys.ADMIN)]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if "\0" in (name := kwargs.get("name", "")):  # the database would not even look
            raise NotFound(f"There is no integration {name[:100]!r}.")


class ByName(Pages):
    ordering = ("name",)


class IntegrationsView(_Admin):
    @extend_schema(
        operation_id="integrations_list",
        parameters=PAGE_PARAMETERS,
        responses={200: IntegrationListShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Active integrations, by name."""
        pages = ByName()
        rows = pages.paginate_queryset(IntegrationKey.objects.filter(revoked_at=None), request)
        return pages.get_paginated_response([IntegrationShape(row).data for row in rows])

    @extend_schema(
        operation_id="integrations_create",
        request=IntegrationShape,
        responses={201: MadeShape, **ERRORS},
    )
    def post(self, request: Request) -> Response:
        """Create an integration; the answer holds its key, which is shown only once."""
        body = _valid(IntegrationShape, request)
        try:
            secret = keys.create(
                body["name"],
                body["scopes"],
                body.get("region", ""),
                mapping=body.get("mapping"),
                endpoints=body.get("endpoints", ()),
                expires_at=body.get("expires_at"),
                context=_context_of(request),
            )
        except keys.KeyNameTakenError as error:
            raise ValidationError({"name": [str(error)]}) from None
        except InvalidMappingError as error:
            raise ValidationError({"mapping": [str(error)]}) from None
        return Response({"name": body["name"], "key": secret}, status=status.HTTP_201_CREATED)


class IntegrationView(_Admin):
    @extend_schema(operation_id="integrations_revoke", responses={204: None, **ERRORS, **MISSING})
    def delete(self, request: Request, name: str) -> Response:
        """Revoke an integration permanently; its key is rejected within seconds."""
        if not keys.revoke(name, _context_of(request)):
            raise NotFound(f"There is no integration {name[:100]}.")
        return Response(status=status.HTTP_204_NO_CONTENT)


class RotateView(_Admin):
    @extend_schema(
        operation_id="integrations_rotate",
        request=RotateShape,
        responses={200: MadeShape, **ERRORS, **MISSING},
    )
    def post(self, request: Request, name: str) -> Response:
        """Create a new key; the current key stays valid for the overlap, by default a day."""
        overlap = timedelta(seconds=_valid(RotateShape, request)["overlap_seconds"])
        secret = keys.rotate(name, overlap, _context_of(request))
        if secret is None:
            raise NotFound(f"There is no integration {name[:100]}.")
        return Response({"name": name, "key": secret})


class PreviewView(_Admin):
    @extend_schema(
        operation_id="integrations_preview",
        request=TryShape,
        responses={
            200: OpenApiResponse(description="One entry in `items` per alert."),
            **ERRORS,
            **MISSING,
        },
    )
    def post(self, request: Request, name: str) -> Response:
        """Result of a mapping for a payload, explained field by field. Nothing is stored."""
        row = IntegrationKey.objects.filter(name=name, revoked_at=None).first()
        if row is None:
            raise NotFound(f"There is no integration {name[:100]}.")
        body = _valid(TryShape, request)
        how = body.get("mapping", row.mapping)
        try:
            preview = recognition.apply(None if how is None else apply.mapping(how), body["payload"])
        except InvalidMappingError as error:
            raise ValidationError({"mapping": [str(error)]}) from None
        except InvalidPayloadError as error:
            raise ValidationError({"payload": [str(error)]}) from None
        return Response({"items": [_item(item) for item in preview.items]})


def _context_of(request: Request) -> Context:
    kind = "user" if request.auth is None else "key"
    return Context(f"{kind}:{request.user.get_username()}", trace=getattr(request, "trace", None))


def _item(item: apply.Item) -> dict[str, Any]:
    alert = item.alert
    return {
        "alert": alert
        and {
            "key": alert.key,
            "status": alert.status,
            "title": alert.title,
            "severity": alert.severity,
            "component": alert.component,
            "group": alert.group,
            "description": alert.description,
            "labels": dict(alert.labels),
            "links": [dict(link) for link in alert.links],
            "starts_at": alert.starts_at,
            "notes": list(alert.notes),
        },
        "refused": item.refused or None,
        "refused_field": item.refused_field or None,
        "ignored": item.ignored or None,
        "why": dict(item.why),
    }


def _valid(shape: type[s.Serializer[Any]], request: Request) -> dict[str, Any]:
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
