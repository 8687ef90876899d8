"""Silences over HTTP, as /api/v1/silences; Alertmanager's own API beside it reads and writes the same ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, PROBLEM, IncidentAPI, parameters
from incidents.api.inputs import context, fields
from incidents.commands import InvalidValueError
from incidents.domain.routing.rules import read_matchers
from incidents.domain.suppression.recurrence import recurrence_from
from incidents.domain.values import parse_rfc3339, rfc3339
from incidents.suppression import silences
from incidents.teams.models import Silence

MISSING = {404: OpenApiResponse(PROBLEM, "Silence not found.")}
MOST = 1_000


class SilenceShape(s.Serializer[Any]):
    id = s.CharField()
    state = s.CharField(help_text="active, pending, expired or unreadable")
    problem = s.CharField(
        allow_null=True, help_text="reason why it is unreadable and suppresses nothing; null: readable"
    )
    matchers = s.ListField(child=s.DictField(), help_text="name, value, isRegex, isEqual")
    starts_at = s.DateTimeField()
    ends_at = s.DateTimeField()
    created_by = s.CharField()
    comment = s.CharField()
    recurrence = s.DictField(
        allow_null=True, help_text="rule, time_zone, until, and starts_at and ends_at of the first occurrence"
    )
    holds = s.IntegerField(help_text="number of firing alerts suppressed by it")


class SilenceListShape(s.Serializer[Any]):
    results = SilenceShape(many=True)


class NewSilenceShape(s.Serializer[Any]):
    matchers = s.JSONField(
        help_text='matchers as text such as `disk=~"d.*"`, or as a list in the format of Alertmanager'
    )
    starts_at = s.DateTimeField(required=False, help_text="default: now")
    ends_at = s.DateTimeField()
    comment = s.CharField()
    recurrence = s.JSONField(
        required=False,
        help_text="recurrence: `rule` of RFC 5545 such as FREQ=WEEKLY;BYDAY=SU, `time_zone` of the rule"
        " (default UTC), `until` (default: 366 days after the start)",
    )


class SilencesView(IncidentAPI):
    @extend_schema(
        operation_id="silences_list",
        parameters=[OpenApiParameter("state", str, enum=list(get_args(silences.State)))],
        responses={200: SilenceListShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Silences, latest end first; at most 1,000."""
        wanted = parameters(request, "state").get("state")
        if wanted not in (None, *get_args(silences.State)):
            raise InvalidValueError("state", "must be active, pending, expired or unreadable")
        suppressed = silences.suppressed_counts()
        shown = [
            _as_json(row, suppressed.get(str(row.pk), 0))
            for row in Silence.objects.select_related("recurrence")[:MOST]
        ]
        return Response({"results": [one for one in shown if wanted in (None, one["state"])]})

    @extend_schema(
        operation_id="silences_create",
        request=NewSilenceShape,
        responses={201: SilenceShape, **ERRORS},
    )
    def post(self, request: Request) -> Response:
        """Silence alerts until a time. Open incidents stay open."""
        body = fields(request, NewSilenceShape)
        result = body["matchers"]
        matchers = read_matchers(result) if isinstance(result, str) else result
        starts = None if "starts_at" not in body else _time(body, "starts_at")
        by, again = context(request), _again(body.get("recurrence"))
        _, _, name = by.actor.partition(":")
        ends = _time(body, "ends_at")
        row = silences.create_silence(matchers, starts, ends, name, body["comment"], by, again)
        return Response(_as_json(row, 0), status=status.HTTP_201_CREATED)


class MatchersShape(s.Serializer[Any]):
    matchers = s.CharField(
        allow_blank=True, help_text="matchers for a silence; empty: the alerts share no label"
    )


class IncidentMatchersView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_matchers",
        responses={200: MatchersShape, **ERRORS, 404: OpenApiResponse(PROBLEM, "Incident not found.")},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Matchers of the labels that all firing alerts share, for a silence of this incident."""
        parameters(request)
        return Response({"matchers": silences.matchers_in_common(reference)})


class SilenceView(IncidentAPI):
    @extend_schema(operation_id="silences_get", responses={200: SilenceShape, **ERRORS, **MISSING})
    def get(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """One silence."""
        row = _found(id)
        return Response(_as_json(row, silences.suppressed_counts().get(str(row.pk), 0)))

    @extend_schema(operation_id="silences_end", responses={200: SilenceShape, **ERRORS, **MISSING})
    def delete(self, request: Request, id: str) -> Response:
        """End a silence now; alerts that still fire get an incident within a minute. It stays in the list
        as expired."""
        row = _found(id)
        silences.end_silence(row, context(request))
        return Response(_as_json(row, 0))


def _found(id: str) -> Silence:
    row = silences.find_silence(id)
    if row is None:
        raise NotFound(f"There is no silence {id[:60]}.")
    return row


def _again(value: object) -> silences.SilenceRepeat | None:
    if value is None:
        return None
    known = {"rule", "time_zone", "until"}
    if not isinstance(value, dict) or not set(value) <= known or "rule" not in value:
        raise InvalidValueError(
            "recurrence", "must be an object with `rule`, and may have `time_zone` and `until`"
        )
    recurrence = recurrence_from("recurrence", value["rule"], value.get("time_zone", "UTC"))
    until = None if value.get("until") is None else _time(value, "until", "recurrence.")
    return silences.SilenceRepeat(recurrence, until)


def _time(body: dict[str, Any], name: str, within: str = "") -> datetime:
    try:
        return parse_rfc3339(body[name])
    except (ValueError, TypeError, OverflowError):
        raise InvalidValueError(
            within + name, "must be an RFC 3339 time, such as 2026-01-31T12:00:00Z"
        ) from None


def _as_json(row: Silence, holds: int) -> dict[str, Any]:
    now = timezone.now()
    again = getattr(row, "recurrence", None)
    span = None if again is None else silences.span_of(row, now)
    return {
        "id": str(row.pk),
        "state": silences.state_of(row, now),
        "problem": silences.problem_of(row, now),
        "matchers": [one.as_json() for one in silences.matchers_shown(row)],
        # Of one that recurs, of the time that is now or comes next.
        "starts_at": rfc3339(row.starts_at if span is None else span.starts_at),
        "ends_at": rfc3339(row.ends_at if span is None else span.ends_at),
        "created_by": row.created_by,
        "comment": row.comment,
        "recurrence": None if again is None else silences.recurrence_as_json(row, again),
        "holds": holds,
    }
