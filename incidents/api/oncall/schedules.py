"""Schedules and calendars over HTTP: what configures them needs `admin`."""

from __future__ import annotations

import hashlib
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.editable import BySlug, Catalog
from incidents.api.incident.views import ConflictError
from incidents.api.oncall.serializers import CalendarSerializer, OnCallScheduleSerializer, OnCallScheduleShape
from incidents.domain.values import rfc3339
from incidents.oncall import queries
from incidents.oncall.models import Calendar, OnCallSchedule
from incidents.teams.references import named_by
from ingest.api.pagination import Pages


class ByFewSlugs(Pages):
    ordering = ("slug",)
    page_size = 10


@extend_schema_view(
    create=extend_schema(responses={201: OnCallScheduleShape}),
    retrieve=extend_schema(responses={200: OnCallScheduleShape}),
    partial_update=extend_schema(responses={200: OnCallScheduleShape}),
)
class SchedulesView(Catalog):
    """On-call schedules. One of them is answered with its state: the person on call, and the times without one. One
    of them is answered with how it stands: who it is now, and when nobody will be."""

    kind = "schedule"
    queryset = OnCallSchedule.objects.select_related("team").prefetch_related("holidays")
    serializer_class = OnCallScheduleSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def remove(self, instance: OnCallSchedule) -> None:
        check_removable(instance)
        instance.delete()

    def disown(self, row: OnCallSchedule) -> None:
        """Its team is removed, it stays. In the caller's transaction."""
        before = self._as_json(row)
        row.team = None
        row.save(update_fields=["team"])
        self._record(row.slug, before, self._as_json(self._read_again(row)))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        if self.action in ("create", "retrieve", "partial_update") and response.status_code < 300:
            response.data = {**response.data, "status": schedule_status(response.data["slug"])}
        return super().finalize_response(request, response, *args, **kwargs)


class CalendarsView(Catalog):
    """Absences and public holidays: iCalendar files that were brought here."""

    kind = "calendar"
    queryset = Calendar.objects.select_related("person")
    serializer_class = CalendarSerializer
    pagination_class = ByFewSlugs
    lookup_field = "slug"

    def remove(self, instance: Calendar) -> None:
        check_removable(instance)
        instance.delete()

    def _as_json(self, instance: Any) -> dict[str, Any]:
        """The text of a file is no news, that it is another one is."""
        alert = super()._as_json(instance)
        return {**alert, "text": f"sha256:{hashlib.sha256(alert['text'].encode()).hexdigest()}"}


def check_removable(row: OnCallSchedule | Calendar) -> None:
    """Raises ConflictError where policies call the schedule, or schedules have their holidays from the calendar."""
    if isinstance(row, OnCallSchedule):
        if called_by := named_by("schedule", row.slug):
            raise ConflictError(f"It is used by {called_by}; change that first.")
    elif named := list(row.schedules.values_list("name", flat=True)[:3]):
        raise ConflictError(f"Schedules use it for holidays: {', '.join(named)}; remove it there first.")


def schedule_status(slug: str) -> dict[str, Any]:
    known = queries.on_call_status(queries.find_schedule(slug), timezone.now())
    return {
        "person": known.person,
        "until": None if known.until is None else rfc3339(known.until),
        "then": known.then,
        "gaps": [{"start": rfc3339(start), "end": rfc3339(end)} for start, end in known.gaps],
        "gone": known.gone,
    }
