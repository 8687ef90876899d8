"""Silences over HTTP, as /api/v1/silences; Alertmanager's own API beside it reads and writes the same ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import silences
from incidents.api.bodies import context, fields
from incidents.api.views import ERRORS, PROBLEM, IncidentAPI, parameters
from incidents.catalog.models import Silence
from incidents.commands import Invalid
from incidents.domain.matching_text import read_matchers
from incidents.domain.times import parse_rfc3339, rfc3339

MISSING = {404: OpenApiResponse(PROBLEM, "There is no such silence.")}
MOST = 1_000


class SilenceShape(s.Serializer[Any]):
    id = s.CharField()
    state = s.CharField(help_text="active, pending or expired")
    matchers = s.ListField(child=s.DictField(), help_text="name, value, isRegex, isEqual")
    starts_at = s.DateTimeField()
    ends_at = s.DateTimeField()
    created_by = s.CharField()
    comment = s.CharField()
    holds = s.IntegerField(help_text="alerts that fire and call nobody because of it")


class SilenceListShape(s.Serializer[Any]):
    results = SilenceShape(many=True)


class NewSilenceShape(s.Serializer[Any]):
    matchers = s.JSONField(help_text='text such as `disk=~"d.*"`, or a list as Alertmanager has it')
    starts_at = s.DateTimeField(required=False, help_text="default: now")
    ends_at = s.DateTimeField()
    comment = s.CharField()


class SilencesView(IncidentAPI):
    @extend_schema(
        operation_id="silences_list",
        parameters=[OpenApiParameter("state", str, enum=["active", "pending", "expired"])],
        responses={200: SilenceListShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Silences, the one that ends last first; at most the latest 1,000."""
        wanted = parameters(request, "state").get("state")
        if wanted not in (None, "active", "pending", "expired"):
            raise Invalid("state", "must be active, pending or expired")
        holding = silences.holding()
        shown = [_as_json(row, holding.get(str(row.pk), 0)) for row in Silence.objects.all()[:MOST]]
        return Response({"results": [one for one in shown if wanted in (None, one["state"])]})

    @extend_schema(
        operation_id="silences_create",
        request=NewSilenceShape,
        responses={201: SilenceShape, **ERRORS},
    )
    def post(self, request: Request) -> Response:
        """Silence alerts until a time. Tickets that are open stay open."""
        body = fields(request, NewSilenceShape)
        told = body["matchers"]
        matchers = read_matchers(told) if isinstance(told, str) else told
        starts = None if "starts_at" not in body else _time(body, "starts_at")
        _, _, who = context(request).actor.partition(":")
        row = silences.create_silence(matchers, starts, _time(body, "ends_at"), who, body["comment"])
        return Response(_as_json(row, 0), status=status.HTTP_201_CREATED)


class SilenceView(IncidentAPI):
    @extend_schema(operation_id="silences_get", responses={200: SilenceShape, **ERRORS, **MISSING})
    def get(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """One silence."""
        row = _found(id)
        return Response(_as_json(row, silences.holding().get(str(row.pk), 0)))

    @extend_schema(operation_id="silences_end", responses={200: SilenceShape, **ERRORS, **MISSING})
    def delete(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """End it now; what still fires gets its ticket within a minute. It stays in the list as expired."""
        row = _found(id)
        silences.end_silence(row)
        return Response(_as_json(row, 0))


def _found(id: str) -> Silence:
    row = silences.find_silence(id)
    if row is None:
        raise NotFound(f"There is no silence {id[:60]}.")
    return row


def _time(body: dict[str, Any], name: str) -> datetime:
    try:
        return parse_rfc3339(body[name])
    except (ValueError, TypeError, OverflowError):
        raise Invalid(name, "must be an RFC 3339 time, such as 2026-01-31T12:00:00Z") from None


def _as_json(row: Silence, holds: int) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "state": silences.state_of(row, timezone.now()),
        "matchers": row.matchers,
        "starts_at": rfc3339(row.starts_at),
        "ends_at": rfc3339(row.ends_at),
        "created_by": row.created_by,
        "comment": row.comment,
        "holds": holds,
    }
