"""On-call over HTTP, for people, programs and calendars; overrides and swaps, which any responder may make."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, PROBLEM, IncidentAPI, parameters
from incidents.api.inputs import context, fields, time_of
from incidents.api.oncall import serializers as shapes
from incidents.domain.oncall.overrides import Stretch
from incidents.domain.values import InvalidValueError, check_line, rfc3339
from incidents.oncall import calendars, commands, queries
from incidents.oncall.models import CalendarFeed, OnCallSchedule
from ingest.api.authentication import HasScope
from ingest.api.keys import ADMIN

MISSING = {404: OpenApiResponse(PROBLEM, "Schedule not found, or no object with this id in it.")}
CONFLICT = {
    409: OpenApiResponse(PROBLEM, "Already ended, already begun, or too many; `detail` has the reason.")
}
FIRST, LAST = datetime(2000, 1, 2, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
LONGEST = timedelta(days=370)
SPAN = [
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="default: now"),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="default: 28 days later; at most 370 days"),
]
CALENDAR = {(200, "text/calendar"): OpenApiResponse(OpenApiTypes.STR, "iCalendar (RFC 5545).")}


class OnCallAPI(IncidentAPI):
    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, queries.ScheduleNotFoundError | commands.OverrideNotFoundError):
            exc = NotFound(str(exc))
        return super().handle_exception(exc)


class OnCallView(OnCallAPI):
    @extend_schema(
        operation_id="on_call_list",
        parameters=[OpenApiParameter("at", OpenApiTypes.DATETIME, description="default: now")],
        responses={200: shapes.OnCallListShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """People on call in every schedule."""
        at = _moment(parameters(request, "at"), "at", timezone.now())
        return Response({"results": [_on_call(row, at) for row in OnCallSchedule.objects.all()]})


class ScheduleOnCallView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_on_call",
        parameters=[OpenApiParameter("at", OpenApiTypes.DATETIME, description="default: now")],
        responses={200: shapes.OnCallShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, slug: str) -> Response:
        """People on call."""
        at = _moment(parameters(request, "at"), "at", timezone.now())
        return Response(_on_call(queries.find_schedule(slug), at))


class ShiftsView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_shifts",
        parameters=SPAN,
        responses={200: shapes.ShiftsShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Shifts of a schedule, after overrides, swaps and absences, and uncovered times."""
        start, end = _span(parameters(request, "from", "to"))
        row = queries.find_schedule(slug)
        found, hours = queries.shifts(row.slug, start, end), defaultdict[str, float](float)
        for one in found:
            hours[one.person] += (one.end - one.start) / timedelta(hours=1)
        body = {
            "schedule": row.slug,
            "start": rfc3339(start),
            "end": rfc3339(end),
            "shifts": [
                {
                    "start": rfc3339(one.start),
                    "end": rfc3339(one.end),
                    "person": one.person,
                    "layer": one.layer or None,
                    "override": one.override or None,
                }
                for one in found
            ],
            "gaps": [
                {"start": rfc3339(begins), "end": rfc3339(ends)}
                for begins, ends in queries.gaps(row.slug, start, end)
            ],
            "hours": dict(hours),
        }
        return Response(body)


