"""GET /api/v1/incidents/{id}/alerts: the alerts of an incident, those that fire first; now, or as of a moment."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from incidents import queries
from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import AS_OF, ERRORS, MISSING, IncidentAPI, limit_of, parameters
from incidents.commands import InvalidValueError
from incidents.domain.time import optional_rfc3339, rfc3339
from ingest.queries import Alert


class MemberAlertsView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_alerts",
        parameters=[
            OpenApiParameter("cursor", str, description="from `next` or `previous`"),
            OpenApiParameter("limit", int, description="1 to 200, default 50"),
            AS_OF,
        ],
        responses={200: shapes.MemberAlertPageShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Any:
        """The alerts of an incident as they stand, or stood then: those that fire first, then the latest."""
        asked = parameters(request, "cursor", "limit", "as_of")
        limit, start = limit_of(asked), _start(asked.get("cursor", "0"))
        as_of = queries.parse_moment(asked["as_of"]) if "as_of" in asked else None
        found, count = queries.members(reference, limit, start, as_of)
        whys = queries.why_members(reference, [one.id for one in found])
        here = request.build_absolute_uri()
        return Response(
            {
                "results": [_as_json(one, whys.get(one.id), past=as_of is not None) for one in found],
                "count": count,
                "settling": 0 if as_of else queries.being_settled(reference),
                "next": replace_query_param(here, "cursor", start + limit) if start + limit < count else None,
                "previous": replace_query_param(here, "cursor", max(0, start - limit)) if start else None,
            }
        )


def _start(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InvalidValueError(
            "cursor", "is not a cursor of this list; follow `next` and `previous` as they are given"
        )
    return int(cursor)


def _as_json(one: Alert, why: str | None, *, past: bool) -> dict[str, Any]:
    told = one.alert
    return {
        "id": one.id,
        "status": one.status,
        "expired": one.expired,
        "title": told.title,
        "severity": told.severity,
        "component": told.component,
        "description": told.description,
        "annotations": dict(told.annotations or {}),
        "labels": dict(told.labels),
        "links": [dict(link) for link in told.links],
        "images": [dict(image) for image in told.images],
        "notes": list(told.notes),
        "integration": one.integration,
        "endpoint": one.endpoint,
        "key": told.key,
        "starts_at": optional_rfc3339(told.starts_at),
        "changed_at": rfc3339(one.changed_at),
        # Repeats are no events, so the past does not know them.
        "last_seen": None if past else rfc3339(one.last_seen),
        "repeats": None if past else one.repeats,
        "receipt": one.receipt,
        "why": why,
    }
