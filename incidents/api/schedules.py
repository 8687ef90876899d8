"""Schedules and calendars over HTTP: what configures them needs `admin`."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer

from incidents.api.catalog import BySlug, Catalog
from incidents.api.schedule_shapes import CalendarSerializer, OnCallScheduleSerializer, OnCallScheduleShape
from incidents.api.views import Conflict
from incidents.domain.times import rfc3339
from incidents.escalation.models import EscalationPolicy
from incidents.oncall import queries
from incidents.oncall.models import Calendar, Schedule
from ingest.commands import record_configuration
from ingest.queries import Context


class ByFewSlugs(CursorPagination):
    ordering = ("slug",)
    page_size = 10


@extend_schema_view(
    create=extend_schema(responses={201: OnCallScheduleShape}),
    retrieve=extend_schema(responses={200: OnCallScheduleShape}),
    partial_update=extend_schema(responses={200: OnCallScheduleShape}),
)
class SchedulesView(Catalog):
    """Who is on call. One of them is answered with how it stands: who it is now, and when nobody will be."""

    kind = "schedule"
    queryset = Schedule.objects.select_related("team").prefetch_related("holidays")
    serializer_class = OnCallScheduleSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def remove(self, instance: Schedule) -> None:
        check_removable(instance)
        instance.delete()

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        if self.action in ("create", "retrieve", "partial_update") and response.status_code < 300:
            response.data = {**response.data, "standing": standing(response.data["slug"])}
        return super().finalize_response(request, response, *args, **kwargs)


class CalendarsView(Catalog):
    """Who is away, and public holidays: iCalendar files that were brought here."""

    kind = "calendar"
    queryset = Calendar.objects.select_related("person")
    serializer_class = CalendarSerializer
    pagination_class = ByFewSlugs
    lookup_field = "slug"

    def remove(self, instance: Calendar) -> None:
        if using := list(instance.schedules.values_list("name", flat=True)[:3]):
            raise Conflict(
                f"{', '.join(using)} has its holidays from {instance.name}; take it out there first."
            )
        instance.delete()

    def _told(self, instance: Any) -> dict[str, Any]:
        return told(CalendarSerializer, instance)


def told(shape: type[ModelSerializer[Any]], instance: Model) -> dict[str, Any]:
    """A schedule or calendar as events say it. The text of a file is no news, that it is another one is."""
    body = dict(shape(instance).data)
    if "text" in body:
        body["text"] = f"sha256:{hashlib.sha256(body['text'].encode()).hexdigest()}"
    return body


@transaction.atomic
def keep(kind: str, serializer: ModelSerializer[Any], context: Context) -> None:
    """Save what is valid, and record the change; for those who do not come over HTTP."""
    shape, row = type(serializer), serializer.instance
    before = None
    if row is not None:
        before = told(shape, type(row).objects.select_for_update(of=("self",)).get(pk=row.pk))
    saved = serializer.save()
    record_configuration(kind, saved.slug, before, told(shape, saved), context)


@transaction.atomic
def remove(kind: str, shape: type[ModelSerializer[Any]], row: Schedule | Calendar, context: Context) -> None:
    """Remove it and record that. Raises Conflict where something needs it."""
    check_removable(row)
    before = told(shape, row)
    row.delete()
    record_configuration(kind, before["slug"], before, None, context)


def check_removable(row: Schedule | Calendar) -> None:
    """Raises Conflict where policies call the schedule, or schedules have their holidays from the calendar."""
    if isinstance(row, Schedule):
        called_by = EscalationPolicy.objects.filter(steps__contains=[{"actions": [{"schedule": row.slug}]}])
        if named := list(called_by.values_list("name", flat=True)[:3]):
            raise Conflict(f"It is called by the escalation policies {', '.join(named)}; change them first.")
    elif named := list(row.schedules.values_list("name", flat=True)[:3]):
        raise Conflict(f"Schedules have their holidays from it: {', '.join(named)}; take it out there first.")


def standing(slug: str) -> dict[str, Any]:
    known = queries.standing(queries.find_schedule(slug), timezone.now())
    return {
        "person": known.person,
        "until": None if known.until is None else rfc3339(known.until),
        "then": known.then,
        "gaps": [{"start": rfc3339(start), "end": rfc3339(end)} for start, end in known.gaps],
        "gone": known.gone,
    }
