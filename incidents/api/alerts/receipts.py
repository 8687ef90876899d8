"""GET /api/v1/receipts/{id}: what became of a request that was answered with a 2xx."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.alerts.receipts import outcomes_of
from incidents.api.incident import serializers as shapes
from ingest.api.keys import Key


class ReceiptView(APIView):
    permission_classes = (IsAuthenticated,)

    @extend_schema(
        operation_id="receipts_get",
        responses={
            200: shapes.ReceiptShape,
            404: OpenApiResponse(shapes.ProblemShape, "Unknown receipt, or one of another integration."),
        },
    )
    def get(self, request: Request, id: str) -> Response:
        """Outcome of a request. A key sees its own receipts; all of them with the scope `incidents:read`."""
        found = outcomes_of(id)
        if found is None or not _may_see(request, found[0]):
            raise NotFound(f"There is no receipt {id[:100]}.")
        return Response({"receipt": id, **found[1]})


def _may_see(request: Request, actor: str) -> bool:
    key = request.auth
    return not isinstance(key, Key) or key.allows("incidents:read") or actor == f"key:{key.name}"
