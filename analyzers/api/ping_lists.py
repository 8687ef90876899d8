"""Ping lists over HTTP, for the agents that probe: of training jobs, and the probes that incidents ask for."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analyzers.runs.models import ProbeRequest
from analyzers.runs.ping_lists import ping_list
from analyzers.runs.probe_requests import requested_probes
from ingest.api.authentication import HasScope
from ingest.queries import now_utc

FILTERS = {
    "region": "region of the job's telemetry; default: `default`",
    "source": "only the destinations of this endpoint or network card",
}


class PingListView(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]

    @extend_schema(
        operation_id="ping_list",
        parameters=[
            OpenApiParameter("job", str, OpenApiParameter.PATH, description="name of the training job"),
            *(OpenApiParameter(name, str, description=words) for name, words in FILTERS.items()),
            OpenApiParameter(
                "If-None-Match",
                str,
                OpenApiParameter.HEADER,
                description="ETag of the current list of the agent",
            ),
        ],
        responses={
            200: OpenApiResponse(description="Destinations by source, and the skeleton that they come from."),
            304: OpenApiResponse(description="The list has not changed."),
            404: OpenApiResponse(description="Job without known endpoints or traffic."),
        },
    )
    def get(self, request: Request, job: str) -> Any:
        """Probe targets of each endpoint of a job. Agents poll it with the ETag of their list."""
        _check(request, job)
        found = ping_list(job, request.query_params.get("region", "default"))
        if found is None:
            raise NotFound(f"No endpoint and no traffic of a job {job[:100]} is known.")
        lists, cards = (
            {source: list(others) for source, others in sorted(some.items())}
            for some in (found.destinations, found.underlay)
        )
        if (source := request.query_params.get("source")) is not None:
            if source not in lists and source not in cards:
                raise NotFound(f"{source[:100]} is no registered source of job {job[:100]}.")
            lists, cards = (
                {name: others for name, others in some.items() if name == source} for some in (lists, cards)
            )
        requested = [_as_json(one) for one in found.requested if one.src in lists or one.src in cards]
        body = {
            "job": found.job,
            "region": found.region,
            "phase": found.phase,
            "share_of_full_mesh": round(found.share, 5),
            "run": found.run,
            **{name: found.measures.get(name) for name in ("dp", "pp", "tp", "confidence")},
            "destinations": lists,
            "underlay": cards,
            "requested": requested,
        }
        # A later run with the same list is no news to an agent.
        return _tagged(request, body, [found.phase, lists, cards, requested])


class RequestedProbesView(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]

    @extend_schema(
        operation_id="requested_probes",
        parameters=[
            OpenApiParameter("region", str, description="region of the incidents; default: `default`"),
            OpenApiParameter("source", str, description="only the probes from this component"),
            OpenApiParameter(
                "If-None-Match",
                str,
                OpenApiParameter.HEADER,
                description="ETag of the current list of the agent",
            ),
        ],
        responses={
            200: OpenApiResponse(description="Requested probes with their end and question."),
            304: OpenApiResponse(description="The list has not changed."),
        },
    )
    def get(self, request: Request) -> Any:
        """Probes requested by the incidents of a region, of any job. Send the results as telemetry of the
        kind `probe`, which answers the question."""
        _check(request, "")
        region = request.query_params.get("region", "default")
        source = request.query_params.get("source")
        requested = [
            _as_json(one)
            for one in requested_probes(region, now_utc())
            if source is None or one.src == source
        ]
        return _tagged(request, {"region": region, "requested": requested}, requested)


def _check(request: Request, job: str) -> None:
    if unknown := sorted(set(request.query_params) - {*FILTERS, "format"}):
        raise ValidationError({unknown[0][:100]: ["is not a parameter of a ping list"]})
    if any("\0" in one for one in (job, *request.query_params.values())):
        raise ValidationError({"job": ["holds a NUL character"]})


def _as_json(one: ProbeRequest) -> dict[str, Any]:
    return {
        "incident": one.incident,
        "question": one.question,
        "source": one.src,
        "destination": one.dst,
        "hops": one.hops,
        "packets": one.packets,
        "until": one.until.isoformat(),
    }


def _tagged(request: Request, body: dict[str, Any], news: object) -> Any:
    etag = sha256(json.dumps(news, sort_keys=True).encode()).hexdigest()[:32]
    response = Response(body, headers={"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"})
    return get_conditional_response(request._request, etag=f'"{etag}"', response=response)
