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
    hidden = s.IntegerField(help_text="components of the kind that lost less and are left out")
    finer = s.CharField(
        allow_null=True, help_text="the next kind down: each of its components is beneath one of these"
    )


class CellsShape(s.Serializer[Any]):
    cells = s.ListField(child=s.IntegerField())
    values = s.ListField(child=s.IntegerField())


class MarkShape(s.Serializer[Any]):
    component = s.CharField()
    by = s.ChoiceField(choices=("incident", "run"))
    title = s.CharField(help_text="of the incident; of a run its analyzer")
    number = s.IntegerField(allow_null=True)
    run = s.UUIDField(allow_null=True)
    score = s.FloatField(allow_null=True)


class GridShape(s.Serializer[Any]):
    """A cell's number is `row * columns + column`. Its rate is failed / carried: the share of the units placed
    there at the step's start which failed in it, or of the attempts."""

    region = s.CharField()
    telemetry = s.ChoiceField(
        choices=("placement", "path_outcome"), allow_null=True, help_text="null: no telemetry of paths"
    )
    kinds = KindShape(many=True)
    within = s.ListField(child=s.CharField())
    window_seconds = s.IntegerField()
    steps = GridStepShape(many=True)
    at = s.IntegerField(help_text="the step that is asked for")
    rows = AxisShape(allow_null=True)
    columns = AxisShape(allow_null=True)
    carried = s.ListField(
        child=s.JSONField(),
        help_text="of the first step all cells, of each later one those that changed, as `failed`",
    )
    failed = CellsShape(many=True, help_text="of each step the cells in which something failed")
    unplaced = s.ListField(
        child=s.IntegerField(), help_text="of each step the units that failed and were placed nowhere"
    )
    marks = s.ListField(child=MarkShape(many=True), help_text="suspects of each step, with their source")


_HELP = {
    "region": "default: the first that has telemetry of paths",
    "telemetry": "placement (units) or path_outcome (attempts); default: placement if available",
    "rows": "a kind of component; default: compute_cluster, or what crosses best",
    "columns": "another kind; default: storage_cluster, or what crosses best",
    "window": f"minutes of a step, one of {', '.join(map(str, WINDOWS))}; default: {USUAL_WINDOW}",
    "steps": f"how many steps, {STEPS[0]} to {STEPS[1]}; default: {USUAL_STEPS}",
    "end": "RFC 3339, the end of the last step; default: how far telemetry has come",
    "at": "RFC 3339, a time within the step that `at` of the answer names; default: the last one",
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
                description=f"only paths that hold this component; again for more, at most {MOST_WITHIN}",
            ),
        ],
        responses={
            200: GridShape,
            **ERRORS,
            503: OpenApiResponse(PROBLEM, "The database took too long; ask for less."),
        },
    )
    def get(self, request: Request) -> Response:
        """Failures between any two kinds of component in consecutive steps of time, with what was blamed."""
        requested = grid_query_from(
            parameters(request, *PARAMETERS, "within"), request.query_params.getlist("within")
        )
        try:
            return Response(as_json(grid_of(requested)))
        except PathSumsTooSlow as error:
            raise GridTimeoutError(f"The sums of the grid {error}.") from error
