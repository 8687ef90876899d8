"""Runs, schedules and analyzers over HTTP. Thin: the commands and queries of this floor do the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from analyzers import registry
from analyzers.api import schedules
from analyzers.api.serializers import (
    RunDetailSerializer,
    RunSerializer,
    ScheduleSerializer,
    WantedSerializer,
    now,
)
from analyzers.runs.management.commands.analyzers import described
from analyzers.runs.models import Run, Schedule
from analyzers.runs.requests import InvalidRunError, RunNotRepeatableError, request_rerun, request_run
from analyzers.runs.results import runs
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages
from ingest.api.problem_details import problem
from ingest.queries import Context

FILTERS = {
    "analyzer": "analyzer",
    "region": "region",
    "state": "state",
    "status": "status",
    "schedule": "schedule_key",
}


def actor(request: Request) -> str:
    """Actor, as the log writes it."""
    kind = "key" if request.auth is not None else "user"
    return f"{kind}:{request.user.get_username()}"


class Newest(Pages):
    ordering = ("-created_at", "-id")


class ByName(Pages):
    ordering = ("name",)


class Scoped(APIView):
    """Reading needs one scope, writing another."""

    writes = "incidents:write"

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else self.writes)]


class AnalysisView(Scoped):
    """Having an analyzer run takes a role, too. Roles are of a floor above, whose check the settings name."""

    def get_permissions(self) -> list[BasePermission]:
        requested: list[BasePermission] = super().get_permissions()
        if self.request.method not in SAFE_METHODS:
            requested.append(import_string(settings.MAY_ANALYZE)())
        return requested


class AnalyzersView(Scoped):
    @extend_schema(
        operation_id="analyzers_list", responses={200: OpenApiResponse(description="All analyzers.")}
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """Installed analyzers with telemetry kinds and parameters. `problems` lists those that cannot be
        used."""
        problems = [
            {"name": one.name, "plugin": one.plugin, "reason": one.reason, "cure": one.cure}
            for one in registry.problems()
        ]
        found = [described(one) for one in registry.installed().values()]
        return Response({"results": found, "problems": problems})


class RunsView(AnalysisView, ListAPIView[Run]):
    serializer_class = RunSerializer
    pagination_class = Newest

    def get_queryset(self) -> Any:
        requested = self.request.query_params
        known = {*FILTERS, "cursor", "limit", "format"}
        if unknown := sorted(set(requested) - known):
            raise ValidationError({name: ["is not a filter of runs"] for name in unknown})
        if unfit := [name for name in requested if "\0" in requested[name]]:
            raise ValidationError({name: ["holds a NUL character"] for name in unfit})
        return runs().filter(
            **{column: requested[name] for name, column in FILTERS.items() if name in requested}
        )

    @extend_schema(parameters=[OpenApiParameter(name, str) for name in FILTERS])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Runs, newest first."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=WantedSerializer, responses={202: RunDetailSerializer})
    def post(self, request: Request) -> Response:
        """Run an analyzer on a given window. Queued; follow `Location`."""
        requested = WantedSerializer(data=request.data)
        requested.is_valid(raise_exception=True)
        try:
            run = request_run(requested.wanted(), actor(request), now())
        except InvalidRunError as bad:
            raise ValidationError({bad.field: [str(bad)]}) from bad
        return _accepted(run)


class RunView(Scoped):
    @extend_schema(responses={200: RunDetailSerializer})
    def get(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """A run with its verdict, hashes and late rows."""
        return Response(RunDetailSerializer(_run(id)).data)


class RerunView(AnalysisView):
    @extend_schema(
        request=None,
        responses={
            202: RunDetailSerializer,
            409: OpenApiResponse(
                description="Not repeatable: no verdict, another version of the analyzer, or the window is no longer"
                " stored."
            ),
        },
    )
    def post(self, request: Request, id: str) -> Any:
        """Repeat a run on its stored window, with its version and parameters; `identical` has the result."""
        try:
            again = request_rerun(_run(id).pk, actor(request), now())
        except RunNotRepeatableError as refusal:
            return problem(status.HTTP_409_CONFLICT, "Conflict", str(refusal))
        return _accepted(again)


class SchedulesView(Scoped, viewsets.ModelViewSet[Schedule]):
    """Schedules of analyzers."""

    writes = "admin"

    queryset = Schedule.objects.all()
    serializer_class = ScheduleSerializer
    pagination_class = ByName
    lookup_field = "name"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012

    def perform_create(self, serializer: BaseSerializer[Schedule]) -> None:
        self._put(serializer)

    def perform_update(self, serializer: BaseSerializer[Schedule]) -> None:
        self._put(serializer)

    def perform_destroy(self, instance: Schedule) -> None:
        with _still_there():
            schedules.remove(instance, _context_of(self.request))

    def _put(self, serializer: BaseSerializer[Schedule]) -> None:
        assert isinstance(serializer, ScheduleSerializer)
        with _still_there():
            schedules.put(serializer, _context_of(self.request))


@contextmanager
def _still_there() -> Iterator[None]:
    try:
        yield
    except Schedule.DoesNotExist as error:
        raise NotFound("Someone else removed this schedule at the same time.") from error


def _context_of(request: Request) -> Context:
    return Context(actor(request), trace=getattr(request, "trace", None))


def _run(id: str) -> Run:
    found = runs().filter(pk=id).first()
    if found is None:
        raise NotFound(f"There is no run {id}.")
    return found


def _accepted(run: Run) -> Response:
    where = {"Location": f"/api/v1/runs/{run.pk}"}
    return Response(RunDetailSerializer(run).data, status=status.HTTP_202_ACCEPTED, headers=where)
