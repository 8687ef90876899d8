"""Backtests over HTTP: ask for one, follow it, stop it. Thin: `incidents.scorecards` asks and works."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analyzers.api.fields import SpanField
from analyzers.api.serializers import StrictMixin
from incidents.api.inputs import context
from incidents.api.permissions import MayAnalyze
from incidents.scorecards import requests
from incidents.scorecards.models import BacktestRow
from incidents.scorecards.requests import BacktestRequest, InvalidBacktestError
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages
from ingest.api.problem_details import problem

REGIONS = 100


class BacktestRequestShape(StrictMixin, s.Serializer[Any]):
    """Body of POST /backtests. Every window inside `[start, end)` is judged."""

    analyzer = s.CharField(max_length=60)
    start = s.DateTimeField(default_timezone=UTC)
    end = s.DateTimeField(default_timezone=UTC)
    params = s.DictField(required=False, default=dict)
    length = SpanField(required=False, least=requests.SHORTEST, most=requests.LONGEST)
    every = SpanField(required=False, least=requests.SHORTEST, most=requests.LONGEST)
    regions = s.ListField(
        child=s.CharField(max_length=255),
        required=False,
        default=list,
        max_length=REGIONS,
        help_text="default: all regions with data",
    )
    against = s.UUIDField(
        required=False,
        allow_null=True,
        default=None,
        help_text="id of a backtest whose windows are judged instead",
    )

    def request_of(self) -> BacktestRequest:
        given = dict(self.validated_data)
        return BacktestRequest(**{**given, "regions": tuple(given["regions"])})


class BacktestShape(s.Serializer[BacktestRow]):
    """A backtest, as in lists."""

    id = s.UUIDField()
    state = s.CharField(help_text="queued, running, done, failed or cancelled")
    analyzer = s.CharField()
    version = s.CharField()
    params = s.DictField()
    regions = s.ListField(child=s.CharField())
    start = s.DateTimeField(default_timezone=UTC)
    end = s.DateTimeField(default_timezone=UTC)
    length = SpanField()
    every = SpanField()
    against = s.UUIDField(source="against_id", allow_null=True)
    total = s.IntegerField(allow_null=True, help_text="number of windows; null: not started")
    done = s.IntegerField(help_text="number of windows judged")
    requested_by = s.CharField()
    created_at = s.DateTimeField(default_timezone=UTC)
    finished_at = s.DateTimeField(default_timezone=UTC, allow_null=True)
    error = s.CharField()


class BacktestWithResultShape(BacktestShape):
    result = s.DictField(allow_null=True, help_text="score, as `manage.py backtest --json` prints it")


class Newest(Pages):
    ordering = ("-created_at", "-id")


class ScorecardAPI(APIView):
    def get_permissions(self) -> list[BasePermission]:
        if self.request.method in SAFE_METHODS:
            return [HasScope("incidents:read")]
        return [HasScope("incidents:write"), MayAnalyze()]


class BacktestsView(ScorecardAPI, ListAPIView[BacktestRow]):
    serializer_class = BacktestShape
    pagination_class = Newest
    queryset = BacktestRow.objects.all()

    @extend_schema(operation_id="backtests_list")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Backtests, newest first."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="backtests_create",
        request=BacktestRequestShape,
        responses={202: BacktestWithResultShape},
    )
    def post(self, request: Request) -> Response:
        """Judge recorded telemetry and score the verdicts against resolved incidents. Queued; follow
        `Location`."""
        requested = BacktestRequestShape(data=request.data)
        requested.is_valid(raise_exception=True)
        try:
            row = requests.request_backtest(requested.request_of(), context(request).actor, _now())
        except InvalidBacktestError as bad:
            raise ValidationError({bad.field: [str(bad)]}) from bad
        where = {"Location": f"/api/v1/backtests/{row.pk}"}
        return Response(BacktestWithResultShape(row).data, status=status.HTTP_202_ACCEPTED, headers=where)


class BacktestView(ScorecardAPI):
    @extend_schema(operation_id="backtests_retrieve", responses={200: BacktestWithResultShape})
    def get(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """Progress of a backtest, and its score at the end."""
        return Response(BacktestWithResultShape(_found(id)).data)


class CancelView(ScorecardAPI):
    @extend_schema(
        operation_id="backtests_cancel",
        request=None,
        responses={200: BacktestWithResultShape, 409: OpenApiResponse(description="Already ended.")},
    )
    def post(self, request: Request, id: str) -> Any:  # noqa: ARG002
        """Stop a backtest. Verdicts so far are kept."""
        row = _found(id)
        if not requests.cancel(row.pk, _now()):
            return problem(status.HTTP_409_CONFLICT, "Conflict", f"The backtest is already {row.state}.")
        return Response(BacktestWithResultShape(_found(id)).data)


def _found(id: str) -> BacktestRow:
    row = BacktestRow.objects.filter(pk=id).first()
    if row is None:
        raise NotFound(f"There is no backtest {id}.")
    return row


def _now() -> datetime:
    return datetime.now(UTC)
