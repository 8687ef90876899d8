"""GET /api/v1/changes and /api/v1/incidents/{id}/changes: what was changed, and what may have caused an incident."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.api.incident.views import AS_OF, ERRORS, MISSING, IncidentAPI, as_of_in, limit_of, parameters
from incidents.commands import InvalidValueError
from incidents.domain.values import optional_rfc3339, parse_rfc3339, rfc3339
from incidents.onsets.queries import beginning
from ingest.queries import ReportedChange, changes

SPAN = timedelta(days=1)
FIRST = datetime.min.replace(tzinfo=UTC)


class ChangeShape(s.Serializer[Any]):
    """A change, as reported by its sender."""

    id = s.CharField()
    summary = s.CharField()
    source = s.CharField()  # type: ignore[assignment]  # DRF takes fields out of the class
    component = s.CharField(allow_null=True)
    at = s.DateTimeField(help_text="time of the change; without one from the sender, time of receipt")
    details = s.DictField(help_text="text by dotted path")
    links = s.ListField(child=s.DictField(), help_text="href and text")
    notes = s.ListField(child=s.CharField(), help_text="parts that were shortened or left out")
    integration = s.CharField(help_text="name of the integration that sent it")
    received_at = s.DateTimeField(allow_null=True, help_text="null: read from rows of `change`")
    receipt = s.CharField(allow_null=True, help_text="null: read from rows of `change`")
    targets = s.ListField(child=s.CharField(), help_text="components of a change that names several")
    validation = s.DictField(
        allow_null=True,
        help_text="latest verdict on forwarding before and after the change: `holds` or `violated`, with"
        " witness paths; null: not validated",
    )
    validated_at = s.DateTimeField(allow_null=True)


class TestShape(s.Serializer[Any]):
    """Whether a change can be the cause. Counts are [shifted, judged], of components with metrics."""

    verdict = s.ChoiceField(choices=["supported", "contradicted", "cannot be tested"])
    reasons = s.ListField(child=s.CharField(), help_text="sentences with figures, the decisive one first")
    lag_seconds = s.FloatField(allow_null=True, help_text="seconds from the change to the onset")
    coincidence = s.FloatField(
        allow_null=True, help_text="probability that a change precedes a random moment this closely by chance"
    )
    changed = s.ListField(child=s.IntegerField(), help_text="of the changed components")
    control = s.ListField(child=s.IntegerField(), help_text="of the components without the change")
    control_p = s.FloatField(allow_null=True, help_text="p-value of Fisher's exact test, one-sided")
    dose_p = s.FloatField(
        allow_null=True, help_text="p-value that components changed earlier shifted earlier (Kendall, exact)"
    )


class OnsetShape(s.Serializer[Any]):
    """Onset of the failure, between `low` and `high`: a 95 % interval with `source` `metrics`, else from the last
    moment at which the same source saw no failure. Null `low`: only the latest possible time is known."""

    at = s.DateTimeField()
    low = s.DateTimeField(allow_null=True)
    high = s.DateTimeField()
    source = s.ChoiceField(  # type: ignore[assignment]  # DRF takes fields out of the class
        choices=["metrics", "analyzer", "alert", "opened"]
    )
    detail = s.CharField(help_text="metric and component, or the earliest record")
    interval = s.CharField(help_text="source of `low`, or the reason why the beginning is unknown")
    forecast = s.BooleanField(help_text="true: nothing has failed yet; `at` is the time of the record")
    run = s.CharField(allow_null=True, help_text="run of `changepoint` that provides the metrics")


class IncidentChangeShape(ChangeShape):
    test = TestShape()


class PlannedWorkShape(s.Serializer[Any]):
    """A maintenance window that covers a component or an alert of the incident and overlaps the onset or
    the half-hour before."""

    slug = s.CharField()
    reason = s.CharField()
    starts_at = s.DateTimeField()
    ends_at = s.DateTimeField()


class IncidentChangeListShape(s.Serializer[Any]):
    onset = OnsetShape()
    maintenance = PlannedWorkShape(
        many=True, help_text="maintenance windows as configured now; empty with `as_of`"
    )
    results = IncidentChangeShape(many=True)


class ChangeListShape(s.Serializer[Any]):
    results = ChangeShape(many=True)


class ChangesView(IncidentAPI):
    @extend_schema(
        operation_id="changes_list",
        parameters=[
            OpenApiParameter("since", str, description="RFC 3339; default: a day before `until`"),
            OpenApiParameter("until", str, description="RFC 3339; default: now"),
            OpenApiParameter("name", str, description="a source, host, service or component of the change"),
            OpenApiParameter("limit", int, description="1 to 200, default 50"),
        ],
        responses={200: ChangeListShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Reported changes, newest first. They open no incident."""
        query = parameters(request, "since", "until", "name", "limit")
        until = _time("until", query["until"]) if "until" in query else timezone.now()
        since = _time("since", query["since"]) if "since" in query else _before(until)
        names = [_name(query["name"])] if "name" in query else None
        found = changes(since, until, names, limit_of(query))
        return Response({"results": [as_json(one) for one in found]})


class IncidentChangesView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_changes",
        parameters=[AS_OF],
        responses={200: IncidentChangeListShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Onset of the failure, and related changes from a day before the onset to the resolution, each
        tested as the cause: reported ones, and rows of `change` of the incident's region."""
        as_of = as_of_in(parameters(request, "as_of"))
        found = beginning(queries.get(reference, as_of).incident, as_of)
        began = {**asdict(found.onset), "run": found.run}
        for name in ("at", "low", "high"):
            began[name] = optional_rfc3339(began[name])
        results = [{**as_json(one.change), "test": asdict(one.test)} for one in found.changes]
        planned = [
            {
                "slug": one.window.slug,
                "reason": one.window.reason,
                "starts_at": rfc3339(one.span.starts_at),
                "ends_at": rfc3339(one.span.ends_at),
            }
            for one in found.maintenance
        ]
        return Response({"onset": began, "maintenance": planned, "results": results})


def _before(until: datetime) -> datetime:
    return until - SPAN if until - FIRST > SPAN else FIRST


def _time(name: str, text: str) -> datetime:
    try:
        return parse_rfc3339(text)
    except (ValueError, OverflowError):
        raise InvalidValueError(name, "must be an RFC 3339 time, such as 2026-01-31T12:00:00Z") from None


def _name(text: str) -> str:
    if not (text.isprintable() and 1 <= len(text) <= 255):
        raise InvalidValueError("name", "must be one line of 1 to 255 characters")
    return text.lower()


def as_json(one: ReportedChange) -> dict[str, Any]:
    return {
        "id": one.id,
        "summary": one.summary,
        "source": one.source,
        "component": one.component,
        "at": rfc3339(one.at),
        "details": one.details,
        "links": list(one.links),
        "notes": list(one.notes),
        "integration": one.integration,
        "received_at": optional_rfc3339(one.received_at),
        "receipt": one.receipt,
        "targets": list(one.targets),
        "validation": one.validation,
        "validated_at": optional_rfc3339(one.validated_at),
    }
