"""GET /api/v1/components/{kind/name}/blast_radius: what fails with a component."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, IncidentAPI, parameters
from incidents.api.inputs import time_of
from incidents.domain.components.impact import reached_over, touched
from incidents.domain.routing.rules import Subject, service_of
from incidents.domain.values import check_component, check_line, rfc3339
from incidents.teams.models import services_by_slug
from ingest.queries import topology_snapshot

MOST = 1_000
"""Components that are listed, the nearest ones; all are counted."""


class ReachedShape(s.Serializer[Any]):
    component = s.CharField()
    hops = s.IntegerField(help_text="steps away")
    because = s.CharField(help_text='last step of the path: "is contained in …" or "depends on …"')


class TouchedShape(s.Serializer[Any]):
    slug = s.CharField()
    name = s.CharField()
    team = s.CharField(allow_null=True)
    components = s.IntegerField(
        help_text="number of its own affected components; 0: only a service that it depends on is affected"
    )
    because = s.CharField()


class BlastRadiusShape(s.Serializer[Any]):
    """Components affected by the failure of a component, by the topology at that time."""

    component = s.CharField()
    region = s.CharField()
    at = s.DateTimeField()
    known = s.BooleanField(help_text="whether it is in the topology")
    service = s.CharField(allow_null=True, help_text="slug of its service")
    count = s.IntegerField(help_text="components affected if it fails")
    by_kind = s.DictField(child=s.IntegerField())
    components = ReachedShape(many=True, help_text=f"the nearest {MOST} of them")
    services = TouchedShape(many=True)


class BlastRadiusView(IncidentAPI):
    @extend_schema(
        operation_id="components_blast_radius",
        parameters=[
            OpenApiParameter("region", str, description="default: default"),
            OpenApiParameter("at", str, description="RFC 3339 time; default: now"),
        ],
        responses={200: BlastRadiusShape, **ERRORS},
    )
    def get(self, request: Request, component: str) -> Response:
        """Direct and indirect contents and dependents of a component, with their services."""
        query = parameters(request, "region", "at")
        name = check_component("component", component)
        region = check_line("region", query.get("region", "default"))
        at = time_of("at", query["at"].replace(" ", "+")) if "at" in query else None
        return Response(blast_radius(name, region, at or datetime.now(UTC)))


def blast_radius(name: str, region: str, at: datetime) -> dict[str, Any]:
    topology = topology_snapshot(region, at)
    far = reached_over(name, topology.contains, topology.needed_by)
    services = services_by_slug()
    return {
        "component": name,
        "region": region,
        "at": rfc3339(at),
        "known": topology.knows(name),
        "service": service_of(Subject(name), services),
        "count": len(far),
        "by_kind": dict(Counter(one.component.partition("/")[0] for one in far).most_common()),
        "components": [asdict(one) for one in far[:MOST]],
        "services": [asdict(one) for one in touched(name, far, services)],
    }
