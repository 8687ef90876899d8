"""Incidents over HTTP: lists, single ones, their timeline and evidence, and every command. Thin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils import timezone
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import APIException, NotFound, PermissionDenied, ValidationError
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from incidents import commands, queries
from incidents.alerts.receipts import receipt_of
from incidents.api.incident import serializers as shapes
from incidents.api.inputs import context, fields
from incidents.commands import (
    CommandRefusedError,
    CommandResult,
    ConcurrentChangeError,
    Happened,
    IdempotencyKey,
    IncidentNotFoundError,
    InvalidValueError,
    Report,
)
from incidents.domain.permissions import ForbiddenError
from incidents.domain.search import FIELDS
from incidents.domain.values import rfc3339
from incidents.incident.projection import Entry, Evidence, next_entry
from incidents.incident.view import depends_on_time, failure_shown, failures_of
from incidents.people.permissions import allow
from incidents.search import query
from incidents.search.filters import ORDERS, PARAMETERS, Filter
from ingest.api import pagination
from ingest.api.authentication import HasScope
from ingest.api.keys import Key
from ingest.queries import Event, Position

PROBLEM = shapes.ProblemShape
AS_OF = OpenApiParameter("as_of", str, description="RFC 3339 time or log position: the state at that time")
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="ETag or `position` of the incident as last read. If another person or key has changed"
    " the relevant state since, the answer is 409 with their events in `meanwhile`. Without"
    " the header the command is always carried out.",
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="idempotency key: the same report is recorded once within a day and gets the same answer;"
    " a different report with the same key gets 409",
)
ALL = OpenApiParameter("all", bool, description="true: all entries")
ERRORS = {
    400: OpenApiResponse(PROBLEM, "Invalid; `errors` has field and reason. Nothing was stored."),
    401: OpenApiResponse(PROBLEM, "No valid key and not signed in."),
    403: OpenApiResponse(
        PROBLEM, "The key lacks the scope, the person is not staff, or the CSRF token is missing."
    ),
}
MISSING = {404: OpenApiResponse(PROBLEM, "Incident not found.")}


class ConflictError(APIException):
    """`members` are added to the problem document."""

    status_code = status.HTTP_409_CONFLICT

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.members = members


class IncidentAPI(APIView):
    """Reading needs `incidents:read`, writing `incidents:write`; people who are signed in need no scope."""

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else "incidents:write")]

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(_as_answer(exc))


def _as_answer(exc: Exception) -> Exception:
    """HTTP status for a refusal by the layer below."""
    if isinstance(exc, InvalidValueError):
        return ValidationError({exc.field: [exc.reason]})
    if isinstance(exc, ConcurrentChangeError):
        return ConflictError(exc.reason, meanwhile=[_happened(one) for one in exc.meanwhile])
    if isinstance(exc, ForbiddenError):
        return PermissionDenied(f"{exc.reason[:1].upper()}{exc.reason[1:]}.")
    if isinstance(exc, CommandRefusedError):
        return ConflictError(exc.reason)
    if isinstance(exc, IncidentNotFoundError):
        return NotFound(str(exc))
    return exc


def _happened(one: Happened) -> dict[str, Any]:
    return {**asdict(one), "at": rfc3339(one.at)}


def parameters(request: Request, *known: str) -> dict[str, str]:
    """Query parameters, the last of each name. Raises InvalidValueError for one that is not known here."""
    if unknown := sorted(set(request.query_params) - set(known)):
        raise InvalidValueError(unknown[0][:100], "is not a parameter here")
    return {name: request.query_params[name] for name in request.query_params}


def as_of_in(query: Mapping[str, str]) -> Position | None:
    return queries.parse_moment(query["as_of"]) if "as_of" in query else None


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise InvalidValueError(name, "must be true or false")
    return value == "true"


def limit_of(query: Mapping[str, str]) -> int:
    try:
        return pagination.parse_limit(query.get("limit"))
    except pagination.PageError as error:
        raise InvalidValueError(error.field, error.reason) from error


def tagged(request: Request, body: Mapping[str, Any], etag: str) -> Any:
    """The body with its ETag, or 304 where the sender has it already."""
    response = Response(body, headers={"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"})
    return get_conditional_response(request._request, etag=f'"{etag}"', response=response)


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32]


SEARCH = (
    "search as in the console: words, and `name:value` of "
    + ", ".join(FIELDS)
    + "; values with spaces in quotes; a minus excludes"
)


def _searched(request: Request, requested: Mapping[str, str]) -> Sequence[Filter]:
    """The filters of `search`. Raises InvalidValueError with every word that cannot be read."""
    me = None if request.auth is not None else request.user.get_username()
    found = query.search_query(requested.get("search", ""), timezone.now(), me, queries.team_slugs())
    if found.problems:
        raise InvalidValueError("search", "; ".join(map(str, found.problems))[:1000])
    return found.filters


class IncidentsView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_list",
        parameters=[
            *(
                OpenApiParameter(name, str, description=meaning, many=operator == "in")
                for name, (_, operator, _, meaning) in PARAMETERS.items()
            ),
            OpenApiParameter("search", str, description=SEARCH),
            OpenApiParameter("order", str, enum=list(ORDERS), description="default: newest"),
            *pagination.PAGE_PARAMETERS,
            AS_OF,
        ],
        responses={200: shapes.IncidentPageShape, **ERRORS},
    )
    def get(self, request: Request) -> Any:
        """Incidents that match all filters; repeat a filter for alternative values."""
        query = parameters(request, *PARAMETERS, "search", "order", "cursor", "limit", "as_of")
        given = {name: request.query_params.getlist(name) for name in query if name in PARAMETERS}
        as_of = as_of_in(query)
        page = queries.list_incidents(
            [*queries.parse_filters(given), *_searched(request, query)],
            order=query.get("order", "newest"),
            cursor=query.get("cursor"),
            limit=limit_of(query),
            as_of=as_of,
        )
        failures = failures_of(page.items, as_of)
        results = [view.as_json(failures[view.incident.id]) for view in page.items]
        body = pagination.as_json(page, results, request.build_absolute_uri())
        return tagged(request, body, _digest(body))

    @extend_schema(
        operation_id="incidents_open",
        parameters=[IDEMPOTENCY_KEY],
        request=shapes.ReportShape,
        responses={
            201: OpenApiResponse(shapes.IncidentShape, "Opened; the receipt is in `Dossier-Receipt`."),
            200: OpenApiResponse(shapes.IncidentShape, "Joined the open incident of the same `dedup_key`."),
            409: OpenApiResponse(
                PROBLEM, "The `Idempotency-Key` was used for a different report. Nothing was stored."
            ),
            413: OpenApiResponse(PROBLEM, "The body is too large. Nothing was stored."),
            **ERRORS,
        },
    )
    def post(self, request: Request) -> Response:
        """Report a failure: opens an incident at the team of the component, or joins the open one."""
        allow("open", context(request))
        key = request.auth
        region = (key.region or None) if isinstance(key, Key) else None
        report = Report(**fields(request, shapes.ReportShape), region=region)
        by = context(request)
        try:
            result = commands.open_incident(report, by, _once(request, by.actor))
        except commands.KeyReusedError as error:
            raise ConflictError(f"{error}; nothing was stored.") from None
        answer = _answer(result.incident.id, result.events)
        if result.opened:
            answer.status_code = status.HTTP_201_CREATED
            answer["Location"] = request.build_absolute_uri(f"{request.path}/{result.incident.id}")
        return answer


def _once(request: Request, actor: str) -> IdempotencyKey | None:
    """The report's Idempotency-Key; None where it has none."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    digest_input = json.dumps(request.data, sort_keys=True).encode()
    return IdempotencyKey(actor, key, hashlib.sha256(digest_input).digest())


