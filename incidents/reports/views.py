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
from incidents.api.incident.views import ConflictError
from incidents.api.inputs import context
from incidents.reports.csv import csv_of
from incidents.reports.mail import subscribe, unsubscribe
from incidents.reports.models import ProducedReport, ReportSchedule, Subscription
from incidents.reports.produce import ReportNotFoundError, now_utc, report
from incidents.reports.serializers import ReportScheduleSerializer, SubscriptionSerializer
from incidents.teams.models import Team
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages


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
        kept = ProducedReport.objects.all()
        schedule = self.request.query_params.get("schedule")
        return kept.filter(schedule=schedule) if schedule else kept

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


class ByName(Pages):
    ordering = ("name",)
    page_size = 100


class Editable(viewsets.ModelViewSet[Any]):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else "admin")]


class ReportSchedulesView(Catalog):
    """Which reports are produced: how often, of what, in which time zone. For staff: a report's team is what it is
    about, not whose it is."""

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
    """Who gets which report by mail."""

    queryset = Subscription.objects.select_related("schedule")
    serializer_class = SubscriptionSerializer
    pagination_class = ByAddress
    http_method_names = ["get", "post", "delete", "head", "options"]  # noqa: RUF012

    def perform_create(self, serializer: BaseSerializer[Subscription]) -> None:
        fields = serializer.validated_data
        serializer.instance = subscribe(fields["schedule"], fields["address"], context(self.request))

    def perform_destroy(self, instance: Subscription) -> None:
        unsubscribe(instance.schedule.name, instance.address, context(self.request))
