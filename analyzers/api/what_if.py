"""Calculators over HTTP: inputs in the address, the answer of the pages as JSON."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analyzers.calculators import CALCULATORS, answer, read
from ingest.api.authentication import HasScope

_INPUTS = {
    one.name: f"{one.label}, in {one.unit}: {one.bounds}; default: {one.default:g}. {one.help}"
    for calculator in CALCULATORS.values()
    for one in calculator.inputs
}


class WhatIfView(APIView):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read")]

    @extend_schema(
        parameters=[
            OpenApiParameter("calculator", str, OpenApiParameter.PATH, enum=list(CALCULATORS)),
            *(OpenApiParameter(name, float, description=words) for name, words in _INPUTS.items()),
        ],
        responses={
            200: OpenApiResponse(description="Inputs and figures, with explanations."),
            400: OpenApiResponse(description="Invalid input, or inputs that contradict each other."),
        },
    )
    def get(self, request: Request, calculator: str) -> Response:
        """Result of a calculator, by the functions of the analyzer of the same name."""
        found = CALCULATORS.get(calculator)
        if found is None:
            raise NotFound(f"There is no calculator {calculator[:60]}; there are {', '.join(CALCULATORS)}.")
        given = {name: request.query_params[name] for name in request.query_params}
        known = {one.name for one in found.inputs}
        if unknown := sorted(set(given) - known - {"format"}):
            raise ValidationError({unknown[0][:100]: [f"is not an input of {calculator}"]})
        values, wrong = read(found, given)
        if wrong:
            raise ValidationError({name: [reason] for name, reason in wrong.items()})
        try:
            result = answer(found, values)
        except ValueError as error:
            raise ValidationError({"inputs": [str(error)]}) from error
        return Response(
            {
                "calculator": calculator,
                "analyzer": found.analyzer,
                "inputs": values,
                "measures": result.measures,
                "verdict": result.verdict,
                "sentences": result.sentences,
            }
        )