class IncidentView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_get",
        parameters=[AS_OF],
        responses={200: shapes.IncidentShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Any:
        """One incident, by id or number."""
        as_of = as_of_in(parameters(request, "as_of"))
        view = queries.get(reference, as_of)
        body = view.as_json(failure_shown(view, as_of))
        if as_of is None and depends_on_time(view.incident):
            return Response(
                body, headers={"ETag": f'"{view.position}"', "Cache-Control": "private, no-cache"}
            )
        return tagged(request, body, view.position)


class EventsView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_events",
        parameters=[AS_OF, ALL],
        responses={200: shapes.TimelineShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Any:
        """The timeline, oldest first. Consecutive findings share an entry, unless `all=true`."""
        query = parameters(request, "as_of", "all")
        view, as_of = queries.get(reference, as_of_in(query)), as_of_in(query)
        if _flag(query, "all"):
            entries = [next_entry(None, event) for event in queries.incident_events(view.incident.id, as_of)]
        else:
            entries = queries.timeline(view.incident.id, as_of)
        body = {"results": [_entry(view.incident.id, entry) for entry in entries]}
        return tagged(request, body, _digest(body))


class EvidenceView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_evidence",
        parameters=[AS_OF, ALL],
        responses={200: shapes.AttachedListShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Any:
        """The evidence, oldest first: first and latest of each analyzer, unless `all=true`."""
        query = parameters(request, "as_of", "all")
        view, as_of = queries.get(reference, as_of_in(query)), as_of_in(query)
        pieces = queries.evidence(view.incident.id, as_of, everything=_flag(query, "all"))
        body = {"results": [_piece(view.incident.id, piece) for piece in pieces]}
        return tagged(request, body, _digest(body))

    @extend_schema(
        operation_id="incidents_attach_evidence",
        request=shapes.AttachShape,
        responses={200: shapes.IncidentShape, **ERRORS, **MISSING},
    )
    def post(self, request: Request, reference: str) -> Response:
        """Attach tables, charts or texts."""
        incident_id = queries.get(reference).incident.id
        evidence = fields(request, shapes.AttachShape)["evidence"]
        recorded = commands.attach_evidence(incident_id, evidence, context(request))
        return _answer(incident_id, recorded.events)


def _entry(incident_id: str, entry: Entry) -> dict[str, Any]:
    body = {name: getattr(entry, name) for name in Entry.__struct_fields__}
    body |= {"at": rfc3339(entry.at), "last_at": rfc3339(entry.last_at)}
    return {"id": f"incident/{incident_id}@{entry.version}", **body}


def _piece(incident_id: str, piece: Evidence) -> dict[str, Any]:
    finding = piece.finding or {}
    return {
        "id": f"incident/{incident_id}@{piece.version}",
        **{name: getattr(piece, name) for name in ("kind", "title", "columns", "rows", "chart", "text")},
        "at": rfc3339(piece.at),
        "actor": piece.actor,
        "analyzer": piece.analyzer,
        "analyzer_version": finding.get("version"),
        "run": finding.get("run"),
        "params": piece.params,
        "window": finding.get("window"),
    }


def _answer(incident_id: str, events: Sequence[Event]) -> Response:
    """The incident after a command, and the receipt of what was recorded."""
    view = queries.get(incident_id)
    response = Response(view.as_json(failure_shown(view)), headers={"ETag": f'"{view.position}"'})
    if events:
        response["Dossier-Receipt"] = receipt_of(incident_id, events)
    return response


Command = Callable[[str, dict[str, Any], Request], CommandResult]


def action(verb: str, text: str, shape: type[Serializer[Any]], command: Command) -> type[APIView]:
    """The view of one command: POST /incidents/{reference}/{verb}."""

    class ActionView(IncidentAPI):
        @extend_schema(
            operation_id=f"incidents_{verb}",
            description=text,
            parameters=[IF_MATCH],
            request=None if shape is shapes.NothingShape else shape,
            responses={
                200: OpenApiResponse(shapes.IncidentShape, "Done, or no change needed (no receipt)."),
                409: OpenApiResponse(
                    shapes.ConflictShape,
                    "Not possible in the state of the incident; `detail` has the reason.",
                ),
                **ERRORS,
                **MISSING,
            },
        )
        def post(self, request: Request, reference: str) -> Response:
            incident_id = queries.get(reference).incident.id
            if (
                verb != "split"
            ):  # which may be asked of the incident that took it in; the command asks for the other
                allow(verb, context(request), incident_id)  # before the body: it is nothing to who may not
            recorded = command(incident_id, fields(request, shape), request)
            return _answer(recorded.incident.id, recorded.events)

    ActionView.__name__ = f"{verb.title().replace('_', '')}View"
    return ActionView
