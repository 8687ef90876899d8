"""GET /api/v1/incidents/{id}/alerts: the alerts of an incident, those that fire first; now, or as of a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import AS_OF, ERRORS, MISSING, IncidentAPI, limit_of, parameters
from incidents.commands import InvalidValueError
from incidents.domain.values import optional_rfc3339, rfc3339
from ingest.api import pagination
from ingest.queries import Alert


class MemberAlertsView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_alerts",
        parameters=[
            *pagination.PAGE_PARAMETERS,
            AS_OF,
        ],
        responses={200: shapes.MemberAlertPageShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Any:
        """Alerts of an incident, now or at `as_of`: firing ones first, then newest first."""
        query = parameters(request, "cursor", "limit", "as_of")
        limit, start = limit_of(query), _start(query)
        as_of = queries.parse_moment(query["as_of"]) if "as_of" in query else None
        found, count = queries.members(reference, limit, start, as_of)
        whys = queries.why_members(reference, [one.id for one in found])
        page = pagination.page_at(found, start, count, limit)
        results = [_as_json(one, whys.get(one.id), past=as_of is not None) for one in found]
        return Response(
            {
                **pagination.as_json(page, results, request.build_absolute_uri()),
                "count": count,
                "pending_resolutions": 0 if as_of else queries.alerts_pending_resolution(reference),
            }
        )


def _start(query: Mapping[str, str]) -> int:
    try:
        return pagination.parse_start(query.get("cursor"))
    except pagination.PageError as error:
        raise InvalidValueError(error.field, error.reason) from error


def _as_json(one: Alert, why: str | None, *, past: bool) -> dict[str, Any]:
    alert = one.alert
    return {
        "id": one.id,
        "status": one.status,
        "expired": one.expired,
        "title": alert.title,
        "severity": alert.severity,
        "component": alert.component,
        "description": alert.description,
        "annotations": dict(alert.annotations or {}),
        "labels": dict(alert.labels),
        "links": [dict(link) for link in alert.links],
        "images": [dict(image) for image in alert.images],
        "notes": list(alert.notes),
        "integration": one.integration,
        "endpoint": one.endpoint,
        "key": alert.key,
        "starts_at": optional_rfc3339(alert.starts_at),
        "changed_at": rfc3339(one.changed_at),
        # Repeats are no events, so the past does not know them.
        "last_seen": None if past else rfc3339(one.last_seen),
        "repeats": None if past else one.repeats,
        "receipt": one.receipt,
        "why": why,
    }
