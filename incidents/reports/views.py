"""Reports over HTTP: JSON, CSV and a plain page, by `?format=` or `Accept`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.template.loader import render_to_string
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import viewsets
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from incidents.api.editable import Catalog
from incidents.api.incident.views import ERRORS, ConflictError, IncidentAPI, parameters
from incidents.api.inputs import context, time_of
from incidents.domain.values import InvalidValueError
from incidents.reports.csv import csv_of
from incidents.reports.lemons import DAYS, LEVEL, MOST_DAYS, lemons_of
from incidents.reports.mail import subscribe, unsubscribe
from incidents.reports.models import ProducedReport, ReportSchedule, Subscription
from incidents.reports.produce import ReportNotFoundError, now_utc, report
from incidents.reports.serializers import ReportScheduleSerializer, SubscriptionSerializer
from incidents.teams.models import Team
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages
from ingest.queries import regions, watermark


class Readable(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]


class CsvRenderer(BaseRenderer):
    media_type = "text/csv"
    format = "csv"

    def render(
        self, data: Any, accepted_media_type: str | None = None, context: Mapping[str, Any] | None = None
    ) -> bytes:
        del accepted_media_type
        return _problem(data, context) or csv_of(data).encode()


class PageRenderer(BaseRenderer):
    media_type = "text/html"
    format = "html"

    def render(
        self, data: Any, accepted_media_type: str | None = None, context: Mapping[str, Any] | None = None
    ) -> bytes:
        del accepted_media_type
        return _problem(data, context) or render_to_string("reports/page.html", {"report": data}).encode()


def _problem(data: Any, context: Mapping[str, Any] | None) -> bytes | None:
    """A refusal stays a problem, whatever format was asked for."""
    refused = context is not None and context["response"].status_code >= 400
    rendered: bytes = JSONRenderer().render(data)
    return rendered if refused else None


class Summary(BaseSerializer[ProducedReport]):
    """A report in the list: its period, its sums, and where the whole of it is."""

    def to_representation(self, instance: ProducedReport) -> dict[str, Any]:
        body = instance.body
        return {
            "id": instance.id,
            "schedule": instance.schedule,
            "title": body["title"],
            "period": body["period"],
            "scope": body["scope"],
            "runs": {name: value for name, value in body["runs"].items() if name != "schedules"},
            "blamed": [one["component"] for one in body["blamed"]],
            "opened": len(body["incidents"]["opened"]),
            "resolved": len(body["incidents"]["resolved"]),
            "position": instance.position,
            "url": f"/api/v1/reports/{instance.id}",
        }


class NewestPeriod(Pages):
    ordering = ("-end", "id")


class ReportsView(Readable, ListAPIView[ProducedReport]):
    serializer_class = Summary
    pagination_class = NewestPeriod

    def get_queryset(self) -> QuerySet[ProducedReport]:
        reports = ProducedReport.objects.all()
        schedule = self.request.query_params.get("schedule")
        return reports.filter(schedule=schedule) if schedule else reports

    @extend_schema(
        operation_id="reports_list",
        parameters=[OpenApiParameter("schedule", str, description="Only those of this schedule.")],
        responses={200: OpenApiResponse(description="A page of reports.")},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The reports that were produced, newest first."""
        return super().get(request, *args, **kwargs)


class ReportView(Readable):
    renderer_classes = (JSONRenderer, CsvRenderer, PageRenderer)

    @extend_schema(
        operation_id="reports_retrieve",
        parameters=[OpenApiParameter("format", str, enum=["json", "csv", "html"])],
        responses={200: OpenApiResponse(description="The report of the period.")},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """A report, such as `weekly-2026-W46`; as it stands now (`final: false`) if none was produced."""
        try:
            return Response(report(id, now_utc()))
        except ReportNotFoundError as error:
            known = "reports are named by schedule and period, such as daily-2026-05-04 or weekly-2026-W19"
            raise NotFound(f"{error}; {known}.") from error


_NUMBERS = {"days": (DAYS, 1, MOST_DAYS), "level": (LEVEL, 0.001, 0.5)}


class LemonsView(IncidentAPI):
    @extend_schema(
        operation_id="lemons",
        parameters=[
            OpenApiParameter("region", str, many=True, description="default: every region with telemetry"),
            OpenApiParameter("end", str, description="RFC 3339, the end of the window; default: now"),
            OpenApiParameter("days", int, description=f"1 to {MOST_DAYS}; default: {DAYS}"),
            OpenApiParameter("level", float, description=f"accepted share of false lemons; default: {LEVEL}"),
        ],
        responses={
            200: OpenApiResponse(description="By region: fleets with lemons, and repair rates."),
            **ERRORS,
        },
    )
    def get(self, request: Request) -> Response:
        """Parts, batches and firmware that fail more than their peers, and how often no fault was found."""
        query = parameters(request, "region", "end", "days", "level")
        end = time_of("end", query.get("end")) or now_utc()
        days, level = (_number(query, name) for name in _NUMBERS)
        if days != int(days):
            raise InvalidValueError("days", "must be a whole number")
        known, chosen = regions(), request.query_params.getlist("region")
        if unknown := [one for one in chosen if one not in known]:
            raise InvalidValueError("region", f"no telemetry of {unknown[0][:100]}")
        upto = watermark()
        return Response({"regions": [lemons_of(one, end, upto, int(days), level) for one in chosen or known]})


def _number(query: Mapping[str, str], name: str) -> float:
    default, low, high = _NUMBERS[name]
    try:
        value = float(query.get(name, default))
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InvalidValueError(name, f"must be a number from {low:g} to {high:g}")
    return value


class ByName(Pages):
    ordering = ("name",)
    page_size = 100


class Editable(viewsets.ModelViewSet[Any]):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else "admin")]


class ReportSchedulesView(Catalog):
    """Schedules of reports: interval, subject, time zone. For staff: a report's team is its subject, not its owner.
    For staff: a report's team is what it is about, not whose it is."""

    kind = "report_schedule"
    by_team = False
    queryset = ReportSchedule.objects.all()
    serializer_class = ReportScheduleSerializer
    pagination_class = ByName
    lookup_field = "name"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012

    def keep(self, serializer: BaseSerializer[ReportSchedule]) -> None:
        # Asked again now that nothing can be removed.
        team = serializer.validated_data.get("team", "")
        if team and not Team.objects.filter(slug=team).exists():
            raise ConflictError(f"The team {team} was removed in the meantime; reload and try again.")
        serializer.save()

    def remove(self, instance: ReportSchedule) -> None:
        for address in instance.subscriptions.values_list("address", flat=True):
            unsubscribe(instance.name, address, self.context)
        instance.delete()


class ByAddress(Pages):
    ordering = ("address", "id")
    page_size = 100


class SubscriptionsView(Editable):
    """Subscriptions of reports by mail."""

    queryset = Subscription.objects.select_related("schedule")
    serializer_class = SubscriptionSerializer
    pagination_class = ByAddress
    http_method_names = ["get", "post", "delete", "head", "options"]  # noqa: RUF012

    def perform_create(self, serializer: BaseSerializer[Subscription]) -> None:
        fields = serializer.validated_data
        serializer.instance = subscribe(fields["schedule"], fields["address"], context(self.request))

    def perform_destroy(self, instance: Subscription) -> None:
        unsubscribe(instance.schedule.name, instance.address, context(self.request))
