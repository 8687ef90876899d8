"""Reports over HTTP: JSON, CSV and a plain page, by `?format=` or `Accept`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from django.template.loader import render_to_string
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from analyzers.api.pages import Pages
from incidents.reports.models import DailyReport
from incidents.reports.producing import report
from incidents.reports.table import csv_of
from ingest.api.authentication import HasScope


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
        return _problem(data, context) or render_to_string("reports/daily.html", {"report": data}).encode()


def _problem(data: Any, context: Mapping[str, Any] | None) -> bytes | None:
    """A refusal stays a problem, whatever format was asked for."""
    refused = context is not None and context["response"].status_code >= 400
    rendered: bytes = JSONRenderer().render(data)
    return rendered if refused else None


class Summary(BaseSerializer[DailyReport]):
    """A report in the list: its day, its sums, and where the whole of it is."""

    def to_representation(self, instance: DailyReport) -> dict[str, Any]:
        body = instance.body
        return {
            "id": instance.day.isoformat(),
            "day": instance.day.isoformat(),
            "runs": body["runs"],
            "blamed": [one["component"] for one in body["blamed"]],
            "opened": len(body["opened"]),
            "resolved": len(body["resolved"]),
            "position": instance.position,
            "url": f"/api/v1/reports/{instance.day.isoformat()}",
        }


class NewestDay(Pages):
    ordering = ("-day",)


class ReportsView(Readable, ListAPIView[DailyReport]):
    serializer_class = Summary
    pagination_class = NewestDay
    queryset = DailyReport.objects.all()

    @extend_schema(
        operation_id="reports_list", responses={200: OpenApiResponse(description="A page of reports.")}
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The daily reports that were produced, newest first."""
        return super().get(request, *args, **kwargs)


class ReportView(Readable):
    renderer_classes = (JSONRenderer, CsvRenderer, PageRenderer)

    @extend_schema(
        operation_id="reports_retrieve",
        parameters=[OpenApiParameter("format", str, enum=["json", "csv", "html"])],
        responses={200: OpenApiResponse(description="The report of the day (UTC).")},
    )
    def get(self, request: Request, id: str) -> Response:  # noqa: ARG002
        """The report of a day, such as 2026-05-04; as it stands now (`final: false`) if none was produced."""
        try:
            found = report(date.fromisoformat(id), datetime.now(UTC))
        except ValueError:
            found = None
        if found is None:
            raise NotFound(
                f"There is no report {id[:40]}; reports are named by past days, such as 2026-05-04."
            )
        return Response(found)