class OverridesView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_overrides", responses={200: shapes.OverrideListShape, **ERRORS, **MISSING}
    )
    def get(self, request: Request, slug: str) -> Response:
        """Current and future overrides, in order of creation."""
        parameters(request)
        current = queries.find_schedule(slug).overrides.filter(ends_at__gt=timezone.now())
        return Response(
            {"results": [commands.override_as_json(one) for one in current.select_related("person")]}
        )

    @extend_schema(
        operation_id="schedules_override",
        request=shapes.NewOverrideShape,
        responses={201: shapes.OverrideShape, **ERRORS, **MISSING, **CONFLICT},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Put a person on call for a time, instead of the schedule. The newest override wins."""
        body = fields(request, shapes.NewOverrideShape)
        if "person" not in body and request.auth is not None:
            raise InvalidValueError("person", "is required with a key")
        made = commands.override(
            slug,
            body.get("person", request.user.get_username()),
            time_of("starts_at", body.get("starts_at")),
            _required_time("ends_at", body["ends_at"]),
            body["reason"],
            timezone.now(),
            context(request),
        )
        return Response(commands.override_as_json(made), status=status.HTTP_201_CREATED)


class OverrideView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_end_override", responses={204: None, **ERRORS, **MISSING, **CONFLICT}
    )
    def delete(self, request: Request, slug: str, id: str) -> Response:
        """End an override now. One that has not begun is removed; one that has keeps its past part."""
        commands.end_override(slug, id, timezone.now(), context(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class SwapsView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_swap",
        request=shapes.NewSwapShape,
        responses={201: shapes.SwapShape, **ERRORS, **MISSING, **CONFLICT},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Exchange shifts, or parts of them, between two people: two overrides, created and removed
        together."""
        body = fields(request, shapes.NewSwapShape)
        first, second = (_stretch(name, body[name]) for name in ("first", "second"))
        made = commands.swap(slug, first, second, body["reason"], timezone.now(), context(request))
        entries = [commands.override_as_json(one) for one in made]
        return Response({"id": entries[0]["swap"], "overrides": entries}, status=status.HTTP_201_CREATED)


class SwapView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_take_back_swap", responses={204: None, **ERRORS, **MISSING, **CONFLICT}
    )
    def delete(self, request: Request, slug: str, id: str) -> Response:
        """Remove a swap that has not begun."""
        commands.take_back_swap(slug, id, timezone.now(), context(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ScheduleCalendarView(OnCallAPI):
    @extend_schema(
        operation_id="schedules_calendar", parameters=SPAN, responses={**CALENDAR, **ERRORS, **MISSING}
    )
    def get(self, request: Request, slug: str) -> HttpResponse:
        """Shifts as iCalendar, with uncovered times."""
        start, end = _span(parameters(request, "from", "to"))
        return _calendar(queries.find_schedule(slug), start, end)


class FeedsView(OnCallAPI):
    @extend_schema(operation_id="schedules_feeds", responses={200: shapes.FeedListShape, **ERRORS, **MISSING})
    def get(self, request: Request, slug: str) -> Response:
        """Your secret calendar addresses, without the secret, which is not stored."""
        parameters(request)
        mine = queries.find_schedule(slug).feeds.filter(user__pk=request.user.pk or 0)
        entries = [{"id": str(one.pk), "mine": one.mine, "made_at": rfc3339(one.made_at)} for one in mine]
        return Response({"results": entries})

    @extend_schema(
        operation_id="schedules_make_feed",
        request=shapes.NewFeedShape,
        responses={201: shapes.FeedShape, **ERRORS, **MISSING, **CONFLICT},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create a secret address of the shifts for calendar programs; for signed-in people."""
        body = fields(request, shapes.NewFeedShape)
        if not isinstance(body.get("mine", False), bool):
            raise InvalidValueError("mine", "must be true or false")
        if not isinstance(request.user, AbstractBaseUser):
            raise InvalidValueError("person", "a calendar address belongs to a person; sign in to create one")
        feed, secret = commands.make_feed(slug, request.user, body.get("mine", False), context(request))
        url = f"{settings.PUBLIC_URL}/api/v1/on_call/feeds/{secret}.ics"
        return Response({"id": str(feed.pk), "mine": feed.mine, "url": url}, status=status.HTTP_201_CREATED)


class FeedView(OnCallAPI):
    @extend_schema(operation_id="schedules_remove_feed", responses={204: None, **ERRORS, **MISSING})
    def delete(self, request: Request, slug: str, id: str) -> Response:
        """Revoke one of your secret addresses; staff and keys with `admin` may revoke any."""
        owner = None if HasScope(ADMIN).has_permission(request, self) else request.user
        if not isinstance(owner, AbstractBaseUser | None):
            raise NotFound("Removing addresses with a key requires the scope admin.")
        commands.remove_feed(slug, id, owner, context(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class SecretCalendarView(OnCallAPI):
    """Calendar at a secret address: a reader needs nothing else, and it leads nowhere else."""

    authentication_classes = ()

    def get_permissions(self) -> list[BasePermission]:
        return []

    @extend_schema(
        operation_id="on_call_feed",
        auth=[],
        responses={**CALENDAR, 404: OpenApiResponse(PROBLEM, "Address not found.")},
    )
    def get(self, request: Request, secret: str) -> HttpResponse:  # noqa: ARG002
        """Shifts from four weeks ago to a year ahead, for calendar programs."""
        found = CalendarFeed.objects.filter(digest=commands.digest(secret), user__is_active=True)
        feed = found.select_related("schedule", "user").first()
        if feed is None:
            raise NotFound("Address not found.")
        now = timezone.now()
        only = feed.user.get_username() if feed.mine else None
        return _calendar(feed.schedule, now - timedelta(days=28), now + timedelta(days=365), only)


def _calendar(row: OnCallSchedule, start: datetime, end: datetime, only: str | None = None) -> HttpResponse:
    shifts = [one for one in queries.shifts(row.slug, start, end) if only in (None, one.person)]
    gaps = [] if only else queries.gaps(row.slug, start, end)
    written = calendars.written(row, shifts, gaps, timezone.now())
    headers = {
        "Content-Disposition": f'inline; filename="{row.slug}.ics"',
        "Cache-Control": "private, no-store",
    }
    return HttpResponse(written, content_type="text/calendar; charset=utf-8", headers=headers)


def _on_call(row: OnCallSchedule, at: datetime) -> dict[str, Any]:
    people = list(queries.on_call(row.slug, at))
    return {"schedule": row.slug, "name": row.name, "at": rfc3339(at), "people": people}


def _stretch(name: str, value: object) -> Stretch:
    if not isinstance(value, dict) or not {"person", "ends_at"} <= set(value) <= {
        "person",
        "starts_at",
        "ends_at",
    }:
        raise InvalidValueError(name, "must be an object with person, ends_at and optionally starts_at")
    person = check_line(f"{name}.person", value["person"], 150)
    start = time_of(f"{name}.starts_at", value.get("starts_at"))
    return Stretch(person, start, _required_time(f"{name}.ends_at", value["ends_at"]))


def _required_time(name: str, value: object) -> datetime:
    moment = time_of(name, value)
    if moment is None:
        raise InvalidValueError(name, "is required")
    return moment


def _moment(query: dict[str, str], name: str, default: datetime) -> datetime:
    moment = time_of(name, query.get(name)) or default
    if not FIRST <= moment <= LAST:
        raise InvalidValueError(name, f"must be from {FIRST.year} to {LAST.year}")
    return moment


def _span(query: dict[str, str]) -> tuple[datetime, datetime]:
    start = _moment(query, "from", timezone.now())
    end = _moment(query, "to", min(start + timedelta(days=28), LAST))
    if not start < end <= start + LONGEST:
        raise InvalidValueError("to", f"must be later than `from`, by at most {LONGEST.days} days")
    return start, end
