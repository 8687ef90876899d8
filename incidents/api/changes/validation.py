"""POST /api/v1/changes/{id}/validation: compare forwarding before and after a change with its specification."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from analyzers.rela import (
    InvalidSnapshotError,
    InvalidSpecificationError,
    Snapshot,
    ValidationError,
    check,
    read_snapshot,
)
from incidents.api.changes.views import ChangeShape, as_json
from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI
from incidents.api.inputs import context, fields
from incidents.commands import InvalidValueError
from ingest.commands import record_validation
from ingest.queries import UnknownChangeError, reported_change

MOST_STEPS = 10_000_000
"""Some seconds: a request must not keep a worker longer. `manage.py validate_change` does fifty times as much."""
MOST_STORED = 200_000
"""Bytes of a stored verdict. Violations beyond are counted and not shown."""


class ValidateChangeShape(s.Serializer[Any]):
    before = s.CharField(help_text="snapshot before the change: text of a JSON or CSV file")
    after = s.CharField(help_text="snapshot after the change")
    specification = s.CharField(
        required=False, help_text="relational specification; default: `nochange` for all traffic"
    )


class ChangeValidationView(IncidentAPI):
    @extend_schema(
        operation_id="changes_validate",
        request=ValidateChangeShape,
        responses={
            200: OpenApiResponse(ChangeShape, "Validated; the verdict is stored with the change."),
            **ERRORS,
            **MISSING,
        },
    )
    def post(self, request: Request, id: str) -> Response:
        """Compare forwarding before and after a change with its specification. The verdict is recorded
        with the change and shown on the pages of its incidents; repeating the request with the same
        files has no effect."""
        body = fields(request, ValidateChangeShape)
        try:
            change = str(UUID(id))
        except ValueError:
            raise NotFound("Change not found.") from None
        if reported_change(change) is None:
            raise NotFound("Change not found.")
        specification = _text(body, "specification") if "specification" in body else "nochange"
        verdict = _verdict(_text(body, "before"), _text(body, "after"), specification)
        try:
            record_validation(change, verdict, context(request))
        except UnknownChangeError:
            raise NotFound("Change not found.") from None
        found = reported_change(change)
        if found is None:
            raise NotFound("Change not found.")
        return Response(as_json(found), status=status.HTTP_200_OK)


def _text(body: dict[str, Any], name: str) -> str:
    if not isinstance(body[name], str):
        raise InvalidValueError(name, "must be the text of a file")
    return str(body[name])


def _snapshot(name: str, text: str) -> Snapshot:
    try:
        return read_snapshot(name, text.encode("utf-8", "surrogatepass"))
    except InvalidSnapshotError as error:
        raise InvalidValueError(name, str(error)) from error


def _verdict(before: str, after: str, specification: str) -> dict[str, Any]:
    """Raises InvalidValueError."""
    try:
        found = check(
            _snapshot("before", before), _snapshot("after", after), specification, most_steps=MOST_STEPS
        )
    except InvalidSpecificationError as error:
        raise InvalidValueError("specification", str(error)) from error
    except ValidationError as error:
        raise InvalidValueError("before", f"{error}; `manage.py validate_change` takes more") from error
    digests = {
        f"{name}_sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        for name, text in (("before", before), ("after", after))
    }
    while found["violations"] and len(json.dumps(found["violations"])) > MOST_STORED:
        found["violations"].pop()
    return {**found, **digests}
