"""Differences between two moments, over HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers as s
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.components.grid import GridTimeoutError
from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI, parameters
from incidents.api.permissions import MayConfigure
from incidents.audit.queries import Difference
from incidents.comparison.queries import (
    Span,
    compare_configuration,
    compare_grid,
    compare_incident,
    span_from,
)
from incidents.domain.comparison import CellChange, Share
from incidents.domain.components.grid_query import MOST_WITHIN, grid_query_from
from incidents.domain.values import rfc3339
from ingest.queries import PathSumsTooSlow

TIMES = [
    OpenApiParameter("from", str, required=True, description="start: RFC 3339 time or log position"),
    OpenApiParameter("to", str, description="end: RFC 3339 time or log position; default: now"),
]


class DifferenceShape(s.Serializer[Any]):
    field = s.CharField()
    before = s.CharField(allow_null=True)
    after = s.CharField(allow_null=True)


class EventShape(s.Serializer[Any]):
    at = s.DateTimeField()
    type = s.CharField()
    actor = s.CharField()
    text = s.CharField()
    count = s.IntegerField(help_text="number of consecutive similar events")
    position = s.CharField()


class AlertTitleShape(s.Serializer[Any]):
    id = s.CharField()
    title = s.CharField()


class IncidentComparisonShape(s.Serializer[Any]):
    start = s.DateTimeField(help_text="`from`")
    end = s.DateTimeField(help_text="`to`")
    number = s.IntegerField()
    opened = s.BooleanField(help_text="incident opened between the two times")
    fields = DifferenceShape(many=True)  # type: ignore[assignment]
    events = EventShape(many=True, help_text="the timeline between them, newest first, at most 200")
    more_events = s.IntegerField()
    fired = AlertTitleShape(many=True, help_text="alerts firing at `to` but not at `from`")
    resolved = AlertTitleShape(many=True, help_text="alerts firing at `from` but not at `to`")


class ShareShape(s.Serializer[Any]):
    carried = s.IntegerField()
    failed = s.IntegerField()


class CellChangeShape(s.Serializer[Any]):
    row = s.CharField(help_text="empty: a whole column")
    column = s.CharField(help_text="empty: a whole row")
    before = ShareShape()
    after = ShareShape()
    deviation = s.FloatField(
        help_text="difference of the two shares in standard deviations; positive: more failures later"
    )


class GridComparisonShape(s.Serializer[Any]):
    start = s.DateTimeField(help_text="`from`: the end of the first window")
    end = s.DateTimeField(help_text="`to`: the end of the second window")
    region = s.CharField()
    known = s.BooleanField(help_text="true: both windows have telemetry")
    before = ShareShape()
    after = ShareShape()
    rows = CellChangeShape(many=True)
    columns = CellChangeShape(many=True)
    cells = CellChangeShape(many=True, help_text="the 50 largest changes")
    more = s.IntegerField(help_text="number of other cells that changed")
    appeared = s.ListField(child=s.CharField(), help_text="suspects at `to` only")
    vanished = s.ListField(child=s.CharField(), help_text="suspects at `from` only")


class ObjectChangeShape(s.Serializer[Any]):
    kind = s.CharField()
    key = s.CharField()
    what = s.ChoiceField(choices=("created", "removed", "changed"))
    fields = DifferenceShape(many=True)  # type: ignore[assignment]
    changes = s.IntegerField()
    actors = s.ListField(child=s.CharField())
    at = s.DateTimeField(help_text="time of the last change")


class ConfigurationComparisonShape(s.Serializer[Any]):
    start = s.DateTimeField(help_text="`from`")
    end = s.DateTimeField(help_text="`to`")
    objects = ObjectChangeShape(many=True)
    reverted = s.IntegerField(help_text="objects that were changed and changed back")


class IncidentCompareView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_compare",
        parameters=TIMES,
        responses={200: IncidentComparisonShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Differences of an incident between two times: fields, timeline, alerts."""
        query = parameters(request, "from", "to")
        found = compare_incident(reference, span_from(query.get("from", ""), query.get("to", "")))
        return Response(
            {
                **_times(found.span),
                "number": found.number,
                "opened": found.opened,
                "fields": _differences(found.fields),
                "events": [
                    {
                        "at": rfc3339(one.last_at),
                        "type": one.type,
                        "actor": one.actor,
                        "text": one.text,
                        "count": one.count,
                        "position": one.position,
                    }
                    for one in found.events
                ],
                "more_events": found.more_events,
                "fired": [{"id": one.id, "title": one.alert.title} for one in found.fired],
                "resolved": [{"id": one.id, "title": one.alert.title} for one in found.resolved],
            }
        )


GRID = ("region", "telemetry", "rows", "columns", "window")


class GridCompareView(IncidentAPI):
    @extend_schema(
        operation_id="grid_compare",
        parameters=[
            *TIMES,
            *(OpenApiParameter(name, str, description="as in the grid") for name in GRID),
            OpenApiParameter("within", str, many=True, description=f"as in the grid, at most {MOST_WITHIN}"),
        ],
        responses={200: GridComparisonShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Differences of the grid between the window that ends at `from` and the one that ends at `to`."""
        query = parameters(request, "from", "to", "within", *GRID)
        span = span_from(query.pop("from", ""), query.pop("to", ""))
        grid = grid_query_from(query, request.query_params.getlist("within"))
        try:
            found = compare_grid(grid, span)
        except PathSumsTooSlow as error:
            raise GridTimeoutError(f"The sums of the grid {error}.") from error
        return Response(
            {
                **_times(found.span),
                "region": found.after.region,
                "known": found.known,
                "before": _share(found.totals[0]),
                "after": _share(found.totals[1]),
                "rows": _cells(found.rows),
                "columns": _cells(found.columns),
                "cells": _cells(found.cells),
                "more": found.more,
                "appeared": found.appeared,
                "vanished": found.vanished,
            }
        )


class ConfigurationCompareView(IncidentAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [MayConfigure()]

    @extend_schema(
        operation_id="configuration_compare",
        parameters=TIMES,
        responses={200: ConfigurationComparisonShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Differences of the configuration between `from` and `to`."""
        query = parameters(request, "from", "to")
        found = compare_configuration(span_from(query.get("from", ""), query.get("to", "")))
        objects = [
            {
                "kind": one.kind,
                "key": one.key,
                "what": one.what,
                "fields": _differences(one.fields),
                "changes": one.changes,
                "actors": one.actors,
                "at": rfc3339(one.at),
            }
            for one in found.objects
        ]
        return Response({**_times(found.span), "objects": objects, "reverted": found.reverted})


def _times(span: Span) -> dict[str, str]:
    return {"start": rfc3339(span.start), "end": rfc3339(span.end)}


def _differences(found: Iterable[Difference]) -> list[dict[str, Any]]:
    return [{"field": one.field, "before": one.before, "after": one.after} for one in found]


def _share(one: Share) -> dict[str, int]:
    return {"carried": one.carried, "failed": one.failed}


def _cells(found: Iterable[CellChange]) -> list[dict[str, Any]]:
    return [
        {
            "row": one.row,
            "column": one.column,
            "before": _share(one.before),
            "after": _share(one.after),
            "deviation": one.deviation,
        }
        for one in found
    ]
