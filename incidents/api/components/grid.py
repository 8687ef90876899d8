"""GET /api/v1/grid: what any kind of component carried and lost against any other, step by step."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident.views import ERRORS, PROBLEM, IncidentAPI, parameters
from incidents.components.grid import as_json, grid_of
from incidents.domain.components.grid_query import (
    MOST_WITHIN,
    PARAMETERS,
    STEPS,
    USUAL_STEPS,
    USUAL_WINDOW,
    WINDOWS,
    grid_query_from,
)
from ingest.queries import PathSumsTooSlow


class GridTimeoutError(APIException):
    status_code = 503


class KindShape(s.Serializer[Any]):
    kind = s.CharField()
    components = s.IntegerField()


class GridStepShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField()


class AxisShape(s.Serializer[Any]):
    kind = s.CharField()
    names = s.ListField(child=s.CharField())
    hidden = s.IntegerField(help_text="number of components of the kind with fewer failures, left out")
    finer = s.CharField(allow_null=True, help_text="next kind down, whose components these contain")


class CellsShape(s.Serializer[Any]):
    cells = s.ListField(child=s.IntegerField())
    values = s.ListField(child=s.IntegerField())


class MarkShape(s.Serializer[Any]):
    component = s.CharField()
    by = s.ChoiceField(choices=("incident", "run"))
    title = s.CharField(help_text="title of the incident, or analyzer of the run")
    number = s.IntegerField(allow_null=True)
    run = s.UUIDField(allow_null=True)
    score = s.FloatField(allow_null=True)


class GridShape(s.Serializer[Any]):
    """The index of a cell is `row * columns + column`. Its rate is failed / carried: the share of units
    placed there at the start of the step that failed in it, or of attempts."""

    region = s.CharField()
    telemetry = s.ChoiceField(
        choices=("placement", "path_outcome"), allow_null=True, help_text="null: no path telemetry"
    )
    kinds = KindShape(many=True)
    within = s.ListField(child=s.CharField())
    window_seconds = s.IntegerField()
    steps = GridStepShape(many=True)
    at = s.IntegerField(help_text="index of the requested step")
    rows = AxisShape(allow_null=True)
    columns = AxisShape(allow_null=True)
    carried = s.ListField(
        child=s.JSONField(),
        help_text="first step: all cells; later steps: changed cells, as in `failed`",
    )
    failed = CellsShape(many=True, help_text="cells with failures, by step")
    unplaced = s.ListField(child=s.IntegerField(), help_text="failed units without a placement, by step")
    marks = s.ListField(child=MarkShape(many=True), help_text="suspects by step, with their source")


_HELP = {
    "region": "default: the first region with path telemetry",
    "telemetry": "placement (units) or path_outcome (attempts); default: placement if available",
    "rows": "kind of component; default: compute_cluster, else the best available",
    "columns": "other kind of component; default: storage_cluster, else the best available",
    "window": f"minutes per step, one of {', '.join(map(str, WINDOWS))}; default: {USUAL_WINDOW}",
    "steps": f"number of steps, {STEPS[0]} to {STEPS[1]}; default: {USUAL_STEPS}",
    "end": "end of the last step, RFC 3339; default: the latest telemetry",
    "at": "time within the requested step, RFC 3339; default: the last step",
}


class GridView(IncidentAPI):
    @extend_schema(
        operation_id="grid",
        parameters=[
            *(OpenApiParameter(name, str, description=_HELP[name]) for name in PARAMETERS),
            OpenApiParameter(
                "within",
                str,
                many=True,
                description=f"only paths through this component; repeatable, at most {MOST_WITHIN}",
            ),
        ],
        responses={
            200: GridShape,
            **ERRORS,
            503: OpenApiResponse(PROBLEM, "The query took too long; request less."),
        },
    )
    def get(self, request: Request) -> Response:
        """Failures between any two kinds of component in consecutive time steps, with suspects."""
        requested = grid_query_from(
            parameters(request, *PARAMETERS, "within"), request.query_params.getlist("within")
        )
        try:
            return Response(as_json(grid_of(requested)))
        except PathSumsTooSlow as error:
            raise GridTimeoutError(f"The sums of the grid {error}.") from error
